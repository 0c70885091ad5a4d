//! What the view shows at one moment, and the story so far: who broke what, and how the fleet took it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::look::Look;
use super::traffic::Seen;
use crate::provider::{Provider, Script};

/// A way to break a provider, or to mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    Status,
    Refuse,
    Hang,
    ErrorInside,
    Cut,
    Mend,
}

impl Break {
    pub(super) const ALL: [Break; 6] =
        [Break::Status, Break::Refuse, Break::Hang, Break::ErrorInside, Break::Cut, Break::Mend];

    /// Its key and what the key line says.
    pub(super) fn key(self) -> (char, &'static str) {
        match self {
            Break::Status => ('x', "503"),
            Break::Refuse => ('r', "refuse"),
            Break::Hang => ('h', "hang"),
            Break::ErrorInside => ('e', "error in 200"),
            Break::Cut => ('c', "cut"),
            Break::Mend => ('m', "mend"),
        }
    }

    pub(super) fn of_key(key: char) -> Option<Break> {
        Break::ALL.into_iter().find(|what| what.key().0 == key)
    }

    /// What the provider does now, as the end of a sentence about it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Break::Status => "answers 503 from now on",
            Break::Refuse => "refuses connections from now on",
            Break::Hang => "sends no response headers from now on",
            Break::ErrorInside => "sends an error inside a 200 from now on",
            Break::Cut => "cuts its answers in the middle from now on",
            Break::Mend => "is mended",
        }
    }

    pub(super) fn script(self) -> Script {
        match self {
            Break::Status => Script::Status(503),
            Break::Refuse => Script::Refuse,
            Break::Hang => Script::Hang,
            Break::ErrorInside => Script::ErrorAfterRole,
            Break::Cut => Script::Cut,
            Break::Mend => Script::Healthy,
        }
    }
}

/// What a provider with this script does, in a word or two.
pub(super) fn state_of(script: &Script) -> String {
    match Break::ALL.into_iter().find(|what| what.script() == *script) {
        Some(Break::Mend) => "healthy".to_owned(),
        Some(what) => what.key().1.to_owned(),
        None => script.to_string(),
    }
}

/// News kept for the view.
const NEWS_MAX: usize = 50;

/// What happened, newest last.
pub(super) struct Story {
    started: Instant,
    news: VecDeque<String>,
    untold: Vec<String>,
}

impl Story {
    pub(super) fn new(started: Instant) -> Story {
        Story { started, news: VecDeque::new(), untold: Vec::new() }
    }

    /// Adds a piece of news under the time since the start.
    pub(super) fn tell(&mut self, what: impl std::fmt::Display) {
        let line = format!("{}  {what}", clock(self.started.elapsed()));
        self.untold.push(line.clone());
        self.news.push_back(line);
        if self.news.len() > NEWS_MAX {
            self.news.pop_front();
        }
    }

    /// The newest `count`, oldest first.
    pub(super) fn newest(&self, count: usize) -> impl Iterator<Item = &str> {
        self.news.iter().skip(self.news.len().saturating_sub(count)).map(String::as_str)
    }

    /// What was not told before.
    pub(super) fn take_news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }

    /// Tells what is another way than at the last look.
    pub(super) fn note(&mut self, old: &Look, new: &Look) {
        for ((node, channel), out) in &new.out {
            if old.out.get(&(node.clone(), channel.clone())).is_none_or(|before| before.why != out.why) {
                let left = out.seconds_left.map(|left| format!(", for {left:.1} s")).unwrap_or_default();
                self.tell(format!("{node} takes {channel} out: {}{left}", words(&out.why)));
            }
        }
        for (node, channel) in old.out.keys().filter(|key| !new.out.contains_key(*key)) {
            self.tell(format!("{node} takes {channel} in again"));
        }
        for node in &new.nodes {
            let before = old.nodes.iter().find(|before| before.id == node.id);
            if before.is_some_and(|before| before.applied_revision != node.applied_revision) {
                self.tell(format!("{} runs revision {}", node.id, node.applied_revision));
            }
        }
        if new.trouble.is_some() && new.trouble != old.trouble {
            self.tell(new.trouble.as_deref().unwrap_or_default());
        }
    }
}

/// A node's word for why a channel is out, as people say it.
pub(super) fn words(why: &str) -> String {
    match why {
        "breaker_open" => "breaker open".to_owned(),
        "cooling_down" => "cooling down".to_owned(),
        "no_credential" => "no credential".to_owned(),
        other => other.replace('_', " "),
    }
}

/// `m:ss` since the start.
pub(super) fn clock(since: Duration) -> String {
    format!("{}:{:02}", since.as_secs() / 60, since.as_secs() % 60)
}

/// Everything that is shown.
pub(super) struct Picture<'a> {
    pub(super) uptime: Duration,
    pub(super) left: Option<Duration>,
    pub(super) look: &'a Look,
    pub(super) seen: Seen,
    pub(super) providers: &'a [Provider],
    pub(super) chosen: usize,
    pub(super) story: &'a Story,
    pub(super) dir: &'a Path,
    pub(super) is_paused: bool,
}
