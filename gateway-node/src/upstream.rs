//! Everything between a hop and its upstream: the client and its connections, headers both ways,
//! credentials, and what an upstream's refusal means.

pub mod body;
pub mod classify;
pub mod client;
pub mod credential;
pub mod headers;
pub mod hint;

pub use body::RequestBody;
pub use client::{Client, Connections, SendFault};
