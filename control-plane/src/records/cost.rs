//! What an answer comes to: what its upstream says that it used, at the prices of a catalog. Pure.

use common::catalog::{Catalog, Prices};
use common::money::{Amount, Price};
use common::pb::fleet as pb;

/// What an answer comes to. None where it is not known: the upstream did not say what was used, or no price tells what
/// that comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// What it costs us.
    pub cost: Option<Amount>,
    /// What the caller pays.
    pub price: Option<Amount>,
}

/// What the answer of a request comes to in the catalog that decided it.
pub fn of(record: &pb::Record, catalog: &Catalog) -> Sums {
    let (Some(attempt), Some(usage)) = (answering(record), &record.usage) else { return Sums::default() };
    let Some(entry) = catalog.model(&record.model) else { return Sums::default() };
    let channel = record.chain.get(attempt.hop as usize).map_or("", |hop| hop.channel.as_str());
    let route = entry.routes.iter().find(|route| route.channel.as_str() == channel);
    Sums {
        cost: route.and_then(|route| amount(&route.cost, usage)),
        price: match &entry.price {
            Some(price) => amount(price, usage),
            None => Some(Amount::default()),
        },
    }
}

/// The attempt whose answer was passed on. Attempts that failed cost callers nothing.
pub fn answering(record: &pb::Record) -> Option<&pb::RecordAttempt> {
    record.committed_us.and(record.attempts.last())
}

/// What was cached is input too, at its own price where there is one.
fn amount(prices: &Prices, usage: &pb::RecordUsage) -> Option<Amount> {
    let Prices { input, output, cached_input, unit } = *prices;
    let has_tokens = usage.input > 0 || usage.output > 0;
    let mut sum = None;
    if has_tokens && input.or(output).is_some() {
        let price = |price: Option<Price>| price.unwrap_or(Price::ZERO);
        let cached = usage.cached_input.min(usage.input);
        let fresh = price(input).of_tokens(usage.input - cached)?;
        let cached = price(cached_input.or(input)).of_tokens(cached)?;
        sum = Some(fresh.plus(cached)?.plus(price(output).of_tokens(usage.output)?)?);
    }
    if usage.searches > 0
        && let Some(unit) = unit
    {
        sum = Some(sum.unwrap_or_default().plus(unit.of_units(usage.searches)?)?);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &[u8] = br#"
        [channels.a]
        dialects = ["openai-chat"]
        base_url = "https://a.example/v1"
        [channels.b]
        dialects = ["openai-chat"]
        base_url = "https://b.example/v1"
        [models.m]
        price = { input = "3.00", output = "12.00", cached_input = "1.50" }
        routes = [
            { channel = "a", upstream_model = "m", cost = { input = "2.00", output = "8.00" } },
            { channel = "b", upstream_model = "m", cost = { unit = "0.01" } },
        ]
        [models.free]
        routes = [{ channel = "a", upstream_model = "m", cost = { input = "2.00", output = "8.00" } }]
    "#;

    fn usage(input: u64, cached_input: u64, output: u64, searches: u64) -> Option<pb::RecordUsage> {
        Some(pb::RecordUsage { input, cached_input, output, searches, ..Default::default() })
    }

    fn record(model: &str, asked: &[&str], usage: Option<pb::RecordUsage>) -> pb::Record {
        let hop = |channel: &&str| pb::RecordHop { channel: (*channel).to_owned(), ..Default::default() };
        let attempt = |hop| pb::RecordAttempt { hop, ..Default::default() };
        pb::Record {
            model: model.to_owned(),
            chain: asked.iter().map(hop).collect(),
            attempts: (0..asked.len() as u32).map(attempt).collect(),
            committed_us: Some(1),
            usage,
            ..Default::default()
        }
    }

    #[test]
    fn an_answer_comes_to_what_its_upstream_counted_at_the_prices_of_its_route_and_model() {
        let catalog = common::catalog::parse(CATALOG).unwrap().catalog;
        let million = 1_000_000;
        for (what, record, cost, price) in [
            ("tokens", record("m", &["a"], usage(million, 0, million, 0)), Some("10.00"), Some("15.00")),
            ("one token", record("m", &["a"], usage(1, 0, 0, 0)), Some("0.000002"), Some("0.000003")),
            ("cached", record("m", &["a"], usage(million, million, 0, 0)), Some("2.00"), Some("1.50")),
            (
                "more cached than there was",
                record("m", &["a"], usage(1, 9, 0, 0)),
                Some("0.000002"),
                Some("0.0000015"),
            ),
            ("the last", record("m", &["b", "a"], usage(million, 0, 0, 0)), Some("2.00"), Some("3.00")),
            ("units", record("m", &["b"], usage(0, 0, 0, 3)), Some("0.03"), None),
            ("tokens where units count", record("m", &["b"], usage(million, 0, 0, 0)), None, Some("3.00")),
            ("free", record("free", &["a"], usage(million, 0, 0, 0)), Some("2.00"), Some("0.00")),
            ("not said", record("m", &["a"], None), None, None),
            ("nothing counted", record("m", &["a"], usage(0, 0, 0, 0)), None, None),
            ("no model of the catalog", record("x", &["a"], usage(1, 0, 1, 0)), None, None),
            ("no route of the catalog", record("free", &["b"], usage(million, 0, 0, 0)), None, Some("0.00")),
            ("too much", record("m", &["a"], usage(u64::MAX, 0, 0, 0)), None, None),
            (
                "nothing passed on",
                pb::Record { committed_us: None, ..record("m", &["a"], usage(1, 0, 1, 0)) },
                None,
                None,
            ),
        ] {
            let Sums { cost: found, price: paid } = of(&record, &catalog);
            let shown = |amount: Option<Amount>| amount.map(|amount| amount.to_string());
            assert_eq!((shown(found).as_deref(), shown(paid).as_deref()), (cost, price), "{what}");
        }
    }
}
