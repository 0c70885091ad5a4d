//! What callers may ask for: which path is which operation, and what of it the path says. Pure.
//! A further operation is one more row of `rows`, or of `things` where it is about an id.

mod rows;
mod things;

use std::borrow::Cow;

use common::dialect::Dialect;
use http::{HeaderMap, Method};

use super::percent::{decoded, encoded};
use super::scan::Scanned;
use super::{Rules, anthropic_messages, gemini, openai_audio, openai_chat, query};

pub(crate) use rows::OPERATIONS;

/// One thing that a dialect can be asked for, the same on every channel that speaks it.
#[derive(Debug)]
pub struct Operation {
    /// Which chain of the model is walked.
    pub dialect: Dialect,
    /// How what comes back is judged, and errors are said.
    pub rules: &'static Rules,
    /// Where the request says which model it wants, and whether it wants a stream.
    pub input: Input,
    /// What an upstream must be able to do for it.
    pub ability: Ability,
    /// Where callers find it, behind the API's prefix; `{model}` stands for the model's name, `{id}` for an id.
    path: &'static str,
    /// Which prefixes callers may put in front, the usual one first.
    prefixes: &'static [&'static str],
    /// Appended to the `base_url` of a channel; `{model}` stands for the upstream's name of the model, `{id}` for the
    /// same id.
    upstream_path: &'static str,
}

/// What an upstream of a dialect may do without the rest of it: one that cannot count tokens, or a model that embeds
/// and generates nothing, is missing for that alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// What the dialect is there for.
    Answer,
    /// To count tokens.
    Count,
    /// To embed, where the dialect is there for something else.
    Embed,
    /// To change an image.
    Edit,
    /// To make variations of an image.
    Vary,
    /// To write down what is said.
    Transcribe,
    /// To write it down in English.
    Translate,
    /// To hand out what a job has made.
    Download,
}

impl Ability {
    /// How many there are.
    pub const COUNT: usize = Ability::Download as usize + 1;
}

/// Where the request says what it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// `model` and `stream` in a JSON body.
    Json,
    /// The same, and a body that names no model means this one.
    JsonOr(&'static str),
    /// As `Json`, of the Responses API, which may go on from what one channel has stored.
    Responses,
    /// As `Json`, of speech: what makes a stream of it has another name there.
    Speech,
    /// `model` and `stream` in a form, or as `Json` where the content type says so.
    Form,
    /// The same, and a JSON body that names no model means this one.
    FormOr(&'static str),
    /// An id in the path: the channel that made what it names is asked, and no other.
    Named(Verb),
    /// The model in the path; the path also says whether the answer is a stream.
    Path {
        /// Whether it is.
        streams: bool,
    },
}

/// What is done with what an id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `GET`; as a stream where the query says so.
    Read,
    /// `DELETE`
    Delete,
    /// `POST`, which may be done twice.
    Change,
    /// `POST`, which makes something new of it.
    Make,
}

