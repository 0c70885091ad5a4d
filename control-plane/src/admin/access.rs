//! `AccessService`.

use std::time::Duration;

use common::pb::admin as pb;
use pb::access_service_server::AccessService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::tokens::{self, New, TTL_DEFAULT};
use crate::access::{Caller, Role};
use crate::error::Error;
use crate::grpc::status;
use crate::store::rows::AdminToken;

#[tonic::async_trait]
impl AccessService for Admin {
    async fn create_admin_token(
        &self,
        request: Request<pb::CreateAdminTokenRequest>,
    ) -> Result<Response<pb::CreateAdminTokenResponse>, Status> {
        let caller = Caller::of(&request)?;
        let pb::CreateAdminTokenRequest { name, role, ttl_seconds } = request.into_inner();
        let ttl = match ttl_seconds {
            None => Some(TTL_DEFAULT),
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
        };
        let new = New { name: &name, role: granted(role).map_err(status::of)?, ttl };
        let created = tokens::create(&self.plane, &caller, new).await.map_err(status::of)?;
        let (token, secret) = (Some(convert(created.token)), created.secret);
        Ok(Response::new(pb::CreateAdminTokenResponse { token, secret }))
    }

    async fn list_admin_tokens(
        &self,
        _request: Request<pb::ListAdminTokensRequest>,
    ) -> Result<Response<pb::ListAdminTokensResponse>, Status> {
        let tokens = tokens::list(&self.plane).await.map_err(status::of)?;
        Ok(Response::new(pb::ListAdminTokensResponse { tokens: tokens.into_iter().map(convert).collect() }))
    }

    async fn revoke_admin_token(
        &self,
        request: Request<pb::RevokeAdminTokenRequest>,
    ) -> Result<Response<pb::RevokeAdminTokenResponse>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().id;
        let token = tokens::revoke(&self.plane, &caller, &id).await.map_err(status::of)?;
        Ok(Response::new(pb::RevokeAdminTokenResponse { token: Some(convert(token)) }))
    }

    async fn who_am_i(
        &self,
        request: Request<pb::WhoAmIRequest>,
    ) -> Result<Response<pb::WhoAmIResponse>, Status> {
        let Caller { name, role, credential, from, .. } = Caller::of(&request)?;
        let role = told(role.as_str());
        Ok(Response::new(pb::WhoAmIResponse { name, role, credential, origin: from }))
    }
}

fn granted(role: i32) -> Result<Role, Error> {
    match pb::Role::try_from(role) {
        Ok(pb::Role::Viewer) => Ok(Role::Viewer),
        Ok(pb::Role::Operator) => Ok(Role::Operator),
        Ok(pb::Role::Admin) => Ok(Role::Admin),
        Ok(pb::Role::Unspecified) | Err(_) => {
            let message = "give one of viewer, operator, admin".to_owned();
            Err(Error::Argument { field: "role", message })
        }
    }
}

fn told(role: &str) -> i32 {
    let role = match Role::named(role) {
        Some(Role::Viewer) => pb::Role::Viewer,
        Some(Role::Operator) => pb::Role::Operator,
        Some(Role::Admin) => pb::Role::Admin,
        None => pb::Role::Unspecified,
    };
    role.into()
}

fn convert(token: AdminToken) -> pb::AdminToken {
    pb::AdminToken {
        role: told(&token.role),
        id: token.id,
        name: token.name,
        created_at_ms: status::time(token.created_at_ms),
        created_by: token.created_by,
        expires_at_ms: token.expires_at_ms.map_or(0, status::time),
        revoked_at_ms: token.revoked_at_ms.map_or(0, status::time),
        last_used_at_ms: token.last_used_at_ms.map_or(0, status::time),
    }
}
