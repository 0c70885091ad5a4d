//! The tree of a document → a [`Catalog`], or every fault in it. Goes on after a fault, so that an
//! author sees all at once; what a fault leaves out is not complained about a second time. Pure.

mod layer;
mod rollout;
mod upstream;
mod warn;

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;

use super::field;
use super::keys::{CHANNEL, COST, MODEL, POLICY, PRICE, ROUTE, TLS, TOP};
use super::read::{Node, path_to};
use super::site::{Place, Report, Site, Table};
use super::{Catalog, Channel, Checked, Entry, Fault, Prices, Route};
use crate::dialect::Dialect;
use crate::id::{ChannelId, Model};
use crate::limits::SNAPSHOT_BYTES_MAX;

/// Tokens of a window or an answer: far above any model, far below overflow.
const TOKENS_MAX: u64 = 1_000_000_000;

/// Where the parts of a catalog stand, for warnings about what they are together.
#[derive(Debug, Default)]
struct Places {
    channels: BTreeMap<ChannelId, Place>,
    models: BTreeMap<Model, Place>,
    /// Of each model, in the order of its routes.
    routes: BTreeMap<Model, Vec<Place>>,
}

/// Checks a document. Where it is known which secrets there are, it may name no other.
pub(super) fn check(root: &Node, secrets: Option<&BTreeSet<String>>) -> Result<Checked, Vec<Fault>> {
    let mut report = Report::knowing(secrets);
    let mut places = Places::default();
    let site = Site { place: Place { path: String::new(), line: root.line }, node: root };
    let catalog = site.table(&TOP, &mut report).map(|top| catalog(&top, &mut places, &mut report));
    match catalog {
        Some(catalog) if report.faults.is_empty() => {
            warn::warn(&catalog, &places, &mut report);
            fits(catalog, report)
        }
        _ => Err(sorted(report.faults)),
    }
}

/// A small document can stand for a large snapshot: each dialect of a channel repeats its routes.
fn fits(catalog: Catalog, report: Report) -> Result<Checked, Vec<Fault>> {
    let bytes = catalog.compile(u64::MAX).encoded_len();
    if bytes > SNAPSHOT_BYTES_MAX {
        let message =
            format!("the catalog makes a snapshot of {bytes} bytes; nodes take {SNAPSHOT_BYTES_MAX}");
        return Err(vec![Fault { line: 0, path: String::new(), message }]);
    }
    Ok(Checked { catalog, warnings: sorted(report.warnings), secrets: report.secrets })
}

fn sorted(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort();
    faults
}

fn catalog(top: &Table<'_>, places: &mut Places, report: &mut Report) -> Catalog {
    let mut catalog = Catalog::default();
    if let Some(table) = top.site("policy").and_then(|site| site.table(&POLICY, report)) {
        catalog.policy = layer::layer(&table, &POLICY, report);
    }
    catalog.rollout = rollout::plan(top, report);
    // Faulty channels are known by name all the same: a route may refer to them.
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    if let Some(table) = entries(top, "channels", "channel", report) {
        for (id, site) in table.sites() {
            ids.insert(id);
            if let Err(refused) = field::channel_id(id) {
                report.fault(&site.place, refused);
            }
            if let Some(channel) = channel(&site, report) {
                places.channels.insert(ChannelId::from(id), site.place.clone());
                catalog.channels.insert(ChannelId::from(id), channel);
            }
        }
    }
    if let Some(table) = entries(top, "models", "model", report) {
        for (name, site) in table.sites() {
            if let Err(refused) = field::model_name(name) {
                report.fault(&site.place, refused);
            }
            if let Some((entry, routes)) = model(name, &site, &ids, report) {
                places.models.insert(Model::from(name), site.place.clone());
                places.routes.insert(Model::from(name), routes);
                catalog.models.insert(Model::from(name), entry);
            }
        }
    }
    catalog
}

