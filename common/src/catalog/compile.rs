//! Catalog → snapshot: what nodes load. Sorted throughout and with every policy resolved, so that
//! equal catalogs have equal bytes. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Catalog, Channel, Entry, Route};
use crate::dialect::Dialect;
use crate::feature;
use crate::id::{ChannelId, Model};
use crate::limits::{ROUTING_CHAIN_MAX, SNAPSHOT_SCHEMA};
use crate::pb::fleet as pb;
use crate::policy::{Layer, Until};
use crate::profile::{Auth, Limits, Override};

impl Catalog {
    /// The snapshot of this catalog as a revision. Channels that are disabled are not in it.
    pub fn compile(&self, revision: u64) -> pb::Snapshot {
        let enabled = self.channels.iter().filter(|(_, channel)| channel.enabled);
        let mut snapshot = pb::Snapshot {
            revision,
            channels: enabled.map(|(id, channel)| self.compile_channel(id, channel)).collect(),
            models: self.models.iter().map(|(name, entry)| self.compile_model(name, entry)).collect(),
            schema: SNAPSHOT_SCHEMA,
            features: vec![],
        };
        snapshot.features = feature::needed(&snapshot).into_iter().collect();
        snapshot
    }

    fn compile_channel(&self, id: &ChannelId, channel: &Channel) -> pb::Channel {
        let breaker = Layer::of_channel(&self.policy, &channel.policy).breaker();
        let mut dialects: Vec<String> = channel.dialects.iter().map(Dialect::to_string).collect();
        dialects.sort();
        pb::Channel {
            id: id.to_string(),
            dialects,
            base_url: channel.base_url.clone(),
            credential: channel.credential.clone().unwrap_or_default(),
            headers: fields(&channel.headers),
            query: fields(&channel.query()),
            breaker: Some(pb::Breaker {
                failures: breaker.failures,
                window_ms: ms(breaker.window),
                cooldown_ms: ms(breaker.cooldown),
            }),
            tls_ca_file: channel.tls_ca_file.clone().unwrap_or_default(),
            include_usage: channel.include_usage,
            auth: channel.auth().map(auth),
            paths: paths(channel),
            overrides: channel.overrides().map(rule).collect(),
            limits: match channel.limits() {
                Limits::Route => pb::Limits::Route,
                Limits::Channel => pb::Limits::Channel,
            }
            .into(),
        }
    }

    /// A model whose routes are all disabled keeps its dialects, with empty chains: it exists, and
    /// nothing serves it.
    fn compile_model(&self, name: &Model, entry: &Entry) -> pb::Model {
        let mut dialects: Vec<Dialect> = self.dialects(name.as_str()).into_iter().collect();
        dialects.sort_by_key(|dialect| dialect.as_str());
        let chain = |dialect: Dialect| {
            let ranked = self.ranked(name.as_str(), dialect).into_iter().take(ROUTING_CHAIN_MAX);
            let routes = ranked.map(|route| self.compile_route(entry, route)).collect();
            pb::Chain { dialect: dialect.to_string(), routes }
        };
        pb::Model { name: name.to_string(), chains: dialects.into_iter().map(chain).collect() }
    }

    fn compile_route(&self, entry: &Entry, route: &Route) -> pb::Route {
        let none = Layer::default();
        let channel = self.channel(route.channel.as_str()).map_or(&none, |channel| &channel.policy);
        let policy = Layer::of_route(&self.policy, &entry.policy, channel, &route.policy);
        let (gate, timeouts) = (policy.gate(), policy.timeouts());
        let until = match gate.until {
            Until::Content => pb::GateUntil::Content,
            Until::Complete => pb::GateUntil::Complete,
        };
        pb::Route {
            channel: route.channel.to_string(),
            upstream_model: route.upstream_model.clone(),
            gate: Some(pb::Gate { timeout_ms: ms(gate.timeout), until: until.into() }),
            timeouts: Some(pb::Timeouts {
                connect_ms: ms(timeouts.connect),
                headers_ms: ms(timeouts.headers),
                idle_ms: ms(timeouts.idle),
            }),
            context_window: route.context_window.unwrap_or_default(),
        }
    }
}

fn auth(auth: &Auth) -> pb::Auth {
    let of = |place: pb::AuthPlace, name: &str, prefix: &str| pb::Auth {
        place: place.into(),
        name: name.to_owned(),
        prefix: prefix.to_owned(),
    };
    match auth {
        Auth::None => of(pb::AuthPlace::None, "", ""),
        Auth::Header { name, prefix } => of(pb::AuthPlace::Header, name, prefix),
        Auth::Query { name } => of(pb::AuthPlace::Query, name, ""),
    }
}

fn paths(channel: &Channel) -> Vec<pb::Path> {
    let mut paths: Vec<pb::Path> = channel
        .dialects
        .iter()
        .filter_map(|dialect| {
            let template = channel.path(*dialect)?.to_owned();
            Some(pb::Path { dialect: dialect.to_string(), template })
        })
        .collect();
    paths.sort_by(|a, b| a.dialect.cmp(&b.dialect));
    paths
}

fn rule(rule: &Override) -> pb::Override {
    pb::Override {
        status: rule.status.map(u32::from).unwrap_or_default(),
        code: rule.code.as_deref().unwrap_or_default().to_owned(),
        message: rule.message.as_deref().unwrap_or_default().to_owned(),
        class: rule.class.to_string(),
    }
}

fn fields(map: &BTreeMap<String, String>) -> Vec<pb::Field> {
    map.iter().map(|(name, value)| pb::Field { name: name.clone(), value: value.clone() }).collect()
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
