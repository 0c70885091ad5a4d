//! What of the fleet somebody sees: operators all of it, everybody what callers of the models saw, and the channels only
//! where the operator allows it. What everybody gets is built from what may be shown, not cut from what may not. Pure.

use serde::Serialize;

use common::first_byte::Percentiles;

use crate::observed::incidents::Incident;
use crate::observed::series::{AttemptPoint, RequestPoint, Series};
use crate::observed::{Attempts, Requests, Status};

/// What is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// Everything.
    All,
    /// Models, and what their channels did.
    Channels,
    /// Models.
    Models,
}

impl Sees {
    /// Whether nodes, revisions, breakers and rollouts are seen.
    pub fn is_operator(self) -> bool {
        self == Sees::All
    }

    /// Whether channels are seen.
    pub fn has_channels(self) -> bool {
        self != Sees::Models
    }

    /// An incident as it may be shown.
    pub fn incident(self, incident: &Incident) -> Incident {
        let causes = if self.has_channels() { incident.causes.clone() } else { vec![] };
        Incident { causes, ..incident.clone() }
    }
}

/// A status for everybody.
#[derive(Debug, Serialize)]
pub struct PublicStatus {
    at_ms: u64,
    window_seconds: u64,
    data_until_ms: Option<u64>,
    models: Vec<Model>,
}

#[derive(Debug, Serialize)]
struct Model {
    model: String,
    success_rate: Option<f64>,
    #[serde(flatten)]
    requests: Requests,
    first_byte: Option<Percentiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<Channel>>,
}

#[derive(Debug, Serialize)]
struct Channel {
    channel: String,
    success_rate: Option<f64>,
    #[serde(flatten)]
    attempts: Attempts,
    first_byte: Option<Percentiles>,
}

impl PublicStatus {
    /// What of a status may be shown to them.
    pub fn of(status: Status, sees: Sees) -> Self {
        let models = status.models.into_iter().map(|model| Model {
            model: model.model,
            success_rate: model.success_rate,
            requests: model.requests,
            first_byte: model.first_byte,
            channels: sees.has_channels().then(|| {
                let channels = model.channels.into_iter().map(|channel| Channel {
                    channel: channel.channel,
                    success_rate: channel.success_rate,
                    attempts: channel.attempts,
                    first_byte: channel.first_byte,
                });
                channels.collect()
            }),
        });
        PublicStatus {
            at_ms: status.at_ms,
            window_seconds: status.window_seconds,
            data_until_ms: status.data_until_ms,
            models: models.collect(),
        }
    }
}

/// A series for everybody.
#[derive(Debug, Serialize)]
pub struct PublicSeries {
    at_ms: u64,
    from_ms: u64,
    step_seconds: u64,
    models: Vec<ModelPoints>,
}

#[derive(Debug, Serialize)]
struct ModelPoints {
    model: String,
    points: Vec<RequestPoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channels: Option<Vec<ChannelPoints>>,
}

#[derive(Debug, Serialize)]
struct ChannelPoints {
    channel: String,
    points: Vec<AttemptPoint>,
}

impl PublicSeries {
    /// What of a series may be shown to them.
    pub fn of(series: Series, sees: Sees) -> Self {
        let models = series.models.into_iter().map(|model| ModelPoints {
            model: model.model,
            points: model.points,
            channels: sees.has_channels().then(|| {
                let channels = model.channels.into_iter();
                channels.map(|of| ChannelPoints { channel: of.channel, points: of.points }).collect()
            }),
        });
        PublicSeries {
            at_ms: series.at_ms,
            from_ms: series.from_ms,
            step_seconds: series.step_seconds,
            models: models.collect(),
        }
    }
}
