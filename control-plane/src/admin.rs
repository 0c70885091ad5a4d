//! What operators ask for: one service a file, each of them convert, call, convert. Who calls stands in
//! the request as a [`Caller`](crate::access::Caller).

mod access;
mod alerts;
mod audit;
mod authority;
mod backup;
mod catalog;
mod chains;
mod doctor;
mod keys;
mod nodes;
mod requests;
mod rollouts;
mod secrets;
mod status;
mod tokens;

use std::sync::Arc;

use crate::plane::Plane;

/// Every service of `sluice.admin.v1`.
#[derive(Clone)]
pub struct Admin {
    /// What the services share.
    pub plane: Arc<Plane>,
}
