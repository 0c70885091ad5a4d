//! The control plane keeps one catalog, pushes the chains of its newest revision to the gateway nodes,
//! and adds up what the nodes observed.
//!
//! A change: document → checked catalog → revision (`revision`) → what is wanted now (`revision::head`)
//! by which node (`rollout`) → each node's stream (`fleet`) → acknowledged (`nodes`). A report: window → `fleet::report` →
//! `store` → `observed` → status and page. `serve` puts the parts together.

mod access;
mod admin;
mod alerts;
mod audit;
mod backup;
mod beats;
mod callers;
mod config;
mod doctor;
mod error;
mod fleet;
mod folder;
mod grpc;
mod http;
mod identity;
mod jobs;
mod keys;
mod leader;
mod listener;
mod metrics;
mod nodes;
pub mod observed;
mod page;
mod plane;
mod records;
mod revision;
mod rollout;
mod secrets;
mod serve;
pub mod store;

pub use config::{Config, ConfigFault, Settings};
pub use serve::{Addresses, ServeError, serve, serve_with};
