//! The control plane as far as a request can see it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use crate::bindings::{Binding, Name, Told};

/// What the control plane says of ids that the node does not know: that there are none, unless told otherwise.
#[derive(Default)]
pub struct Plane {
    pub known: Mutex<Vec<Binding>>,
    pub asked: Mutex<Vec<Name>>,
    /// How long it takes to answer; `MAX` for ever.
    pub takes: Mutex<Option<Duration>>,
    pub is_away: AtomicBool,
}

impl Plane {
    pub fn is_silent(&self) {
        *self.takes.lock().unwrap() = Some(Duration::MAX);
    }

    pub async fn tell(&self, name: Name) -> Told {
        self.asked.lock().unwrap().push(name.clone());
        let takes = *self.takes.lock().unwrap();
        match takes {
            Some(Duration::MAX) => std::future::pending().await,
            Some(time) => sleep(time).await,
            None => {}
        }
        if self.is_away.load(Ordering::Acquire) {
            return Told::Unclear;
        }
        let known = self.known.lock().unwrap();
        known.iter().find(|b| b.name == name).map_or(Told::Unknown, |found| Told::Found(found.clone()))
    }
}
