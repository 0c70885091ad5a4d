//! Asks the fleet how it is: the control plane by its admin API, the nodes by `/debug/chains`. A look
//! that cannot be had leaves the last one standing and says so.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use common::pb::admin;
use common::tasks::Tasks;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::stack::{self, Stack};
use crate::fleet::Admin;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The control plane is asked at each n-th look.
const ASK_AT: u32 = 4;
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The fleet at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    /// Chains of the chat dialect, by model.
    pub(super) chains: Vec<admin::Chain>,
    pub(super) nodes: Vec<admin::Node>,
    /// What the control plane has counted.
    pub(super) status: Option<admin::Status>,
    /// (node, channel) → why the channel takes no traffic there. Absent: it does.
    pub(super) out: BTreeMap<(String, String), Out>,
    /// Nodes that were asked, in order.
    pub(super) asked: Vec<String>,
    /// What could not be learnt.
    pub(super) trouble: Option<String>,
}

/// Why a channel takes no traffic on a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Out {
    /// In the node's words: `breaker_open`, `cooling_down`, `suspended`, `no_credential`.
    pub(super) why: String,
    pub(super) seconds_left: Option<f64>,
}

/// Looks again and again.
pub(super) struct Looker {
    admin: Admin,
    http: reqwest::Client,
    /// (id, ops address)
    nodes: Vec<(String, String)>,
}

impl Looker {
    /// Starts to look; a look that nobody took yet is waited with.
    pub(super) fn start(stack: &Stack, tasks: &Tasks) -> anyhow::Result<mpsc::Receiver<Look>> {
        let http = reqwest::Client::builder().no_proxy().timeout(ANSWER_WITHIN).build()?;
        let nodes = stack.nodes.iter().map(|node| (node.id.clone(), node.addresses.ops.to_string()));
        let looker = Looker { admin: stack.admin.clone(), http, nodes: nodes.collect() };
        let (tx, rx) = mpsc::channel(1);
        tasks.spawn("look", |stop| looker.run(tx, stop));
        Ok(rx)
    }

    async fn run(self, tx: mpsc::Sender<Look>, stop: CancellationToken) {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look = Look::default();
        for turn in (0..ASK_AT).cycle() {
            let step = async {
                tick.tick().await;
                self.look(&mut look, turn == 0).await;
                tx.send(look.clone()).await.is_ok()
            };
            if stop.run_until_cancelled(step).await != Some(true) {
                return;
            }
        }
    }

    async fn look(&self, look: &mut Look, ask: bool) {
        let mut trouble = None;
        if ask {
            match timeout(ANSWER_WITHIN, self.ask(look)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => trouble = Some(format!("the control plane does not say: {error:#}")),
                Err(_) => trouble = Some("the control plane does not answer".to_owned()),
            }
        }
        let mut out = BTreeMap::new();
        for (id, ops) in &self.nodes {
            match self.ops(ops).await {
                Ok(page) => out.extend(out_on(&page).map(|(channel, why)| ((id.clone(), channel), why))),
                Err(error) => trouble = Some(format!("{id} does not say: {error:#}")),
            }
        }
        look.out = out;
        look.asked = self.nodes.iter().map(|(id, _)| id.clone()).collect();
        // What the control plane did not say stands until it is asked again.
        if ask || trouble.is_some() {
            look.trouble = trouble;
        }
    }

    async fn ask(&self, look: &mut Look) -> anyhow::Result<()> {
        let mut chains = admin::chain_service_client::ChainServiceClient::new(self.admin.clone());
        let mut nodes = admin::node_service_client::NodeServiceClient::new(self.admin.clone());
        let listed = chains.list_chains(admin::ListChainsRequest {}).await?.into_inner().chains;
        look.chains = listed.into_iter().filter(|chain| chain.dialect == "openai-chat").collect();
        look.nodes = nodes.list_nodes(admin::ListNodesRequest::default()).await?.into_inner().nodes;
        look.status = Some(stack::status(&self.admin).await?);
        Ok(())
    }

    async fn ops(&self, address: &str) -> anyhow::Result<Value> {
        let response = self.http.get(format!("http://{address}/debug/chains")).send().await?;
        serde_json::from_slice(&response.bytes().await?).context("no JSON")
    }
}

/// The channels that a node's page shows as out, each once.
pub(super) fn out_on(page: &Value) -> impl Iterator<Item = (String, Out)> {
    fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
        value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
    let chains = list(page, "models").iter().flat_map(|model| list(model, "chains"));
    let routes = chains.flat_map(|chain| list(chain, "routes"));
    routes.filter_map(|route| {
        let why = route["state"].as_str().filter(|state| *state != "available")?.to_owned();
        let seconds_left = route["seconds_left"].as_f64();
        Some((route["channel"].as_str()?.to_owned(), Out { why, seconds_left }))
    })
}
