//! What works and is probably not meant: warnings about a catalog without faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Places;
use crate::catalog::field;
use crate::catalog::read::path_to;
use crate::catalog::site::{Place, Report};
use crate::catalog::{Catalog, Entry, Order};
use crate::dialect::Dialect;
use crate::id::Model;
use crate::limits::{ROUTING_CHAIN_MAX, TIMEOUT_WALK_AGE_MAX};
use crate::policy::Layer;

/// Paths that dialects append to a base address.
const APPENDED: [&str; 5] = ["/chat/completions", "/completions", "/responses", "/embeddings", "/messages"];

/// Adds every warning about the catalog as a whole.
pub(super) fn warn(catalog: &Catalog, places: &Places, report: &mut Report) {
    for (name, entry) in &catalog.models {
        let Some((at, routes)) = places.models.get(name).zip(places.routes.get(name)) else { continue };
        model(catalog, name, entry, at, routes, report);
    }
    channels(catalog, places, report);
}

/// A base address that already ends in what a dialect appends to it.
pub(super) fn base_url(at: &Place, base_url: &str, report: &mut Report) {
    if let Some(path) = APPENDED.iter().find(|path| base_url.ends_with(*path)) {
        report.warn(at, format!("ends in {path}; the path of the dialect is appended to this address"));
    }
}

fn channels(catalog: &Catalog, places: &Places, report: &mut Report) {
    let routes = catalog.models.values().flat_map(|entry| &entry.routes);
    let used: BTreeSet<&str> = routes.map(|route| route.channel.as_str()).collect();
    for (id, channel) in &catalog.channels {
        let Some(at) = places.channels.get(id) else { continue };
        if !used.contains(id.as_str()) {
            report.warn(at, "no route uses this channel");
        }
        if channel.credential.is_some() && field::is_clear_and_far(&channel.base_url) {
            let at = Place { path: path_to(&at.path, "base_url"), line: at.line };
            report.warn(&at, "the credential and all traffic of this channel travel in clear text");
        }
        if channel.tls_ca_file.is_some() && channel.base_url.starts_with("http://") {
            let at = Place { path: path_to(&at.path, "tls"), line: at.line };
            report.warn(&at, "is never used, for base_url is not https");
        }
        let asks_for_usage = [Dialect::OpenaiChat, Dialect::OpenaiCompletions];
        if channel.include_usage && !channel.dialects.iter().any(|speaks| asks_for_usage.contains(speaks)) {
            let at = Place { path: path_to(&at.path, "include_usage"), line: at.line };
            report.warn(&at, "is never used: only openai-chat and openai-completions have to be asked");
        }
    }
}

fn model(catalog: &Catalog, name: &Model, entry: &Entry, at: &Place, routes: &[Place], report: &mut Report) {
    let is_on = |id: &str| catalog.channel(id).is_some_and(|channel| channel.enabled);
    if !entry.routes.iter().any(|route| route.enabled && is_on(route.channel.as_str())) {
        report.warn(at, "every route of this model is disabled, so nothing serves it");
    }
    let mut cut: BTreeMap<&str, Vec<Dialect>> = BTreeMap::new();
    for dialect in catalog.dialects(name.as_str()) {
        for route in catalog.ranked(name.as_str(), dialect).into_iter().skip(ROUTING_CHAIN_MAX) {
            cut.entry(route.channel.as_str()).or_default().push(dialect);
        }
    }
    for (route, at) in entry.routes.iter().zip(routes) {
        if let Some(dialects) = cut.get(route.channel.as_str()) {
            let dialects: Vec<&str> = dialects.iter().map(|dialect| dialect.as_str()).collect();
            let dialects = dialects.join(", ");
            let message =
                format!("is never used for {dialects}: {ROUTING_CHAIN_MAX} cheaper routes come before it");
            report.warn(at, message);
        }
    }
    measures(entry, at, report);
    patience(catalog, entry, routes, report);
}

/// Costs of tokens and costs of units are different numbers; which is smaller says nothing. Orders
/// are an author's own choice.
fn measures(entry: &Entry, at: &Place, report: &mut Report) {
    let costs = entry.routes.iter().filter(|route| route.order.is_none());
    let (by_tokens, by_unit): (Vec<_>, Vec<_>) = costs.partition(|route| Order::counts_tokens(route));
    if !by_tokens.is_empty() && !by_unit.is_empty() {
        report.warn(
            at,
            "some of its routes are ordered by the cost of tokens and others by the cost of a unit; give cost.order",
        );
    }
}

/// A headers timeout after which no other channel is tried, because the caller's library has little patience left.
fn patience(catalog: &Catalog, entry: &Entry, routes: &[Place], report: &mut Report) {
    let none = Layer::default();
    for (route, at) in entry.routes.iter().zip(routes) {
        let channel = catalog.channel(route.channel.as_str()).map_or(&none, |channel| &channel.policy);
        let policy = Layer::of_route(&catalog.policy, &entry.policy, channel, &route.policy);
        if policy.timeouts().headers > TIMEOUT_WALK_AGE_MAX {
            let shown = |duration: Duration| humantime::format_duration(duration).to_string();
            let message = format!(
                "timeouts.headers is {}: after such a wait no other channel is tried, because the request is older \
                 than {} by then",
                shown(policy.timeouts().headers),
                shown(TIMEOUT_WALK_AGE_MAX)
            );
            report.warn(&Place { path: path_to(&at.path, "timeouts"), line: at.line }, message);
        }
    }
}
