//! `sluice chain` and `sluice chains`: the static chain as the catalog has it, with its costs, and
//! beside it where the breaker of each channel is open now.

use comfy_table::{Cell, Color};
use serde::Serialize;

use common::pb::admin as pb;

use crate::args::{ConnectArgs, Format};
use crate::call::Connection;
use crate::fault::{Exit, Fault};
use crate::output::{Output, cell, clean, table};

#[derive(Serialize)]
struct ChainsJson<'a> {
    chains: Vec<ChainJson<'a>>,
}

#[derive(Serialize)]
struct ChainJson<'a> {
    model: &'a str,
    dialect: &'a str,
    revision: u64,
    hops: Vec<HopJson<'a>>,
}

#[derive(Serialize)]
struct HopJson<'a> {
    channel: &'a str,
    upstream_model: &'a str,
    input_cost: Option<&'a str>,
    output_cost: Option<&'a str>,
    order: &'a str,
    open_on: &'a [String],
}

/// Shows the chains of one model.
pub async fn show(
    model: String,
    dialect: Option<String>,
    connect: &ConnectArgs,
    output: &mut Output,
) -> Result<Exit, Fault> {
    let conn = Connection::open(connect).await?;
    let request = pb::GetChainRequest { model, dialect: dialect.unwrap_or_default() };
    let answer = conn.answer(conn.chains().get_chain(request)).await.map_err(|s| conn.fault(&s))?;
    print(&answer.chains, output)
}

/// Shows the chains of all models.
pub async fn list(connect: &ConnectArgs, output: &mut Output) -> Result<Exit, Fault> {
    let conn = Connection::open(connect).await?;
    let answer =
        conn.answer(conn.chains().list_chains(pb::ListChainsRequest {})).await.map_err(|s| conn.fault(&s))?;
    print(&answer.chains, output)
}

fn print(chains: &[pb::Chain], output: &mut Output) -> Result<Exit, Fault> {
    if output.format() == Format::Json {
        output.json(&json(chains))?;
    } else if chains.is_empty() {
        output.text("no chains\n")?;
    } else {
        output.text(&Vec::from_iter(chains.iter().map(text)).join("\n"))?;
    }
    Ok(Exit::Done)
}

fn text(chain: &pb::Chain) -> String {
    let head = format!("{}  {}  revision {}\n", clean(&chain.model), clean(&chain.dialect), chain.revision);
    let rows = chain.hops.iter().zip(1..).map(|(hop, number)| {
        vec![
            cell(number.to_string()),
            cell(&hop.channel),
            cell(&hop.upstream_model),
            cell(given(&hop.input_cost).unwrap_or("-")),
            cell(given(&hop.output_cost).unwrap_or("-")),
            cell(&hop.order),
            breaker(&hop.open_on),
        ]
    });
    let header = ["HOP", "CHANNEL", "UPSTREAM MODEL", ">INPUT $/M", ">OUTPUT $/M", ">ORDER", "BREAKER"];
    head + &table(&header, rows)
}

/// Where a breaker is open, as a cell.
pub fn breaker(open_on: &[String]) -> Cell {
    if open_on.is_empty() {
        cell("closed").fg(Color::Green)
    } else {
        cell(format!("open on {}", open_on.join(", "))).fg(Color::Red)
    }
}

fn json(chains: &[pb::Chain]) -> ChainsJson<'_> {
    let chains = chains.iter().map(|chain| ChainJson {
        model: &chain.model,
        dialect: &chain.dialect,
        revision: chain.revision,
        hops: chain.hops.iter().map(hop_json).collect(),
    });
    ChainsJson { chains: chains.collect() }
}

fn hop_json(hop: &pb::Hop) -> HopJson<'_> {
    let pb::Hop { channel, upstream_model, input_cost, output_cost, order, open_on } = hop;
    let (input_cost, output_cost) = (given(input_cost), given(output_cost));
    HopJson { channel, upstream_model, input_cost, output_cost, order, open_on }
}

fn given(cost: &str) -> Option<&str> {
    (!cost.is_empty()).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Captured, plain};

    fn chain() -> pb::Chain {
        let hop = |channel: &str, input: &str, output: &str, order: &str, open_on: &[&str]| pb::Hop {
            channel: channel.to_owned(),
            upstream_model: "gpt-4o".to_owned(),
            input_cost: input.to_owned(),
            output_cost: output.to_owned(),
            order: order.to_owned(),
            open_on: open_on.iter().map(|node| (*node).to_owned()).collect(),
        };
        pb::Chain {
            model: "gpt-4o".to_owned(),
            dialect: "openai-chat".to_owned(),
            revision: 42,
            hops: vec![
                hop("reseller", "2.00", "8.00", "3.5", &["node-a", "node-b"]),
                hop("own", "", "", "9", &[]),
            ],
        }
    }

    #[test]
    fn a_chain_shows_its_hops_in_order_with_costs_and_open_breakers() {
        let want = "\
gpt-4o  openai-chat  revision 42
HOP  CHANNEL   UPSTREAM MODEL  INPUT $/M  OUTPUT $/M  ORDER  BREAKER
1    reseller  gpt-4o               2.00        8.00    3.5  open on node-a, node-b
2    own       gpt-4o                  -           -      9  closed
";
        assert_eq!(plain(&text(&chain())), want);
    }

    #[test]
    fn the_json_of_a_chain_has_null_for_costs_that_are_not_given() {
        let (mut output, captured) = Captured::new(Format::Json);
        print(&[chain()], &mut output).unwrap();
        let json: serde_json::Value = serde_json::from_str(&captured.out()).unwrap();
        let hops = &json["chains"][0]["hops"];
        assert_eq!(
            (&hops[0]["input_cost"], &hops[1]["input_cost"]),
            (&"2.00".into(), &serde_json::Value::Null)
        );
        assert_eq!(hops[0]["open_on"], serde_json::json!(["node-a", "node-b"]));
        assert_eq!(captured.err(), "");
    }

    #[test]
    fn no_chains_are_said_to_be_none() {
        let (mut output, captured) = Captured::new(Format::Table);
        print(&[], &mut output).unwrap();
        assert_eq!(captured.out(), "no chains\n");
    }
}
