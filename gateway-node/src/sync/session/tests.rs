//! The stream as a table: what came, what follows.

use super::*;

fn down(message: Down) -> Event {
    Event::Received(pb::SyncResponse { message: Some(message) })
}

fn welcome(heartbeat_ms: u64) -> Event {
    down(Down::Welcome(pb::Welcome { epoch: 1, heartbeat_ms, ..Default::default() }))
}

fn update(update_id: u64) -> pb::ConfigUpdate {
    pb::ConfigUpdate { update_id, ..Default::default() }
}

fn ack(update_id: u64) -> pb::ConfigAck {
    pb::ConfigAck { update_id, ..Default::default() }
}

fn taken(ack: pb::ConfigAck) -> Event {
    Event::Taken(Taken { ack, is_worth_a_retry: false })
}

fn heartbeat() -> Event {
    down(Down::Heartbeat(pb::ServerHeartbeat::default()))
}

fn following(t0: Instant) -> Session {
    let mut session = Session::new(t0);
    session.on(welcome(0), t0);
    session
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_first_update_is_taken_and_acknowledged() {
    let t0 = Instant::now();
    let mut session = following(t0);
    assert_eq!(session.on(down(Down::Update(update(1))), t0), [Action::Take(update(1))]);
    assert_eq!(session.on(taken(ack(1)), t0), [Action::Send(Up::Ack(ack(1)))]);
}

#[test]
fn fr_021_of_updates_that_come_meanwhile_only_the_newest_is_taken() {
    let t0 = Instant::now();
    let mut session = following(t0);
    session.on(down(Down::Update(update(1))), t0);
    for newer in 2..10 {
        assert_eq!(session.on(down(Down::Update(update(newer))), t0), []);
    }
    let next = [Action::Send(Up::Ack(ack(1))), Action::Take(update(9))];
    assert_eq!(session.on(taken(ack(1)), t0), next);
    assert_eq!(session.on(taken(ack(9)), t0), [Action::Send(Up::Ack(ack(9)))]);
}

#[test]
fn fr_023_the_head_may_be_sent_again_on_the_same_stream() {
    let t0 = Instant::now();
    let mut session = following(t0);
    for _ in 0..2 {
        assert_eq!(session.on(down(Down::Update(update(1))), t0), [Action::Take(update(1))]);
        session.on(taken(ack(1)), t0);
        let target = pb::Target { epoch: 1, ..Default::default() };
        let up_to_date = pb::UpToDate { target: Some(target.clone()) };
        assert_eq!(session.on(down(Down::UpToDate(up_to_date)), t0), [Action::Confirmed(target)]);
    }
}

#[test]
fn what_the_node_could_not_take_for_a_fault_of_its_own_is_asked_for_again_on_another_stream() {
    let t0 = Instant::now();
    let mut session = following(t0);
    session.on(down(Down::Update(update(1))), t0);
    let actions = session.on(Event::Taken(Taken { ack: ack(1), is_worth_a_retry: true }), t0);
    assert_eq!(
        actions,
        [Action::Send(Up::Ack(ack(1)))],
        "it is told, and the stream stays for it to be seen"
    );
    assert_eq!(session.on(Event::Tick, t0 + s(14)), []);
    assert_eq!(session.deadline(), t0 + s(15));
    session.on(heartbeat(), t0 + s(14));
    session.on(down(Down::Update(update(2))), t0 + s(14));
    assert_eq!(session.on(Event::Tick, t0 + s(15)), [Action::Beat], "what is taken now comes first");
    assert_eq!(session.on(taken(ack(2)), t0 + s(16)), [Action::Send(Up::Ack(ack(2)))]);
    assert_eq!(session.on(Event::Tick, t0 + s(16)), [Action::End(End::Again)]);
}

#[test]
fn heartbeats_go_out_every_15_s_and_while_an_update_is_taken_too() {
    let t0 = Instant::now();
    let mut session = following(t0);
    session.on(down(Down::Update(update(1))), t0);
    assert_eq!(session.deadline(), t0 + s(15));
    assert_eq!(session.on(Event::Tick, t0 + s(14)), []);
    assert_eq!(session.on(Event::Tick, t0 + s(15)), [Action::Beat]);
    assert_eq!(session.deadline(), t0 + s(30));
}

#[test]
fn a_change_is_told_at_once_and_takes_the_place_of_the_next_heartbeat() {
    let t0 = Instant::now();
    let mut session = following(t0);
    assert_eq!(session.on(Event::Changed, t0 + s(5)), [Action::Beat]);
    assert_eq!(session.deadline(), t0 + s(20));
    assert_eq!(Session::new(t0).on(Event::Changed, t0), [], "the node is not welcome yet");
}

#[test]
fn a_peer_that_is_silent_for_45_s_is_gone() {
    let t0 = Instant::now();
    let mut session = following(t0);
    assert_eq!(session.on(heartbeat(), t0 + s(10)), []);
    session.on(Event::Tick, t0 + s(54));
    assert_eq!(session.on(Event::Tick, t0 + s(55)), [Action::End(End::Silent)]);
}

#[test]
fn a_server_that_never_welcomes_is_gone_after_45_s() {
    let t0 = Instant::now();
    let mut session = Session::new(t0);
    assert_eq!(session.deadline(), t0 + s(45));
    assert_eq!(session.on(Event::Tick, t0 + s(45)), [Action::End(End::Silent)]);
}

#[test]
fn the_control_plane_may_ask_for_faster_heartbeats() {
    let t0 = Instant::now();
    let mut session = Session::new(t0);
    session.on(welcome(1_000), t0);
    assert_eq!(session.deadline(), t0 + s(1));
    session.on(Event::Tick, t0 + s(1));
    assert_eq!(session.on(Event::Tick, t0 + s(3)), [Action::End(End::Silent)]);
}

#[test]
fn drains_of_both_sides_end_the_stream() {
    let t0 = Instant::now();
    let drain = down(Down::Drain(pb::ServerDrain { reason: "age".into() }));
    assert_eq!(following(t0).on(drain, t0), [Action::End(End::Drained("age".into()))]);
    let farewell = Up::Drain(pb::NodeDrain { reason: "stop".into() });
    let left = [Action::Send(farewell), Action::End(End::Left)];
    assert_eq!(following(t0).on(Event::Leave("stop".into()), t0), left);
}

#[test]
fn messages_out_of_place_end_the_stream_and_unknown_ones_do_not() {
    let t0 = Instant::now();
    let end = |actions: Vec<Action>| matches!(actions.as_slice(), [Action::End(End::Protocol(_))]);
    assert!(end(Session::new(t0).on(down(Down::Update(update(1))), t0)));
    assert!(end(following(t0).on(welcome(0), t0)));
    assert_eq!(following(t0).on(Event::Received(pb::SyncResponse { message: None }), t0), []);
    assert_eq!(following(t0).on(taken(ack(1)), t0), [], "nothing was being taken");
}

#[test]
fn a_probe_and_orders_are_taken_whether_or_not_an_update_is() {
    let t0 = Instant::now();
    let mut session = following(t0);
    let probe = pb::ProbeRequest { probe_id: 7, ..Default::default() };
    for _ in 0..2 {
        let taken = session.on(down(Down::Probe(probe.clone())), t0);
        assert_eq!(taken, [Action::Probe(probe.clone())]);
        let leave = pb::LeaveOrder { reason: "r".into() };
        assert_eq!(session.on(down(Down::Leave(leave)), t0), [Action::Leave("r".into())]);
        assert_eq!(session.on(down(Down::Retry(pb::RetryOrder {})), t0), [Action::Retry]);
        session.on(down(Down::Update(update(1))), t0);
    }
    let early = Session::new(t0).on(down(Down::Retry(pb::RetryOrder {})), t0);
    assert!(matches!(early[..], [Action::End(End::Protocol(_))]));
}
