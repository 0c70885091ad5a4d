//! Counts survive whatever happens to the process.
