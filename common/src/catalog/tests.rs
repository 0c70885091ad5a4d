//! The catalog from document to chain, snapshot and difference.

use super::*;
