//! `TokenService`.

use common::pb::admin as pb;
use pb::token_service_server::TokenService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::grpc::status;
use crate::identity::{read_labels, tokens};
use crate::store::rows::EnrolmentToken;

#[tonic::async_trait]
impl TokenService for Admin {
    async fn create_token(
        &self,
        request: Request<pb::CreateTokenRequest>,
    ) -> Result<Response<pb::CreateTokenResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::CreateTokenRequest { ttl_seconds, uses, labels } = request.into_inner();
        let created = tokens::create(&self.plane, &caller, (ttl_seconds, uses), labels.into_iter().collect());
        let tokens::Created { token, secret } = created.await.map_err(status::of)?;
        Ok(Response::new(pb::CreateTokenResponse { token: Some(convert(token)), secret }))
    }

    async fn list_tokens(
        &self,
        _request: Request<pb::ListTokensRequest>,
    ) -> Result<Response<pb::ListTokensResponse>, Status> {
        let tokens = tokens::list(&self.plane).await.map_err(status::of)?;
        Ok(Response::new(pb::ListTokensResponse { tokens: tokens.into_iter().map(convert).collect() }))
    }

    async fn revoke_token(
        &self,
        request: Request<pb::RevokeTokenRequest>,
    ) -> Result<Response<pb::RevokeTokenResponse>, Status> {
        let caller = Caller::of(&request)?;
        let token =
            tokens::revoke(&self.plane, &caller, &request.into_inner().id).await.map_err(status::of)?;
        Ok(Response::new(pb::RevokeTokenResponse { token: Some(convert(token)) }))
    }
}

fn convert(token: EnrolmentToken) -> pb::Token {
    pb::Token {
        labels: read_labels(&token.labels).into_iter().collect(),
        id: token.id,
        uses_max: token.uses_max,
        uses: token.uses,
        created_at_ms: status::time(token.created_at_ms),
        expires_at_ms: status::time(token.expires_at_ms),
        revoked_at_ms: token.revoked_at_ms.map_or(0, status::time),
    }
}
