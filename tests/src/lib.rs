//! The fleet from outside. `fleet` starts real processes (`process`) against simulated providers
//! (`provider`), `caller` calls a node and counts what it got, `balancer` spreads callers over nodes, `eventually`
//! waits for what must become true, `operator` operates one control plane, `database` lends a PostgreSQL of one's own,
//! which `outage` takes away and before which `bouncer` puts a pooler, `proxy` fails as networks do, `receiver` is told of alerts, `documented` runs
//! what the documentation tells to run, `flood` measures what long streams cost, `meter` reads and shows what benchmarks
//! measure. `demo` is a fleet to look at.

pub mod balancer;
pub mod bouncer;
pub mod caller;
pub mod catalog;
pub mod database;
pub mod demo;
pub mod documented;
pub mod eventually;
pub mod fleet;
pub mod flood;
pub mod meter;
pub mod operator;
pub mod outage;
pub mod process;
pub mod provider;
pub mod proxy;
pub mod receiver;
pub mod sluice;
pub mod system;
pub mod tools;
