//! A snapshot becomes a table, or a list of everything that is wrong with it. Channels whose endpoint
//! and credential stayed the same keep breaker, pauses and connections.

mod ways;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use common::dialect::Dialect;
use common::id::{ChannelId, Model};
use common::limits::{CONNECT_TIMEOUT, ROUTING_CHAIN_MAX};
use common::pb::fleet as pb;

use super::path::Template;
use super::{Chain, Entry, Route, Table, things};
use crate::channel::breaker::Policy;
use crate::channel::{Channel, ChannelState, Identity, Pause, RouteState};
use crate::dialect::{operation, percent};
use crate::gate::Until;
use crate::metrics::Metrics;
use crate::upstream::client::Way;
use crate::upstream::credential::{Place, Showing};
use crate::upstream::sources::Sources;
use crate::upstream::{Client, Connections};

/// Builds the table of a snapshot. `previous` is the table in force, whose state lives on.
/// Nothing is opened or sent; files are read for CAs, and `sources` for credentials.
pub fn build(
    snapshot: &pb::Snapshot,
    epoch: u64,
    previous: Option<&Table>,
    (connections, sources): (&Connections, &Sources),
    metrics: &Metrics,
) -> Result<Table, Vec<pb::Violation>> {
    let mut builder =
        Builder { previous, connections, sources, metrics, violations: vec![], warnings: vec![] };
    let channels = builder.channels(&snapshot.channels);
    let models = builder.models(&snapshot.models, &channels);
    if !builder.violations.is_empty() {
        return Err(builder.violations);
    }
    let things = things::build(snapshot, &channels, previous, connections)?;
    let channels = channels.into_iter().map(|(id, built)| (id, built.channel)).collect();
    let warnings = builder.warnings;
    Ok(Table { revision: snapshot.revision, epoch, channels, things, models, warnings })
}

struct Builder<'a> {
    previous: Option<&'a Table>,
    connections: &'a Connections,
    sources: &'a Sources,
    metrics: &'a Metrics,
    violations: Vec<pb::Violation>,
    warnings: Vec<pb::Violation>,
}

pub(super) struct BuiltChannel {
    pub(super) channel: Arc<Channel>,
    pub(super) base_url: Arc<str>,
    pub(super) query: Arc<str>,
    pub(super) paths: BTreeMap<Dialect, Arc<Template>>,
    pub(super) tls_ca_file: Option<PathBuf>,
}

