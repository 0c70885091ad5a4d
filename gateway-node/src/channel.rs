//! One channel at run time: what the catalog says of it, and the state that this process has of it.
//! The hot path reads an atomic or two; the machines behind them are asked when something happened.
//!
//! The state outlives a hot swap as long as endpoint and credential stay the same.

pub mod breaker;
pub mod pause;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;
use tracing::{info, warn};

use common::dialect::Dialect;
use common::id::ChannelId;
use common::limits::COOLDOWN_MIN;
use common::profile::{Limits, Override};

use crate::dialect::operation::Ability;
use crate::fault::Fault;
use crate::metrics::ChannelMetrics;
use crate::table::path::Template;
use crate::upstream::classify;
use crate::upstream::credential::Showing;
use breaker::{Breaker, Policy};
use pause::{Admission, Standing, Suspension};

/// An upstream endpoint with a credential, as one table has it.
pub struct Channel {
    /// Its name in the catalog.
    pub id: ChannelId,
    /// When its breaker opens.
    pub breaker: Policy,
    /// Headers that its requests carry besides the caller's.
    pub headers: HeaderMap,
    /// Whether streams are asked for their usage where the caller did not ask.
    pub include_usage: bool,
    /// What errors mean there where the ordinary reading is wrong.
    pub overrides: Vec<Override>,
    /// What its rate limits are about.
    pub limits: Limits,
    /// Where its credential comes from; empty where it has none.
    pub credential_from: String,
    /// Why that cannot be had now. What it shows is the last one that could, if there was one.
    pub credential_fault: Option<String>,
    /// What it shows to the upstream; the credential's own suspension is shared by all that show it.
    pub credential: Showing,
    /// What this process knows of it.
    pub state: Arc<ChannelState>,
    /// Its counters.
    pub metrics: ChannelMetrics,
}

/// What makes a channel the same over a hot swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The endpoint.
    pub base_url: String,
    /// What its address ends in, encoded.
    pub query: String,
    /// Where operations lie, by dialect.
    pub paths: BTreeMap<Dialect, Arc<Template>>,
    /// Which credential, and how it is shown, without showing it.
    pub credential: Option<[u8; 32]>,
    /// Whom it trusts to be the endpoint.
    pub tls_ca_file: Option<PathBuf>,
}

/// The state of a channel in this process.
pub struct ChannelState {
    /// What it belongs to.
    pub identity: Identity,
    breaker: Mutex<Breaker>,
    open_until: Moment,
    cooldown: Moment,
    /// The channel as a whole is suspended.
    pub suspension: Pause,
    /// Its credential is suspended; shared by every channel that shows the same one.
    pub credential_suspension: Arc<Pause>,
}

impl ChannelState {
    /// A channel that nothing is known of.
    pub fn new(identity: Identity, credential_suspension: Arc<Pause>) -> Self {
        ChannelState {
            identity,
            breaker: Mutex::default(),
            open_until: Moment::default(),
            cooldown: Moment::default(),
            suspension: Pause::default(),
            credential_suspension,
        }
    }
}

impl Channel {
    /// Until when the breaker is open, if it is.
    pub fn open_until(&self, now: Instant) -> Option<Instant> {
        self.state.open_until.after(now)
    }

    /// An error as this channel means it, without its credential in it.
    pub fn judge(&self, fault: Fault) -> Fault {
        self.credential.hidden_in(classify::overridden(fault, &self.overrides))
    }

    /// Until when all of it cools down, if it does.
    pub fn cooling_until(&self, now: Instant) -> Option<Instant> {
        self.state.cooldown.after(now)
    }

    /// Keeps the route that met a rate limit out for a while, or all of the channel where its limits are the account's.
    /// Only ever extended.
    pub fn cool_down(&self, route: &RouteState, now: Instant, length: Duration) {
        let cooldown = match self.limits {
            Limits::Route => &route.cooldown,
            Limits::Channel => &self.state.cooldown,
        };
        cooldown.extend_to(now + length.max(COOLDOWN_MIN));
    }

