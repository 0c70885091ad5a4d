//! Between the store's columns and the values of rows.

use common::snapshot::Sha;

/// Numbers are kept as `bigint`; one beyond it is kept as the largest.
pub fn to_db(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The other way; there are no negative numbers.
pub fn from_db(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A digest column.
pub fn sha(bytes: Vec<u8>) -> Result<Sha, sqlx::Error> {
    bytes.try_into().map_err(|_| sqlx::Error::Decode("a digest has 32 bytes".into()))
}
