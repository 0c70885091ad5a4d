//! Arguments of `sluice usage`.

use clap::{Args as ClapArgs, ValueEnum};

/// Whose use, when, of what.
#[derive(Debug, ClapArgs)]
pub struct UsageArgs {
    /// From this day on, UTC; without it the 30 days up to the last
    #[arg(long, value_name = "DAY", value_parser = common::day::parse)]
    pub from: Option<u32>,
    /// To the end of this day, UTC; today without it
    #[arg(long, value_name = "DAY", value_parser = common::day::parse)]
    pub to: Option<u32>,
    /// Of the key with this id
    #[arg(long, value_name = "KEY-ID", default_value = "", hide_default_value = true)]
    pub key: String,
    /// Of this model
    #[arg(long, default_value = "", hide_default_value = true)]
    pub model: String,
    /// What is told apart
    #[arg(long, value_enum, value_delimiter = ',', default_value = "key")]
    pub by: Vec<By>,
}

/// What use is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Days, UTC
    Day,
    /// Client keys
    Key,
    /// Models
    Model,
}
