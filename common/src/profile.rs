//! What upstreams do in their own way: how a credential is shown, where operations lie, what an error
//! means there, what a rate limit is about. A [`Profile`] is such a set under a name; the table of them
//! is [`PROFILES`], and it is the only place that knows a vendor. The catalog's channels name one, and
//! what they say themselves wins over it; nodes are told the outcome and know no profile.

mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use crate::class::{Effect, FailureClass};
use crate::dialect::Dialect;

pub use table::PROFILES;

/// The ways of one vendor or server.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name in catalogs.
    pub name: &'static str,
    /// What a channel's `base_url` looks like.
    pub base_url: &'static str,
    /// What the paths below bring along, so that no `base_url` may end in it.
    pub appended: &'static [&'static str],
    /// The dialects that it is known to speak; empty for servers of one's own, where that is a matter of version and model.
    pub speaks: &'static [Dialect],
    /// How a credential is shown, where not each dialect's own way is right.
    pub auth: Option<Auth>,
    /// Where the operations of some dialects lie; the others have the dialect's own paths.
    pub paths: &'static [(Dialect, &'static str)],
    /// Parameters that each request carries.
    pub query: &'static [(&'static str, &'static str)],
    /// What its errors mean where the ordinary reading is wrong.
    pub overrides: &'static [Override],
    /// What its rate limits are about.
    pub limits: Limits,
    /// A request with a field that it does not know is refused, `stream_options` for one.
    pub refuses_unknown_fields: bool,
}

/// How a channel shows its credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    None,
    /// In a header, behind a prefix.
    Header {
        /// The header's name, in lower case.
        name: Cow<'static, str>,
        /// What comes before the credential.
        prefix: Cow<'static, str>,
    },
    /// In a parameter of the query.
    Query {
        /// The parameter's name.
        name: Cow<'static, str>,
    },
}

impl Auth {
    /// `authorization: Bearer …`
    pub const BEARER: Auth = Auth::header("authorization", "Bearer ");
    /// `api-key: …`, as Azure has it.
    pub const API_KEY: Auth = Auth::header("api-key", "");
    /// `x-api-key: …`, as Anthropic has it.
    pub const X_API_KEY: Auth = Auth::header("x-api-key", "");
    /// `x-goog-api-key: …`, as Google has it.
    pub const X_GOOG_API_KEY: Auth = Auth::header("x-goog-api-key", "");

    /// The ways that have a name in catalogs.
    pub const NAMED: [(&'static str, Auth); 5] = [
        ("bearer", Auth::BEARER),
        ("api-key", Auth::API_KEY),
        ("x-api-key", Auth::X_API_KEY),
        ("x-goog-api-key", Auth::X_GOOG_API_KEY),
        ("none", Auth::None),
    ];

    const fn header(name: &'static str, prefix: &'static str) -> Auth {
        Auth::Header { name: Cow::Borrowed(name), prefix: Cow::Borrowed(prefix) }
    }
}

impl fmt::Display for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Auth::NAMED.iter().find(|(_, auth)| auth == self) {
            return f.write_str(name);
        }
        match self {
            Auth::None => f.write_str("none"),
            Auth::Header { name, prefix } if prefix.is_empty() => write!(f, "header {name:?}"),
            Auth::Header { name, prefix } => write!(f, "header {name:?}, prefix {prefix:?}"),
            Auth::Query { name } => write!(f, "query {name:?}"),
        }
    }
}

/// What a rate limit is about, and so what cools down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limits {
    /// One model: the route cools down.
    #[default]
    Route,
    /// The account: the channel cools down.
    Channel,
}

impl Limits {
    /// Every value.
    pub const ALL: [Limits; 2] = [Limits::Route, Limits::Channel];

    /// The name in catalogs.
    pub fn as_str(self) -> &'static str {
        match self {
            Limits::Route => "route",
            Limits::Channel => "channel",
        }
    }
}

