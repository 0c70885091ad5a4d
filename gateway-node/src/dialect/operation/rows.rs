//! The table of operations of models: which dialect each belongs to, how it is read, and where it is found.

use common::dialect::Dialect;

use super::super::{
    Rules, anthropic_messages, gemini, json_answer, openai_audio, openai_chat, openai_completions,
    openai_images, openai_responses,
};
use super::{Ability, Input, Operation};

pub(super) const OPENAI: &[&str] = &["/v1"];
/// Google has what speaks as OpenAI does under a prefix of its own.
pub(super) const OPENAI_AND_GOOGLE: &[&str] = &["/v1", GOOGLE_OPENAI];
pub(super) const GOOGLE_OPENAI: &str = "/v1beta/openai";
const GOOGLE: &[&str] = &["/v1beta", "/v1", ""];
const ANTHROPIC: &[&str] = &["/v1"];
const RERANK: &[&str] = &["/v1", "/v2"];

pub(crate) const OPERATIONS: &[Operation] = &[
    Operation {
        prefixes: OPENAI_AND_GOOGLE,
        ..json(Dialect::OpenaiChat, &openai_chat::RULES, "/chat/completions")
    },
    Operation {
        prefixes: ANTHROPIC,
        ..json(Dialect::AnthropicMessages, &anthropic_messages::RULES, "/messages")
    },
    Operation {
        prefixes: ANTHROPIC,
        ability: Ability::Count,
        ..json(Dialect::AnthropicMessages, &anthropic_messages::COUNT_TOKENS, "/messages/count_tokens")
    },
    google(&gemini::RULES, Ability::Answer, "/models/{model}:generateContent"),
    Operation {
        input: Input::Path { streams: true },
        ..google(&gemini::RULES, Ability::Answer, "/models/{model}:streamGenerateContent")
    },
    google(&gemini::EMBEDDINGS, Ability::Embed, "/models/{model}:embedContent"),
    google(&gemini::EMBEDDINGS, Ability::Embed, "/models/{model}:batchEmbedContents"),
    google(&gemini::COUNTS, Ability::Count, "/models/{model}:countTokens"),
    Operation {
        input: Input::Responses,
        ..json(Dialect::OpenaiResponses, &openai_responses::RULES, "/responses")
    },
    json(Dialect::OpenaiCompletions, &openai_completions::RULES, "/completions"),
    Operation {
        prefixes: OPENAI_AND_GOOGLE,
        ..json(Dialect::OpenaiEmbeddings, &json_answer::EMBEDDINGS, "/embeddings")
    },
    Operation {
        input: Input::JsonOr("omni-moderation-latest"),
        ..json(Dialect::OpenaiModerations, &json_answer::MODERATIONS, "/moderations")
    },
    Operation {
        prefixes: OPENAI_AND_GOOGLE,
        ..json(Dialect::OpenaiImages, &openai_images::RULES, "/images/generations")
    },
    form(Dialect::OpenaiImages, &openai_images::RULES, Ability::Edit, "/images/edits"),
    form(Dialect::OpenaiImages, &openai_images::RULES, Ability::Vary, "/images/variations"),
    Operation { input: Input::Speech, ..json(Dialect::OpenaiAudio, &openai_audio::SPEECH, "/audio/speech") },
    form(Dialect::OpenaiAudio, &openai_audio::TRANSCRIPTS, Ability::Transcribe, "/audio/transcriptions"),
    form(Dialect::OpenaiAudio, &openai_audio::TRANSCRIPTS, Ability::Translate, "/audio/translations"),
    Operation { prefixes: RERANK, ..json(Dialect::Rerank, &json_answer::RERANK, "/rerank") },
];

/// One that takes JSON, and is found upstream where callers find it.
const fn json(dialect: Dialect, rules: &'static Rules, path: &'static str) -> Operation {
    let (input, ability) = (Input::Json, Ability::Answer);
    Operation { dialect, rules, input, ability, path, prefixes: OPENAI, upstream_path: path }
}

const fn form(dialect: Dialect, rules: &'static Rules, ability: Ability, path: &'static str) -> Operation {
    Operation { input: Input::Form, ability, ..json(dialect, rules, path) }
}

const fn google(rules: &'static Rules, ability: Ability, path: &'static str) -> Operation {
    let input = Input::Path { streams: false };
    Operation { input, ability, prefixes: GOOGLE, ..json(Dialect::Gemini, rules, path) }
}