/// What a path asks for.
#[derive(Debug)]
pub enum Asked<'a> {
    /// An operation, of the model or the id in the path where one stands there.
    Operation(&'static Operation, Option<Cow<'a, str>>),
    /// The list of models.
    Models,
    /// One entry of the list.
    Model(Cow<'a, str>),
    /// The list of models as Google has it.
    GoogleModels,
    /// One entry of that.
    GoogleModel(Cow<'a, str>),
    /// Something that there is, by another method: those that it takes.
    OtherMethod(Cow<'static, str>),
    /// Nothing that there is.
    Nothing,
    /// Something that this version does not do; the text says what.
    NotServed(&'static str),
}

/// Every operation, those on things with an id behind the others.
pub(crate) fn all() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter().chain(things::OPERATIONS)
}

/// Finds what a method and path ask for.
pub fn find<'a>(method: &Method, path: &'a str) -> Asked<'a> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if let Some(reason) = things::not_there(method, path) {
        return reason;
    }
    let mut takes: Vec<&str> = Vec::new();
    for operation in all() {
        let Some(named) = operation.matches(path) else { continue };
        if *method == operation.method() {
            return Asked::Operation(operation, named);
        }
        takes.push(operation.method_name());
    }
    if !takes.is_empty() {
        return Asked::OtherMethod(takes.join(", ").into());
    }
    let is_googles = path.starts_with("/v1beta/models");
    // What stands behind a colon is an operation there, and none that there is.
    let list = ["/v1/models", "/v1beta/openai/models", "/v1beta/models"]
        .into_iter()
        .filter(|_| !(is_googles && path.contains(':')))
        .find_map(|list| path.strip_prefix(list));
    match list {
        Some("") if method == Method::GET => {
            if is_googles {
                Asked::GoogleModels
            } else {
                Asked::Models
            }
        }
        Some(name) if name.starts_with('/') && name.len() > 1 && method == Method::GET => {
            let name = decoded(&name[1..]);
            if is_googles { Asked::GoogleModel(name) } else { Asked::Model(name) }
        }
        Some(name) if name.is_empty() || name.starts_with('/') => Asked::OtherMethod("GET".into()),
        _ => Asked::Nothing,
    }
}

/// Whether this version serves a dialect.
pub fn is_served(dialect: Dialect) -> bool {
    all().any(|operation| operation.dialect == dialect)
}

/// Whose error shape a path speaks, also where there is nothing. Where SDKs of several dialects come, their headers
/// tell them apart.
pub fn shape(path: &str, headers: &HeaderMap) -> &'static Rules {
    let is_below =
        |start| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_below("/v1/messages") || (is_below("/v1/models") && is_anthropics(headers)) {
        return &anthropic_messages::RULES;
    }
    let is_googles_own = is_below("/v1beta") && !is_below(rows::GOOGLE_OPENAI);
    let is_operation = || {
        let mut operations = OPERATIONS.iter().filter(|operation| operation.dialect == Dialect::Gemini);
        operations.any(|operation| operation.matches(path).is_some())
    };
    if is_googles_own || (is_below("/v1/models") && is_googles(headers)) || is_operation() {
        return &gemini::RULES;
    }
    &openai_chat::RULES
}

/// Whether an SDK of Google sent it.
pub fn is_googles(headers: &HeaderMap) -> bool {
    headers.contains_key("x-goog-api-client")
}