/// The table of channels or of models; a catalog without any is not one.
fn entries<'d>(top: &Table<'d>, key: &str, one: &str, report: &mut Report) -> Option<Table<'d>> {
    let site = top.required(key, report)?;
    let table = site.entries(report)?;
    if table.sites().next().is_none() {
        return site.refuse(format!("must hold at least one {one}"), report);
    }
    Some(table)
}

fn channel(site: &Site<'_>, report: &mut Report) -> Option<Channel> {
    let table = site.table(&CHANNEL, report)?;
    let dialects = table.required("dialects", report).and_then(|site| dialects(&site, report));
    let base_url = table.required("base_url", report).and_then(|site| {
        let text = site.text(report)?;
        let kept = field::base_url(text).or_else(|refused| site.refuse(refused, report).ok_or(())).ok()?;
        warn::base_url(&site.place, &kept, report);
        Some(kept)
    });
    let credential = table.site("credential").and_then(|site| {
        let text = site.text(report)?;
        match field::credential(text) {
            Ok(()) => {
                if let Some(name) = field::secret_name(text) {
                    report.secret(&site.place, name);
                }
                Some(text.to_owned())
            }
            Err(refused) => site.refuse(refused, report),
        }
    });
    let tls_ca_file = table.site("tls").and_then(|site| {
        let site = site.table(&TLS, report)?.required("ca", report)?;
        let text = site.text(report)?;
        field::file_reference(text).map_or_else(|refused| site.refuse(refused, report), Some)
    });
    let profile = upstream::profile(&table, report);
    let auth = upstream::auth(&table, report);
    let paths = upstream::paths(&table, dialects.as_deref().unwrap_or_default(), report);
    let overrides = upstream::overrides(&table, report);
    let limits = upstream::limits(&table, report);
    let channel = Channel {
        headers: fields(&table, "headers", field::header, report),
        query: fields(
            &table,
            "query",
            |name, value| field::parameter(name, value).map(|()| name.to_owned()),
            report,
        ),
        enabled: table.flag("enabled", true, report),
        include_usage: table.flag("include_usage", false, report),
        policy: layer::layer(&table, &CHANNEL, report),
        dialects: dialects?,
        base_url: base_url?,
        credential,
        tls_ca_file,
        profile,
        auth,
        paths,
        overrides,
        limits,
    };
    upstream::together(&table, &channel, report);
    Some(channel)
}

fn dialects(site: &Site<'_>, report: &mut Report) -> Option<Vec<Dialect>> {
    let sites = site.list(report)?;
    if sites.is_empty() {
        return site.refuse("must name at least one dialect", report);
    }
    let mut dialects: Vec<Dialect> = Vec::new();
    for site in sites {
        let Some(name) = site.text(report) else { continue };
        match name.parse::<Dialect>() {
            Ok(dialect) if dialects.contains(&dialect) => {
                report.fault(&site.place, format!("the dialect \"{name}\" stands here twice"));
            }
            Ok(dialect) => dialects.push(dialect),
            Err(unknown) => {
                let names = Dialect::ALL.iter().map(|dialect| dialect.as_str());
                report.unknown(&site.place, unknown.to_string(), name, names);
            }
        }
    }
    Some(dialects)
}

/// A table of names and texts; `check` gives the name to keep.
fn fields(
    table: &Table<'_>,
    key: &str,
    check: impl Fn(&str, &str) -> Result<String, field::Refused>,
    report: &mut Report,
) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let Some(entries) = table.site(key).and_then(|site| site.entries(report)) else { return fields };
    for (name, site) in entries.sites() {
        let Some(value) = site.text(report) else { continue };
        match check(name, value) {
            Ok(name) if fields.contains_key(&name) => report.fault(&site.place, "stands here twice"),
            Ok(name) => {
                fields.insert(name, value.to_owned());
            }
            Err(refused) => report.fault(&site.place, refused),
        }
    }
    fields
}

