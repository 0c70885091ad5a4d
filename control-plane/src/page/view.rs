//! What the page shows, gathered from the store and from memory. Gathering costs at most a tenth of the time, however
//! many look: what was gathered serves everybody for nine times as long as it took.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::live::LISTENERS_MAX;
use crate::error::Error;
use crate::nodes::{Finding, NodeView};
use crate::observed::look::{self, Past};
use crate::observed::{ChannelStatus, ModelStatus, Status};
use crate::plane::Plane;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How far back the columns go.
pub const SPANS: [(&str, Duration); 5] = [
    ("5 min", Duration::from_secs(5 * 60)),
    ("1 h", HOUR),
    ("24 h", DAY),
    ("7 d", Duration::from_secs(7 * 24 * 60 * 60)),
    ("90 d", Duration::from_secs(90 * 24 * 60 * 60)),
];

/// What the page shows.
#[derive(Debug)]
pub struct View {
    /// What was observed over the spans of a day at most.
    fresh: [Status; 3],
    /// What was observed long ago as well.
    pub past: Arc<Past>,
    /// The fleet.
    pub nodes: Vec<NodeRow>,
}

/// A node and why it does not run what it should.
#[derive(Debug)]
pub struct NodeRow {
    /// The node.
    pub node: NodeView,
    /// Why it refused.
    pub violations: Vec<Finding>,
}

/// Gathers views of a control plane.
pub struct Views {
    /// The control plane.
    pub plane: Arc<Plane>,
    /// Places of pages that are told of changes.
    pub listeners: Arc<Semaphore>,
    view: Mutex<Option<Kept<View>>>,
    past: Mutex<Option<Kept<Past>>>,
}

/// Something that was gathered, and when it is gathered anew.
struct Kept<T> {
    value: Arc<T>,
    until: Instant,
}

impl<T> Kept<T> {
    /// What was begun to be gathered at `began`.
    fn new(value: T, began: Instant) -> Self {
        let now = Instant::now();
        Kept { value: Arc::new(value), until: now + 9 * (now - began) }
    }
}

impl Views {
    /// Nothing is gathered yet.
    pub fn new(plane: Arc<Plane>) -> Self {
        let listeners = Arc::new(Semaphore::new(LISTENERS_MAX));
        Views { plane, listeners, view: Mutex::new(None), past: Mutex::new(None) }
    }

    /// What there is to see now. Those who ask while it is being gathered wait for the same.
    pub async fn look(&self) -> Result<Arc<View>, Error> {
        let mut view = self.view.lock().await;
        if let Some(kept) = view.as_ref().filter(|kept| Instant::now() < kept.until) {
            return Ok(kept.value.clone());
        }
        // What is long ago takes longer to gather, and changes less: what is new does not wait as long for it.
        let past = self.past().await?;
        let began = Instant::now();
        let kept = view.insert(Kept::new(View::of(&self.plane, past).await?, began));
        Ok(kept.value.clone())
    }

    async fn past(&self) -> Result<Arc<Past>, Error> {
        let mut past = self.past.lock().await;
        let began = Instant::now();
        if let Some(kept) = past.as_ref().filter(|kept| began < kept.until) {
            return Ok(kept.value.clone());
        }
        let kept = past.insert(Kept::new(look::past(&self.plane).await?, began));
        Ok(kept.value.clone())
    }
}

impl View {
    async fn of(plane: &Plane, past: Arc<Past>) -> Result<Self, Error> {
        let span = |index: usize| look::status(plane, SPANS[index].1, None);
        let fresh = [span(0).await?, span(1).await?, span(2).await?];
        let wanted = plane.wanted()?;
        let rows = plane.nodes.list(Some(&wanted)).into_iter();
        let nodes = rows.map(|node| NodeRow { violations: node.violations(), node }).collect();
        Ok(View { fresh, past, nodes })
    }

    /// What was observed over one of the spans.
    fn span(&self, index: usize) -> &Status {
        match index {
            0..3 => &self.fresh[index],
            3 => &self.past.week,
            _ => &self.past.quarter,
        }
    }

    /// The last 24 hours: what is said beside the rates is of these.
    pub fn day(&self) -> &Status {
        self.span(2)
    }

    /// The models of any span, but for what was refused before its model was known.
    pub fn models(&self) -> BTreeSet<&str> {
        let all = self.past.quarter.models.iter().chain(&self.day().models);
        all.map(|model| model.model.as_str()).filter(|model| !model.is_empty()).collect()
    }

    /// The channels of any span.
    pub fn channels(&self) -> BTreeSet<&str> {
        let all = self.past.quarter.channels.iter().chain(&self.day().channels);
        all.map(|channel| channel.channel.as_str()).collect()
    }

    /// The channels of a model: in the order of its chain as it is now, then those of any span.
    pub fn channels_of(&self, model: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for channel in [2, 4].into_iter().filter_map(|span| self.model(span, model)).flat_map(|m| &m.channels)
        {
            if !names.contains(&channel.channel.as_str()) {
                names.push(&channel.channel);
            }
        }
        names
    }

    /// A model over one of the spans.
    pub fn model(&self, span: usize, name: &str) -> Option<&ModelStatus> {
        self.span(span).models.iter().find(|model| model.model == name)
    }

    /// A channel of a model over one of the spans.
    pub fn channel_of(&self, span: usize, model: &str, name: &str) -> Option<&ChannelStatus> {
        find(&self.model(span, model)?.channels, name)
    }

    /// A channel of all models over one of the spans.
    pub fn channel(&self, span: usize, name: &str) -> Option<&ChannelStatus> {
        find(&self.span(span).channels, name)
    }
}

fn find<'a>(channels: &'a [ChannelStatus], name: &str) -> Option<&'a ChannelStatus> {
    channels.iter().find(|channel| channel.channel == name)
}
