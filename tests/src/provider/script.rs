//! What a simulated provider does with a call: the scripts, their names, and the bytes that each
//! one sends. Pure: `provider` carries the plan out. What a wire format looks like is in the file of its name.

mod azure;
mod chat;
mod gemini;
mod media;
mod messages;
pub(super) mod openai;
#[cfg(test)]
mod tests;
mod wanted;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
pub use wanted::Wanted;

pub(crate) use media::file;

/// What a provider does with calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// A good answer, streamed or whole as asked.
    Healthy,
    /// A good answer whose deltas come one by one.
    Slow {
        /// How many deltas.
        deltas: u32,
        /// The pause before each of them.
        every: Duration,
    },
    /// An HTTP error in the shape of the dialect.
    Status(u16),
    /// 429, with or without `Retry-After` in seconds.
    RateLimited(Option<u32>),
    /// Nobody listens.
    Refuse,
    /// The connection is reset once the request was read.
    Reset,
    /// No response headers, ever.
    Hang,
    /// An error frame first, under a 200; of a whole answer an error body.
    ErrorFirst,
    /// The same after a role-only chunk.
    ErrorAfterRole,
    /// What comes first in a stream and proves nothing, then the connection closes; half of a whole answer.
    CutFirst,
    /// A web page under a 200.
    Html,
    /// A 200 with nothing in it.
    Empty,
    /// Two deltas, then the connection closes without an end of the body.
    Cut,
    /// Two deltas, then a TCP reset.
    CutByReset,
    /// Two deltas, then a clean end without a finish.
    NoFinish,
    /// Two deltas, then silence.
    Stall,
    /// These bytes under a 200, in these reads, then a clean end.
    Raw {
        /// The content type of the answer.
        content_type: &'static str,
        /// The reads.
        chunks: Vec<Bytes>,
    },
}

impl Script {
    /// Every script that has a name without parameters, as `provider` and the demo take them.
    pub const NAMES: [&'static str; 16] = [
        "healthy",
        "slow",
        "503",
        "429",
        "refuse",
        "reset",
        "hang",
        "error-first",
        "error-after-role",
        "cut-first",
        "html",
        "empty",
        "cut",
        "cut-by-reset",
        "no-finish",
        "stall",
    ];
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Script::Healthy => f.write_str("healthy"),
            Script::Slow { deltas, every } => write!(f, "slow:{deltas}:{}ms", every.as_millis()),
            Script::Status(status) => write!(f, "{status}"),
            Script::RateLimited(None) => f.write_str("429"),
            Script::RateLimited(Some(after)) => write!(f, "429:{after}"),
            Script::Refuse => f.write_str("refuse"),
            Script::Reset => f.write_str("reset"),
            Script::Hang => f.write_str("hang"),
            Script::ErrorFirst => f.write_str("error-first"),
            Script::ErrorAfterRole => f.write_str("error-after-role"),
            Script::CutFirst => f.write_str("cut-first"),
            Script::Html => f.write_str("html"),
            Script::Empty => f.write_str("empty"),
            Script::Cut => f.write_str("cut"),
            Script::CutByReset => f.write_str("cut-by-reset"),
            Script::NoFinish => f.write_str("no-finish"),
            Script::Stall => f.write_str("stall"),
            Script::Raw { .. } => f.write_str("raw"),
        }
    }
}

