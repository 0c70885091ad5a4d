//! `RolloutService`.

use common::pb::admin as pb;
use pb::rollout_service_server::RolloutService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::error::Error;
use crate::grpc::status;
use crate::rollout::{Decision, Rollout, State, Strategy, run};

#[tonic::async_trait]
impl RolloutService for Admin {
    async fn get_rollout(
        &self,
        request: Request<pb::GetRolloutRequest>,
    ) -> Result<Response<pb::GetRolloutResponse>, Status> {
        let revision = request.into_inner().revision;
        let (rollout, waits_for) = self.find(revision).await.map_err(status::of)?;
        Ok(Response::new(pb::GetRolloutResponse { rollout: Some(self.convert(rollout, waits_for)) }))
    }

    async fn pause_rollout(
        &self,
        request: Request<pb::PauseRolloutRequest>,
    ) -> Result<Response<pb::PauseRolloutResponse>, Status> {
        let caller = Caller::of(&request)?;
        let reason = request.into_inner().reason;
        let rollout = run::pause(&self.plane, &caller, &reason).await.map_err(status::of)?;
        let rollout = Some(self.convert(rollout, String::new()));
        Ok(Response::new(pb::PauseRolloutResponse { rollout }))
    }

    async fn resume_rollout(
        &self,
        request: Request<pb::ResumeRolloutRequest>,
    ) -> Result<Response<pb::ResumeRolloutResponse>, Status> {
        let caller = Caller::of(&request)?;
        let rollout = run::resume(&self.plane, &caller).await.map_err(status::of)?;
        let rollout = Some(self.convert(rollout, String::new()));
        Ok(Response::new(pb::ResumeRolloutResponse { rollout }))
    }

    async fn abort_rollout(
        &self,
        request: Request<pb::AbortRolloutRequest>,
    ) -> Result<Response<pb::AbortRolloutResponse>, Status> {
        let caller = Caller::of(&request)?;
        let reason = request.into_inner().reason;
        let rollout = run::abort(&self.plane, caller, &reason).await.map_err(status::of)?;
        let rollout = Some(self.convert(rollout, String::new()));
        Ok(Response::new(pb::AbortRolloutResponse { rollout }))
    }
}

impl Admin {
    /// A rollout as the store has it, and what it waits for.
    async fn find(&self, revision: u64) -> Result<(Rollout, String), Error> {
        let plane = &self.plane;
        plane.head.refresh(&plane.store).await?;
        let wanted = plane.wanted()?;
        let revision = if revision == 0 { wanted.revision() } else { revision };
        if let Some(rollout) = wanted.under_way().filter(|rollout| rollout.revision == revision) {
            let (rollout, decision, _) = run::look(plane, &wanted, rollout).await?;
            let waits_for = match decision {
                Decision::Wait(waits_for) => waits_for,
                // The job is about to do it.
                Decision::Open { open, .. } => format!("opens stage {open}"),
                Decision::Pause(_, reason) | Decision::Undo(reason) => reason,
                Decision::Resume => "goes on".to_owned(),
                Decision::Finish => "comes to its end".to_owned(),
            };
            return Ok((rollout, waits_for));
        }
        let unknown = Error::NotFound { what: "rollout", name: format!("of revision {revision}") };
        Ok((run::find(plane, revision).await?.ok_or(unknown)?, String::new()))
    }

    fn convert(&self, rollout: Rollout, waits_for: String) -> pb::Rollout {
        let wanted = self.plane.head.now().filter(|wanted| wanted.revision() == rollout.revision);
        let left_out = wanted.iter().flat_map(|wanted| {
            let head = wanted.target.catalog.as_ref().map(|content| content.part);
            let convert =
                |(id, revision): (&str, u64)| pb::rollout::LeftOut { node_id: id.to_owned(), revision };
            wanted.pins.left_out_of(head).into_iter().map(convert).collect::<Vec<_>>()
        });
        pb::Rollout { left_out: left_out.collect(), ..convert(rollout, waits_for) }
    }
}

fn convert(rollout: Rollout, waits_for: String) -> pb::Rollout {
    let state = match rollout.state {
        State::Running => pb::RolloutState::Running,
        State::Paused(_) => pb::RolloutState::Paused,
        State::Done => pb::RolloutState::Done,
        State::Undone(_) => pb::RolloutState::Undone,
        State::Aborted(_) => pb::RolloutState::Aborted,
        State::Superseded(_) => pb::RolloutState::Superseded,
    };
    let strategy = match rollout.strategy {
        Strategy::Staged => pb::RolloutStrategy::Staged,
        Strategy::Immediate => pb::RolloutStrategy::Immediate,
    };
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let members = rollout.members.into_iter().map(|(node_id, member)| pb::rollout::Member {
        node_id,
        stage: number(member.stage),
        acknowledged_at_ms: status::time(member.acked_at_ms.unwrap_or(0)),
        excused: member.excused,
    });
    pb::Rollout {
        revision: rollout.revision,
        base: rollout.base,
        strategy: strategy.into(),
        state: state.into(),
        stages: rollout.stages.iter().map(ToString::to_string).collect(),
        open: number(rollout.open),
        bake_ms: rollout.bake_ms,
        members: members.collect(),
        waits_for,
        left_out: Vec::new(),
        replaced_by: rollout.state.replaced_by().unwrap_or(0),
        begun_at_ms: status::time(rollout.begun_at_ms),
        since_ms: status::time(rollout.since_ms),
        reason: rollout.reason,
    }
}
