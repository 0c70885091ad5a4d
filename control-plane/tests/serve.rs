//! A whole control plane in this process, spoken to over its own listeners: what operators, nodes and
//! load balancers see of it.
#![allow(missing_docs, reason = "a test has no readers of its documentation")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test ends so"
)]

#[path = "serve/access.rs"]
mod access;
#[path = "serve/admin.rs"]
mod admin;
#[path = "../../tests/src/database.rs"]
mod database;
#[path = "serve/fleet.rs"]
mod fleet;
#[path = "serve/life.rs"]
mod life;
#[path = "serve/support.rs"]
mod support;
