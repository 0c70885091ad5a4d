//! `DoctorService`.

use common::pb::admin as pb;
use pb::doctor_service_server::DoctorService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::doctor::{self, Check, Verdict};
use crate::grpc::status;

#[tonic::async_trait]
impl DoctorService for Admin {
    async fn examine(
        &self,
        request: Request<pb::ExamineRequest>,
    ) -> Result<Response<pb::ExamineResponse>, Status> {
        let at_ms = u64::try_from(request.into_inner().at_ms).ok().filter(|at_ms| *at_ms > 0);
        let found = doctor::examine(&self.plane, at_ms).await.map_err(status::of)?;
        Ok(Response::new(pb::ExamineResponse { checks: found.into_iter().map(convert).collect() }))
    }
}

fn convert(check: Check) -> pb::Check {
    let Check { name, verdict, message, advice } = check;
    let verdict = match verdict {
        Verdict::Ok => pb::Verdict::Ok,
        Verdict::Warning => pb::Verdict::Warning,
        Verdict::Fault => pb::Verdict::Fault,
    };
    pb::Check { name: name.to_owned(), verdict: verdict.into(), message, advice: advice.to_owned() }
}