impl FromStr for Script {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let (word, rest) = name.split_once(':').map_or((name, None), |(word, rest)| (word, Some(rest)));
        let script = match (word, rest) {
            ("healthy", None) => Script::Healthy,
            ("slow", None) => Script::Slow { deltas: 20, every: Duration::from_millis(100) },
            ("slow", Some(rest)) => {
                let (deltas, every) = rest.split_once(':').unwrap_or((rest, "100ms"));
                let every = Duration::from_millis(every.trim_end_matches("ms").parse()?);
                Script::Slow { deltas: deltas.parse()?, every }
            }
            ("429", None) => Script::RateLimited(None),
            ("429", Some(after)) => Script::RateLimited(Some(after.parse()?)),
            ("refuse", None) => Script::Refuse,
            ("reset", None) => Script::Reset,
            ("hang", None) => Script::Hang,
            ("error-first", None) => Script::ErrorFirst,
            ("error-after-role", None) => Script::ErrorAfterRole,
            ("cut-first", None) => Script::CutFirst,
            ("html", None) => Script::Html,
            ("empty", None) => Script::Empty,
            ("cut", None) => Script::Cut,
            ("cut-by-reset", None) => Script::CutByReset,
            ("no-finish", None) => Script::NoFinish,
            ("stall", None) => Script::Stall,
            (status, None) => match status.parse() {
                Ok(status @ 300..=599) => Script::Status(status),
                _ => anyhow::bail!("no such script {name:?}; there are {}", Script::NAMES.join(", ")),
            },
            _ => anyhow::bail!("{word} takes no parameter"),
        };
        Ok(script)
    }
}

/// The model that a call asks for, whether it wants a stream, and of what; from where its wire format says so.
pub fn read_call(path: &str, body: &[u8]) -> (String, bool, Wanted) {
    let fields = media::form(body).unwrap_or_else(|| serde_json::from_slice(body).unwrap_or_default());
    let wanted = Wanted::of(&fields);
    if let Some((model, stream)) = gemini::read_path(path) {
        return (model.to_owned(), stream, wanted);
    }
    let stream =
        fields["stream"].as_bool().unwrap_or(fields["stream"] == "true") || fields["stream_format"] == "sse";
    let named = azure::deployment(path).map(|(deployment, _)| deployment);
    (named.or_else(|| fields["model"].as_str()).unwrap_or_default().to_owned(), stream, wanted)
}

/// What is known of a call when it is answered.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Who answers; its name is in every text.
    pub provider: String,
    /// Number of the call, from 1; part of the answer's id.
    pub number: u64,
    /// The path that was asked for: it decides what the answer looks like.
    pub path: String,
    /// The upstream's name for the model.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// What a good answer is made of.
    pub wanted: Wanted,
}

impl Asked {
    /// The id of the answer.
    pub fn answer_id(&self) -> String {
        answer_id(&self.path, &self.provider, self.number)
    }
}

/// What the scripts send in one wire format.
struct Wire {
    /// What its answers' ids begin with.
    id: &'static str,
    /// What comes first in a stream and proves nothing.
    preamble: fn(&Asked) -> String,
    /// A piece of the text.
    delta: fn(&Asked, &str) -> String,
    /// Everything behind the last piece.
    finish: fn(&Asked) -> String,
    /// An error inside a stream.
    error_frame: fn() -> String,
    /// The whole answer.
    whole: fn(&Asked, &str) -> Bytes,
    /// An error body, under a status or under a 200.
    error_body: fn(u16) -> String,
}

impl Wire {
    fn of(path: &str) -> &'static Wire {
        match path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/messages/count_tokens") => &messages::COUNT,
            path if path.ends_with(":countTokens") => &gemini::COUNT,
            path if path.ends_with(":embedContent") || path.ends_with(":batchEmbedContents") => {
                &gemini::EMBED
            }
            path if gemini::read_path(path).is_some() => &gemini::WIRE,
            path if path.ends_with("/messages") => &messages::WIRE,
            path if path.ends_with("/chat/completions") && azure::is_azures(path) => &azure::WIRE,
            path if path.ends_with("/chat/completions") => &chat::WIRE,
            path if path.ends_with("/completions") => &openai::COMPLETIONS,
            path if path.ends_with("/responses") => &openai::RESPONSES,
            path if path.ends_with("/videos") || path.ends_with("/remix") => &openai::VIDEOS,
            path if path.ends_with("/images/generations") => &openai::IMAGES,
            path if path.ends_with("/images/edits") => &media::EDITS,
            path if path.ends_with("/images/variations") => &openai::IMAGES,
            path if path.ends_with("/audio/speech") => &media::SPEECH,
            path if path.ends_with("/audio/transcriptions") => &media::TRANSCRIPTS,
            path if path.ends_with("/audio/translations") => &media::TRANSCRIPTS,
            path if path.ends_with("/embeddings") => &openai::EMBEDDINGS,
            path if path.ends_with("/moderations") => &openai::MODERATIONS,
            path if path.ends_with("/rerank") => &openai::RERANK,
            _ => &chat::WIRE,
        }
    }
}