/// Whether an SDK of Anthropic sent it.
pub fn is_anthropics(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

impl Operation {
    /// Whether a stream says what it used only to those who ask.
    pub fn must_be_asked_for_usage(&self) -> bool {
        matches!(self.dialect, Dialect::OpenaiChat | Dialect::OpenaiCompletions)
    }

    /// Its usual path, with what it names left out.
    pub fn name(&self) -> String {
        format!("{}{}", self.prefixes.first().unwrap_or(&""), self.path)
    }

    /// By which method it is asked for, here and upstream.
    pub fn method(&self) -> Method {
        match self.input {
            Input::Named(Verb::Read) => Method::GET,
            Input::Named(Verb::Delete) => Method::DELETE,
            _ => Method::POST,
        }
    }

    fn method_name(&self) -> &'static str {
        match self.input {
            Input::Named(Verb::Read) => "GET",
            Input::Named(Verb::Delete) => "DELETE",
            _ => "POST",
        }
    }

    /// Whether it is about something that one channel made: nobody else is asked, and what that channel says of the
    /// thing is the answer.
    pub fn is_of_thing(&self) -> bool {
        matches!(self.input, Input::Named(_))
    }

    /// Whether it makes something that its channel keeps under an id.
    pub fn makes_thing(&self) -> bool {
        match self.input {
            Input::Named(verb) => verb == Verb::Make,
            _ => matches!(self.dialect, Dialect::OpenaiResponses | Dialect::OpenaiVideos),
        }
    }

    /// Whether it begins work that goes on, and costs, whatever becomes of the answer: it is sent again only where it
    /// is certain that nobody took it.
    pub fn is_submission(&self) -> bool {
        self.dialect == Dialect::OpenaiVideos && self.makes_thing()
    }

    /// Whether a stream was asked for in the query.
    pub fn streams(&self, query: Option<&str>) -> bool {
        self.is_of_thing() && query::values(query, &["stream"]).any(|value| value == "true")
    }

    /// What of a caller's query goes up; the text of a refusal where it asks for what is not done here.
    pub fn upward_query(&self, query: Option<&str>) -> Result<Option<String>, &'static str> {
        let names: &[&str] = match (self.dialect, self.input) {
            (Dialect::Gemini, Input::Path { streams: true }) => {
                &["alt", "$alt", "prettyPrint", "$prettyPrint"]
            }
            (Dialect::Gemini, _) => &["prettyPrint", "$prettyPrint"],
            (Dialect::AnthropicMessages, _) => &["beta"],
            (Dialect::OpenaiResponses, Input::Named(Verb::Read)) => &things::OF_RESPONSES,
            (Dialect::OpenaiVideos, Input::Named(Verb::Read)) => &["variant"],
            _ => &[],
        };
        // Each of them: which one counts is the upstream's matter.
        let mut alts = query::values(query, &["alt", "$alt"]);
        if self.dialect == Dialect::Gemini && alts.any(|alt| !matches!(alt.as_ref(), "" | "sse" | "json")) {
            return Err("the query parameter \"alt\" takes \"sse\" or \"json\"");
        }
        Ok(query::upward(query, names))
    }

    /// How an answer of this type is judged, and whether it may be a stream.
    pub fn reading(&self, asked: &Scanned, content_type: Option<&str>) -> (&'static Rules, bool) {
        match (self.dialect, self.input) {
            (Dialect::OpenaiAudio, Input::Speech) => openai_audio::speech(asked, content_type),
            (Dialect::OpenaiAudio, _) => openai_audio::transcript(asked, content_type),
            _ => (self.rules, asked.stream),
        }
    }

    /// Whether a stream may also come as one JSON array.
    pub fn takes_arrays(&self) -> bool {
        self.input == Input::Path { streams: true }
    }

    /// Whether callers may show their key in the query.
    pub fn takes_key_in_query(&self) -> bool {
        self.dialect == Dialect::Gemini
    }

    /// The path behind a channel's `base_url`. `id` is what the caller's path names.
    pub fn upstream_path(&self, upstream_model: &str, id: Option<&str>) -> Cow<'static, str> {
        match (self.place(self.upstream_path), id) {
            (None, _) => Cow::Borrowed(self.upstream_path),
            (Some((before, after)), Some(id)) if self.is_of_thing() => {
                Cow::Owned(format!("{before}{}{after}", encoded(id).replace('/', "%2F")))
            }
            (Some((before, after)), _) => Cow::Owned(format!("{before}{}{after}", encoded(upstream_model))),
        }
    }

    /// What stands before and behind the name in a path.
    fn place<'p>(&self, path: &'p str) -> Option<(&'p str, &'p str)> {
        path.split_once(if self.is_of_thing() { "{id}" } else { "{model}" })
    }

    /// The model or the id in the path where one stands there; `None` where the path is another one.
    fn matches<'a>(&self, path: &'a str) -> Option<Option<Cow<'a, str>>> {
        self.prefixes.iter().find_map(|prefix| {
            let rest = path.strip_prefix(prefix)?;
            match self.place(self.path) {
                None => (rest == self.path).then_some(None),
                Some((before, after)) => {
                    let name = rest.strip_prefix(before)?.strip_suffix(after)?;
                    // A model's name may have a slash in it, an id has none.
                    let is_none = name.is_empty() || (self.is_of_thing() && name.contains('/'));
                    (!is_none).then(|| Some(decoded(name)))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
