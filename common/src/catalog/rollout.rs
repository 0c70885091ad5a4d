//! How a revision reaches the fleet: in which stages, and how long the fleet pauses between them. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::label;
use crate::limits::{ROLLOUT_BAKE, ROLLOUT_STAGES};

/// The `[rollout]` table of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// At least one; the last one is the whole fleet.
    pub stages: Vec<Stage>,
    /// How long a stage is watched, from the moment at which all of it has acknowledged.
    pub bake: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Plan { stages: ROLLOUT_STAGES.to_vec(), bake: ROLLOUT_BAKE }
    }
}

/// How much of the fleet has the new revision once a stage is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// So many nodes.
    Count(u32),
    /// So many of a hundred nodes, cut to whole nodes, and one at least.
    Share(u8),
    /// The nodes with this label, besides those of the stages before.
    Label {
        /// The label's name.
        name: String,
        /// Its value.
        value: String,
    },
}

impl Stage {
    /// The whole fleet.
    pub const ALL: Stage = Stage::Share(100);
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Count(count) => write!(f, "{count}"),
            Stage::Share(percent) => write!(f, "{percent}%"),
            Stage::Label { name, value } => write!(f, "{name}={value}"),
        }
    }
}

/// Not the text of a stage.
#[derive(Debug, thiserror::Error)]
#[error("must be a number of nodes (\"1\"), a share (\"25%\") or a label (\"region=eu\")")]
pub struct NoStage;

impl FromStr for Stage {
    type Err = NoStage;

    fn from_str(text: &str) -> Result<Self, NoStage> {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if let Some(percent) = text.strip_suffix('%').filter(|text| is_digits(text)) {
            let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
            return percent.map(Stage::Share).ok_or(NoStage);
        }
        if text.contains('=') {
            let (name, value) = label::parse(text).map_err(|_| NoStage)?;
            return Ok(Stage::Label { name, value });
        }
        let count = text.parse().ok().filter(|count| *count > 0 && is_digits(text));
        count.map(Stage::Count).ok_or(NoStage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_a_number_a_share_or_a_label_and_is_written_as_it_is_read() {
        for text in ["1", "25", "1%", "25%", "100%", "region=eu", "zone=a:b"] {
            assert_eq!(text.parse::<Stage>().unwrap().to_string(), text);
        }
        for text in
            ["", "0", "-1", "+1", "1.5", "0%", "101%", "%", "5 %", "all", "=eu", "region= eu", "a=b=c"]
        {
            assert!(text.parse::<Stage>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_default_is_one_node_a_quarter_and_all_with_a_minute_between() {
        let Plan { stages, bake } = Plan::default();
        let stages: Vec<String> = stages.iter().map(Stage::to_string).collect();
        assert_eq!((&stages[..], bake.as_secs()), (&["1", "25%", "100%"].map(String::from)[..], 60));
    }
}
