//! The store suite: the same cases on SQLite, one test each, and on a private PostgreSQL, all in one
//! test, and all in another one behind a pgbouncer. Without a PostgreSQL or a pgbouncer those fail: an unproven part is
//! no success.
#![allow(missing_docs, reason = "a test has no readers of its documentation")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends so"
)]

#[path = "store/alerts.rs"]
mod alerts;
#[path = "store/audit.rs"]
mod audit;
#[path = "store/bindings.rs"]
mod bindings;
#[path = "../../tests/src/bouncer.rs"]
mod bouncer;
#[path = "store/cases.rs"]
mod cases;
#[path = "../../tests/src/database.rs"]
mod database;
#[path = "store/identity.rs"]
mod identity;
#[path = "store/pins.rs"]
mod pins;
#[path = "store/pooled.rs"]
mod pooled;
#[path = "store/records.rs"]
mod records;
#[path = "store/replicas.rs"]
mod replicas;
#[path = "store/rollouts.rs"]
mod rollouts;
#[path = "store/secrets.rs"]
mod secrets;
#[path = "store/windows.rs"]
mod windows;

use std::sync::Arc;

use control_plane::store::Store;
use sqlx::Connection as _;

/// A new database of either kind, that may be opened several times, as by several processes.
enum Place {
    Folder(tempfile::TempDir),
    Url(String),
    /// Through a pooler, and the database itself.
    Pooled {
        through: String,
        url: String,
    },
}

const NOW: u64 = 1_700_000_000_000;

impl Place {
    async fn open(&self) -> Store {
        let opened = match self {
            Place::Folder(folder) => Store::open_sqlite(folder.path(), NOW).await,
            Place::Url(url) => Store::open_postgres(url, None, NOW).await,
            Place::Pooled { through, url } => Store::open_postgres(through, Some(url), NOW).await,
        };
        opened.unwrap()
    }

    /// How many transactions are open and wait for their next statement.
    async fn open_transactions(&self) -> i64 {
        match self {
            Place::Folder(_) => 0,
            Place::Url(url) | Place::Pooled { url, .. } => {
                let mut conn = sqlx::PgConnection::connect(url).await.unwrap();
                let sql = "select count(*) from pg_stat_activity
                           where datname = current_database() and state like 'idle in transaction%'";
                sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap()
            }
        }
    }

    /// Does something to the database behind the store's back.
    async fn execute(&self, sql: &'static str) {
        match self {
            Place::Folder(folder) => {
                let url = format!("sqlite://{}", folder.path().join("sluice.db").display());
                let mut conn = sqlx::SqliteConnection::connect(&url).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
            }
            Place::Url(url) | Place::Pooled { url, .. } => {
                let mut conn = sqlx::PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(sql).execute(&mut conn).await.unwrap();
            }
        }
    }
}

/// The epoch under which the periodic work is done here.
async fn lead(store: &Store) -> u64 {
    let claimed = store.claim_leader("the test", std::time::Duration::from_secs(60)).await.unwrap();
    claimed.expect("nobody else leads")
}

macro_rules! suite {
    ($($file:ident::$case:ident,)+) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $case() {
                    let place = super::Place::Folder(tempfile::tempdir().unwrap());
                    super::$file::$case(std::sync::Arc::new(place)).await;
                }
            )+
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn the_whole_suite_holds_on_postgresql_too() {
            let cluster = database::Postgres::lend().expect("a PostgreSQL for the store suite");
            $(
                println!("case {}", stringify!($case));
                let name = format!("store_{}_{}", std::process::id(), stringify!($case));
                let url = cluster.create(&name[..name.len().min(63)]).unwrap();
                $file::$case(Arc::new(Place::Url(url))).await;
            )+
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn fr_035_the_whole_suite_holds_behind_pgbouncer_in_transaction_mode() {
            let cluster = database::Postgres::lend().expect("a PostgreSQL for the store suite");
            let pooler = bouncer::Bouncer::start(&cluster, "transaction").expect("a pgbouncer for the store suite");
            $(
                println!("case {}", stringify!($case));
                let name = format!("pooled_{}_{}", std::process::id(), stringify!($case));
                let url = cluster.create(&name[..name.len().min(63)]).unwrap();
                let through = pooler.through(&url).unwrap();
                $file::$case(Arc::new(Place::Pooled { through, url })).await;
            )+
        }
    };
}

/// Preparing is what a pooler cannot do.
#[tokio::test]
async fn every_statement_is_taken_by_both_databases() {
    let cluster = database::Postgres::lend().expect("a PostgreSQL for the store suite");
    let url = cluster.create(&format!("statements_{}", std::process::id())).unwrap();
    for place in [Place::Folder(tempfile::tempdir().unwrap()), Place::Url(url)] {
        cases::every_statement_is_taken(&place.open().await).await;
    }
}

