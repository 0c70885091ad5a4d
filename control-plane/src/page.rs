//! Empty until it is written.
