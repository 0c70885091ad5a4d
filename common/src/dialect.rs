//! The wire formats by name. What a dialect means is the node's matter.

use std::fmt;
use std::str::FromStr;

/// A wire format that callers and upstreams speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// `POST /v1/chat/completions`
    OpenaiChat,
    /// `POST /v1/completions`
    OpenaiCompletions,
    /// `POST /v1/responses`
    OpenaiResponses,
    /// `POST /v1/embeddings`
    OpenaiEmbeddings,
    /// `POST /v1/images/…`
    OpenaiImages,
    /// `POST /v1/audio/…`
    OpenaiAudio,
    /// `POST /v1/moderations`
    OpenaiModerations,
    /// `POST /v1/videos`
    OpenaiVideos,
    /// `POST /v1/rerank`
    Rerank,
    /// `POST /v1/messages`
    AnthropicMessages,
    /// `POST /v1beta/models/…:generateContent` and its kin
    Gemini,
}

impl Dialect {
    /// Every dialect that a catalog may name.
    pub const ALL: [Dialect; 11] = [
        Dialect::OpenaiChat,
        Dialect::OpenaiCompletions,
        Dialect::OpenaiResponses,
        Dialect::OpenaiEmbeddings,
        Dialect::OpenaiImages,
        Dialect::OpenaiAudio,
        Dialect::OpenaiModerations,
        Dialect::OpenaiVideos,
        Dialect::Rerank,
        Dialect::AnthropicMessages,
        Dialect::Gemini,
    ];

    /// Whether all that it can be asked for lies under one path.
    pub fn has_one_path(self) -> bool {
        match self {
            Dialect::OpenaiChat
            | Dialect::OpenaiCompletions
            | Dialect::OpenaiEmbeddings
            | Dialect::OpenaiModerations
            | Dialect::Rerank => true,
            Dialect::OpenaiResponses
            | Dialect::OpenaiImages
            | Dialect::OpenaiAudio
            | Dialect::OpenaiVideos
            | Dialect::AnthropicMessages
            | Dialect::Gemini => false,
        }
    }

    /// The name in catalogs, metrics and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai-chat",
            Dialect::OpenaiCompletions => "openai-completions",
            Dialect::OpenaiResponses => "openai-responses",
            Dialect::OpenaiEmbeddings => "openai-embeddings",
            Dialect::OpenaiImages => "openai-images",
            Dialect::OpenaiAudio => "openai-audio",
            Dialect::OpenaiModerations => "openai-moderations",
            Dialect::OpenaiVideos => "openai-videos",
            Dialect::Rerank => "rerank",
            Dialect::AnthropicMessages => "anthropic-messages",
            Dialect::Gemini => "gemini",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no dialect's.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no such dialect \"{0}\"")]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Dialect::ALL.into_iter().find(|d| d.as_str() == name).ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}
