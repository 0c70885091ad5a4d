//! The words that both sides of Sluice share. In reading order: what a dialect, a failure class and
//! an error code are; the operator's catalog and its compiled snapshot; how a chain is walked;
//! the windows that come home; credentials and how they are sealed;
//! then the small parts that every service needs.
//!
//! Nothing here opens a socket, reads a database or decides by a clock of its own.

pub mod class;
pub mod code;
pub mod day;
pub mod dialect;
pub mod id;
pub mod label;
pub mod limits;

pub mod catalog;
pub mod feature;
pub mod money;
pub mod policy;
pub mod profile;
pub mod snapshot;

pub mod first_byte;
pub mod record;
pub mod walk;
pub mod window;

pub mod hpke;
pub mod sealed;
pub mod secret;

pub mod backoff;
pub mod certificate;
pub mod clock;
pub mod listen;
pub mod settings;
pub mod tasks;
pub mod telemetry;
pub mod tls;

pub mod pb;
