//! A benchmark.

fn main() {}
