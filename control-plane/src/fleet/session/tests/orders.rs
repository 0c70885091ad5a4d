//! What a node is asked over its stream beside what it should run.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_retry_ends_the_quarantines_and_sends_again_what_was_put_aside() {
    let (good, bad) = (wanted(7, 1, 1), wanted(7, 2, 1));
    let part = bad.target.catalog.as_ref().unwrap().part;
    let quarantined = vec![pb::Quarantine { part: Some(part.into()), crashes: 2 }];
    let hello = pb::Hello { quarantined, ..hello(Some(target(&good))) };
    let (mut node, actions) = Node::greeted(bad, hello);
    assert_eq!(actions, []);
    let mut actions = node.on(Event::Retry);
    assert_eq!(actions.remove(0), Action::Send(Said::Retry(pb::RetryOrder {})));
    assert_eq!(revision_of(update(&actions)), 2);
    assert_eq!(node.session.facts().quarantined, []);
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_sent_beside_an_update_that_is_under_way_and_its_answer_comes_back() {
    let (mut node, actions) = Node::greeted(wanted(7, 1, 1), hello(None));
    assert_eq!(revision_of(update(&actions)), 1);
    let content = content(2, "catalog");
    let sent = node.on(Event::Probe(9, content.clone()));
    let asked = pb::ProbeRequest {
        probe_id: 9,
        catalog: Some(content.part.into()),
        catalog_zstd: content.packed.clone(),
    };
    assert_eq!(sent, [Action::Send(Said::Probe(asked))]);
    let violation = pb::Violation { path: "channels[0]".into(), message: "no".into() };
    let said = pb::ProbeResult { probe_id: 9, violations: vec![violation], ..Default::default() };
    let violations = vec![Finding { path: "channels[0]".into(), message: "no".into() }];
    let probed = Probed { violations, ..Probed::default() };
    assert_eq!(node.on(Event::Heard(Heard::Probe(said))), [Action::Probed(9, probed)]);
    let acked = node.on(ack(1, pb::AckResult::Applied, target(&wanted(7, 1, 1))));
    assert_eq!(acked, [Action::Acknowledged(Ack::Applied, 1)], "the update went on meanwhile");
    let order = node.on(Event::Leave("maintenance".into()));
    assert_eq!(order, [Action::Send(Said::Leave(pb::LeaveOrder { reason: "maintenance".into() }))]);
}
