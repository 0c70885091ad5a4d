//! A whole control plane in this process, spoken to over its own listeners: what operators, nodes and
//! load balancers see of it.
#![allow(missing_docs, reason = "a test has no readers of its documentation")]

#[path = "serve/admin.rs"]
mod admin;
#[path = "serve/fleet.rs"]
mod fleet;
#[path = "serve/life.rs"]
mod life;
#[path = "serve/support.rs"]
mod support;
