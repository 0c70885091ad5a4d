//! The routing table that a node built from a snapshot, behind one pointer. A request loads it once
//! and uses it to its end, whatever is installed meanwhile.

pub mod build;
pub mod keep;
pub mod path;
mod things;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::Uri;
use http::uri::InvalidUri;

use common::dialect::Dialect;
use common::id::{ChannelId, Model};
use common::pb::fleet as pb;

use crate::channel::{Channel, RouteState};
use crate::dialect::operation::Operation;
use crate::gate::Until;
use crate::upstream::Client;
use path::Template;
use things::Things;

/// The table in force.
#[derive(Default)]
pub struct Tables(ArcSwapOption<Table>);

impl Tables {
    /// No table yet.
    pub fn new() -> Self {
        Tables::default()
    }

    /// The table in force; `None` before the first.
    pub fn load(&self) -> Option<Arc<Table>> {
        self.0.load_full()
    }

    /// Puts a table in force. Requests that loaded another one keep it.
    pub fn install(&self, table: Arc<Table>) {
        self.0.store(Some(table));
    }
}

/// A revision, ready to be walked.
pub struct Table {
    /// The catalog's revision.
    pub revision: u64,
    /// The epoch that the revision counts in.
    pub epoch: u64,
    channels: BTreeMap<ChannelId, Arc<Channel>>,
    /// The way to each channel for what it made.
    things: Things,
    models: HashMap<Model, Entry>,
    /// Credentials that cannot be had here now.
    warnings: Vec<pb::Violation>,
}

struct Entry {
    model: Model,
    chains: Vec<Chain>,
}

/// The routes of a model for a dialect, cheapest first.
pub struct Chain {
    /// The wire format.
    pub dialect: Dialect,
    /// At most `ROUTING_CHAIN_MAX`.
    pub routes: Vec<Route>,
}

/// A model on a channel.
pub struct Route {
    /// Where it goes.
    pub channel: Arc<Channel>,
    /// The upstream's name for the model.
    pub upstream_model: String,
    /// The channel's `base_url`, without a slash at its end.
    pub base_url: Arc<str>,
    /// Where operations lie behind it; none where they have the dialect's own paths.
    pub path: Option<Arc<Template>>,
    /// The channel's own query, encoded; empty where it has none.
    pub query: Arc<str>,
    /// Connections to it.
    pub client: Arc<Client>,
    /// How long the gate holds an undecided answer.
    pub gate_timeout: Duration,
    /// What the gate waits for.
    pub gate_until: Until,
    /// Layer 4.
    pub headers_timeout: Duration,
    /// A committed answer is cut after this long without an event.
    pub idle_timeout: Duration,
    /// Tokens, where the catalog says.
    pub context_window: Option<u64>,
    /// What this process knows of the route.
    pub state: Arc<RouteState>,
}

impl Route {
    /// Where an operation is asked for. `named` is what the caller's path names, `query` its own.
    pub fn uri(
        &self,
        operation: &Operation,
        named: Option<&str>,
        query: Option<&str>,
    ) -> Result<Uri, InvalidUri> {
        self.address(&operation.upstream_path(&self.upstream_model, named), query)
    }

    /// The same for a path of the dialect. What comes back may hold the credential: it is for the wire alone.
    pub fn address(&self, path: &str, query: Option<&str>) -> Result<Uri, InvalidUri> {
        let path = match &self.path {
            None => Cow::Borrowed(path),
            Some(template) => Cow::Owned(template.fill(path, &self.upstream_model)),
        };
        let credential = self.channel.credential.parameter();
        let queries = [self.query.as_ref(), query.unwrap_or_default(), credential.unwrap_or_default()];
        let mut address = [self.base_url.as_ref(), path.as_ref()].concat();
        let mut joint = '?';
        for query in queries.into_iter().filter(|query| !query.is_empty()) {
            address.push(joint);
            address.push_str(query);
            joint = '&';
        }
        address.parse()
    }
}

/// What a table has for a model.
pub enum Lookup<'a> {
    /// The chain, perhaps without routes; the model is the table's own name, good as a label.
    Chain(&'a Model, &'a [Route]),
    /// No such model, or not in this dialect.
    Unknown,
}

impl Table {
    /// The chain of a model for a dialect.
    pub fn chain(&self, model: &str, dialect: Dialect) -> Lookup<'_> {
        let found = self.models.get(model).and_then(|entry| {
            let chain = entry.chains.iter().find(|chain| chain.dialect == dialect)?;
            Some((&entry.model, chain.routes.as_slice()))
        });
        found.map_or(Lookup::Unknown, |(model, routes)| Lookup::Chain(model, routes))
    }

    /// The way to a channel for what it made before, whichever models it serves now. Cooldown and suspension are of this
    /// way alone: who polls too often takes no model from anybody.
    pub fn thing_of(&self, channel: &ChannelId, dialect: Dialect) -> Option<&Route> {
        self.things.get(channel, dialect)
    }

    /// Every channel, by id.
    pub fn channels(&self) -> impl Iterator<Item = &Arc<Channel>> {
        self.channels.values()
    }

    /// What works but wants a person: credentials that cannot be had here now.
    pub fn warnings(&self) -> &[pb::Violation] {
        &self.warnings
    }

    /// Every model with its chains, by name.
    pub fn models(&self) -> impl Iterator<Item = (&Model, &[Chain])> {
        let mut entries: Vec<_> = self.models.values().collect();
        entries.sort_by(|a, b| a.model.cmp(&b.model));
        entries.into_iter().map(|entry| (&entry.model, entry.chains.as_slice()))
    }
}
