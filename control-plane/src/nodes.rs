//! The nodes of the fleet: connected, applied, rejected, lost. Shown to operators and never acted on:
//! a control plane that is slow or was away takes no traffic from any node (FR-029).

mod boots;
mod connection;
mod elsewhere;
mod facts;
mod order;
#[cfg(test)]
mod tests;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::clock::Clock;
use common::feature::Needs;
use common::limits::{HEARTBEAT_LOST, NODE_STALE};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use boots::{Boots, Cloned};
pub use connection::{Call, Connection};
use elsewhere::{Place, Replicas};
pub use facts::{Applied, Facts, Finding, Pause, Quarantined, Rejected};
pub use order::{Order, Probed};
pub use view::{NodeView, State};

use crate::revision::encoded::Part;
use crate::revision::head::Wanted;
use crate::store::rows;

/// A node that only says that it lives is written to the store this often.
pub const PERSIST_SEEN_MS: u64 = 60_000;

/// Orders that wait for a stream to take them.
const ORDERS_MAX: usize = 4;
/// A node that was heard of within this time, and did not leave, is expected back.
const RECENT_MS: u64 = 24 * 60 * 60 * 1000;

/// A node that lacks something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// Its id.
    pub node_id: String,
    /// Of its program.
    pub version: String,
    /// By name.
    pub lacks: Vec<String>,
}

/// All nodes that were seen in the last months.
#[derive(Debug)]
pub struct Nodes {
    clock: Clock,
    started_at_ms: u64,
    nodes: Mutex<BTreeMap<String, Entry>>,
    replicas: Mutex<Replicas>,
    /// Grows with every visible change.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Entry {
    facts: Facts,
    last_seen_at_ms: u64,
    persisted_seen_at_ms: u64,
    is_dirty: bool,
    stream: Option<Stream>,
    /// Since when that is open.
    streaming_since_ms: u64,
    /// Where the store says that its stream is, when that is at another control plane.
    place: Option<Place>,
    /// The version of the list with which the store's row was written.
    list_version: u64,
    boots: Boots,
    /// When the store was last told, or told us, that it was cloned.
    cloned_told_ms: u64,
    /// Since when the catalog that it runs is known to run there.
    config_since_ms: u64,
    /// What it should run and does not, and since when.
    owes: Option<(Applied, u64)>,
}

impl Entry {
    /// Whether it was heard of within the last day, and did not leave.
    fn is_there(&self, now_ms: u64) -> bool {
        self.is_connected()
            || (!self.facts.drained && now_ms.saturating_sub(self.last_seen_at_ms) < RECENT_MS)
    }
}

/// Where an open stream is reached.
#[derive(Debug)]
struct Stream {
    /// Cancelled when a newer stream of the same node takes over.
    replaced: CancellationToken,
    orders: mpsc::Sender<Order>,
}

impl Nodes {
    /// No nodes yet, seen by this control plane.
    pub fn new(own: &rows::Replica, clock: Clock) -> Arc<Self> {
        let started_at_ms = clock.now_ms();
        let replicas = Mutex::new(Replicas::new(own.clone()));
        let (nodes, changed) = (Mutex::default(), watch::Sender::new(0));
        Arc::new(Nodes { clock, started_at_ms, nodes, replicas, changed })
    }

    /// Opens a node's stream. An older one of the same node ends.
    pub fn connect(self: &Arc<Self>, id: &str, facts: Facts) -> Connection {
        let now = self.clock.now_ms();
        let replaced = CancellationToken::new();
        let (tx, orders) = mpsc::channel(ORDERS_MAX);
        let mut nodes = self.lock();
        let older = nodes.remove(id);
        let mut boots = older.as_ref().map(|older| older.boots.clone()).unwrap_or_default();
        let cloned = boots.connected(&facts.boot_id, now);
        let has_since = |older: &&Entry| older.facts.applied.catalog == facts.applied.catalog;
        let entry = Entry {
            config_since_ms: older.as_ref().filter(has_since).map_or(now, |older| older.config_since_ms),
            owes: None,
            facts,
            last_seen_at_ms: now,
            persisted_seen_at_ms: now,
            is_dirty: true,
            stream: Some(Stream { replaced: replaced.clone(), orders: tx }),
            streaming_since_ms: now,
            place: older.as_ref().and_then(|older| older.place.clone()),
            list_version: older.as_ref().map_or(0, |older| older.list_version),
            boots,
            cloned_told_ms: older.as_ref().map_or(0, |older| older.cloned_told_ms),
        };
        nodes.insert(id.to_owned(), entry);
        if let Some(Entry { stream: Some(older), facts, .. }) = older {
            tracing::warn!(node.id = id, boot = facts.boot_id, "a newer stream of node {id} takes over");
            // Under the lock: whoever finds the new entry there knows that it is not the older one's.
            older.replaced.cancel();
        }
        drop(nodes);
        if let Some(cloned) = cloned {
            warn_of_clones(id, &cloned);
        }
        self.tell();
        Connection { nodes: self.clone(), id: id.to_owned(), replaced, orders }
    }