/// A rule about errors: one that has all that is given is of this class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The HTTP status of the answer, or of the error inside a 200.
    pub status: Option<u16>,
    /// The error's code, type or other name.
    pub code: Option<Cow<'static, str>>,
    /// Part of the error's message.
    pub message: Option<Cow<'static, str>>,
    /// What it is.
    pub class: FailureClass,
}

impl Override {
    /// The classes that an error of an upstream can be; the others are no upstream's words.
    pub const CLASSES: [FailureClass; 9] = [
        FailureClass::Timeout,
        FailureClass::RateLimited,
        FailureClass::Overloaded,
        FailureClass::UpstreamError,
        FailureClass::Transient,
        FailureClass::Credential,
        FailureClass::Balance,
        FailureClass::Misconfigured,
        FailureClass::BadRequest,
    ];

    /// Whether an error has all that is given. `names` are its code, type and so on.
    pub fn matches<'a>(
        &self,
        status: Option<u16>,
        names: impl IntoIterator<Item = &'a str>,
        message: &str,
    ) -> bool {
        let is_status = self.status.is_none_or(|wanted| status == Some(wanted));
        is_status
            && self
                .code
                .as_deref()
                .is_none_or(|code| names.into_iter().any(|name| name.eq_ignore_ascii_case(code)))
            && self.message.as_deref().is_none_or(|part| {
                if self.takes_out() { contains(&unquoted(message), part) } else { contains(message, part) }
            })
    }

    /// Whether its class stands for more than the request that met it. Of a message it then sees what stands before
    /// anything quoted: upstreams repeat there what callers wrote, and no caller may take a channel from all others.
    pub fn takes_out(&self) -> bool {
        matches!(
            self.class.consequence().effect,
            Effect::SuspendCredential | Effect::SuspendChannel | Effect::SuspendRoute
        )
    }

    /// Whether there can be an error that it matches.
    pub fn can_match(&self) -> bool {
        let is_whole = |part: &str| unquoted(part).len() == part.to_lowercase().len();
        !self.takes_out() || self.message.as_deref().is_none_or(is_whole)
    }

    /// Whether it matches whatever the other one matches, so that the other is never asked behind it.
    pub fn covers(&self, other: &Override) -> bool {
        let is_status = self.status.is_none_or(|status| other.status == Some(status));
        let is_code = self.code.as_deref().is_none_or(|code| {
            other.code.as_deref().is_some_and(|narrower| narrower.eq_ignore_ascii_case(code))
        });
        let is_message = self
            .message
            .as_deref()
            .is_none_or(|part| other.message.as_deref().is_some_and(|narrower| contains(narrower, part)));
        // One that looks at less of the message leaves something to one that looks at all of it.
        let is_seen = self.message.is_none() || !self.takes_out() || other.takes_out();
        is_status && is_code && is_message && is_seen
    }
}

/// The part of a message, in lower case, that comes before anything quoted or nested.
pub fn unquoted(message: &str) -> String {
    let mut previous = ' ';
    let end = message.find(|c: char| {
        let is_apostrophe = c == '\'' && previous.is_alphanumeric();
        previous = c;
        matches!(c, '"' | '`' | '{' | '[' | '<' | ':' | '“' | '‘' | '\'') && !is_apostrophe
    });
    message.get(..end.unwrap_or(message.len())).unwrap_or_default().to_lowercase()
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status {
            write!(f, "status {status}, ")?;
        }
        if let Some(code) = &self.code {
            write!(f, "code {code:?}, ")?;
        }
        if let Some(message) = &self.message {
            write!(f, "message {message:?}, ")?;
        }
        write!(f, "class {}", self.class)
    }
}

impl Profile {
    /// The profile of this name.
    pub fn find(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }

    /// Where the operations of a dialect lie, unless they have the dialect's own paths.
    pub fn path(&self, dialect: Dialect) -> Option<&'static str> {
        self.paths.iter().find(|(speaks, _)| *speaks == dialect).map(|(_, path)| *path)
    }
}
