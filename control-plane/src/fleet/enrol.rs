//! `FleetEnrolment`: convert, call, convert.

use common::pb::fleet as pb;
use pb::fleet_enrolment_server::FleetEnrolment;
use tonic::{Request, Response, Status};

use super::Fleet;
use crate::grpc::status;
use crate::identity::enrolment::{self, Given, Shown};
use crate::listener::{Peer, Proof};

#[tonic::async_trait]
impl FleetEnrolment for Fleet {
    async fn enrol(&self, request: Request<pb::EnrolRequest>) -> Result<Response<pb::EnrolResponse>, Status> {
        over_tls(&request)?;
        let shown = request.extensions().get().cloned().unwrap_or(Shown::Nothing);
        let from = request.extensions().get::<Peer>().map(|Peer(from)| from.to_string()).unwrap_or_default();
        let pb::EnrolRequest { node_id, csr } = request.into_inner();
        let given = enrolment::enrol(&self.plane, (shown, from), &node_id, &csr).await.map_err(status::of)?;
        Ok(Response::new(pb::EnrolResponse { certificate: Some(convert(given)) }))
    }

    async fn renew(&self, request: Request<pb::RenewRequest>) -> Result<Response<pb::RenewResponse>, Status> {
        over_tls(&request)?;
        let pb::RenewRequest { node_id, csr } = request.into_inner();
        let given = enrolment::renew(&self.plane, &node_id, &csr).await.map_err(status::of)?;
        Ok(Response::new(pb::RenewResponse { certificate: Some(convert(given)) }))
    }
}

/// Without TLS here a certificate would never be seen: a proxy keeps it for itself.
fn over_tls<T>(request: &Request<T>) -> Result<(), Status> {
    if request.extensions().get::<Proof>().is_some_and(|proof| proof.is_tls) {
        Ok(())
    } else {
        Err(Status::failed_precondition("certificates are of no use without TLS on the fleet listener"))
    }
}

fn convert(given: Given) -> pb::NodeCertificate {
    let Given { certificate_pem, authorities_pem } = given;
    pb::NodeCertificate { certificate_pem, authorities_pem }
}