    /// Every node, by id.
    pub fn list(&self, wanted: Option<&Wanted>) -> Vec<NodeView> {
        let now = self.clock.now_ms();
        self.lock().iter_mut().map(|(id, entry)| self.look(id, entry, wanted, now)).collect()
    }

    /// Looks at all nodes, so that it is known since when one owes what it should run.
    pub fn look_at_all(&self, wanted: Option<&Wanted>) {
        let now = self.clock.now_ms();
        for (id, entry) in self.lock().iter_mut() {
            self.look(id, entry, wanted, now);
        }
    }

    /// Since when this process knows of nodes.
    pub fn started_at_ms(&self) -> u64 {
        self.started_at_ms
    }

    /// The catalogs of an epoch below a version that nodes run, whether they are connected or not; the newest first.
    pub fn applied(&self, epoch: u64, below: u64) -> Vec<Part> {
        let nodes = self.lock();
        let applied =
            nodes.values().map(|entry| entry.facts.applied).filter(|applied| applied.epoch == epoch);
        let parts = applied.filter_map(|applied| applied.catalog).filter(|part| part.version < below);
        let by_version: BTreeMap<u64, Part> = parts.map(|part| (part.version, part)).collect();
        by_version.into_values().rev().collect()
    }

    /// Connected nodes that know all that a content needs, and say what they would make of it: id and version.
    pub fn able(&self, needs: &Needs) -> Vec<(String, String)> {
        let nodes = self.lock();
        let able = nodes.iter().filter(|(_, entry)| {
            let knows = entry.facts.features.contains(common::feature::PROBE);
            entry.stream.is_some() && knows && entry.facts.lacks(needs).is_empty()
        });
        able.map(|(id, entry)| (id.clone(), entry.facts.version.clone())).collect()
    }

    /// Nodes that would not be given a content, because they lack something that it needs: those that were heard of
    /// within the last day and did not leave.
    pub fn lacking(&self, needs: &Needs) -> Vec<Lacking> {
        let now = self.clock.now_ms();
        let nodes = self.lock();
        let there = nodes.iter().filter(|(_, entry)| entry.is_there(now));
        let lacking = there.map(|(id, entry)| Lacking {
            node_id: id.clone(),
            version: entry.facts.version.clone(),
            lacks: entry.facts.lacks(needs),
        });
        lacking.filter(|lacking| !lacking.lacks.is_empty()).collect()
    }

    /// Nodes that are given no secrets, because they show no certificate of their own, likewise.
    pub fn uncertified(&self) -> Vec<String> {
        let now = self.clock.now_ms();
        let nodes = self.lock();
        let without = nodes.iter().filter(|(_, entry)| entry.is_there(now) && !entry.facts.is_certified);
        without.map(|(id, _)| id.clone()).collect()
    }

    /// Catalogs of an epoch that some node runs, or ran when it was last heard of.
    pub fn applied_revisions(&self, epoch: u64) -> BTreeSet<u64> {
        let nodes = self.lock();
        let applied = nodes.values().map(|entry| entry.facts.applied).filter(|one| one.epoch == epoch);
        applied.filter_map(|applied| applied.catalog).map(|part| part.version).collect()
    }

    /// Nodes whose stream is open, here or at another control plane, and nodes that were ever seen.
    pub fn count(&self) -> (usize, usize) {
        let nodes = self.lock();
        (nodes.values().filter(|entry| entry.is_connected()).count(), nodes.len())
    }

    /// Nodes whose stream is open here.
    pub fn streams(&self) -> usize {
        self.lock().values().filter(|entry| entry.stream.is_some()).count()
    }

    /// Whether it was ever seen.
    pub fn is_known(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Nodes whose identity more than one process uses.
    pub fn cloned(&self) -> usize {
        let now = self.clock.now_ms();
        self.lock().values().filter(|entry| entry.boots.cloned(now).is_some()).count()
    }

    /// Whether some node may hold what it has not reported: one that was lost within `doubt`, and, shortly after a
    /// start, within `arrival`, any that has not come back yet.
    pub fn may_have_unreported(&self, doubt: Duration, arrival: Duration) -> bool {
        let now = self.clock.now_ms();
        let within = |at_ms: u64, time: Duration| now.saturating_sub(at_ms) < time.as_millis() as u64;
        let has_just_started = within(self.started_at_ms, arrival);
        let nodes = self.lock();
        let mut away = nodes.values().filter(|entry| !entry.is_connected() && !entry.facts.drained);
        away.any(|entry| has_just_started || within(entry.heard_at_ms(), doubt))
    }

    /// For each channel with an open breaker, the connected nodes on which it is open, by id.
    pub fn open_channels(&self) -> BTreeMap<String, Vec<String>> {
        let mut open: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, entry) in self.lock().iter().filter(|(_, entry)| entry.is_connected()) {
            for channel in &entry.facts.open_channels {
                open.entry(channel.clone()).or_default().push(id.clone());
            }
        }
        open
    }

