//! Reads the counters and puts them beside the catalog and the nodes as they are now: what the status
//! calls, the status page and its API show.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::catalog::{Catalog, did_you_mean};
use common::id::Model;
use common::limits::WINDOW_LENGTH;

use super::incidents::{Incident, Part, incidents};
use super::series::{Series, Steps};
use super::{Fleet, Status, millis, since_ms};
use crate::error::Error;
use crate::plane::Plane;
use crate::store::rows::Counted;
use crate::store::{BY_HOUR_AFTER, BY_MINUTE_AFTER, FIRST_BYTES_KEPT};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// How far back a status goes when nobody says it.
pub const WINDOW_DEFAULT: Duration = HOUR;

/// What was observed in the last `window`, of one model or of all.
pub async fn status(plane: &Plane, window: Duration, only: Option<&str>) -> Result<Status, Error> {
    let fleet = fleet(plane)?;
    // No name has a zero in it, and not every database takes one as text.
    if let Some(model) = only.filter(|model| model.contains('\0')) {
        return Err(no_model(model, []));
    }
    let at_ms = plane.clock.now_ms();
    let counted = counted(plane, at_ms, window, only).await?;
    let status = Status::of(&counted, &fleet, at_ms, window, only);
    match only {
        Some(model) if status.models.is_empty() => {
            Err(no_model(model, fleet.models.keys().map(String::as_str)))
        }
        _ => Ok(status),
    }
}

/// Most points of one series: three days by five minutes, or ninety by two hours and a half.
const POINTS_MAX: u128 = 1000;

/// What was observed in each `step` of the last `window`, of one model or of all.
pub async fn series(
    plane: &Plane,
    window: Duration,
    step: Duration,
    only: Option<&str>,
) -> Result<Series, Error> {
    let fleet = fleet(plane)?;
    if let Some(model) = only.filter(|model| model.contains('\0')) {
        return Err(no_model(model, []));
    }
    let bucket = bucket(window);
    if step.is_zero() || !step.as_millis().is_multiple_of(bucket.as_millis()) {
        let shown = humantime::format_duration(bucket);
        let message = format!("counts that old are kept by {shown}: ask for a multiple of that");
        return Err(Error::Argument { field: "step", message });
    }
    if window.as_millis().div_ceil(step.as_millis()) > POINTS_MAX {
        let message =
            format!("gives more than {POINTS_MAX} points: ask for a longer one or a shorter window");
        return Err(Error::Argument { field: "step", message });
    }
    let at_ms = plane.clock.now_ms();
    let steps = Steps::of(at_ms, window, step);
    let counted = plane.store.windows(steps.from_ms, steps.step_ms, only).await?;
    let series = Series::of(&counted, &fleet, at_ms, steps, only);
    match only {
        Some(model) if series.models.is_empty() => {
            Err(no_model(model, fleet.models.keys().map(String::as_str)))
        }
        _ => Ok(series),
    }
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const QUARTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const FIVE_MINUTES: Duration = Duration::from_secs(5 * 60);

/// What was observed up to 90 days back. Each row is read as seldom as possible: there may be millions.
#[derive(Debug)]
pub struct Past {
    /// The last 7 days, without times to the first byte.
    pub week: Status,
    /// The last 90 days, likewise.
    pub quarter: Status,
    /// The last 24 hours, each.
    pub hours: Series,
    /// The last 90 days, each.
    pub days: Series,
    /// The incidents of the last 7 days, the newest first: by five minutes as long as counts are kept by the minute, by
    /// the hour before.
    pub incidents: Vec<Incident>,
}

/// What was observed of all models, long ago as well.
pub async fn past(plane: &Plane) -> Result<Past, Error> {
    let fleet = fleet(plane)?;
    let at_ms = plane.clock.now_ms();
    let week_ms = since_ms(at_ms, WEEK, HOUR);
    // An hour before they are put together, so that none of an hour is taken for one of its minutes.
    let border_ms = since_ms(at_ms, BY_HOUR_AFTER.saturating_sub(HOUR), HOUR);
    let by_day = plane.store.windows(since_ms(at_ms, QUARTER, HOUR), millis(DAY), None).await?;
    let by_hour = plane.store.windows(week_ms, millis(HOUR), None).await?;
    let by_minutes = plane.store.windows(border_ms, millis(FIVE_MINUTES), None).await?;
    let parts = [
        Part { counted: &by_hour, from_ms: week_ms, until_ms: border_ms, step_ms: millis(HOUR) },
        Part { counted: &by_minutes, from_ms: border_ms, until_ms: u64::MAX, step_ms: millis(FIVE_MINUTES) },
    ];
    Ok(Past {
        week: Status::of(&by_hour, &fleet, at_ms, WEEK, None),
        quarter: Status::of(&by_day, &fleet, at_ms, QUARTER, None),
        hours: Series::of(&by_hour, &fleet, at_ms, Steps::of(at_ms, DAY, HOUR), None),
        days: Series::of(&by_day, &fleet, at_ms, Steps::of(at_ms, QUARTER, DAY), None),
        incidents: incidents(&parts, at_ms),
    })
}

/// The catalog and the nodes as they are now.
pub fn fleet(plane: &Plane) -> Result<Fleet, Error> {
    let wanted = plane.wanted()?;
    let catalog = wanted.current.as_ref().and_then(|current| current.catalog.as_ref());
    let (connected, known) = plane.nodes.count();
    Ok(Fleet {
        revision: wanted.revision(),
        rollout: wanted.under_way().map(|rollout| rollout.to_string()),
        models: catalog.map(channels_by_model).unwrap_or_default(),
        open_on: plane.nodes.open_channels(),
        nodes_connected: connected as u64,
        nodes_known: known as u64,
    })
}

/// A model that nothing is known of, and the name that was probably meant.
pub fn no_model<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let meant = did_you_mean(name, known).map(|meant| format!("; did you mean \"{meant}\"?"));
    Error::NotFound { what: "model", name: format!("\"{name}\"{}", meant.unwrap_or_default()) }
}

