//! The operator's catalog: a document that was read and checked whole. A [`Catalog`] that exists is
//! valid; what is derived from it (chains, the snapshot, differences) cannot fail.
//!
//! document → [`parse`] → [`Catalog`] → [`Catalog::compile`] → snapshot. The reference for authors
//! is `docs/catalog.md`.

mod chain;
mod check;
mod compile;
mod diff;
mod fault;
mod field;
mod keys;
mod read;
mod resolve;
pub mod rollout;
mod site;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use chain::{Chain, ChainHop, Order};
pub use diff::{Change, diff};
pub use fault::{Fault, did_you_mean};

use crate::dialect::Dialect;
use crate::id::{ChannelId, Model};
use crate::limits::CATALOG_BYTES_MAX;
use crate::money::Price;
use crate::policy::Layer;
use crate::profile::{Auth, Limits, Override, Profile};

/// A checked document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What it says.
    pub catalog: Catalog,
    /// What works but is probably not meant.
    pub warnings: Vec<Fault>,
    /// Where secrets are named.
    pub secrets: Vec<SecretUse>,
}

/// A reference to a secret of the control plane, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// The secret.
    pub name: String,
    /// Line in the document.
    pub line: u32,
    /// Where, in the words of the document.
    pub path: String,
}

/// What a valid document says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    policy: Layer,
    rollout: rollout::Plan,
    channels: BTreeMap<ChannelId, Channel>,
    models: BTreeMap<Model, Entry>,
}

/// One upstream endpoint with one credential, as the document gives it. What its profile adds is in the functions of
/// the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Whose ways it has.
    pub profile: Option<&'static Profile>,
    /// What it speaks; at least one.
    pub dialects: Vec<Dialect>,
    /// `http` or `https`, without a slash at its end.
    pub base_url: String,
    /// `env:NAME`, `file:PATH` or `secret:NAME`; none when the upstream wants none.
    pub credential: Option<String>,
    /// How the credential is shown, where it is given.
    pub auth: Option<Auth>,
    /// Where the operations of dialects that it speaks lie, where it is given.
    pub paths: BTreeMap<Dialect, String>,
    /// What its errors mean, the first that matches; before those of its profile.
    pub overrides: Vec<Override>,
    /// What its rate limits are about, where it is given.
    pub limits: Option<Limits>,
    /// Whether its routes are in chains.
    pub enabled: bool,
    /// Sent with each request; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Appended to each request's address.
    pub query: BTreeMap<String, String>,
    /// A PEM file on the node: the authority that signs the upstream's certificate.
    pub tls_ca_file: Option<String>,
    /// Whether streams are asked for their usage where the caller did not ask.
    pub include_usage: bool,
    /// The policy keys that it carries.
    pub policy: Layer,
}

/// What the catalog says of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What callers pay; none when they pay nothing.
    pub price: Option<Prices>,
    /// Tokens of the longest answer, where the catalog says.
    pub max_output_tokens: Option<u64>,
    /// The policy keys that it carries.
    pub policy: Layer,
    /// Its routes, in the order of the document; at least one, and one for each channel at most.
    pub routes: Vec<Route>,
}

/// A model on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// A channel of the catalog.
    pub channel: ChannelId,
    /// The upstream's name for the model.
    pub upstream_model: String,
    /// What it costs us.
    pub cost: Prices,
    /// What the chain is ordered by instead of the cost.
    pub order: Option<Price>,
    /// Whether it is in chains.
    pub enabled: bool,
    /// Tokens of request and answer together, where the catalog says.
    pub context_window: Option<u64>,
    /// The policy keys that it carries.
    pub policy: Layer,
}

/// Prices or costs, in USD per million tokens; of a unit in USD each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prices {
    /// Of input tokens.
    pub input: Option<Price>,
    /// Of output tokens.
    pub output: Option<Price>,
    /// Of input tokens that the upstream had cached.
    pub cached_input: Option<Price>,
    /// Of one unit (an image, a search, …) where tokens are not what is counted.
    pub unit: Option<Price>,
}

/// Reads and checks a document, TOML or JSON. Every fault is reported, in the order of the
/// document; nothing of a faulty document is kept.
pub fn parse(document: &[u8]) -> Result<Checked, Vec<Fault>> {
    parse_knowing(document, None)
}

/// The same where it is known which secrets there are: naming another one is a fault.
pub fn parse_knowing(document: &[u8], secrets: Option<&BTreeSet<String>>) -> Result<Checked, Vec<Fault>> {
    if document.len() > CATALOG_BYTES_MAX {
        let message =
            format!("the document has {} bytes; at most {CATALOG_BYTES_MAX} are read", document.len());
        return Err(vec![Fault { line: 0, path: String::new(), message }]);
    }
    check::check(&read::read(document)?, secrets)
}

impl Catalog {
    /// The fleet's policy keys as the document gives them.
    pub fn policy(&self) -> &Layer {
        &self.policy
    }

    /// How this catalog is to reach the fleet.
    pub fn rollout(&self) -> &rollout::Plan {
        &self.rollout
    }

    /// The channels, sorted by id.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = (&ChannelId, &Channel)> {
        self.channels.iter()
    }

    /// The models, sorted by name.
    pub fn models(&self) -> impl ExactSizeIterator<Item = (&Model, &Entry)> {
        self.models.iter()
    }

    /// The channels that name a secret of the control plane, with its name.
    pub fn secrets(&self) -> impl Iterator<Item = (&ChannelId, &str)> {
        self.channels
            .iter()
            .filter_map(|(id, channel)| Some((id, field::secret_name(channel.credential.as_deref()?)?)))
    }

    /// A channel by its id.
    pub fn channel(&self, id: &str) -> Option<&Channel> {
        self.channels.get(id)
    }

    /// A model by its name.
    pub fn model(&self, name: &str) -> Option<&Entry> {
        self.models.get(name)
    }
}