/// How a call is answered.
#[derive(Debug)]
pub enum Plan {
    /// The connection is reset.
    Reset,
    /// Nothing happens until the caller goes away.
    Hang,
    /// A response.
    Answer {
        /// Its status.
        status: u16,
        /// Its headers.
        headers: Vec<(&'static str, String)>,
        /// Its body.
        steps: Vec<Step>,
    },
}

/// A step of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Bytes; what came before them is flushed first when a pause stands between.
    Send(Bytes),
    /// A pause.
    Wait(Duration),
    /// Silence until the caller goes away.
    Stall,
    /// The connection closes before the end of the body.
    Close,
    /// The same by a TCP reset.
    Abort,
}

/// Long enough for what was sent to leave the process before the next step.
const FLUSH: Duration = Duration::from_millis(30);

impl Script {
    /// The answer to a call.
    pub fn plan(&self, asked: &Asked) -> Plan {
        let wire = Wire::of(&asked.path);
        if let Some(refusal) = azure::refusal(&asked.path) {
            return refusal;
        }
        match self {
            Script::Refuse | Script::Reset => Plan::Reset,
            Script::Hang => Plan::Hang,
            Script::Status(status) => error(wire, *status, None),
            Script::RateLimited(after) => error(wire, 429, *after),
            Script::Html => {
                answer("text/html; charset=utf-8", vec![send("<html><body>Just a moment…</body></html>")])
            }
            Script::Empty => answer(media_type(asked), vec![]),
            Script::Raw { content_type, chunks } => {
                let mut steps = Vec::new();
                for chunk in chunks {
                    steps.extend([Step::Send(chunk.clone()), Step::Wait(FLUSH)]);
                }
                answer(content_type, steps)
            }
            Script::ErrorFirst if asked.stream => answer(SSE, vec![send((wire.error_frame)())]),
            Script::ErrorAfterRole if asked.stream => {
                let frames = [(wire.preamble)(asked), (wire.error_frame)()].map(send);
                let [preamble, error] = frames;
                answer(SSE, vec![preamble, Step::Wait(FLUSH), error])
            }
            Script::ErrorFirst | Script::ErrorAfterRole => answer(JSON, vec![send((wire.error_body)(502))]),
            _ if asked.stream => answer(SSE, self.stream_steps(wire, asked)),
            _ => answer(media_type(asked), self.whole_steps(wire, asked)),
        }
    }

    fn stream_steps(&self, wire: &Wire, asked: &Asked) -> Vec<Step> {
        // Google sends no comments, and its Python SDK cannot read them.
        let welcome = if gemini::read_path(&asked.path).is_some() { "" } else { ": welcome\n\n" };
        let mut steps = vec![send(welcome), send((wire.preamble)(asked))];
        let (deltas, pause) = match self {
            Script::Slow { deltas, every } => (*deltas, Some(*every)),
            Script::Healthy => (WORDS, None),
            _ => (2, None),
        };
        if *self == Script::CutFirst {
            steps.extend([Step::Wait(FLUSH), Step::Close]);
            return steps;
        }
        if matches!(self, Script::Healthy | Script::Slow { .. })
            && let Some(call) = wanted::call_frames(asked, &pieces(asked, deltas))
        {
            steps.extend(call.into_iter().map(send));
            return steps;
        }
        for piece in pieces(asked, deltas) {
            steps.extend(pause.map(Step::Wait));
            steps.push(send((wire.delta)(asked, &piece)));
        }
        match self {
            Script::Healthy | Script::Slow { .. } => steps.push(send((wire.finish)(asked))),
            Script::Cut => steps.extend([Step::Wait(FLUSH), Step::Close]),
            Script::CutByReset => steps.extend([Step::Wait(FLUSH), Step::Abort]),
            Script::Stall => steps.push(Step::Stall),
            _ => {}
        }
        steps
    }