async fn counted(plane: &Plane, at_ms: u64, window: Duration, only: Option<&str>) -> Result<Counted, Error> {
    let since_ms = since_ms(at_ms, window, bucket(window));
    let counted = plane.store.windows(since_ms, u64::MAX, only).await?;
    // Of a longer span a part would stand for the whole.
    if window > FIRST_BYTES_KEPT {
        return Ok(counted);
    }
    Ok(Counted { first_bytes: plane.store.first_bytes(since_ms, only).await?, ..counted })
}

/// The length that the buckets at the far end of a span have, as the store keeps them.
fn bucket(window: Duration) -> Duration {
    match window {
        fresh if fresh < BY_MINUTE_AFTER => WINDOW_LENGTH,
        recent if recent < BY_HOUR_AFTER => Duration::from_secs(60),
        _ => HOUR,
    }
}

/// The channels of each model in the order of its chains, each once.
fn channels_by_model(catalog: &Catalog) -> BTreeMap<String, Vec<String>> {
    let channels = |model: &Model| {
        let mut seen = BTreeSet::new();
        let chains = catalog.chains(model.as_str());
        let hops = chains.into_iter().flat_map(|chain| chain.hops).map(|hop| hop.channel.to_string());
        hops.filter(|channel| seen.insert(channel.clone())).collect()
    };
    catalog.models().map(|(model, _)| (model.to_string(), channels(model))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_is_not_there_comes_with_the_one_that_was_meant() {
        let known = ["gpt-4o", "claude-sonnet"];
        assert_eq!(
            no_model("gpt-40", known).to_string(),
            "no such model: \"gpt-40\"; did you mean \"gpt-4o\"?"
        );
        assert_eq!(no_model("llama", known).to_string(), "no such model: \"llama\"");
    }
}
