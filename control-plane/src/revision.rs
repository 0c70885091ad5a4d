//! Revisions of the catalog: checked whole, numbered without gaps, never changed.

pub mod change;
pub mod encoded;
pub mod head;
pub mod pin;
pub mod probe;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use common::catalog::{self, Catalog, Change, Checked, Fault};
use common::limits::SNAPSHOT_BYTES_MAX;
use common::snapshot::{digest, hex};
use serde_json::{Map, Value, json};

use crate::access::Caller;
use crate::error::Error;
use crate::nodes::Lacking;
use crate::plane::Plane;
use crate::rollout::{Rollout, State, Strategy, run};
use crate::secrets;
use crate::store::rows::{FullRevision, Revision};
use encoded::Encoded;
use probe::ProbedNode;

/// Longest message of a revision.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;
/// Longest idempotency key.
const KEY_BYTES_MAX: usize = 256;
/// So many changes of a revision are told in the audit log; `catalog diff` has all of them.
const TOLD_CHANGES_MAX: usize = 50;
/// How often an apply without an expected revision looks again after another one was faster.
const TRIES_MAX: usize = 10;

/// A document on its way to becoming the current revision.
#[derive(Debug)]
pub struct Apply<'a> {
    /// TOML or JSON.
    pub document: Bytes,
    /// What the author believes to be current; `None` to apply to any.
    pub expected: Option<u64>,
    /// What the author says about it.
    pub message: &'a str,
    /// Who applies it.
    pub caller: Caller,
    /// What the audit log calls it.
    pub action: &'static str,
    /// What the author calls this change: asked for again, it is made once. Empty for nothing.
    pub idempotency_key: &'a str,
    /// Everything but keeping it.
    pub dry_run: bool,
    /// How many nodes a dry run asks what they would make of it.
    pub probe: usize,
    /// How it reaches the fleet.
    pub strategy: Strategy,
    /// Why it is to be at once; asked for then.
    pub reason: &'a str,
    /// What becomes of the rollout that is under way.
    pub replaces: Replaces,
}

/// What a new revision means for the rollout before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaces {
    /// The author has something newer.
    Superseded,
    /// The document is that of its base, also where it is current by coincidence.
    Undone(String),
    /// The same, because an operator said so.
    Aborted(String),
}

impl Replaces {
    fn end(&self, by: u64) -> (State, String) {
        match self {
            Replaces::Superseded => (State::Superseded(by), format!("revision {by} was applied")),
            Replaces::Undone(reason) => (State::Undone(by), reason.clone()),
            Replaces::Aborted(reason) => (State::Aborted(by), reason.clone()),
        }
    }
}

impl<'a> Apply<'a> {
    /// A document that is to be applied whatever is current.
    pub fn of(document: impl Into<Bytes>, caller: Caller) -> Self {
        Apply {
            document: document.into(),
            expected: None,
            message: "",
            caller,
            action: "catalog.apply",
            idempotency_key: "",
            dry_run: false,
            strategy: Strategy::Staged,
            reason: "",
            replaces: Replaces::Superseded,
            probe: 0,
        }
    }
}

/// What became of it.
#[derive(Debug)]
pub struct Applied {
    /// The current revision.
    pub revision: Revision,
    /// False when the document is that of the revision that was current already.
    pub changed: bool,
    /// What works but is probably not meant.
    pub warnings: Vec<Fault>,
    /// What changes in meaning against the revision before.
    pub changes: Vec<Change>,
    /// Nodes that are not given it, because they lack what it needs.
    pub incompatible: Vec<Lacking>,
    /// What the nodes said that were asked.
    pub probed: Vec<ProbedNode>,
}