    /// Tells of every visible change. That a node is lost shows by time alone: look again every few
    /// seconds as well.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Nodes that changed since they were last taken, for the store.
    pub fn take_dirty(&self) -> Vec<rows::Node> {
        let own = self.id();
        let mut nodes = self.lock();
        let dirty = nodes.iter_mut().filter(|(_, entry)| entry.is_dirty);
        dirty
            .map(|(id, entry)| {
                entry.is_dirty = false;
                entry.persisted_seen_at_ms = entry.last_seen_at_ms;
                let row = entry.facts.to_row(id, entry.last_seen_at_ms, entry.config_since_ms);
                let (control_plane, streaming_since_ms) = match entry.stream {
                    Some(_) => (own.clone(), entry.streaming_since_ms),
                    None => (String::new(), 0),
                };
                rows::Node { control_plane: Some(control_plane), streaming_since_ms, ..row }
            })
            .collect()
    }

    /// Forgets nodes that were last heard of before `before_ms`.
    pub fn forget(&self, before_ms: u64) {
        let mut nodes = self.lock();
        let known = nodes.len();
        nodes.retain(|_, entry| entry.is_connected() || entry.last_seen_at_ms >= before_ms);
        let is_visible = nodes.len() != known;
        drop(nodes);
        if is_visible {
            self.tell();
        }
    }

    /// The store did not take them: they will be taken again.
    pub fn give_back(&self, rows: &[rows::Node]) {
        let mut nodes = self.lock();
        for row in rows {
            if let Some(entry) = nodes.get_mut(&row.id) {
                entry.is_dirty = true;
            }
        }
    }

    /// A node as it is now. Connected and behind for long, it is stale: it was sent what it should run, or should have
    /// been, and neither took nor refused it.
    fn look(&self, id: &str, entry: &mut Entry, wanted: Option<&Wanted>, now_ms: u64) -> NodeView {
        let mut view = self.view(id, entry, wanted, now_ms);
        let aim = view.aim.filter(|_| view.connected && view.state == State::Behind);
        entry.owes = aim.map(|aim| match entry.owes {
            Some((owed, since_ms)) if owed == aim => (owed, since_ms),
            Some(_) | None => (aim, now_ms),
        });
        let is_stale =
            |(_, since_ms): (Applied, u64)| now_ms.saturating_sub(since_ms) >= NODE_STALE.as_millis() as u64;
        if entry.owes.is_some_and(is_stale) {
            view.state = State::Stale;
        }
        view
    }

    fn view(&self, id: &str, entry: &Entry, wanted: Option<&Wanted>, now_ms: u64) -> NodeView {
        let is_connected = entry.is_connected();
        // A node has this long to find its way here after a restart of the control plane. What became of one that was
        // elsewhere is known up to the last look into the store.
        let heard_ms = entry.heard_at_ms().max(self.started_at_ms);
        let until_ms = entry.place.as_ref().map_or(now_ms, |place| now_ms.min(place.looked_at_ms));
        let is_lost = !is_connected && until_ms.saturating_sub(heard_ms) >= HEARTBEAT_LOST.as_millis() as u64;
        let shown = shown(entry, now_ms);
        let view = NodeView::of(id, shown, is_connected, is_lost, wanted, entry.last_seen_at_ms);
        let (control_plane, streaming_since_ms) = match (&entry.stream, &entry.place) {
            (Some(_), _) => (self.name(), entry.streaming_since_ms),
            (None, Some(place)) if place.is_alive => (place.name.clone(), place.since_ms),
            (None, _) => (String::new(), 0),
        };
        NodeView { config_since_ms: entry.config_since_ms, control_plane, streaming_since_ms, ..view }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }
}

/// What a node says of itself, and what is found out about it.
fn shown(entry: &Entry, now_ms: u64) -> Facts {
    let mut facts = entry.facts.clone();
    if !entry.is_connected() {
        // These were of a moment that is over.
        facts.open_channels.clear();
        facts.pauses.clear();
        facts.in_flight = 0;
    }
    if let Some(Cloned { boots: [one, other], .. }) = entry.boots.cloned(now_ms) {
        let message = format!("two processes speak as this node, boots {one} and {other}: it was cloned");
        facts.warnings.push(Finding { path: "identity".to_owned(), message });
    }
    facts
}

fn warn_of_clones(id: &str, Cloned { boots: [one, other], .. }: &Cloned) {
    tracing::error!(
        node.id = id, boots = ?[one, other],
        "two processes speak as node {id}, boots {one} and {other}: its identity was cloned; stop one of them, or \
         revoke the node and enrol both anew under ids of their own"
    );
}
