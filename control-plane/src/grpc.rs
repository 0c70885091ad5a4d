//! What the gRPC listeners answer: their services, message limits, health and reflection, behind what `auth` asks of
//! those who call.

pub mod auth;
pub mod status;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use common::limits::CATALOG_BYTES_MAX;
use common::pb::{FILE_DESCRIPTOR_SET, admin as admin_pb, fleet as fleet_pb};
use tonic::Status;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::admin::Admin;
use crate::fleet::Fleet;
use crate::plane::Plane;
use auth::admin::Guard;
use auth::fleet::Gate;

/// A document that is too large is still read, so that it can be said how large it is.
const ADMIN_MESSAGE_BYTES_MAX: usize = 2 * CATALOG_BYTES_MAX;
/// A window of a busy node, and what a node says of itself.
const FLEET_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A value above its limit is still read, so that it can be said.
const SECRET_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Anybody may ask for a certificate, so that little is read before it is known who does.
const ENROLMENT_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The routes of the admin listener.
pub fn admin(plane: &Arc<Plane>, health: &HealthReporter, guard: Guard) -> Result<Router, ReflectionFault> {
    let admin = Admin { plane: plane.clone() };
    let catalog = admin_pb::catalog_service_server::CatalogServiceServer::new(admin.clone())
        .max_decoding_message_size(ADMIN_MESSAGE_BYTES_MAX);
    let secrets = admin_pb::secret_service_server::SecretServiceServer::new(admin.clone())
        .max_decoding_message_size(SECRET_MESSAGE_BYTES_MAX);
    let mut routes = Routes::builder();
    routes
        .add_service(catalog)
        .add_service(admin_pb::access_service_server::AccessServiceServer::new(admin.clone()))
        .add_service(admin_pb::alert_service_server::AlertServiceServer::new(admin.clone()))
        .add_service(admin_pb::audit_service_server::AuditServiceServer::new(admin.clone()))
        .add_service(admin_pb::backup_service_server::BackupServiceServer::new(admin.clone()))
        .add_service(admin_pb::chain_service_server::ChainServiceServer::new(admin.clone()))
        .add_service(admin_pb::doctor_service_server::DoctorServiceServer::new(admin.clone()))
        .add_service(admin_pb::key_service_server::KeyServiceServer::new(admin.clone()))
        .add_service(admin_pb::authority_service_server::AuthorityServiceServer::new(admin.clone()))
        .add_service(admin_pb::token_service_server::TokenServiceServer::new(admin.clone()))
        .add_service(admin_pb::node_service_server::NodeServiceServer::new(admin.clone()))
        .add_service(admin_pb::request_service_server::RequestServiceServer::new(admin.clone()))
        .add_service(admin_pb::rollout_service_server::RolloutServiceServer::new(admin.clone()))
        .add_service(secrets)
        .add_service(admin_pb::status_service_server::StatusServiceServer::new(admin))
        .add_service(health_service(health))
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok(routes.routes().into_axum_router().layer(from_fn_with_state(guard, auth::admin::require)))
}

/// The routes of the fleet listener.
pub fn fleet(fleet: Fleet, health: &HealthReporter, gate: Gate) -> Router {
    let sync = fleet_pb::fleet_sync_server::FleetSyncServer::new(fleet.clone())
        .max_decoding_message_size(FLEET_MESSAGE_BYTES_MAX);
    let report = fleet_pb::fleet_report_server::FleetReportServer::new(fleet.clone())
        .max_decoding_message_size(FLEET_MESSAGE_BYTES_MAX);
    let bindings = fleet_pb::fleet_bindings_server::FleetBindingsServer::new(fleet.clone());
    let records = fleet_pb::fleet_records_server::FleetRecordsServer::new(fleet.clone())
        .max_decoding_message_size(FLEET_MESSAGE_BYTES_MAX);
    let enrolment = fleet_pb::fleet_enrolment_server::FleetEnrolmentServer::new(fleet)
        .max_decoding_message_size(ENROLMENT_MESSAGE_BYTES_MAX);
    let mut routes = Routes::builder();
    routes
        .add_service(sync)
        .add_service(report)
        .add_service(bindings)
        .add_service(records)
        .add_service(enrolment)
        .add_service(health_service(health));
    routes.routes().into_axum_router().layer(from_fn_with_state(gate, auth::fleet::require))
}

/// What a gRPC listener answers while nothing was read from the store. Never that a token is wrong:
/// nodes would take that for an answer (FR-027).
pub fn not_ready() -> Router {
    Router::new().fallback(async || {
        Status::unavailable("the control plane is not ready yet").into_http::<axum::body::Body>()
    })
}

/// Both listeners say the same of their health.
pub async fn set_health(health: &HealthReporter, serving: bool) {
    let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    for service in [
        "",
        "sluice.admin.v1.AccessService",
        "sluice.admin.v1.AlertService",
        "sluice.admin.v1.AuditService",
        "sluice.admin.v1.BackupService",
        "sluice.admin.v1.CatalogService",
        "sluice.admin.v1.ChainService",
        "sluice.admin.v1.DoctorService",
        "sluice.admin.v1.KeyService",
        "sluice.admin.v1.NodeService",
        "sluice.admin.v1.RequestService",
        "sluice.admin.v1.RolloutService",
        "sluice.admin.v1.SecretService",
        "sluice.admin.v1.StatusService",
        "sluice.admin.v1.AuthorityService",
        "sluice.admin.v1.TokenService",
        "sluice.fleet.v1.FleetEnrolment",
        "sluice.fleet.v1.FleetSync",
        "sluice.fleet.v1.FleetReport",
        "sluice.fleet.v1.FleetBindings",
        "sluice.fleet.v1.FleetRecords",
    ] {
        health.set_service_status(service, status).await;
    }
}

/// Reflection could not read the protocol that was compiled in.
pub type ReflectionFault = tonic_reflection::server::Error;

fn reflection<'a>() -> tonic_reflection::server::Builder<'a> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn health_service(
    health: &HealthReporter,
) -> tonic_health::pb::health_server::HealthServer<tonic_health::server::HealthService> {
    let service = tonic_health::server::HealthService::from_health_reporter(health.clone());
    tonic_health::pb::health_server::HealthServer::new(service)
}
