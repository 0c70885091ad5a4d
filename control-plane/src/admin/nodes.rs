//! `NodeService`.

use std::collections::HashMap;
use std::time::Duration;

use common::pb::admin as pb;
use pb::node_service_server::NodeService;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::error::Error;
use crate::grpc::status;
use crate::identity::enrolment;
use crate::nodes::{Finding, NodeView, Order, State};
use crate::revision::pin;

/// A node becomes lost by time alone, so a watch looks this often.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Longest reason of a drain.
const REASON_BYTES_MAX: usize = 1024;
/// Many changes at once are shown as one.
const SETTLE: Duration = Duration::from_millis(100);

#[tonic::async_trait]
impl NodeService for Admin {
    async fn list_nodes(
        &self,
        request: Request<pb::ListNodesRequest>,
    ) -> Result<Response<pb::ListNodesResponse>, Status> {
        let nodes = self.nodes(&request.into_inner().labels);
        Ok(Response::new(pb::ListNodesResponse { nodes }))
    }

    async fn get_node(
        &self,
        request: Request<pb::GetNodeRequest>,
    ) -> Result<Response<pb::GetNodeResponse>, Status> {
        let node = self.node(&request.into_inner().id)?;
        Ok(Response::new(pb::GetNodeResponse { node: Some(node) }))
    }

    async fn drain_node(
        &self,
        request: Request<pb::DrainNodeRequest>,
    ) -> Result<Response<pb::DrainNodeResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::DrainNodeRequest { id, reason } = request.into_inner();
        if reason.len() > REASON_BYTES_MAX || reason.contains('\0') {
            let message = format!("at most {REASON_BYTES_MAX} bytes, and no zero in it");
            return Err(status::of(Error::Argument { field: "reason", message }));
        }
        let node = self.node(&id)?;
        let said = if reason.is_empty() { format!("drained by {}", caller.name) } else { reason.clone() };
        let told = serde_json::json!({ "reason": reason });
        self.order(&caller, "node.drain", &id, &told, Order::Leave(said)).await?;
        Ok(Response::new(pb::DrainNodeResponse { node: Some(node) }))
    }

    async fn retry_node(
        &self,
        request: Request<pb::RetryNodeRequest>,
    ) -> Result<Response<pb::RetryNodeResponse>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().id;
        let revisions = self.plane.nodes.quarantined(&id).map_err(status::of)?;
        if !revisions.is_empty() {
            let told = serde_json::json!({ "revisions": revisions });
            self.order(&caller, "node.retry", &id, &told, Order::Retry).await?;
        }
        Ok(Response::new(pb::RetryNodeResponse { revisions }))
    }

    async fn pin_node(
        &self,
        request: Request<pb::PinNodeRequest>,
    ) -> Result<Response<pb::PinNodeResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::PinNodeRequest { id, revision, reason } = request.into_inner();
        pin::pin(&self.plane, &caller, &id, revision, &reason).await.map_err(status::of)?;
        Ok(Response::new(pb::PinNodeResponse { node: self.node(&id).ok() }))
    }

    async fn unpin_node(
        &self,
        request: Request<pb::UnpinNodeRequest>,
    ) -> Result<Response<pb::UnpinNodeResponse>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().id;
        let revision = pin::unpin(&self.plane, &caller, &id).await.map_err(status::of)?;
        Ok(Response::new(pb::UnpinNodeResponse { revision }))
    }

    async fn revoke_node(
        &self,
        request: Request<pb::RevokeNodeRequest>,
    ) -> Result<Response<pb::RevokeNodeResponse>, Status> {
        let caller = Caller::of(&request)?;
        enrolment::revoke(&self.plane, &caller, &request.into_inner().id).await.map_err(status::of)?;
        Ok(Response::new(pb::RevokeNodeResponse {}))
    }

    type WatchNodesStream = ReceiverStream<Result<pb::WatchNodesResponse, Status>>;

    async fn watch_nodes(
        &self,
        request: Request<pb::WatchNodesRequest>,
    ) -> Result<Response<Self::WatchNodesStream>, Status> {
        let (tx, rx) = mpsc::channel(1);
        let (admin, labels) = (self.clone(), request.into_inner().labels);
        self.plane.streams.spawn("watch nodes", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = admin.watch(labels, tx) => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(rx)))
    }
}

