//! `KeyService`.

use common::pb::admin as pb;
use pb::key_service_server::KeyService;
use tonic::{Request, Response, Status};

use super::Admin;
use crate::access::Caller;
use crate::grpc::status;
use crate::keys;
use crate::store::rows::Key;

#[tonic::async_trait]
impl KeyService for Admin {
    async fn create_key(
        &self,
        request: Request<pb::CreateKeyRequest>,
    ) -> Result<Response<pb::CreateKeyResponse>, Status> {
        let caller = Caller::of(&request)?;
        let name = request.into_inner().name;
        let created = keys::create(&self.plane, &caller, &name).await.map_err(status::of)?;
        let (key, secret) = (Some(convert(created.key)), created.secret);
        Ok(Response::new(pb::CreateKeyResponse { key, secret }))
    }

    async fn list_keys(
        &self,
        _request: Request<pb::ListKeysRequest>,
    ) -> Result<Response<pb::ListKeysResponse>, Status> {
        let keys = keys::list(&self.plane).await.map_err(status::of)?;
        Ok(Response::new(pb::ListKeysResponse { keys: keys.into_iter().map(convert).collect() }))
    }

    async fn revoke_key(
        &self,
        request: Request<pb::RevokeKeyRequest>,
    ) -> Result<Response<pb::RevokeKeyResponse>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().id;
        let key = keys::revoke(&self.plane, &caller, &id).await.map_err(status::of)?;
        Ok(Response::new(pb::RevokeKeyResponse { key: Some(convert(key)) }))
    }
}

fn convert(key: Key) -> pb::Key {
    pb::Key {
        id: key.id,
        name: key.name,
        created_at_ms: status::time(key.created_at_ms),
        revoked_at_ms: key.revoked_at_ms.map_or(0, status::time),
    }
}
