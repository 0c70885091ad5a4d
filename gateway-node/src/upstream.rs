//! Everything between a hop and its upstream: the client and its connections, headers both ways,
//! credentials, and what an upstream's refusal means.

pub mod answer;
pub mod body;
pub mod classify;
pub mod client;
pub mod credential;
pub mod encoding;
pub mod headers;
pub mod hint;
pub mod sources;

pub use answer::{BodyFault, UpstreamBody};
pub use body::RequestBody;
pub use client::{Client, Connections, SendFault};