impl Builder<'_> {
    fn violation(&mut self, path: &str, message: impl Into<String>) {
        self.violations.push(pb::Violation { path: path.to_owned(), message: message.into() });
    }

    fn channels(&mut self, channels: &[pb::Channel]) -> BTreeMap<ChannelId, BuiltChannel> {
        let mut built = BTreeMap::new();
        // One suspension for each credential, whoever shows it.
        let mut by_credential: HashMap<[u8; 32], Arc<Pause>> = self
            .previous
            .iter()
            .flat_map(|table| table.channels())
            .filter_map(|c| Some((c.state.identity.credential?, c.state.credential_suspension.clone())))
            .collect();
        for (index, channel) in channels.iter().enumerate() {
            let path = format!("channels[{index}]");
            let Some(one) = self.channel(&path, channel, &mut by_credential) else { continue };
            if built.insert(ChannelId::from(channel.id.as_str()), one).is_some() {
                self.violation(&format!("{path}.id"), format!("channel \"{}\" stands twice", channel.id));
            }
        }
        built
    }

    fn channel(
        &mut self,
        path: &str,
        channel: &pb::Channel,
        by_credential: &mut HashMap<[u8; 32], Arc<Pause>>,
    ) -> Option<BuiltChannel> {
        let faults_before = self.violations.len();
        let id = ChannelId::from(channel.id.as_str());
        if channel.id.is_empty() {
            self.violation(&format!("{path}.id"), "a channel needs a name");
        }
        let base_url = channel.base_url.trim_end_matches('/').to_owned();
        let is_http = base_url
            .parse::<Uri>()
            .is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
        if !is_http {
            self.violation(&format!("{path}.base_url"), "not an http or https address");
        }
        for (n, dialect) in channel.dialects.iter().enumerate() {
            if let Err(unknown) = dialect.parse::<Dialect>() {
                self.violation(&format!("{path}.dialects[{n}]"), unknown.to_string());
            }
        }
        let breaker = self.breaker(&format!("{path}.breaker"), channel.breaker.as_ref());
        let headers = self.headers(&format!("{path}.headers"), &channel.headers);
        let tls_ca_file = (!channel.tls_ca_file.is_empty()).then(|| PathBuf::from(&channel.tls_ca_file));
        if tls_ca_file.is_some() {
            // Also of a channel that no route uses yet: what cannot work is said before it is needed.
            let way = Way { tls_ca_file: tls_ca_file.clone(), connect_timeout: CONNECT_TIMEOUT };
            self.client(&format!("{path}.tls.ca"), &way);
        }

        let place = self.taken(&format!("{path}.auth"), ways::place(channel.auth.as_ref()));
        let paths = self.taken(&format!("{path}.paths"), ways::paths(&channel.paths));
        let overrides = self.taken(&format!("{path}.overrides"), ways::overrides(&channel.overrides));
        let limits = self.taken(&format!("{path}.limits"), ways::limits(channel.limits));
        if place == Some(Place::Nowhere) && !channel.credential.is_empty() {
            self.violation(&format!("{path}.auth"), "shows nothing, and there is a credential");
        }
        let (place, paths, overrides, limits) = (place?, paths?, overrides?, limits?);

        let (credential, credential_fault) = match channel.credential.as_str() {
            "" => (Showing::Nothing, None),
            reference => {
                let found = self.sources.find(reference);
                (Showing::of(&found, &place), found.fault)
            }
        };
        if self.violations.len() > faults_before {
            return None;
        }
        let fingerprint = credential.fingerprint();
        let query =
            channel.query.iter().map(|f| [&f.name, &f.value].map(|t| percent::encoded_whole(t)).join("="));
        let query = query.collect::<Vec<_>>().join("&");
        let identity = Identity {
            base_url: base_url.clone(),
            query: query.clone(),
            paths: paths.clone(),
            credential: fingerprint,
            tls_ca_file: tls_ca_file.clone(),
        };
        let kept =
            self.previous.and_then(|table| table.channels.get(&id)).map(|channel| channel.state.clone());
        let state = kept.filter(|state| state.identity == identity).unwrap_or_else(|| {
            let credential_suspension = match fingerprint {
                Some(print) => by_credential.entry(print).or_default().clone(),
                None => Arc::default(),
            };
            Arc::new(ChannelState::new(identity, credential_suspension))
        });
        if let Some(fault) = &credential_fault {
            let effect = match credential {
                Showing::Missing => "it is out on this node",
                Showing::Nothing | Showing::Credential(_) => {
                    "it goes on with the last credential that it had"
                }
            };
            self.warnings.push(pb::Violation {
                path: format!("{path}.credential"),
                message: format!("channel {id}: {fault}; {effect}"),
            });
        }
        let metrics = self.metrics.channel(id.as_str());
        let channel = Channel {
            id,
            breaker,
            headers,
            include_usage: channel.include_usage,
            overrides,
            limits,
            credential_from: channel.credential.clone(),
            credential_fault,
            credential,
            state,
            metrics,
        };
        let (base_url, query) = (base_url.into(), query.into());
        Some(BuiltChannel { channel: Arc::new(channel), base_url, query, paths, tls_ca_file })
    }

    /// What could be read; a violation otherwise.
    fn taken<T>(&mut self, path: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|message| self.violation(path, message)).ok()
    }

    fn breaker(&mut self, path: &str, breaker: Option<&pb::Breaker>) -> Policy {
        let Some(breaker) = breaker.filter(|b| b.failures > 0 && b.window_ms > 0 && b.cooldown_ms > 0) else {
            self.violation(path, "failures, window and cooldown must be there and above zero");
            return Policy { failures: 1, window: Duration::ZERO, cooldown: Duration::ZERO };
        };
        Policy {
            failures: breaker.failures,
            window: Duration::from_millis(breaker.window_ms),
            cooldown: Duration::from_millis(breaker.cooldown_ms),
        }
    }

    fn headers(&mut self, path: &str, fields: &[pb::Field]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for field in fields {
            match (HeaderName::try_from(&field.name), HeaderValue::try_from(&field.value)) {
                (Ok(name), Ok(value)) => drop(headers.insert(name, value)),
                _ => self.violation(path, format!("\"{}\" is no header with such a value", field.name)),
            }
        }
        headers
    }

    fn models(
        &mut self,
        models: &[pb::Model],
        channels: &BTreeMap<ChannelId, BuiltChannel>,
    ) -> HashMap<Model, Entry> {
        let mut entries = HashMap::new();
        for (index, model) in models.iter().enumerate() {
            let path = format!("models[{index}]");
            let name = Model::from(model.name.as_str());
            if model.name.is_empty() {
                self.violation(&format!("{path}.name"), "a model needs a name");
            }
            let mut chains = Vec::new();
            for (n, chain) in model.chains.iter().enumerate() {
                let path = format!("{path}.chains[{n}]");
                match chain.dialect.parse::<Dialect>() {
                    Err(unknown) => self.violation(&format!("{path}.dialect"), unknown.to_string()),
                    Ok(dialect) => {
                        // A dialect that this version does not serve is another version's to walk.
                        if operation::is_served(dialect) {
                            let routes = self.routes(&path, &name, dialect, &chain.routes, channels);
                            chains.push(Chain { dialect, routes });
                        }
                    }
                }
            }
            if entries.insert(name.clone(), Entry { model: name, chains }).is_some() {
                self.violation(&format!("{path}.name"), format!("model \"{}\" stands twice", model.name));
            }
        }
        entries
    }

    fn routes(
        &mut self,
        path: &str,
        model: &Model,
        dialect: Dialect,
        routes: &[pb::Route],
        channels: &BTreeMap<ChannelId, BuiltChannel>,
    ) -> Vec<Route> {
        if routes.len() > ROUTING_CHAIN_MAX {
            self.violation(path, format!("{} routes; a chain has at most {ROUTING_CHAIN_MAX}", routes.len()));
        }
        let mut built = Vec::new();
        for (index, route) in routes.iter().enumerate() {
            let path = format!("{path}.routes[{index}]");
            match channels.get(route.channel.as_str()) {
                Some(channel) => built.extend(self.route(&path, model, dialect, route, channel)),
                // A channel that is there but faulty was reported already.
                None if self.violations.is_empty() => {
                    self.violation(
                        &format!("{path}.channel"),
                        format!("no such channel \"{}\"", route.channel),
                    );
                }
                None => {}
            }
        }
        built
    }

    fn route(
        &mut self,
        path: &str,
        model: &Model,
        dialect: Dialect,
        route: &pb::Route,
        on: &BuiltChannel,
    ) -> Option<Route> {
        let gate = route.gate.unwrap_or_default();
        let timeouts = route.timeouts.unwrap_or_default();
        let times = [gate.timeout_ms, timeouts.connect_ms, timeouts.headers_ms, timeouts.idle_ms];
        if times.contains(&0) {
            self.violation(path, "gate.timeout and timeouts.connect, .headers and .idle must be above zero");
            return None;
        }
        let gate_until = match pb::GateUntil::try_from(gate.until) {
            Ok(pb::GateUntil::Content) => Until::Content,
            Ok(pb::GateUntil::Complete) => Until::Complete,
            Ok(pb::GateUntil::Unspecified) | Err(_) => {
                self.violation(&format!("{path}.gate.until"), format!("{} is not known here", gate.until));
                return None;
            }
        };
        let way = Way {
            tls_ca_file: on.tls_ca_file.clone(),
            connect_timeout: Duration::from_millis(timeouts.connect_ms),
        };
        let client = self.client(path, &way)?;
        let kept = self.kept_route_state(model, dialect, route, &on.channel);
        let route = Route {
            channel: on.channel.clone(),
            upstream_model: route.upstream_model.clone(),
            base_url: on.base_url.clone(),
            path: on.paths.get(&dialect).cloned(),
            query: on.query.clone(),
            client,
            gate_timeout: Duration::from_millis(gate.timeout_ms),
            gate_until,
            headers_timeout: Duration::from_millis(timeouts.headers_ms),
            idle_timeout: Duration::from_millis(timeouts.idle_ms),
            context_window: (route.context_window > 0).then_some(route.context_window),
            state: kept.unwrap_or_default(),
        };
        if route.address("/", None).is_err() {
            self.violation(path, "base_url, path and query are no address together");
            return None;
        }
        Some(route)
    }

    fn client(&mut self, path: &str, way: &Way) -> Option<Arc<Client>> {
        let made = self.connections.client(way);
        made.inspect_err(|fault| {
            let cause = std::error::Error::source(fault).map(|c| format!(": {c}")).unwrap_or_default();
            self.violation(path, format!("{fault}{cause}"));
        })
        .ok()
    }

    fn kept_route_state(
        &self,
        model: &Model,
        dialect: Dialect,
        route: &pb::Route,
        channel: &Channel,
    ) -> Option<Arc<RouteState>> {
        let chains = &self.previous?.models.get(model)?.chains;
        let routes = &chains.iter().find(|chain| chain.dialect == dialect)?.routes;
        let same = routes.iter().find(|old| {
            old.upstream_model == route.upstream_model && Arc::ptr_eq(&old.channel.state, &channel.state)
        })?;
        Some(same.state.clone())
    }
}