impl Admin {
    fn nodes(&self, labels: &HashMap<String, String>) -> Vec<pb::Node> {
        let wanted = self.plane.head.now();
        let convert = |node: NodeView| {
            let is_revoked = self.plane.identity.nodes.is_revoked(&node.id);
            let mut node = convert(node);
            if is_revoked {
                let message = "revoked: it enrols again only with a token that was made since".to_owned();
                node.warnings.push(pb::node::Finding { path: "identity".to_owned(), message });
            }
            node
        };
        let has_all = |node: &NodeView| labels.iter().all(|(n, v)| node.facts.labels.get(n) == Some(v));
        self.plane.nodes.list(wanted.as_deref()).into_iter().filter(has_all).map(convert).collect()
    }

    /// Gives a node an order that it can take, once the audit log has it.
    async fn order(
        &self,
        caller: &Caller,
        action: &str,
        id: &str,
        told: &serde_json::Value,
        order: Order,
    ) -> Result<(), Status> {
        self.plane.nodes.can_take(id, &order).map_err(status::of)?;
        let entry = self.plane.entry(caller, action, id).with(&serde_json::Value::Null, told);
        self.plane.store.note(&entry).await.map_err(|error| status::of(error.into()))?;
        self.plane.nodes.order(id, order).map_err(status::of)?;
        tracing::info!(node.id = id, by = caller.name, "{action} of node {id}");
        Ok(())
    }

    fn node(&self, id: &str) -> Result<pb::Node, Status> {
        let found = self.nodes(&HashMap::new()).into_iter().find(|node| node.id == id);
        found.ok_or_else(|| status::of(Error::NotFound { what: "node", name: id.to_owned() }))
    }

    /// Ends when nobody listens.
    async fn watch(
        &self,
        labels: HashMap<String, String>,
        tx: mpsc::Sender<Result<pb::WatchNodesResponse, Status>>,
    ) {
        let mut changes = self.plane.nodes.subscribe();
        let mut wanted = self.plane.head.subscribe();
        let mut identities = self.plane.identity.nodes.subscribe();
        let mut shown: Option<Vec<pb::Node>> = None;
        loop {
            changes.borrow_and_update();
            wanted.borrow_and_update();
            let nodes = self.nodes(&labels);
            if shown.as_ref().is_none_or(|shown| has_changed(shown, &nodes)) {
                shown = Some(nodes.clone());
                if tx.send(Ok(pb::WatchNodesResponse { nodes })).await.is_err() {
                    return;
                }
            }
            sleep(SETTLE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = wanted.changed() => {}
                _ = identities.changed() => {}
                () = sleep(LOOK_EVERY) => {}
                () = tx.closed() => return,
            }
        }
    }
}

/// That a node was heard of again is no change.
fn has_changed(shown: &[pb::Node], nodes: &[pb::Node]) -> bool {
    let timeless = |node: &pb::Node| pb::Node { last_seen_at_ms: 0, ..node.clone() };
    shown.len() != nodes.len() || shown.iter().zip(nodes).any(|(a, b)| timeless(a) != timeless(b))
}

fn convert(node: NodeView) -> pb::Node {
    let (violations, warnings) = (node.violations(), node.warnings());
    let state = match node.state {
        State::InSync => pb::NodeState::InSync,
        State::Behind => pb::NodeState::Behind,
        State::Stale => pb::NodeState::Stale,
        State::Rejected => pb::NodeState::Rejected,
        State::Quarantined => pb::NodeState::Quarantined,
        State::Incompatible => pb::NodeState::Incompatible,
        State::Drained => pb::NodeState::Drained,
        State::Lost => pb::NodeState::Lost,
    };
    let findings = |found: Vec<Finding>| {
        found.into_iter().map(|f| pb::node::Finding { path: f.path, message: f.message }).collect()
    };
    pb::Node {
        id: node.id,
        boot_id: node.facts.boot_id,
        version: node.facts.version,
        schema: node.facts.schema,
        features: node.facts.features.into_iter().collect(),
        labels: node.facts.labels.into_iter().collect(),
        state: state.into(),
        connected: node.connected,
        applied_revision: node.applied_revision,
        target_revision: node.target_revision,
        violations: findings(violations),
        warnings: findings(warnings),
        open_channels: node.facts.open_channels,
        in_flight: node.facts.in_flight,
        config_since_ms: status::time(node.config_since_ms),
        control_plane: node.control_plane,
        streaming_since_ms: status::time(node.streaming_since_ms),
        pin: node.pin.map(|pin| pb::node::Pin {
            revision: pin.revision,
            author: pin.author,
            reason: pin.reason,
            pinned_at_ms: status::time(pin.pinned_at_ms),
        }),
        last_seen_at_ms: status::time(node.last_seen_at_ms),
        data_address: node.facts.data_address,
        ops_address: node.facts.ops_address,
    }
}
