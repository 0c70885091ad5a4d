//! Brings bindings home over the connection that is open, and asks for those of other nodes over any that can be had.

use std::sync::Arc;
use std::time::Duration;

use common::backoff::full_jitter;
use common::clock::Clock;
use common::limits::{BINDINGS_IN_REPORT_MAX, RECONNECT_BASE, RECONNECT_MAX};
use common::pb::fleet as pb;
use http::Uri;
use pb::fleet_bindings_client::FleetBindingsClient;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connect::{Link, Links, describe};
use crate::bindings::{Ask, Bindings, Name, Told, from_wire, to_wire};
use crate::metrics::Metrics;

/// An answer takes one transaction over there.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A connection that has not answered by then is one of several.
const OTHERS_AFTER: Duration = Duration::from_millis(700);

/// Reports what a node has bound.
#[derive(Clone)]
pub(crate) struct Binder {
    node_id: String,
    bindings: Bindings,
    metrics: Metrics,
    link: watch::Receiver<Option<Link>>,
    clock: Clock,
}

impl Binder {
    /// Reports over whatever connection `link` holds.
    pub(crate) fn new(
        node_id: String,
        bindings: Bindings,
        metrics: Metrics,
        link: watch::Receiver<Option<Link>>,
        clock: Clock,
    ) -> Self {
        Binder { node_id, bindings, metrics, link, clock }
    }

    /// Reports until `stop`: when something was bound, when a connection opens or its control plane begins an epoch, and
    /// again after a failure, by jitter.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failures = 0;
        loop {
            let step = async {
                let is_linked = self.link.borrow_and_update().is_some();
                if is_linked && self.report_all().await {
                    failures = 0;
                    self.compact().await;
                    self.wake().await
                } else if is_linked {
                    let wait = full_jitter(failures, RECONNECT_BASE, RECONNECT_MAX, fastrand::f64());
                    failures = failures.saturating_add(1);
                    sleep(RECONNECT_BASE + wait).await;
                    true
                } else {
                    self.link.changed().await.is_ok()
                }
            };
            if stop.run_until_cancelled(step).await != Some(true) {
                return;
            }
        }
    }

    /// Waits for something to report or another connection; false when there will be none.
    async fn wake(&mut self) -> bool {
        tokio::select! {
            () = self.bindings.bound() => true,
            changed = self.link.changed() => changed.is_ok(),
        }
    }

    /// Reports everything that waits; returns whether the control plane has all of it.
    pub(crate) async fn report_all(&self) -> bool {
        let epoch = self.link.borrow().as_ref().map_or(0, |link| link.epoch);
        self.bindings.begin_epoch(epoch);
        loop {
            let waiting = self.bindings.waiting(BINDINGS_IN_REPORT_MAX);
            if waiting.is_empty() {
                self.metrics.beat("bind", self.clock.now_ms());
                return true;
            }
            let seqs = waiting.iter().map(|(seq, _)| *seq).collect();
            let bindings = waiting.iter().map(|(_, binding)| to_wire(binding)).collect();
            if let Err(why) = self.report(bindings).await {
                tracing::info!(waiting = self.bindings.counts().1, "bindings wait on: {why}");
                return false;
            }
            self.bindings.reported(seqs);
        }
    }

    async fn report(&self, bindings: Vec<pb::Binding>) -> Result<(), String> {
        let link = self.link.borrow().clone().ok_or("there is no connection")?;
        let request = pb::ReportBindingsRequest { node_id: self.node_id.clone(), bindings };
        let mut client = FleetBindingsClient::new(link.channel.clone());
        match timeout(ANSWER_WITHIN, client.report_bindings(link.request(request))).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(status)) => Err(describe(&status)),
            Err(_) => Err("the report was not answered in time".to_owned()),
        }
    }

    async fn compact(&self) {
        let bindings = self.bindings.clone();
        match tokio::task::spawn_blocking(move || bindings.compact()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the journal of bindings cannot be written anew; it grows on"
            ),
            Err(_) => tracing::error!("writing the journal of bindings anew broke down"),
        }
    }
}

/// Asks the control plane for a binding: over the open connection, and soon over all other addresses too.
pub(crate) fn asking(addresses: Vec<Uri>, links: Arc<Links>, link: watch::Receiver<Option<Link>>) -> Ask {
    let addresses: Arc<[Uri]> = addresses.into();
    Arc::new(move |name| {
        let (addresses, links, linked) = (addresses.clone(), links.clone(), link.borrow().clone());
        Box::pin(async move { find(&addresses, links, linked, name).await })
    })
}

/// The first answer counts; without any it cannot be told.
async fn find(addresses: &[Uri], links: Arc<Links>, linked: Option<Link>, name: Name) -> Told {
    let mut asking = tokio::task::JoinSet::new();
    if let Some(link) = linked {
        asking.spawn(ask(link, name.clone()));
        if let Ok(Some(Ok(Some(told)))) = timeout(OTHERS_AFTER, asking.join_next()).await {
            return told;
        }
    }
    for address in addresses {
        let (address, links, name) = (address.clone(), links.clone(), name.clone());
        asking.spawn(async move {
            match links.open(&address).await {
                Ok(link) => ask(link, name).await,
                Err(end) => {
                    tracing::debug!("no connection to {address} for a binding: {end:?}");
                    None
                }
            }
        });
    }
    while let Some(answered) = asking.join_next().await {
        if let Ok(Some(told)) = answered {
            return told;
        }
    }
    Told::Unclear
}

async fn ask(link: Link, name: Name) -> Option<Told> {
    let request = pb::FindBindingRequest {
        dialect: name.dialect.as_str().to_owned(),
        id: name.id.to_string(),
        key_id: name.key.to_string(),
    };
    let mut client = FleetBindingsClient::new(link.channel.clone());
    match client.find_binding(link.request(request)).await {
        Ok(answer) => {
            let pb::FindBindingResponse { binding, in_doubt } = answer.into_inner();
            // Whoever answers with another thing than was asked for has not answered.
            match binding.map(from_wire) {
                Some(Some(binding)) if binding.name == name => Some(Told::Found(binding)),
                Some(_) => None,
                None if in_doubt => Some(Told::Unclear),
                None => Some(Told::Unknown),
            }
        }
        Err(status) => {
            tracing::debug!("a binding was not looked up: {}", describe(&status));
            None
        }
    }
}
