//! The control plane keeps one catalog, pushes the chains of its newest revision to the gateway nodes,
//! and adds up what the nodes observed.
//!
//! A change: document → checked catalog → revision (`revision`) → what is wanted now (`revision::head`)
//! → each node's stream (`fleet`) → acknowledged (`nodes`). A report: window → `fleet::report` →
//! `store` → `observed` → status and page. `serve` puts the parts together.

mod error;
mod keys;
mod metrics;
mod nodes;
pub mod observed;
mod page;
mod plane;
mod revision;
pub mod store;
