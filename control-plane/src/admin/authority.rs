//! `AuthorityService`.

use common::pb::admin as pb;
use pb::authority_service_server::AuthorityService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::error::Error;
use crate::grpc::status;
use crate::identity::rotation;

#[tonic::async_trait]
impl AuthorityService for Admin {
    async fn list_authorities(
        &self,
        _request: Request<pb::ListAuthoritiesRequest>,
    ) -> Result<Response<pb::ListAuthoritiesResponse>, Status> {
        let authorities = self.authorities().await.map_err(status::of)?;
        Ok(Response::new(pb::ListAuthoritiesResponse { authorities }))
    }

    async fn rotate_authority(
        &self,
        request: Request<pb::RotateAuthorityRequest>,
    ) -> Result<Response<pb::RotateAuthorityResponse>, Status> {
        let caller = Caller::of(&request)?;
        rotation::rotate(&self.plane, &caller).await.map_err(status::of)?;
        let authorities = self.authorities().await.map_err(status::of)?;
        Ok(Response::new(pb::RotateAuthorityResponse { authorities }))
    }
}

impl Admin {
    async fn authorities(&self) -> Result<Vec<pb::Authority>, Error> {
        let shown = rotation::list(&self.plane).await?;
        Ok(shown
            .into_iter()
            .enumerate()
            .map(|(place, shown)| pb::Authority {
                id: shown.id(),
                is_signing: place == 0,
                expires_at_ms: status::time(shown.authority.facts.expires_at_ms),
                live_certificates: shown.live,
                certificate_pem: shown.authority.pem,
            })
            .collect())
    }
}
