//! What the services share: the store, what is wanted, the nodes, the counters' pulse.

use std::sync::Arc;

use common::clock::Clock;
use common::tasks::Tasks;
use tokio::sync::watch;

use crate::access::Caller;
use crate::access::known::Known;
use crate::alerts::deliver::Alerting;
use crate::audit;
use crate::beats::Beats;
use crate::doctor::Listening;
use crate::error::Error;
use crate::identity::Identity;
use crate::leader::Leader;
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::records::Keeping;
use crate::records::book::Book;
use crate::revision::head::{Head, Wanted};
use crate::secrets::keyring::Keyring;
use crate::store::Store;
use crate::store::entry::Entry;
use crate::store::rows::Replica;

/// The parts of a running control plane. There may be several in one process.
pub struct Plane {
    /// This process, as one of several control planes.
    pub own: Replica,
    /// What is kept.
    pub store: Store,
    /// What is wanted now: `plane.wanted()?` for the current revision and its catalog.
    pub head: Head,
    /// What secrets are sealed with.
    pub keyring: Arc<Keyring>,
    /// The tokens of operators.
    pub access: Known,
    /// The fleet, live.
    pub nodes: Arc<Nodes>,
    /// Who the nodes are.
    pub identity: Identity,
    /// Counters and gauges of this process.
    pub metrics: Metrics,
    /// Whether this process does the periodic work of all.
    pub leader: Leader,
    /// Who is told of what is wrong.
    pub alerting: Alerting,
    /// How the periodic jobs of this process do.
    pub beats: Beats,
    /// Which records of requests are kept.
    pub keeping: Keeping,
    /// The catalogs that records are priced by.
    pub book: Book,
    /// Where this process listens.
    pub listeners: Vec<Listening>,
    /// Wall time.
    pub clock: Clock,
    /// Streams to nodes and watchers run as these tasks, and end with them at shutdown.
    pub streams: Tasks,
    /// Grows with every window that this process counts: subscribe to it to look at the counters again.
    pub counted: watch::Sender<u64>,
}

impl Plane {
    /// Tells everybody of a change that is kept already. Should the store not answer now, the next look
    /// finds the change: it is made, and whoever made it is not told otherwise.
    pub async fn tell(&self) {
        if let Err(error) = self.head.refresh(&self.store).await {
            tracing::warn!(%error, "a change is kept and will be told as soon as the store answers");
        }
        // The others look by themselves every two seconds.
        if let Err(error) = self.store.announce().await {
            tracing::debug!(%error, "other control planes were not told of a change");
        }
    }

    /// Reads what other control planes wrote of nodes.
    pub async fn look_at_nodes(&self) -> Result<(), Error> {
        let version = self.store.nodes_version().await?;
        if let Some(since) = self.nodes.news_since(version) {
            self.nodes.take_in(version, self.store.nodes_since(since).await?);
        }
        Ok(())
    }

    /// What the audit log will say of a change that is made now, as [`audit::entry`] has it.
    pub fn entry(&self, caller: &Caller, action: &str, object: impl Into<String>) -> Entry {
        audit::entry(caller, self.clock.now_ms(), action, object)
    }

    /// What is wanted now.
    pub fn wanted(&self) -> Result<Arc<Wanted>, Error> {
        self.head.now().ok_or(Error::NotReady)
    }
}
