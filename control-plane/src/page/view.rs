//! What the page shows, gathered from the store and from memory. Gathering costs at most a tenth of the time, however
//! many look: what was gathered serves everybody for nine times as long as it took.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use super::live::LISTENERS_MAX;
use crate::error::Error;
use crate::nodes::{Finding, NodeView};
use crate::observed::incidents::Incident;
use crate::observed::look;
use crate::observed::series::Series;
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
    /// What was observed over each of the spans.
    pub spans: [Status; 5],
    /// The last 24 hours, each.
    pub hours: Series,
    /// The last 90 days, each.
    pub days: Series,
    /// What callers went through in the last 7 days, the newest first.
    pub incidents: Vec<Incident>,
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
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    view: Arc<View>,
    /// When it is gathered anew.
    until: Instant,
}

impl Views {
    /// Nothing is gathered yet.
    pub fn new(plane: Arc<Plane>) -> Self {
        let listeners = Arc::new(Semaphore::new(LISTENERS_MAX));
        Views { plane, listeners, kept: Mutex::new(None) }
    }

    /// What there is to see now. Those who ask while it is being gathered wait for the same.
    pub async fn look(&self) -> Result<Arc<View>, Error> {
        let mut kept = self.kept.lock().await;
        let began = Instant::now();
        if let Some(kept) = kept.as_ref().filter(|kept| began < kept.until) {
            return Ok(kept.view.clone());
        }
        let view = Arc::new(View::of(&self.plane).await?);
        let done = Instant::now();
        *kept = Some(Kept { view: view.clone(), until: done + 9 * (done - began) });
        Ok(view)
    }
}

impl View {
    async fn of(plane: &Plane) -> Result<Self, Error> {
        let span = |index: usize| look::status(plane, SPANS[index].1, None);
        let spans = [span(0).await?, span(1).await?, span(2).await?, span(3).await?, span(4).await?];
        let hours = look::series(plane, DAY, HOUR, None).await?;
        let days = look::series(plane, SPANS[4].1, DAY, None).await?;
        let incidents = look::recent_incidents(plane).await?;
        let wanted = plane.wanted()?;
        let rows = plane.nodes.list(Some(&wanted)).into_iter();
        let nodes = rows.map(|node| NodeRow { violations: node.violations(), node }).collect();
        Ok(View { spans, hours, days, incidents, nodes })
    }

    /// The last 24 hours: what is said beside the rates is of these.
    pub fn day(&self) -> &Status {
        let [_, _, day, ..] = &self.spans;
        day
    }

    /// The widest span: every model and channel of the others is in it too.
    pub fn widest(&self) -> &Status {
        let [.., widest] = &self.spans;
        widest
    }

    /// A model over one of the spans.
    pub fn model(&self, span: usize, name: &str) -> Option<&ModelStatus> {
        self.spans.get(span)?.models.iter().find(|model| model.model == name)
    }

    /// A channel of a model over one of the spans.
    pub fn channel_of(&self, span: usize, model: &str, name: &str) -> Option<&ChannelStatus> {
        find(&self.model(span, model)?.channels, name)
    }

    /// A channel of all models over one of the spans.
    pub fn channel(&self, span: usize, name: &str) -> Option<&ChannelStatus> {
        find(&self.spans.get(span)?.channels, name)
    }
}

fn find<'a>(channels: &'a [ChannelStatus], name: &str) -> Option<&'a ChannelStatus> {
    channels.iter().find(|channel| channel.channel == name)
}
