//! What changed in meaning between two catalogs. Formatting, comments, the order of the document
//! and defaults that are written out are no difference. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use super::read::path_to;
use super::{Catalog, Channel, Entry, Prices, Route};
use crate::dialect::Dialect;
use crate::policy::Layer;

/// One value that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as in a fault; routes by their channel: `models.gpt-4o.routes[reseller].cost.input`.
    pub path: String,
    /// The value before; none when there was none.
    pub before: Option<String>,
    /// The value after; none when there is none any more.
    pub after: Option<String>,
}

/// The differences, sorted by path.
pub fn diff(before: &Catalog, after: &Catalog) -> Vec<Change> {
    let (mut before, mut after) = (Leaves::of(before), Leaves::of(after));
    let paths: BTreeSet<String> = before.0.keys().chain(after.0.keys()).cloned().collect();
    let changes = paths.into_iter().map(|path| Change {
        before: before.0.remove(&path),
        after: after.0.remove(&path),
        path,
    });
    changes.filter(|change| change.before != change.after).collect()
}

/// A catalog as values by path.
struct Leaves(BTreeMap<String, String>);

impl Leaves {
    fn of(catalog: &Catalog) -> Self {
        let mut leaves = Leaves(BTreeMap::new());
        leaves.fleet(&catalog.policy);
        let stages: Vec<String> = catalog.rollout.stages.iter().map(ToString::to_string).collect();
        leaves.put("rollout", "stages", stages.join(", "));
        leaves.put("rollout", "bake", humantime::format_duration(catalog.rollout.bake));
        for (id, channel) in &catalog.channels {
            leaves.channel(&path_to("channels", id.as_str()), channel);
        }
        for (name, entry) in &catalog.models {
            leaves.model(&path_to("models", name.as_str()), entry);
        }
        leaves
    }

    fn put(&mut self, table: &str, key: &str, value: impl Display) {
        self.0.insert(format!("{table}.{key}"), value.to_string());
    }

    fn put_some(&mut self, table: &str, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(table, key, value);
        }
    }

    /// Below the fleet's layer there are only defaults, so its values are always known.
    fn fleet(&mut self, given: &Layer) {
        let (breaker, gate, timeouts) = (given.breaker(), given.gate(), given.timeouts());
        let whole = Layer {
            breaker_failures: Some(breaker.failures),
            breaker_window: Some(breaker.window),
            breaker_cooldown: Some(breaker.cooldown),
            gate_timeout: Some(gate.timeout),
            gate_until: Some(gate.until),
            timeouts_connect: Some(timeouts.connect),
            timeouts_headers: Some(timeouts.headers),
            timeouts_idle: Some(timeouts.idle),
        };
        self.policy("policy", &whole);
    }

    fn policy(&mut self, path: &str, layer: &Layer) {
        let shown = |duration: Option<Duration>| duration.map(humantime::format_duration);
        self.put_some(path, "breaker.failures", layer.breaker_failures);
        self.put_some(path, "breaker.window", shown(layer.breaker_window));
        self.put_some(path, "breaker.cooldown", shown(layer.breaker_cooldown));
        self.put_some(path, "gate.timeout", shown(layer.gate_timeout));
        self.put_some(path, "gate.until", layer.gate_until.map(|until| until.as_str()));
        self.put_some(path, "timeouts.connect", shown(layer.timeouts_connect));
        self.put_some(path, "timeouts.headers", shown(layer.timeouts_headers));
        self.put_some(path, "timeouts.idle", shown(layer.timeouts_idle));
    }

    fn channel(&mut self, path: &str, channel: &Channel) {
        let mut dialects: Vec<&str> = channel.dialects.iter().map(|d: &Dialect| d.as_str()).collect();
        dialects.sort_unstable();
        self.put(path, "dialects", dialects.join(", "));
        self.put_some(path, "profile", channel.profile.map(|profile| profile.name));
        self.put(path, "base_url", &channel.base_url);
        self.put_some(path, "credential", channel.credential.as_ref());
        self.put(path, "enabled", channel.enabled);
        self.put(path, "include_usage", channel.include_usage);
        self.upstream(path, channel);
        for (table, fields) in [("headers", &channel.headers), ("query", &channel.query())] {
            for (name, value) in fields {
                self.0.insert(path_to(&path_to(path, table), name), value.clone());
            }
        }
        self.put_some(path, "tls.ca", channel.tls_ca_file.as_ref().map(|file| format!("file:{file}")));
        self.policy(path, &channel.policy);
    }

    /// With what the profile gives, so that what another profile changes shows.
    fn upstream(&mut self, path: &str, channel: &Channel) {
        self.put_some(path, "auth", channel.auth());
        self.put(path, "limits", channel.limits().as_str());
        let paths = path_to(path, "path");
        for dialect in &channel.dialects {
            self.put_some(&paths, dialect.as_str(), channel.path(*dialect));
        }
        for (i, rule) in channel.overrides().enumerate() {
            self.put(path, &format!("overrides[{i}]"), rule);
        }
    }

    fn model(&mut self, path: &str, entry: &Entry) {
        if let Some(price) = &entry.price {
            self.prices(&path_to(path, "price"), price);
        }
        self.put_some(path, "max_output_tokens", entry.max_output_tokens);
        self.policy(path, &entry.policy);
        for route in &entry.routes {
            self.route(&format!("{path}.routes[{}]", route.channel), route);
        }
    }

    fn route(&mut self, path: &str, route: &Route) {
        self.put(path, "upstream_model", &route.upstream_model);
        let cost = path_to(path, "cost");
        self.prices(&cost, &route.cost);
        self.put_some(&cost, "order", route.order);
        self.put(path, "enabled", route.enabled);
        self.put_some(path, "context_window", route.context_window);
        self.policy(path, &route.policy);
    }

    fn prices(&mut self, path: &str, prices: &Prices) {
        self.put_some(path, "input", prices.input);
        self.put_some(path, "output", prices.output);
        self.put_some(path, "cached_input", prices.cached_input);
        self.put_some(path, "unit", prices.unit);
    }
}
