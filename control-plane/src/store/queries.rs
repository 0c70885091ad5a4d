//! Every statement, once, in the SQL that both databases take; compiled once for each of them.
//! `pool.rs` says how they are run.
//! Statements stand in lists, so that a test can prepare them all on both.

pub mod access;
pub mod alerts;
pub mod audit;
pub mod beats;
pub mod bindings;
pub mod examine;
pub mod first_bytes;
pub mod identity;
pub mod keys;
pub mod leader;
pub mod migrate;
pub mod nodes;
pub mod pins;
pub mod plane;
pub mod pool;
pub mod records;
pub mod replicas;
pub mod revisions;
pub mod rollouts;
pub mod secrets;
pub mod usage;
pub mod windows;

use super::{Db, EXAMINE, KIND, LOCK_COUNTS, LOCK_MIGRATIONS, NOW_MS};
use crate::store::statement::Statement;

/// What statements run on: `&mut tx` of a transaction.
type Connection = <Db as sqlx::Database>::Connection;

/// Names the statements of a file and lists them.
macro_rules! statements {
    ($($name:ident = $sql:expr;)+) => {
        $(const $name: super::Statement = super::Statement::new($sql);)+
        /// Every statement of this file.
        pub const ALL: &[super::Statement] = &[$($name),+];
    };
}
use statements;

/// Every statement of every file, and those that are told apart by database.
pub fn all() -> impl Iterator<Item = Statement> {
    let files = [
        access::ALL,
        alerts::ALL,
        audit::ALL,
        beats::ALL,
        bindings::ALL,
        examine::ALL,
        first_bytes::ALL,
        identity::ALL,
        keys::ALL,
        leader::ALL,
        migrate::ALL,
        nodes::ALL,
        pins::ALL,
        plane::ALL,
        records::ALL,
        replicas::ALL,
        revisions::ALL,
        rollouts::ALL,
        secrets::ALL,
        usage::ALL,
        windows::ALL,
    ];
    files.into_iter().flatten().copied().chain([LOCK_MIGRATIONS, LOCK_COUNTS, NOW_MS, EXAMINE])
}