    /// Takes in a failure that counts.
    pub fn record_failure(&self, now: Instant) {
        let opened = lock(&self.state.breaker).record_failure(now, &self.breaker);
        if let Some(until) = opened {
            let was_open = self.state.open_until.after(now).is_some();
            self.state.open_until.extend_to(until);
            if !was_open {
                let id = &self.id;
                warn!(channel.id = %id, "breaker opened for channel {id}");
            }
        }
    }
}

/// What this process knows of one route: kept while its channel's state is.
#[derive(Default)]
pub struct RouteState {
    cooldown: Moment,
    /// The upstream does not have what the route promises, by what it is that it cannot do.
    suspensions: [Pause; Ability::COUNT],
}

impl RouteState {
    /// The suspension for what takes this ability.
    pub fn suspension(&self, ability: Ability) -> &Pause {
        // There is one for each of them.
        &self.suspensions[ability as usize]
    }

    /// How its suspensions stand.
    pub fn standing(&self) -> impl Iterator<Item = Standing> {
        self.suspensions.iter().filter_map(Pause::standing)
    }

    /// Until when the route cools down, if it does.
    pub fn cooling_until(&self, now: Instant) -> Option<Instant> {
        self.cooldown.after(now)
    }
}

/// A suspension that the hot path passes by on one atomic.
#[derive(Default)]
pub struct Pause {
    is_active: AtomicBool,
    suspension: Mutex<Suspension>,
}

impl Pause {
    /// Whether a request may pass, without taking a trial's place.
    pub fn look(&self, now: Instant) -> Admission {
        if self.is_active.load(Ordering::Acquire) {
            lock(&self.suspension).look(now)
        } else {
            Admission::Clear
        }
    }

    /// Whether this request may pass; a trial's place is taken.
    pub fn admit(&self, now: Instant) -> Admission {
        if self.is_active.load(Ordering::Acquire) {
            lock(&self.suspension).admit(now)
        } else {
            Admission::Clear
        }
    }

    /// How it stands, until a success ends it.
    pub fn standing(&self) -> Option<Standing> {
        self.is_active.load(Ordering::Acquire).then(|| lock(&self.suspension).standing())?
    }

    /// Suspends it, and says so the first time. `what` and `why` are for people.
    pub fn suspend(&self, now: Instant, what: &str, id: &ChannelId, why: &'static str) {
        let mut suspension = lock(&self.suspension);
        let is_new = suspension.suspend(now, why);
        self.is_active.store(true, Ordering::Release);
        drop(suspension);
        if is_new {
            warn!(channel.id = %id, class = why, "{what} of channel {id} suspended");
        }
    }

    /// A success ends it.
    pub fn succeed(&self, what: &str, id: &ChannelId) {
        if !self.is_active.load(Ordering::Acquire) {
            return;
        }
        let mut suspension = lock(&self.suspension);
        let has_ended = suspension.succeed();
        self.is_active.store(!suspension.is_clear(), Ordering::Release);
        drop(suspension);
        if has_ended {
            info!(channel.id = %id, "{what} of channel {id} works again");
        }
    }

    /// Gives a trial's place back.
    pub fn release(&self) {
        lock(&self.suspension).release();
    }
}

/// An instant that only moves forward, in one atomic: nanoseconds after a start of its own.
struct Moment {
    start: Instant,
    nanos: AtomicU64,
}

impl Default for Moment {
    fn default() -> Self {
        Moment { start: Instant::now(), nanos: AtomicU64::new(0) }
    }
}

impl Moment {
    fn after(&self, now: Instant) -> Option<Instant> {
        let at = self.start + Duration::from_nanos(self.nanos.load(Ordering::Acquire));
        (at > now).then_some(at)
    }

    fn extend_to(&self, at: Instant) {
        let nanos = u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_max(nanos, Ordering::AcqRel);
    }
}

// A poisoned lock is taken over: the state behind it is whole after each call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