/// Makes a document the current revision, and tells the nodes' streams.
pub async fn apply(plane: &Plane, ask: Apply<'_>) -> Result<Applied, Error> {
    check_text("message", ask.message, MESSAGE_BYTES_MAX)?;
    if ask.probe > 0 && !ask.dry_run {
        let message = "only a dry run asks nodes; what is applied, they say by themselves".to_owned();
        return Err(Error::Argument { field: "probe", message });
    }
    check_text("idempotency_key", ask.idempotency_key, KEY_BYTES_MAX)?;
    check_text("reason", ask.reason, MESSAGE_BYTES_MAX)?;
    if ask.strategy == Strategy::Immediate && ask.reason.trim().is_empty() {
        let message = "say why all nodes are to have it at once".to_owned();
        return Err(Error::Argument { field: "reason", message });
    }
    // The way back is never barred: a secret that is gone suspends its channel, and nothing else.
    let secrets = match ask.replaces {
        Replaces::Superseded => Some(secrets::names(plane).await?),
        Replaces::Undone(_) | Replaces::Aborted(_) => None,
    };
    let checked = read_knowing(ask.document.clone(), secrets).await?.map_err(Error::Catalog)?;
    let Checked { catalog, mut warnings, secrets } = checked;
    warnings.extend(secrets::withheld(plane, &secrets)?);
    let (plan, catalog, sha256) = (catalog.rollout().clone(), Arc::new(catalog), digest(&ask.document));
    // Numbers go on from what nodes were given, also in a database that was put back under this process.
    plane.head.refresh(&plane.store).await?;
    for _ in 0..TRIES_MAX {
        if let Some(made) = made_before(plane, ask.idempotency_key).await? {
            if made.sha256 != sha256 {
                return Err(Error::KeyTaken { revision: made.number });
            }
            let changes = change::against(plane, made.number - 1, &catalog, &mut warnings).await?;
            return Ok(Applied {
                revision: made,
                changed: true,
                warnings,
                changes,
                incompatible: vec![],
                probed: vec![],
            });
        }
        let head = plane.store.revisions(u64::MAX, 1).await?.into_iter().next();
        let current = head.as_ref().map_or(0, |revision| revision.number);
        if let Some(expected) = ask.expected
            && expected != current
        {
            return Err(Error::Conflict { expected, current });
        }
        let under_way = run::find(plane, current).await?;
        if let Some(revision) = head
            && revision.sha256 == sha256
            && ask.replaces == Replaces::Superseded
        {
            if ask.strategy == Strategy::Immediate && !ask.dry_run {
                run::hasten(plane, under_way, &ask.caller, ask.reason).await?;
            }
            return Ok(Applied {
                revision,
                changed: false,
                warnings,
                changes: vec![],
                incompatible: vec![],
                probed: vec![],
            });
        }
        let changes = change::against(plane, current, &catalog, &mut warnings).await?;
        let number = current + 1;
        let catalog = catalog.clone();
        let snapshot = off_thread(move || compile(&catalog, number)).await??;
        let incompatible = plane.nodes.lacking(&snapshot.needs);
        let revision = Revision {
            number,
            sha256,
            author: ask.caller.name.clone(),
            message: ask.message.to_owned(),
            created_at_ms: if ask.dry_run { 0 } else { plane.clock.now_ms() },
        };
        if ask.dry_run {
            let probed = probe::probe(plane, &snapshot, ask.probe).await;
            return Ok(Applied { revision, changed: true, warnings, changes, incompatible, probed });
        }
        let new = FullRevision {
            revision: revision.clone(),
            document: ask.document.clone(),
            snapshot_sha256: snapshot.part.sha256,
            snapshot_zstd: snapshot.packed.clone(),
            idempotency_key: Some(ask.idempotency_key.to_owned()).filter(|key| !key.is_empty()),
        };
        let over = under_way.clone().filter(Rollout::is_under_way).map(|mut over| {
            let (state, reason) = ask.replaces.end(number);
            over.turn(state, reason, revision.created_at_ms);
            over.to_row()
        });
        let base = under_way.map_or(current, |rollout| rollout.proven());
        let mut rollout = Rollout::begin(number, base, ask.strategy, &plan, revision.created_at_ms);
        run::open_first(plane, &mut rollout, &snapshot).await?;
        if rollout.strategy == Strategy::Immediate && rollout.state == State::Running {
            rollout.reason = ask.reason.to_owned();
        }
        let (before, after) = told(current, &revision, &changes, &rollout);
        let entry = plane.entry(&ask.caller, ask.action, number.to_string()).with(&before, &after);
        let entry = entry.revision(number);
        if plane.store.insert_revision(&new, &rollout.to_row(), over.as_ref(), &entry).await? {
            let author = &revision.author;
            tracing::info!(revision = number, author, "catalog revision {number} applied");
            plane.tell().await;
            return Ok(Applied { revision, changed: true, warnings, changes, incompatible, probed: vec![] });
        }
    }
    Err(Error::Busy)
}

/// What the audit log says of a new revision: the numbers, and what changes in meaning, as far as it is not too much.
/// Headers and parameters for an upstream are named without their values.
fn told(current: u64, revision: &Revision, changes: &[Change], rollout: &Rollout) -> (Value, Value) {
    let values = |side: fn(&Change) -> Option<&String>| -> Map<String, Value> {
        let shown = |change: &Change, value: &String| match change.path.as_str() {
            path if path.contains(".headers.") || path.contains(".query.") => json!("…"),
            _ => json!(value),
        };
        let some = changes.iter().take(TOLD_CHANGES_MAX);
        some.filter_map(|change| Some((change.path.clone(), shown(change, side(change)?)))).collect()
    };
    let (before, after) = (values(|change| change.before.as_ref()), values(|change| change.after.as_ref()));
    let (sha256, message) = (hex(&revision.sha256), &revision.message);
    (
        json!({"revision": current, "values": before}),
        json!({"revision": revision.number, "sha256": sha256, "message": message, "changes": changes.len(), "values": after,
            "strategy": rollout.strategy, "reason": rollout.reason}),
    )
}