    fn whole_steps(&self, wire: &Wire, asked: &Asked) -> Vec<Step> {
        let content = text(asked, WORDS);
        let body = wanted::whole_call(asked, &content).unwrap_or_else(|| (wire.whole)(asked, &content));
        let half = body.slice(..body.len() / 2);
        match self {
            Script::Slow { deltas, every } => {
                let body = (wire.whole)(asked, &text(asked, *deltas));
                vec![Step::Wait(*every * *deltas), Step::Send(body)]
            }
            Script::Cut | Script::CutFirst => vec![Step::Send(half), Step::Wait(FLUSH), Step::Close],
            Script::CutByReset => vec![Step::Send(half), Step::Wait(FLUSH), Step::Abort],
            Script::NoFinish => vec![Step::Send(half)],
            Script::Stall => vec![Step::Send(half), Step::Stall],
            _ => vec![Step::Send(body)],
        }
    }
}

/// Words of a healthy answer.
const WORDS: u32 = 6;
const SSE: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

/// The text of the good answer to a call: it names the provider and the call.
pub fn text(asked: &Asked, words: u32) -> String {
    pieces(asked, words).concat()
}

/// The same, piece by piece: in a member of an object where one was asked for.
fn pieces(asked: &Asked, words: u32) -> Vec<String> {
    let mut pieces: Vec<String> = (0..words).map(|word| word_at(asked, word)).collect();
    if let (Some(member), Some(first)) = (asked.wanted.member(), pieces.first_mut()) {
        *first = format!("{{\"{member}\": \"{first}");
        pieces.push("\"}".to_owned());
    }
    pieces
}

/// The text of a healthy answer.
pub fn healthy_text(asked: &Asked) -> String {
    text(asked, WORDS)
}

/// The id of the answer to a call of this path.
pub fn answer_id(path: &str, provider: &str, number: u64) -> String {
    format!("{}-{provider}-{number}", Wire::of(path).id)
}

fn word_at(asked: &Asked, word: u32) -> String {
    match word {
        0 => format!("{} answers", asked.provider),
        1 => format!(" call {}", asked.number),
        word if word % 2 == 0 => format!(" größe-{word}"),
        word => format!(" 流れ{word}"),
    }
}

fn media_type(asked: &Asked) -> &'static str {
    match asked.path.ends_with("/audio/speech") {
        _ if asked.stream => SSE,
        true => "audio/mpeg",
        false => JSON,
    }
}

fn send(bytes: impl Into<Bytes>) -> Step {
    Step::Send(bytes.into())
}

fn answer(content_type: &str, steps: Vec<Step>) -> Plan {
    let headers = vec![
        ("content-type", content_type.to_owned()),
        ("x-request-id", "req_upstream".to_owned()),
        ("openai-organization", "org-of-the-operator".to_owned()),
        ("anthropic-organization-id", "org-of-the-operator".to_owned()),
        ("x-ratelimit-remaining-requests", "7".to_owned()),
        ("set-cookie", "session=upstream".to_owned()),
    ];
    Plan::Answer { status: 200, headers, steps }
}

fn error(wire: &Wire, status: u16, retry_after: Option<u32>) -> Plan {
    let mut headers = vec![("content-type", JSON.to_owned()), ("x-should-retry", "true".to_owned())];
    headers.extend(retry_after.map(|after| ("retry-after", after.to_string())));
    Plan::Answer { status, headers, steps: vec![send((wire.error_body)(status))] }
}
