//! The way to each channel for what it made before: poll, fetch, delete, cancel. It is there whichever models the channel
//! serves now, with the timeouts of a route of its own, else the usual ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use common::dialect::Dialect;
use common::id::ChannelId;
use common::limits::{CONNECT_TIMEOUT, GATE_TIMEOUT, HEADERS_TIMEOUT, IDLE_TIMEOUT};
use common::pb::fleet as pb;

use super::build::BuiltChannel;
use super::{Route, Table};
use crate::channel::RouteState;
use crate::gate::Until;
use crate::upstream::Connections;
use crate::upstream::client::Way;

/// The dialects that give ids.
const DIALECTS: [Dialect; 2] = [Dialect::OpenaiResponses, Dialect::OpenaiVideos];

/// The ways to all channels.
#[derive(Default)]
pub(super) struct Things(HashMap<ChannelId, [Route; DIALECTS.len()]>);

impl Things {
    pub(super) fn get(&self, channel: &ChannelId, dialect: Dialect) -> Option<&Route> {
        let routes = self.0.get(channel)?;
        DIALECTS.iter().zip(routes).find_map(|(of, route)| (*of == dialect).then_some(route))
    }
}

pub(super) fn build(
    snapshot: &pb::Snapshot,
    channels: &BTreeMap<ChannelId, BuiltChannel>,
    previous: Option<&Table>,
    connections: &Connections,
) -> Result<Things, Vec<pb::Violation>> {
    let mut things = HashMap::with_capacity(channels.len());
    let mut violations = Vec::new();
    for (id, on) in channels {
        let like = route_on(snapshot, id);
        let timeouts = like.and_then(|route| route.timeouts).unwrap_or_default();
        let gate = like.and_then(|route| route.gate).unwrap_or_default();
        let connect_timeout = or(timeouts.connect_ms, CONNECT_TIMEOUT);
        let way = Way { tls_ca_file: on.tls_ca_file.clone(), connect_timeout };
        match connections.client(&way) {
            Ok(client) => {
                let routes = DIALECTS.map(|dialect| Route {
                    channel: on.channel.clone(),
                    upstream_model: String::new(),
                    base_url: on.base_url.clone(),
                    path: on.paths.get(&dialect).cloned(),
                    query: on.query.clone(),
                    client: client.clone(),
                    gate_timeout: or(gate.timeout_ms, GATE_TIMEOUT),
                    gate_until: Until::Content,
                    headers_timeout: or(timeouts.headers_ms, HEADERS_TIMEOUT),
                    idle_timeout: or(timeouts.idle_ms, IDLE_TIMEOUT),
                    context_window: None,
                    state: kept_state(previous, on, dialect).unwrap_or_default(),
                });
                things.insert(id.clone(), routes);
            }
            Err(fault) => violations
                .push(pb::Violation { path: format!("channels.{id}.tls.ca"), message: fault.to_string() }),
        }
    }
    if violations.is_empty() { Ok(Things(things)) } else { Err(violations) }
}

fn or(ms: u64, usual: Duration) -> Duration {
    if ms == 0 { usual } else { Duration::from_millis(ms) }
}

fn route_on<'s>(snapshot: &'s pb::Snapshot, id: &ChannelId) -> Option<&'s pb::Route> {
    let chains = snapshot.models.iter().flat_map(|model| &model.chains);
    chains.flat_map(|chain| &chain.routes).find(|route| route.channel == id.as_str())
}

fn kept_state(previous: Option<&Table>, on: &BuiltChannel, dialect: Dialect) -> Option<Arc<RouteState>> {
    let known = previous?.things.get(&on.channel.id, dialect)?;
    Arc::ptr_eq(&known.channel.state, &on.channel.state).then(|| known.state.clone())
}
