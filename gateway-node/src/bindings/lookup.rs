//! Finds a binding here, or else at the control plane within a bounded time: the one call of a request that waits for
//! it. How the control plane is asked is given in: it is `sync`'s matter.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use common::limits::{BINDING_LOOKUP, BINDING_LOOKUPS_MAX};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Binding, Bindings, Name};
use crate::metrics::Metrics;

/// What the control plane says of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It knows the binding.
    Found(Binding),
    /// There is none.
    Unknown,
    /// It cannot be told now.
    Unclear,
}

impl Told {
    fn as_str(&self) -> &'static str {
        match self {
            Told::Found(_) => "found",
            Told::Unknown => "unknown",
            Told::Unclear => "unclear",
        }
    }
}

type Asking = Pin<Box<dyn Future<Output = Told> + Send>>;

/// Asks the control plane.
pub type Ask = Arc<dyn Fn(Name) -> Asking + Send + Sync>;

/// Finds bindings wherever they are.
#[derive(Clone)]
pub struct Lookup {
    ask: Ask,
    places: Arc<Semaphore>,
}

impl Lookup {
    /// A look-up that asks so.
    pub fn new(ask: Ask) -> Self {
        Lookup { ask, places: Arc::new(Semaphore::new(BINDING_LOOKUPS_MAX)) }
    }

    /// Finds the binding of a name. What is found elsewhere is known here from then on.
    pub async fn find(&self, bindings: &Bindings, metrics: &Metrics, name: &Name) -> Told {
        if let Some(binding) = bindings.find(name) {
            return Told::Found(binding);
        }
        let told = match self.places.try_acquire() {
            Ok(_place) => timeout(BINDING_LOOKUP, (self.ask)(name.clone())).await.unwrap_or(Told::Unclear),
            Err(_) => Told::Unclear,
        };
        metrics.lookup(told.as_str());
        if let Told::Found(binding) = &told {
            bindings.learn(binding.clone());
        }
        told
    }
}
