//! The faults: how each is played in a form's own bytes, and what the design says it is. A further one is one more
//! entry in a file below; `None` means that the form has no such thing.

mod broken;
mod held;
mod known;
mod status;
mod transport;

pub use held::frame;
use std::time::Duration;

use common::class::FailureClass;

use super::super::support::{Script, Unreachable};
use super::forms::Form;
use super::says::Words;

/// When it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It is none, and must not be taken for one.
    None,
    /// Before any response headers.
    Transport,
    /// By a status that is no success.
    Status,
    /// Under a 200, before anything reached the caller.
    Held,
    /// Under a 200, behind what the caller already has.
    Committed,
    /// At the caller's end.
    Caller,
}

/// One fault.
pub struct Fault {
    pub id: String,
    /// In a few words.
    pub what: String,
    pub phase: Phase,
    play: Box<Playing>,
}

/// How the channel of a name has a fault in a form.
type Playing = dyn Fn(&Form, &str) -> Option<Play> + Send + Sync;

impl Fault {
    /// How the channel `who` has this fault in a form.
    pub fn play(&self, form: &Form, who: &str) -> Option<Play> {
        let play = (self.play)(form, who)?;
        Some(if form.is_held { play.held() } else { play })
    }

    /// Whether it is played in a form. How long a stream is held is seen by what would come behind its commit.
    pub fn is_for(&self, form: &Form) -> bool {
        !form.is_held || matches!(self.phase, Phase::None | Phase::Committed | Phase::Caller)
    }
}

fn fault(
    phase: Phase,
    id: &str,
    what: &str,
    play: impl Fn(&Form, &str) -> Option<Play> + Send + Sync + 'static,
) -> Fault {
    Fault { id: id.to_owned(), what: what.to_owned(), phase, play: Box::new(play) }
}

/// What a channel does with one request, and what the design makes of it.
pub struct Play {
    pub unreachable: Option<Unreachable>,
    pub scripts: Vec<Script>,
    /// A good request goes before, so that its connection is used again.
    pub is_warm: bool,
    /// Requests that the upstream gets.
    pub calls: usize,
    /// It made what the request names or goes on from.
    pub is_maker: bool,
    pub ends: Ends,
}

impl Play {
    pub fn new(script: Script, ends: Ends) -> Self {
        Play { unreachable: None, scripts: vec![script], is_warm: false, calls: 1, is_maker: false, ends }
    }

    pub fn failing(script: Script, failed: Failed) -> Self {
        Play::new(script, Ends::Failed(failed))
    }

    /// The same where nothing reaches the caller before the stream is complete: what breaks off moves on.
    fn held(self) -> Self {
        let ends = match self.ends {
            Ends::Served { bytes, media, took, .. } => Ends::Served { bytes, media, after: took, took },
            Ends::Broken { took, .. } => Ends::Failed(Failed::after(FailureClass::UpstreamError, took)),
            Ends::Left { .. } => Ends::Left { has_answer: false },
            failed @ Ends::Failed(_) => failed,
        };
        Play { ends, ..self }
    }

    /// The same channel, which made what the request is about.
    pub fn made_it(self) -> Self {
        Play { is_maker: true, ..self }
    }

    /// Whether megabytes reach the caller.
    pub fn is_large(&self) -> bool {
        matches!(&self.ends, Ends::Broken { bytes, .. } if bytes.len() > 1024 * 1024)
    }

    /// A channel that is well.
    pub fn healthy(form: &Form, who: &str) -> Self {
        Play::new(form.healthy(who), Ends::served(form.good(who), form.media()))
    }
}

/// How an attempt ends.
pub enum Ends {
    /// The caller gets these bytes.
    Served { bytes: String, media: &'static str, after: Duration, took: Duration },
    /// Nothing of it reaches the caller.
    Failed(Failed),
    /// The caller gets these bytes, and then what tells it that they are not all.
    Broken { bytes: String, after: Duration, took: Duration, tail: Tail },
    /// The caller leaves before the headers, or behind the first bytes.
    Left { has_answer: bool },
}

impl Ends {
    /// At once.
    pub fn served(bytes: String, media: &'static str) -> Self {
        Ends::Served { bytes, media, after: Duration::ZERO, took: Duration::ZERO }
    }
}

/// How a caller learns that an answer broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// By our error frame.
    Frame,
    /// By our error frame, behind the end of the event in which it broke off.
    FrameBehindHalf,
    /// By the upstream's own error frame, which the SDKs raise.
    Theirs,
    /// The connection ends before the body does.
    Abort,
}

/// A failure before commit.
#[derive(Debug, Clone)]
pub struct Failed {
    pub class: FailureClass,
    pub quirk: Quirk,
    /// What a caller may be shown of a bad request.
    pub status: u16,
    pub words: Words,
    /// How long the upstream asks us to stay away.
    pub hint: Option<Duration>,
    pub takes: Duration,
    /// It is certain that the upstream has not begun what was asked for.
    pub is_untaken: bool,
    /// The status that the upstream refused it with, where it has one.
    pub refused: Option<u16>,
}

impl Failed {
    pub fn of(class: FailureClass) -> Self {
        let (quirk, hint, takes) = (Quirk::None, None, Duration::ZERO);
        let (is_untaken, refused) = (false, None);
        Failed { class, quirk, status: 400, words: Words::PLAIN, hint, takes, is_untaken, refused }
    }

    pub fn after(class: FailureClass, takes: Duration) -> Self {
        Failed { takes, ..Failed::of(class) }
    }
}

/// What the class alone does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    None,
    /// The rate limit that this one request exceeds by itself.
    SingleRequest,
    /// A 4xx that no upstream of the dialect wrote.
    Unshaped,
    /// What the channel that made it says of a thing.
    OfThing,
}

/// Every fault, in the order of a request's life.
pub fn all() -> Vec<Fault> {
    [
        transport::none(),
        held::lawful(),
        transport::faults(),
        status::faults(),
        known::faults(),
        held::faults(),
        broken::faults(),
        transport::callers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
