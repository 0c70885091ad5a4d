//! The chains as this node walks them now: per model and dialect the routes in order, and why a route
//! is out. Pure.

use common::walk::out::Out;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::channel::Channel;
use crate::channel::pause::Admission;
use crate::dialect::operation::Ability;
use crate::table::{Route, Table};
use crate::upstream::credential::Showing;
use crate::walk::eligible::why_out;

/// Every model of a table with its chains.
pub(super) fn describe(table: Option<&Table>, now: Instant) -> Value {
    let models = table.into_iter().flat_map(Table::models).map(|(model, chains)| {
        let chains = chains.iter().map(|chain| {
            let routes = chain.routes.iter().map(|route| route_now(route, now));
            json!({"dialect": chain.dialect.as_str(), "routes": routes.collect::<Vec<_>>()})
        });
        json!({"model": model.as_str(), "chains": chains.collect::<Vec<_>>()})
    });
    models.collect()
}

/// Whether the channel as a whole is suspended, or its credential is or is missing here.
pub(super) fn is_suspended(channel: &Channel, now: Instant) -> bool {
    let pauses = [&channel.state.suspension, &*channel.state.credential_suspension];
    let is_out = pauses.iter().any(|pause| matches!(pause.look(now), Admission::Out(_)));
    is_out || matches!(channel.credential, Showing::Missing)
}

fn route_now(route: &Route, now: Instant) -> Value {
    let open_for = route.channel.open_until(now).map(|until| seconds(until, now));
    let out = why_out(route, Ability::Answer, now);
    let returns_in = out.and_then(Out::returns_at).map(|until| seconds(until, now));
    json!({
        "channel": route.channel.id.as_str(),
        "upstream_model": route.upstream_model,
        "credential": {"from": route.channel.credential_from, "fault": route.channel.credential_fault},
        "state": out.map_or("available", Out::as_str),
        "seconds_left": returns_in,
        "breaker": {"open": open_for.is_some(), "seconds_left": open_for},
    })
}

/// In tenths, rounded up: what is out is never shown with nothing left.
fn seconds(until: Instant, now: Instant) -> f64 {
    (until.saturating_duration_since(now).as_secs_f64() * 10.0).ceil() / 10.0
}
