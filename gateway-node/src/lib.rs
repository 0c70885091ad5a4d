//! The data plane. A request meets the modules in this order: `api` accepts it, `dialect` finds the
//! model in it, `table` has the chain, `walk` tries the hops (`channel`: layer 1, `upstream`: layer
//! 4, `gate`: layer 3), `relay` passes the committed answer on, `observe` counts how it ended.
//! Beside the requests, `sync` keeps the table as the control plane wants it, and `ops` shows the state.

mod api;
mod bindings;
mod budget;
mod channel;
mod config;
mod dialect;
mod disk;
mod fault;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gate;
mod journal;
mod metrics;
mod observe;
mod ops;
mod portion;
mod records;
mod relay;
mod serve;
mod sync;
mod table;
mod upstream;
mod walk;

#[cfg(test)]
mod tests;

pub use config::{Config, ConfigFault, Settings, TlsFiles};
pub use serve::{Addresses, serve, serve_with};
