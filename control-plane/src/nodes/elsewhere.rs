//! Nodes whose streams are at other control planes of the same database: what those wrote down, and whether they live.
//! Each control plane writes what it knows of the nodes that stream to it, reads what the others wrote, and takes their
//! word for it while they are heard of. Where the store cannot be read, what was last read stays.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::boots::{Boots, Cloned};
use super::facts::{self, Facts};
use super::{Entry, Nodes, warn_of_clones};
use crate::store::rows;

/// A control plane that was not heard of for so long is gone, and so are its streams.
pub const REPLICA_LOST: Duration = Duration::from_secs(10);
const LOST_MS: u64 = REPLICA_LOST.as_millis() as u64;
/// Clocks of control planes may run this far apart: what one process is heard to say so long after another one spoke as
/// the same node was said after it.
const SKEW_MS: u64 = 30_000;

/// The control planes of this database.
#[derive(Debug)]
pub(super) struct Replicas {
    own: rows::Replica,
    /// The others that were heard of of late, by their processes.
    others: BTreeMap<String, rows::Replica>,
    /// When they were last looked for.
    looked_at_ms: u64,
    /// The database was away, and they are still given the time to be heard of again: until when, and who.
    returning: (u64, BTreeSet<String>),
    /// The newest version of the list of nodes that was taken in.
    list_version: u64,
}

/// Another control plane, at which a node's stream is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    control_plane: String,
    /// Of the control plane, for people.
    pub name: String,
    /// Since when the stream is there.
    pub since_ms: u64,
    /// The process that speaks as the node there.
    boot_id: String,
    /// Whether the control plane lives.
    pub is_alive: bool,
    /// When it was last known to live, by our clock.
    pub alive_at_ms: u64,
    /// When the store was last asked.
    pub looked_at_ms: u64,
}

impl Replicas {
    pub(super) fn new(own: rows::Replica) -> Self {
        let (others, returning) = (BTreeMap::new(), (0, BTreeSet::new()));
        Replicas { own, others, looked_at_ms: 0, returning, list_version: 0 }
    }

    fn living(&self, id: &str) -> Option<&rows::Replica> {
        let is_heard = |other: &&rows::Replica| other.silent_ms < LOST_MS;
        self.others.get(id).filter(|other| is_heard(other) || self.returning.1.contains(id))
    }

    /// These were found. Who could not be heard of because the database was away from here as well has the same time as
    /// others to be heard of again.
    fn found(&mut self, found: Vec<rows::Replica>, now_ms: u64) {
        let before: BTreeSet<String> =
            self.others.keys().filter(|id| self.living(id).is_some()).cloned().collect();
        if self.looked_at_ms > 0 && now_ms.saturating_sub(self.looked_at_ms) >= LOST_MS / 2 {
            self.returning = (now_ms + LOST_MS, before);
        } else if now_ms >= self.returning.0 {
            self.returning.1.clear();
        }
        self.looked_at_ms = now_ms;
        self.others = found.into_iter().map(|other| (other.id.clone(), other)).collect();
        self.others.remove(&self.own.id);
    }

    /// Where a row says that the stream is, when that is neither here nor nowhere.
    fn place(&self, row: &rows::Node, now_ms: u64) -> Option<Place> {
        let id = row.control_plane.as_ref().filter(|id| !id.is_empty() && **id != self.own.id)?;
        let mut place = Place {
            control_plane: id.clone(),
            name: String::new(),
            since_ms: row.streaming_since_ms,
            boot_id: row.boot_id.clone(),
            is_alive: false,
            alive_at_ms: 0,
            looked_at_ms: now_ms,
        };
        self.look_at(&mut place, now_ms);
        Some(place)
    }

    fn look_at(&self, place: &mut Place, now_ms: u64) {
        place.looked_at_ms = now_ms;
        let living = self.living(&place.control_plane);
        place.is_alive = living.is_some();
        if let Some(other) = living {
            place.alive_at_ms = now_ms;
            place.name.clone_from(&other.name);
        }
    }
}

impl Entry {
    /// Whether its stream is open, here or elsewhere.
    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some() || self.place.as_ref().is_some_and(|place| place.is_alive)
    }

    /// When it was last heard of, by whomever: a control plane that lives hears of its nodes.
    pub(super) fn heard_at_ms(&self) -> u64 {
        self.last_seen_at_ms.max(self.place.as_ref().map_or(0, |place| place.alive_at_ms))
    }

    fn of(row: &rows::Node, place: Option<Place>) -> Self {
        Entry {
            last_seen_at_ms: row.last_seen_at_ms,
            persisted_seen_at_ms: row.last_seen_at_ms,
            is_dirty: false,
            stream: None,
            streaming_since_ms: 0,
            place,
            list_version: row.list_version,
            boots: Boots::default(),
            cloned_told_ms: 0,
            config_since_ms: facts::config_since_ms(row),
            owes: None,
            facts: Facts::from_row(row),
        }
    }

    /// Takes in what the store says of a node that is known here. Returns whether that shows.
    fn take(&mut self, row: &rows::Node, place: Option<Place>, own: &str) -> bool {
        self.list_version = row.list_version;
        let is_ours = row.control_plane.as_deref() == Some(own);
        if self.stream.is_some() {
            // Who has the newer stream writes what is known of the node.
            let is_newer = |place: &Place| place.is_alive && place.since_ms > self.streaming_since_ms;
            self.is_dirty |= !is_ours && !place.as_ref().is_some_and(is_newer);
            self.place = place;
            return false;
        }
        // What was written from here is known here, or about to be written anew.
        if is_ours || (self.is_dirty && place.is_none()) {
            return false;
        }
        let taken = Entry {
            boots: std::mem::take(&mut self.boots),
            cloned_told_ms: self.cloned_told_ms,
            owes: self.owes,
            ..Entry::of(row, place)
        };
        let where_is = |entry: &Entry| entry.place.as_ref().map(|place| (place.name.clone(), place.is_alive));
        let is_visible = self.facts != taken.facts || where_is(self) != where_is(&taken);
        *self = taken;
        is_visible
    }

    /// That another process speaks as this node elsewhere, while this one is heard of here.
    fn find_clone(&mut self, now_ms: u64) -> Option<Cloned> {
        let place = self.place.as_ref().filter(|place| place.is_alive && self.stream.is_some())?;
        let is_other = place.boot_id != self.facts.boot_id;
        if !is_other || self.last_seen_at_ms <= place.since_ms.saturating_add(SKEW_MS) {
            return None;
        }
        let boots = [place.boot_id.clone(), self.facts.boot_id.clone()];
        let found = Cloned { boots, at_ms: now_ms };
        self.boots.found(found.clone(), now_ms).then_some(found)
    }
}