/// A text of the author's that the databases can keep.
fn check_text(field: &'static str, text: &str, bytes_max: usize) -> Result<(), Error> {
    let message = match text {
        _ if text.len() > bytes_max => format!("at most {bytes_max} bytes"),
        _ if text.contains('\0') => "a zero is in it".to_owned(),
        _ => return Ok(()),
    };
    Err(Error::Argument { field, message })
}

/// The revision that the change of this name made.
async fn made_before(plane: &Plane, idempotency_key: &str) -> Result<Option<Revision>, Error> {
    if idempotency_key.is_empty() {
        return Ok(None);
    }
    Ok(plane.store.revision_by_key(idempotency_key).await?)
}

/// Reads and checks a document. Megabytes take a second, in which this thread serves others.
pub async fn read(document: Bytes) -> Result<Result<Checked, Vec<Fault>>, Error> {
    read_knowing(document, None).await
}

/// The same of a document that is not applied yet: it may name no secret but these, if they are given.
pub async fn read_knowing(
    document: Bytes,
    secrets: Option<BTreeSet<String>>,
) -> Result<Result<Checked, Vec<Fault>>, Error> {
    off_thread(move || catalog::parse_knowing(&document, secrets.as_ref())).await
}

async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Broken("the catalog's reader broke down"))
}

fn compile(catalog: &Catalog, number: u64) -> Result<Encoded, Error> {
    let snapshot = catalog.compile(number);
    let size = prost::Message::encoded_len(&snapshot);
    if size > SNAPSHOT_BYTES_MAX {
        let message =
            format!("the compiled catalog has {size} bytes; nodes take at most {SNAPSHOT_BYTES_MAX}");
        return Err(Error::Catalog(vec![Fault { line: 0, path: String::new(), message }]));
    }
    Encoded::of_snapshot(&snapshot).map_err(|_| Error::Broken("the snapshot cannot be compressed"))
}

/// A revision with its document; 0 means the current one.
pub async fn find(plane: &Plane, number: u64) -> Result<FullRevision, Error> {
    let number = if number == 0 { plane.store.heads().await?.revision } else { number };
    let found = plane.store.revision(number).await?;
    found.ok_or_else(|| Error::NotFound { what: "revision", name: number.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::fixture::{CATALOG, Fixture};

    fn apply_of(document: &'static [u8]) -> Apply<'static> {
        Apply::of(document, Caller::bootstrap())
    }

    #[tokio::test]
    async fn a_document_is_read_away_from_the_threads_that_serve() {
        let fixture = Fixture::unread().await;
        let mut applying = std::pin::pin!(apply(&fixture.plane, apply_of(b"no catalog")));
        let first = std::future::poll_fn(|cx| std::task::Poll::Ready(applying.as_mut().poll(cx)));
        assert!(first.await.is_pending(), "the faults of a document were found in the first poll");
        assert!(matches!(applying.await, Err(Error::Catalog(_))));
    }

    #[tokio::test]
    async fn what_is_kept_is_no_failure_because_it_cannot_be_told_yet() {
        let fixture = Fixture::with_catalog().await;
        fixture
            .execute(
                "create trigger gone after insert on revision begin delete from part; end;
                 create trigger lost after insert on client_key begin delete from part; end;",
            )
            .await;
        let created = crate::keys::create(&fixture.plane, &Caller::bootstrap(), "a").await.unwrap();
        assert!(created.secret.starts_with("sk-"), "the only copy of a key that is kept");
        assert!(
            crate::keys::create(&fixture.plane, &Caller::bootstrap(), "b").await.is_err(),
            "nothing can be read by now"
        );
        fixture
            .execute("insert into part (kind, version) values ('keys', 3), ('secrets', 1), ('pins', 1)")
            .await;
        let next = Apply { document: format!("{CATALOG}# the next").into(), ..apply_of(b"") };
        let applied = apply(&fixture.plane, next).await.unwrap();
        assert_eq!((applied.revision.number, applied.changed), (2, true));
        assert_eq!(fixture.plane.wanted().unwrap().revision(), 1, "told at the next look");
    }

    #[tokio::test]
    async fn a_zero_in_the_message_is_the_authors_fault_on_every_database() {
        let fixture = Fixture::unread().await;
        let ask = Apply { message: "a\0b", ..apply_of(b"") };
        assert!(matches!(apply(&fixture.plane, ask).await, Err(Error::Argument { field: "message", .. })));
    }
}
