//! The fleet from outside: real processes, real sockets, simulated providers. One file per question;
//! each test has a fleet of its own.

mod access;
mod auth;
mod backup;
mod bindings;
mod bouncer;
mod catalog;
mod control_plane_down;
mod counters;
mod database;
mod doctor;
mod hot_swap;
mod identity;
mod memory;
mod nodes;
mod psql;
mod replicas;
mod requests;
mod restart;
mod rolling;
mod rollout;
mod shutdown;
mod skew;
mod status;
mod traffic;