impl Nodes {
    /// The process of this control plane.
    pub fn id(&self) -> String {
        self.replicas().own.id.clone()
    }

    /// The name of this control plane.
    pub fn name(&self) -> String {
        self.replicas().own.name.clone()
    }

    /// The control planes that live, by name, this one among them.
    pub fn control_planes(&self) -> Vec<rows::Replica> {
        let replicas = self.replicas();
        let others = replicas.others.keys().filter_map(|id| replicas.living(id));
        let mut all: Vec<rows::Replica> = others.chain([&replicas.own]).cloned().collect();
        all.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        all
    }

    /// The store was asked which control planes there are.
    pub fn see(&self, found: Vec<rows::Replica>) {
        let now_ms = self.clock.now_ms();
        let mut nodes = self.lock();
        let mut replicas = self.replicas();
        replicas.found(found, now_ms);
        let (mut is_visible, mut cloned) = (false, Vec::new());
        for (id, entry) in nodes.iter_mut() {
            let was_connected = entry.is_connected();
            if let Some(place) = &mut entry.place {
                replicas.look_at(place, now_ms);
                entry.is_dirty |= entry.stream.is_some() && !place.is_alive;
            }
            is_visible |= entry.is_connected() != was_connected;
            if let Some(found) = entry.find_clone(now_ms) {
                cloned.push((id.clone(), found));
            }
        }
        drop((replicas, nodes));
        for (id, found) in &cloned {
            warn_of_clones(id, found);
        }
        if is_visible || !cloned.is_empty() {
            self.tell();
        }
    }

    /// From which version of the list on rows are news, when the store has this one; none when nothing is.
    pub fn news_since(&self, list_version: u64) -> Option<u64> {
        let mut nodes = self.lock();
        let known = self.replicas().list_version;
        if list_version < known {
            // The database went back: what it says now counts, whatever it said before.
            nodes.values_mut().for_each(|entry| entry.list_version = 0);
            return Some(0);
        }
        (list_version > known).then_some(known + 1)
    }

    /// Takes in what the store says of nodes, as of this version of the list.
    pub fn take_in(&self, list_version: u64, rows: Vec<rows::Node>) {
        let now_ms = self.clock.now_ms();
        let mut nodes = self.lock();
        let mut replicas = self.replicas();
        replicas.list_version = list_version;
        let (mut is_visible, mut cloned) = (false, Vec::new());
        for row in rows {
            let place = replicas.place(&row, now_ms);
            let entry = match nodes.get_mut(&row.id) {
                Some(entry) if entry.list_version > row.list_version => continue,
                Some(entry) => {
                    is_visible |= entry.take(&row, place, &replicas.own.id);
                    entry
                }
                None => {
                    is_visible = true;
                    nodes.entry(row.id.clone()).or_insert(Entry::of(&row, place))
                }
            };
            let told: Option<Cloned> = row.cloned.and_then(|text| serde_json::from_str(&text).ok());
            if let Some(told) = told {
                entry.cloned_told_ms = entry.cloned_told_ms.max(told.at_ms);
                if entry.boots.found(told.clone(), now_ms) {
                    cloned.push((row.id, told));
                }
            }
        }
        drop((replicas, nodes));
        for (id, found) in &cloned {
            warn_of_clones(id, found);
        }
        if is_visible || !cloned.is_empty() {
            self.tell();
        }
    }

    /// Nodes that were found to be cloned and of which the store was not told of late, with what is known of it.
    pub fn take_clones(&self) -> Vec<(String, String)> {
        let now_ms = self.clock.now_ms();
        let half = common::limits::CLONE_WITHIN.as_millis() as u64 / 2;
        let mut nodes = self.lock();
        let news = nodes.iter_mut().filter_map(|(id, entry)| {
            let found =
                entry.boots.cloned(now_ms).filter(|found| found.at_ms > entry.cloned_told_ms + half)?;
            entry.cloned_told_ms = found.at_ms;
            Some((id.clone(), serde_json::to_string(found).ok()?))
        });
        news.collect()
    }

    fn replicas(&self) -> MutexGuard<'_, Replicas> {
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
