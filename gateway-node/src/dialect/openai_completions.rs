//! Legacy completions: chunks and answers are those of chat, but for the text, which stands in the choice itself
//! and is there from the first chunk on. Chat's rules know it, since servers mix the two.

use super::{Rules, openai_chat};

/// The rules of the dialect.
pub const RULES: Rules = openai_chat::RULES;

#[cfg(test)]
mod tests;
