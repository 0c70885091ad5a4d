//! The chain of a model for a dialect: its enabled routes on enabled channels that speak the
//! dialect, cheapest first, cut to [`ROUTING_CHAIN_MAX`]. It depends on the catalog alone, and not
//! on the order in which the document names things. Pure.

use std::collections::BTreeSet;
use std::fmt;

use super::{Catalog, Route};
use crate::dialect::Dialect;
use crate::id::{ChannelId, Model};
use crate::limits::ROUTING_CHAIN_MAX;
use crate::money::Price;

/// The number that routes are ordered by: `cost.order`, else (3 × input + output) / 4, else the
/// cost of a unit. Exact: it counts quarters of a micro-USD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order(u64);

impl Order {
    /// The number of a route.
    pub fn of(route: &Route) -> Self {
        let cost = &route.cost;
        let micro = |price: Option<Price>| price.map_or(0, Price::micro);
        // Prices are bounded far below what four of them would need to overflow.
        Order(match route.order {
            Some(order) => 4 * order.micro(),
            None if Order::counts_tokens(route) => 3 * micro(cost.input) + micro(cost.output),
            None => 4 * micro(cost.unit),
        })
    }

    /// Whether the cost of a route is one of tokens.
    pub(super) fn counts_tokens(route: &Route) -> bool {
        route.cost.input.or(route.cost.output).is_some()
    }
}

/// As a decimal number without needless digits: `3.5`.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ONE: u64 = 4_000_000;
        write!(f, "{}", self.0 / ONE)?;
        // A quarter of a micro-USD has eight decimals.
        let decimals = format!("{:08}", self.0 % ONE * 25);
        match decimals.trim_end_matches('0') {
            "" => Ok(()),
            kept => write!(f, ".{kept}"),
        }
    }
}

/// A chain as the catalog has it; what is open or switched off at run time is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Of which model.
    pub model: Model,
    /// For which dialect.
    pub dialect: Dialect,
    /// At most three, cheapest first.
    pub hops: Vec<ChainHop>,
}

/// A route in its place in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHop {
    /// The channel.
    pub channel: ChannelId,
    /// The upstream's name for the model.
    pub upstream_model: String,
    /// Cost of input tokens in USD per million; empty when not given.
    pub input_cost: String,
    /// Cost of output tokens in USD per million; empty when not given.
    pub output_cost: String,
    /// What the order went by.
    pub order: Order,
}

impl Catalog {
    /// The chain of a model for a dialect. Empty when there is no such model or no route for it.
    pub fn chain(&self, model: &str, dialect: Dialect) -> Chain {
        let shown = |price: Option<Price>| price.map_or_else(String::new, |p| p.to_string());
        let mut hops: Vec<ChainHop> = Vec::new();
        for route in self.ranked(model, dialect).into_iter().take(ROUTING_CHAIN_MAX) {
            hops.push(ChainHop {
                channel: route.channel.clone(),
                upstream_model: route.upstream_model.clone(),
                input_cost: shown(route.cost.input),
                output_cost: shown(route.cost.output),
                order: Order::of(route),
            });
        }
        Chain { model: Model::from(model), dialect, hops }
    }

    /// The chains of a model: one for each dialect that some route of it speaks, in the order of
    /// [`Dialect::ALL`]. A chain is empty when every such route is disabled.
    pub fn chains(&self, model: &str) -> Vec<Chain> {
        self.dialects(model).into_iter().map(|dialect| self.chain(model, dialect)).collect()
    }

    /// What some route of the model speaks, enabled or not.
    pub(super) fn dialects(&self, model: &str) -> BTreeSet<Dialect> {
        let routes = self.model(model).map_or(&[][..], |entry| &entry.routes);
        let channels = routes.iter().filter_map(|route| self.channel(route.channel.as_str()));
        channels.flat_map(|channel| channel.dialects.iter().copied()).collect()
    }

    /// The routes of a model for a dialect, cheapest first, before the cut.
    pub(super) fn ranked(&self, model: &str, dialect: Dialect) -> Vec<&Route> {
        let routes = self.model(model).map_or(&[][..], |entry| &entry.routes);
        let serves = |route: &&Route| {
            let channel = self.channel(route.channel.as_str());
            route.enabled && channel.is_some_and(|c| c.enabled && c.dialects.contains(&dialect))
        };
        let mut ranked: Vec<&Route> = routes.iter().filter(serves).collect();
        ranked.sort_by(|a, b| (Order::of(a), &a.channel).cmp(&(Order::of(b), &b.channel)));
        ranked
    }
}
