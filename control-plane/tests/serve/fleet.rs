//! What nodes see, and what is shown of them.

use std::time::Duration;

use common::pb::admin::NodeState;
use common::pb::fleet as pb;
use pb::sync_request::Message as Says;
use pb::sync_response::Message as Hears;
use tonic::Code;

use crate::support::{Node, Plane, connect, document, get, with_token};

#[tokio::test]
async fn a_node_is_brought_to_the_newest_revision_and_shown_in_sync() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let mut node = plane.node("n1", None).await;
    let welcome = node.welcome().await;
    assert_eq!(welcome.heartbeat_ms, 15_000);
    let keys = node.update().await;
    assert!(keys.catalog_zstd.is_empty(), "there is no revision yet");
    node.apply(&keys).await;
    plane.nodes(|nodes| nodes[0].state() == NodeState::InSync && nodes[0].target_revision == 0).await;

    let revision = plane.apply(&document(1)).await;
    let update = node.update().await;
    let part = update.target.as_ref().unwrap().catalog.clone().unwrap();
    let unpacked = common::snapshot::unpack(&update.catalog_zstd, &part.sha256).unwrap();
    let snapshot: pb::Snapshot = common::snapshot::decode(&unpacked).unwrap();
    assert_eq!((snapshot.revision, part.version), (revision, revision));
    assert_eq!(snapshot.channels[0].base_url, "http://127.0.0.1:9/v1");
    plane.nodes(|nodes| nodes[0].state() == NodeState::Behind).await;
    node.apply(&update).await;
    let shown = plane.nodes(|nodes| nodes[0].state() == NodeState::InSync).await;
    assert_eq!((shown[0].applied_revision, shown[0].data_address.as_str()), (revision, "127.0.0.1:8080"));

    // It comes again with what it runs.
    let target = update.target.clone();
    drop(node);
    let mut node = plane.node("n1", target.clone()).await;
    node.welcome().await;
    assert!(matches!(node.hear().await, Ok(Some(Hears::UpToDate(said))) if said.target == target));
    plane.stop().await;
}

#[tokio::test]
async fn a_rejection_is_shown_with_its_reason_and_the_node_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    plane.apply(&document(1)).await;
    let (mut node, good) = Node::connected(&plane, "n1").await;
    plane.apply(&document(2)).await;
    let update = node.update().await;
    let part = update.target.as_ref().unwrap().catalog.clone();
    let violation = pb::Violation { path: "channels[0].base_url".into(), message: "cannot be read".into() };
    node.say(Says::Ack(pb::ConfigAck {
        update_id: update.update_id,
        result: pb::AckResult::Rejected.into(),
        applied: Some(good),
        rejected: vec![pb::Rejection {
            part,
            kind: pb::PartKind::Catalog.into(),
            violations: vec![violation],
        }],
        warnings: vec![],
    }))
    .await;
    let shown = plane.nodes(|nodes| nodes[0].state() == NodeState::Rejected).await;
    assert_eq!((shown[0].applied_revision, shown[0].target_revision), (1, 2));
    assert_eq!(shown[0].violations[0].message, "cannot be read");

    let third = plane.apply(&document(3)).await;
    node.reach(third).await;
    plane.nodes(|nodes| nodes[0].state() == NodeState::InSync && nodes[0].violations.is_empty()).await;
    plane.stop().await;
}

#[tokio::test]
async fn fr_005_nodes_that_connect_at_the_moment_of_a_change_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    for round in 1..=10 {
        let connecting = async {
            let mut node = plane.node(&format!("n{round}"), None).await;
            node.welcome().await;
            node
        };
        let (revision, mut node) = {
            let document = document(round);
            tokio::join!(plane.apply(&document), connecting)
        };
        node.reach(revision).await;
    }
    plane.stop().await;
}

#[tokio::test]
async fn fr_021_fr_023_a_slow_node_misses_the_ones_between_and_never_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    plane.apply(&document(1)).await;
    let mut node = plane.node("slow", None).await;
    node.welcome().await;
    let first = node.update().await;
    let mut last = 0;
    for n in 2..=40 {
        last = plane.apply(&document(n)).await;
    }
    node.apply(&first).await;
    let second = node.update().await;
    assert_eq!(second.update_id, 2);
    assert_eq!(second.target.unwrap().catalog.unwrap().version, last);
    plane.stop().await;
}

#[tokio::test]
async fn fr_049_a_node_that_does_not_read_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let silent: Vec<Node> = {
        let mut silent = Vec::new();
        for n in 0..5 {
            silent.push(plane.node(&format!("silent{n}"), None).await);
        }
        silent
    };
    let (mut node, _) = Node::connected(&plane, "n1").await;
    for n in 1..=20 {
        let revision = plane.apply(&document(n)).await;
        node.reach(revision).await;
    }
    drop(silent);
    plane.stop().await;
}

#[tokio::test]
async fn a_newer_stream_of_the_same_node_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let (mut older, _) = Node::connected(&plane, "n1").await;
    let (mut newer, _) = Node::connected(&plane, "n1").await;
    assert_eq!(older.hear().await.unwrap_err().code(), Code::Aborted);
    let revision = plane.apply(&document(1)).await;
    newer.reach(revision).await;
    let shown = plane.nodes(|nodes| nodes[0].state() == NodeState::InSync).await;
    assert_eq!((shown.len(), shown[0].connected), (1, true));
    plane.stop().await;
}

