//! The labels of the metric families: each from a closed set, and what they tell.

use prometheus_client::encoding::EncodeLabelSet;

/// What became of a reported window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowResult {
    /// It was counted.
    Counted,
    /// It was counted before.
    Duplicate,
    /// It did not follow the last counted one.
    OutOfOrder,
    /// It was not a window.
    Invalid,
}

/// What became of a node's wish for a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnrolmentResult {
    /// It has its first one.
    Enrolled,
    /// It has another one.
    Renewed,
    /// It has none.
    Refused,
}

/// How a node's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamEnd {
    /// Drained by age or at shutdown.
    Drained,
    /// The node went on purpose.
    Left,
    /// The node was silent, or the connection broke.
    Lost,
    /// A newer stream of the same node took over.
    Replaced,
    /// The node broke the protocol.
    Refused,
}

/// What a node said of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ack {
    /// It runs it.
    Applied,
    /// It refused it.
    Rejected,
}

impl WindowResult {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            WindowResult::Counted => "counted",
            WindowResult::Duplicate => "duplicate",
            WindowResult::OutOfOrder => "out_of_order",
            WindowResult::Invalid => "invalid",
        }
    }
}

impl StreamEnd {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            StreamEnd::Drained => "drained",
            StreamEnd::Left => "left",
            StreamEnd::Lost => "lost",
            StreamEnd::Replaced => "replaced",
            StreamEnd::Refused => "refused",
        }
    }
}

impl Ack {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Ack::Applied => "applied",
            Ack::Rejected => "rejected",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ListenerLabel {
    pub listener: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabel {
    pub result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabel {
    pub reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabel {
    pub state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct JobLabel {
    pub job: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabel {
    pub kind: &'static str,
}