fn model(
    name: &str,
    site: &Site<'_>,
    ids: &BTreeSet<&str>,
    report: &mut Report,
) -> Option<(Entry, Vec<Place>)> {
    let table = site.table(&MODEL, report)?;
    let price = table.site("price").and_then(|site| site.table(&PRICE, report));
    let price = price.map(|table| prices(&table, report)).filter(|price| *price != Prices::default());
    let max_output_tokens = table.site("max_output_tokens").and_then(|site| site.count(TOKENS_MAX, report));
    let policy = layer::layer(&table, &MODEL, report);
    let list = table.required("routes", report)?;
    let sites = list.list(report)?;
    if sites.is_empty() {
        return list.refuse("must hold at least one route", report);
    }
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut routes, mut places) = (Vec::new(), Vec::new());
    for (i, site) in sites.iter().enumerate() {
        if let Some(route) = route(name, site, ids, report) {
            routes.push(route);
            places.push(site.place.clone());
        }
        let Some(channel) = channel_named(site) else { continue };
        if let Some(first) = taken.get(channel) {
            let path = path_to(&site.place.path, "channel");
            let message = format!("the model has a route on \"{channel}\" already: routes[{first}]");
            report.fault(&Place { path, line: site.place.line }, message);
        } else {
            taken.insert(channel, i);
        }
    }
    Some((Entry { price, max_output_tokens, policy, routes }, places))
}

/// The channel that a route names, whatever else is wrong with it; reports nothing.
fn channel_named<'d>(site: &Site<'d>) -> Option<&'d str> {
    let mut unheard = Report::default();
    site.entries(&mut unheard)?.site("channel")?.text(&mut unheard)
}

fn route(model: &str, site: &Site<'_>, ids: &BTreeSet<&str>, report: &mut Report) -> Option<Route> {
    let table = site.table(&ROUTE, report)?;
    let channel = table.required("channel", report).and_then(|site| {
        let id = site.text(report)?;
        if !ids.contains(id) {
            report.unknown(&site.place, format!("no such channel {id:?}"), id, ids.iter().copied());
            return None;
        }
        Some(ChannelId::from(id))
    });
    let upstream_model = match table.site("upstream_model") {
        Some(site) => site.text(report).and_then(|name| match field::model_name(name) {
            Ok(()) => Some(name),
            Err(refused) => site.refuse(refused, report),
        }),
        None => Some(model),
    };
    let cost = cost(&table, report);
    let enabled = table.flag("enabled", true, report);
    let context_window = table.site("context_window").and_then(|site| site.count(TOKENS_MAX, report));
    let policy = layer::layer(&table, &ROUTE, report);
    let (cost, order) = cost?;
    let upstream_model = upstream_model?.to_owned();
    Some(Route { channel: channel?, upstream_model, cost, order, enabled, context_window, policy })
}

fn cost(route: &Table<'_>, report: &mut Report) -> Option<(Prices, Option<crate::money::Price>)> {
    const WANTED: &str = "give input and output in USD per million tokens, or unit, or order";
    let Some(site) = route.site("cost") else {
        let path = path_to(&route.place.path, "cost");
        report.fault(&Place { path, line: route.place.line }, format!("is missing: {WANTED}"));
        return None;
    };
    let table = site.table(&COST, report)?;
    let faults = report.faults.len();
    let cost = prices(&table, report);
    let order = table.site("order").and_then(|site| site.price(report));
    let is_silent = cost.input.or(cost.output).or(cost.unit).or(order).is_none();
    if is_silent && report.faults.len() == faults {
        return site.refuse(format!("says nothing to order by: {WANTED}"), report);
    }
    if order.is_none() && cost.input.is_some() != cost.output.is_some() && report.faults.len() == faults {
        let (given, other) = if cost.input.is_some() { ("input", "output") } else { ("output", "input") };
        report.warn(
            &site.place,
            format!("gives {given} only; {other} counts as 0 (write {other} = 0 if it is free)"),
        );
    }
    Some((cost, order))
}

fn prices(table: &Table<'_>, report: &mut Report) -> Prices {
    let mut price = |key: &str| table.site(key).and_then(|site| site.price(report));
    Prices {
        input: price("input"),
        output: price("output"),
        cached_input: price("cached_input"),
        unit: price("unit"),
    }
}
