//! What to do for what came over the stream. Pure.
//!
//! ```text
//! Greeting ──Welcome──► Following ──ConfigUpdate──► Taking ──outcome / ack──► Following
//!     │                     │ ServerDrain, silence,    │ a newer update replaces the one that waits
//!     └─────────────────────┴─ fault, leave ───────────┴──► End
//! ```

#[cfg(test)]
mod tests;

use std::time::Duration;

use common::limits::{HEARTBEAT, HEARTBEAT_LOST};
use common::pb::fleet as pb;
use pb::sync_request::Message as Up;
use pb::sync_response::Message as Down;
use tokio::time::Instant;

use super::apply::Taken;

/// What a node could not take for a fault of its own, such as a full disk, it asks for again after this. Until then the
/// stream stays, so that operators see what is wrong and counts come home.
const ASK_AGAIN: Duration = Duration::from_secs(15);
/// The control plane may ask for other heartbeats, within reason.
const HEARTBEAT_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// Something happened to a stream.
#[derive(Debug)]
pub(super) enum Event {
    /// A message came.
    Received(pb::SyncResponse),
    /// The update that was to be taken was taken or refused.
    Taken(Taken),
    /// The deadline has passed.
    Tick,
    /// What heartbeats say has changed in a way that operators wait for.
    Changed,
    /// The node leaves on purpose.
    Leave(String),
}

/// What the owner of the stream does next.
#[derive(Debug, PartialEq)]
pub(super) enum Action {
    /// Send this.
    Send(Up),
    /// Send a heartbeat with what there is to say now.
    Beat,
    /// Take this update and report back by [`Event::Taken`].
    Take(pb::ConfigUpdate),
    /// Say what the node would make of this.
    Probe(pb::ProbeRequest),
    /// Leave, as an operator wants it.
    Leave(String),
    /// End the quarantines.
    Retry,
    /// The node runs what it should.
    Confirmed(pb::Target),
    /// The control plane knows this node.
    Welcomed(pb::Welcome),
    /// The stream is over.
    End(End),
}

/// Why a stream is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The control plane said so; not a failure.
    Drained(String),
    /// This node leaves.
    Left,
    /// Nothing came for too long.
    Silent,
    /// A message that does not belong there.
    Protocol(&'static str),
    /// This node wants an update again; the same content is not sent twice on one stream.
    Again,
    /// The control plane does not take the node's token.
    Refused,
    /// Too many come at once; there is a place for this node after so long.
    Busy(Duration),
    /// The call failed, or ended without a word; perhaps with a time before which not to come back.
    Failed { why: String, retry_after: Option<Duration> },
}

#[derive(Debug)]
enum State {
    Greeting,
    Following,
    /// One update is being taken; the newest that came meanwhile waits.
    Taking(Option<Box<pb::ConfigUpdate>>),
}

/// One stream's life.
#[derive(Debug)]
pub(super) struct Session {
    state: State,
    heartbeat: Duration,
    lost_after: Duration,
    heard: Instant,
    beaten: Instant,
    /// When an update that could not be taken is asked for again.
    again: Option<Instant>,
}

impl Session {
    /// A stream on which `Hello` was sent.
    pub(super) fn new(now: Instant) -> Self {
        Session {
            state: State::Greeting,
            heartbeat: HEARTBEAT,
            lost_after: HEARTBEAT_LOST,
            heard: now,
            beaten: now,
            again: None,
        }
    }

    /// When [`Event::Tick`] is due.
    pub(super) fn deadline(&self) -> Instant {
        let silence = self.heard + self.lost_after;
        match (&self.state, self.again) {
            (State::Greeting, _) => silence,
            (State::Following, Some(again)) => silence.min(self.beaten + self.heartbeat).min(again),
            (State::Following | State::Taking(_), _) => silence.min(self.beaten + self.heartbeat),
        }
    }

    /// Takes an event; the actions are to be carried out in order.
    pub(super) fn on(&mut self, event: Event, now: Instant) -> Vec<Action> {
        match event {
            Event::Received(message) => {
                self.heard = now;
                match message.message {
                    Some(message) => self.receive(message, now),
                    // A message of a newer version.
                    None => vec![],
                }
            }
            Event::Taken(taken) => self.taken(taken, now),
            Event::Tick => self.tick(now),
            Event::Changed if !matches!(self.state, State::Greeting) => self.beat(now),
            Event::Changed => vec![],
            Event::Leave(reason) => {
                vec![Action::Send(Up::Drain(pb::NodeDrain { reason })), Action::End(End::Left)]
            }
        }
    }

    fn receive(&mut self, message: Down, now: Instant) -> Vec<Action> {
        match (&mut self.state, message) {
            (_, Down::Drain(drain)) => vec![Action::End(End::Drained(drain.reason))],
            (State::Greeting, Down::Welcome(welcome)) => {
                if welcome.heartbeat_ms > 0 {
                    let (min, max) = HEARTBEAT_RANGE;
                    self.heartbeat = Duration::from_millis(welcome.heartbeat_ms).clamp(min, max);
                    self.lost_after = HEARTBEAT_LOST.min(3 * self.heartbeat).max(Duration::from_secs(1));
                }
                self.state = State::Following;
                self.beaten = now;
                vec![Action::Welcomed(welcome), Action::Beat]
            }
            (State::Greeting, _) => vec![Action::End(End::Protocol("a message before the welcome"))],
            (_, Down::Welcome(_)) => vec![Action::End(End::Protocol("a second welcome"))],
            (State::Following, Down::Update(update)) => {
                self.state = State::Taking(None);
                vec![Action::Take(update)]
            }
            (State::Taking(waiting), Down::Update(update)) => {
                *waiting = Some(Box::new(update));
                vec![]
            }
            (State::Following, Down::UpToDate(up_to_date)) => {
                up_to_date.target.map(Action::Confirmed).into_iter().collect()
            }
            // What is being taken decides; the control plane says so again when it has the answer.
            (State::Taking(_), Down::UpToDate(_)) => vec![],
            (_, Down::Heartbeat(_)) => vec![],
            (_, Down::Probe(probe)) => vec![Action::Probe(probe)],
            (_, Down::Leave(order)) => vec![Action::Leave(order.reason)],
            (_, Down::Retry(_)) => vec![Action::Retry],
        }
    }

    fn taken(&mut self, taken: Taken, now: Instant) -> Vec<Action> {
        let State::Taking(waiting) = &mut self.state else { return vec![] };
        let mut actions = vec![Action::Send(Up::Ack(taken.ack))];
        if taken.is_worth_a_retry {
            self.again = Some(now + ASK_AGAIN);
        }
        match waiting.take() {
            Some(newest) => actions.push(Action::Take(*newest)),
            None => self.state = State::Following,
        }
        actions
    }

    fn tick(&mut self, now: Instant) -> Vec<Action> {
        if now >= self.heard + self.lost_after {
            return vec![Action::End(End::Silent)];
        }
        let is_due = self.again.is_some_and(|again| now >= again);
        if is_due && matches!(self.state, State::Following) {
            return vec![Action::End(End::Again)];
        }
        if matches!(self.state, State::Greeting) || now < self.beaten + self.heartbeat {
            return vec![];
        }
        self.beat(now)
    }

    fn beat(&mut self, now: Instant) -> Vec<Action> {
        self.beaten = now;
        vec![Action::Beat]
    }
}
