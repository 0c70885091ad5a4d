//! `AlertService`.

use std::time::Duration;

use common::pb::admin as pb;
use pb::alert_service_server::AlertService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::alerts::ask::{self, Ask, Shown};
use crate::alerts::{Delivery, Kind, Silence};
use crate::grpc::status;

#[tonic::async_trait]
impl AlertService for Admin {
    async fn list_alerts(
        &self,
        request: Request<pb::ListAlertsRequest>,
    ) -> Result<Response<pb::ListAlertsResponse>, Status> {
        let since_ms = u64::try_from(request.into_inner().since_ms).unwrap_or(0);
        let listed = ask::list(&self.plane, since_ms).await.map_err(status::of)?;
        let receivers = self.plane.alerting.receivers.all.iter();
        Ok(Response::new(pb::ListAlertsResponse {
            alerts: listed.alerts.into_iter().map(alert).collect(),
            silences: listed.silences.into_iter().map(silence).collect(),
            undelivered: listed.undelivered.into_iter().map(undelivered).collect(),
            receivers: receivers.map(|receiver| receiver.name.clone()).collect(),
        }))
    }

    async fn test_alerts(
        &self,
        request: Request<pb::TestAlertsRequest>,
    ) -> Result<Response<pb::TestAlertsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let told = self.plane.alerting.test(&caller.name, self.plane.clock.now_ms()).await;
        let receivers = told
            .into_iter()
            .map(|(name, told)| pb::TestedReceiver { name, failure: told.err().unwrap_or_default() });
        Ok(Response::new(pb::TestAlertsResponse { receivers: receivers.collect() }))
    }

    async fn silence_alerts(
        &self,
        request: Request<pb::SilenceAlertsRequest>,
    ) -> Result<Response<pb::SilenceAlertsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::SilenceAlertsRequest { kind, object, for_seconds, reason } = request.into_inner();
        let length = Duration::from_secs(for_seconds);
        let ask = Ask { kind: &kind, object: &object, length, reason: &reason };
        let new = ask::silence(&self.plane, &caller, ask).await.map_err(status::of)?;
        Ok(Response::new(pb::SilenceAlertsResponse { silence: Some(silence(new)) }))
    }

    async fn unsilence_alerts(
        &self,
        request: Request<pb::UnsilenceAlertsRequest>,
    ) -> Result<Response<pb::UnsilenceAlertsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().id;
        let ended = ask::unsilence(&self.plane, &caller, &id).await.map_err(status::of)?;
        Ok(Response::new(pb::UnsilenceAlertsResponse { silence: Some(silence(ended)) }))
    }
}

fn alert(Shown { alert, is_told, is_silenced, runbook }: Shown) -> pb::Alert {
    pb::Alert {
        id: alert.id,
        kind: alert.kind.to_string(),
        object: alert.object,
        summary: alert.summary,
        raised_at_ms: status::time(alert.raised_at_ms),
        resolved_at_ms: status::time(alert.resolved_at_ms),
        told: is_told,
        silenced: is_silenced,
        runbook,
    }
}

fn silence(silence: Silence) -> pb::Silence {
    pb::Silence {
        id: silence.id,
        kind: silence.kind.map_or("", Kind::as_str).to_owned(),
        object: silence.object,
        reason: silence.reason,
        created_by: silence.created_by,
        created_at_ms: status::time(silence.created_at_ms),
        until_ms: status::time(silence.until_ms),
    }
}

fn undelivered(delivery: Delivery) -> pb::Undelivered {
    let next_ms = if delivery.done_at_ms > 0 { 0 } else { delivery.next_at_ms };
    pb::Undelivered {
        notice: delivery.notice,
        receiver: delivery.receiver,
        kind: delivery.kind,
        failure: delivery.failure,
        tries: delivery.tries,
        made_at_ms: status::time(delivery.made_at_ms),
        next_try_at_ms: status::time(next_ms),
    }
}