#[tokio::test]
async fn a_node_that_leaves_is_drained_and_its_breakers_are_shown_while_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let (mut node, target) = Node::connected(&plane, "n1").await;
    node.say(Says::Heartbeat(pb::NodeHeartbeat {
        applied: Some(target),
        open_channels: vec!["a".into()],
        in_flight: 3,
        oldest_window_age_ms: 0,
        warnings: None,
        pauses: None,
    }))
    .await;
    let shown = plane.nodes(|nodes| nodes[0].in_flight == 3).await;
    assert_eq!(shown[0].open_channels, ["a"]);
    node.say(Says::Drain(pb::NodeDrain { reason: "deploy".into() })).await;
    assert!(matches!(node.hear().await, Ok(None)), "the stream ends well");
    plane.nodes(|nodes| nodes[0].state() == NodeState::Drained && !nodes[0].connected).await;
    plane.stop().await;
}

#[tokio::test]
async fn a_node_that_breaks_the_protocol_is_told_what_it_did() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let mut nameless = plane.node("", None).await;
    let refused = nameless.hear().await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("node_id"), "{refused:?}");
    plane.stop().await;
}

fn report(seq: u64) -> pb::ReportRequest {
    let attempt = |channel: &str, class: &str, count| pb::AttemptCount {
        model: "m".into(),
        channel: channel.into(),
        class: class.into(),
        count,
    };
    pb::ReportRequest {
        node_id: "n1".into(),
        boot_id: "b1".into(),
        window: Some(pb::Window {
            first_seq: seq,
            last_seq: seq,
            start_ms: 1,
            end_ms: u64::MAX,
            attempts: vec![attempt("a", "overloaded", 1), attempt("b", "ok", 4)],
            requests: vec![pb::RequestCount { model: "m".into(), outcome: "served".into(), count: 4 }],
            first_bytes: vec![pb::FirstByteCount {
                model: "m".into(),
                channel: String::new(),
                bound_ms: 330,
                count: 4,
            }],
        }),
        totals: Some(pb::Totals {
            attempts: 5 * seq,
            attempts_ok: 4 * seq,
            requests: 4 * seq,
            requests_served: 4 * seq,
        }),
        acknowledged_through: seq - 1,
    }
}

#[tokio::test]
async fn a_window_reported_twice_counts_once_and_is_seen_in_the_status() {
    use common::pb::admin::status_service_client::StatusServiceClient;
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let conn = connect(plane.addresses.fleet.port()).await;
    let mut client = pb::fleet_report_client::FleetReportClient::new(conn);
    let token = plane.node_token();
    for (seq, through) in [(1, 1), (1, 1), (2, 2), (1, 2), (2, 2), (3, 3)] {
        let counted = client.report(with_token(&token, report(seq))).await.unwrap().into_inner();
        assert_eq!(counted.claimed_through, through);
    }
    let early = pb::ReportRequest { acknowledged_through: 0, ..report(9) };
    assert_eq!(client.report(with_token(&token, early)).await.unwrap().into_inner().claimed_through, 3);
    let absurd = pb::ReportRequest { window: None, ..report(4) };
    assert_eq!(client.report(with_token(&token, absurd)).await.unwrap_err().code(), Code::InvalidArgument);

    let admin = plane.admin().await;
    let ask = admin.request(common::pb::admin::GetStatusRequest::default());
    let status =
        StatusServiceClient::new(admin.conn.clone()).get_status(ask).await.unwrap().into_inner().status;
    let status = status.unwrap();
    let model = status.models.iter().find(|model| model.model == "m").unwrap();
    assert_eq!((model.served, model.success_rate), (12, Some(1.0)));
    assert_eq!(model.first_byte.map(|seen| (seen.count, seen.p50_ms)), Some((12, 330)));
    let (_, metrics) = get(plane.addresses.http.port(), "/metrics", None).await;
    for line in [
        "sluice_counter_audit_mismatch_total 0",
        "sluice_windows_total{result=\"counted\"} 3",
        "sluice_windows_total{result=\"duplicate\"} 3",
        "sluice_windows_total{result=\"invalid\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    plane.stop().await;
}

#[tokio::test]
async fn running_totals_that_differ_are_counted_and_nothing_else_changes() {
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let conn = connect(plane.addresses.fleet.port()).await;
    let mut client = pb::fleet_report_client::FleetReportClient::new(conn);
    let wrong =
        pb::ReportRequest { totals: Some(pb::Totals { attempts: 99, ..Default::default() }), ..report(1) };
    let counted = client.report(with_token(&plane.node_token(), wrong)).await.unwrap().into_inner();
    assert_eq!(counted.claimed_through, 1);
    let (_, metrics) = get(plane.addresses.http.port(), "/metrics", None).await;
    assert!(metrics.contains("sluice_counter_audit_mismatch_total 1"));
    plane.stop().await;
}

#[tokio::test]
async fn fr_025_more_new_streams_than_a_second_takes_are_told_to_come_again() {
    use tonic_types::StatusExt as _;
    let dir = tempfile::tempdir().unwrap();
    let plane = Plane::start(dir.path()).await;
    let (conn, token) = (connect(plane.addresses.fleet.port()).await, plane.node_token());
    let mut connecting = tokio::task::JoinSet::new();
    for n in 0..400 {
        let (conn, token) = (conn.clone(), token.clone());
        connecting.spawn(async move { Node::connect_over(conn, &token, &format!("n{n}"), None).await });
    }
    let all = tokio::time::timeout(Duration::from_secs(30), connecting.join_all()).await.unwrap();
    let refused: Vec<_> = all.iter().filter_map(|node| node.as_ref().err()).collect();
    assert!(!refused.is_empty() && all.iter().filter(|node| node.is_ok()).count() >= 200);
    for status in refused {
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.get_details_retry_info().unwrap().retry_delay.unwrap() >= Duration::from_secs(1));
    }
    plane.stop().await;
}