suite! {
    alerts::what_is_still_to_be_said_of_alerts_is_kept_by_whoever_leads,
    alerts::a_silence_lasts_until_its_end_or_until_somebody_ends_it,
    alerts::beats_grow_old_by_the_databases_clock_and_go_with_their_control_plane,
    cases::migrations_are_safe_to_run_twice_and_by_many_at_once,
    cases::the_epoch_is_given_once,
    cases::revisions_are_numbered_without_gaps_and_a_taken_number_is_refused,
    cases::of_many_who_make_the_same_revision_one_wins,
    cases::an_idempotency_key_belongs_to_one_revision,
    cases::old_revisions_are_removed_but_not_what_a_node_runs,
    cases::revisions_are_listed_newest_first_and_by_page,
    cases::fr_045_documents_and_snapshots_come_back_byte_by_byte,
    cases::each_change_of_the_keys_moves_their_version_by_one,
    cases::a_key_is_revoked_once_and_an_unknown_one_is_none,
    cases::nodes_are_kept_and_a_late_writer_does_not_take_them_back,
    audit::of_many_who_change_something_each_leaves_one_entry_in_one_chain,
    audit::what_is_not_done_leaves_no_entry,
    audit::a_change_whose_entry_cannot_be_kept_is_not_made,
    audit::entries_come_back_as_they_were_written_and_are_found_by_what_they_say,
    pooled::fr_033_a_call_that_is_given_up_leaves_no_transaction_open,
    replicas::fr_031_of_many_who_ask_one_leads_and_renews_under_the_same_epoch,
    replicas::fr_033_a_lease_that_is_not_renewed_ends_by_the_clock_of_the_database,
    replicas::fr_031_what_is_written_under_an_epoch_that_is_over_is_refused_and_changes_nothing,
    replicas::fr_031_who_read_the_clock_before_the_leader_did_takes_no_lease_from_it,
    replicas::fr_033_a_lease_from_before_the_clock_of_the_database_went_back_holds_up_nobody,
    replicas::a_change_is_announced_to_every_other_process,
    replicas::a_lease_that_is_given_back_is_free_at_once_and_only_by_its_holder,
    replicas::a_node_is_written_by_the_control_plane_that_its_stream_went_to_last,
    replicas::what_is_written_of_nodes_is_read_once_by_its_version,
    replicas::control_planes_hear_of_each_other_by_the_clock_of_the_database,
    audit::tokens_of_operators_come_back_and_each_change_moves_their_version,
    bindings::a_binding_is_found_by_its_whole_name_as_it_was_reported,
    bindings::a_report_that_comes_again_or_late_changes_nothing_and_a_newer_making_counts,
    bindings::a_report_of_a_thousand_is_kept_whole_whoever_reports_the_same,
    bindings::old_bindings_are_forgotten_and_younger_ones_stay,
    records::a_record_is_kept_once_however_often_and_by_whomever_it_is_brought,
    records::a_request_is_found_by_our_id_or_the_newest_with_the_callers,
    records::requests_are_listed_newest_first_by_every_filter_and_by_page,
    records::failed_attempts_are_counted_with_how_many_callers_did_not_notice,
    records::old_records_are_forgotten_a_batch_at_a_time,
    records::what_was_used_is_told_apart_as_asked_and_kept_longer_than_records,
    rollouts::a_revision_comes_with_its_rollout_and_ends_the_one_before,
    rollouts::of_many_who_change_a_rollout_one_does,
    rollouts::a_rollout_that_has_changed_meanwhile_is_not_ended,
    rollouts::what_a_rollout_goes_back_to_is_not_pruned,
    pins::a_pin_takes_the_place_of_an_earlier_one_and_moves_the_version,
    pins::what_a_node_is_pinned_to_is_not_pruned_and_pins_go_with_their_nodes,
    rollouts::requests_are_counted_by_node_model_and_time_with_their_window_and_then_forgotten,
    identity::of_many_who_race_for_a_token_as_many_enrol_as_it_says,
    identity::a_revoked_node_is_kept_out_until_a_token_that_is_newer,
    identity::only_the_key_of_a_node_renews_its_certificate,
    identity::the_version_moves_with_every_enrolment_and_revocation,
    secrets::a_secret_is_set_over_the_version_that_was_seen_and_comes_back_as_it_was,
    secrets::of_many_who_set_over_the_same_version_one_does,
    secrets::a_secret_is_deleted_over_the_version_that_was_seen,
    windows::a_window_counts_once_and_its_reply_may_be_lost,
    windows::fr_039_a_window_that_cannot_be_added_is_not_claimed_either,
    windows::fr_041_boots_are_told_apart_by_their_id_alone,
    windows::of_many_who_report_the_same_window_one_counts,
    windows::a_clock_that_goes_back_does_not_make_the_newest_data_older,
    windows::a_window_that_does_not_follow_counts_nothing,
    windows::a_restored_database_goes_on_from_what_the_node_knows,
    windows::running_totals_that_differ_are_told_and_change_nothing,
    windows::counters_are_read_by_time_model_and_step,
    windows::a_window_of_another_class_or_a_very_large_count_is_kept_as_it_is,
    windows::a_window_of_thousands_of_rows_is_kept_whole,
    windows::times_to_the_first_byte_come_with_their_window_and_are_put_together_and_forgotten,
    windows::older_counters_are_rolled_up_without_losing_any_and_twice_changes_nothing,
    windows::nothing_is_lost_when_windows_come_during_a_rollup,
    windows::forgotten_counters_are_gone_and_others_stay,
    windows::any_order_of_retries_gives_the_same_sums,
}
