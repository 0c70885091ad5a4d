//! A raw HTTP caller: sends one request, records what comes back read by read, and counts outcomes
//! the way an honest application would.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use hyper::header::HeaderMap;
use tokio::time::Instant;

/// Connections that are not used are closed: below the delay of a node that drains, which closes those that are left.
const IDLE: Duration = Duration::from_secs(1);

/// Calls one node with one key. Never retries.
#[derive(Debug, Clone)]
pub struct Caller {
    client: reqwest::Client,
    base: String,
    key: String,
}

/// What a caller got.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// Each read of the body with the time since the request was sent.
    pub reads: Vec<(Duration, Bytes)>,
    /// Why the body broke off; `None` when it came to a clean end.
    pub broke: Option<String>,
}

/// What a request came to, as the caller sees it. The names are those of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A whole, good answer.
    Served,
    /// An error because the upstreams failed.
    Exhausted,
    /// A good beginning, then our error frame.
    Cut,
    /// A good beginning, then the connection broke: nobody said what became of it.
    Broken,
    /// An error that the request deserved.
    BadRequest,
    /// A refusal before any channel was asked.
    Refused,
}

impl Answer {
    /// The whole body.
    pub fn body(&self) -> Vec<u8> {
        self.reads.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body()).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_slice(&self.body())
            .with_context(|| format!("no JSON under {}: {}", self.status, self.text()))
    }

    /// A header as text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The `code` of an error answer.
    pub fn code(&self) -> String {
        let json = self.json().unwrap_or_default();
        json["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The id that the provider gave the answer.
    pub fn answer_id(&self) -> Option<String> {
        let text = self.text();
        let rest = text.split_once("\"id\": \"")?.1;
        Some(rest.split_once('"')?.0.to_owned())
    }

    /// What it came to.
    pub fn outcome(&self) -> Outcome {
        let has_error_frame = || self.text().contains("\"upstream_stream_error\"");
        match self.status {
            200 if has_error_frame() => Outcome::Cut,
            200 if self.broke.is_some() => Outcome::Broken,
            200 => Outcome::Served,
            401 | 402 | 404 | 405 | 413 => Outcome::Refused,
            400..=428 => Outcome::BadRequest,
            _ if self.code() == "no_config" => Outcome::Refused,
            _ => Outcome::Exhausted,
        }
    }
}

/// Counts of what callers saw, by model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// (model, outcome) → requests.
    pub seen: BTreeMap<(String, Outcome), u64>,
    /// Requests that were sent and never came to an end that the caller knows.
    pub unanswered: u64,
}

impl Tally {
    /// Adds one request.
    pub fn add(&mut self, model: &str, answer: &anyhow::Result<Answer>) {
        match answer {
            Ok(answer) if answer.outcome() != Outcome::Broken => {
                *self.seen.entry((model.to_owned(), answer.outcome())).or_default() += 1;
            }
            _ => self.unanswered += 1,
        }
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Tally) {
        for (key, count) in &other.seen {
            *self.seen.entry(key.clone()).or_default() += count;
        }
        self.unanswered += other.unanswered;
    }

    /// How often this was seen.
    pub fn of(&self, model: &str, outcome: Outcome) -> u64 {
        self.seen.get(&(model.to_owned(), outcome)).copied().unwrap_or_default()
    }

    /// Answers of every outcome.
    pub fn answered(&self) -> u64 {
        self.seen.values().sum()
    }
}

impl Caller {
    /// Calls the node at `address`; an empty key sends none.
    pub fn new(address: SocketAddr, key: &str) -> anyhow::Result<Self> {
        crate::fleet::init();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(IDLE)
            .build()?;
        Ok(Caller { client, base: format!("http://{address}"), key: key.to_owned() })
    }

    /// The same caller with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Caller { key: key.to_owned(), ..self.clone() }
    }

    /// Sends a chat request and reads the answer to its end.
    pub async fn chat(&self, model: &str, stream: bool) -> anyhow::Result<Answer> {
        self.post(chat_body(model, stream)).await
    }

    /// Sends this body to the chat endpoint and reads the answer to its end.
    pub async fn post(&self, body: impl Into<Bytes>) -> anyhow::Result<Answer> {
        let request = self.client.post(format!("{}/v1/chat/completions", self.base));
        self.send(request.header("content-type", "application/json").body(body.into())).await
    }

    /// Asks for the list of models.
    pub async fn models(&self) -> anyhow::Result<Answer> {
        self.send(self.client.get(format!("{}/v1/models", self.base))).await
    }

    /// Sends any request and reads the answer to its end.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let (mut answer, mut response, since) = self.begin(request).await?;
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => answer.reads.push((since.elapsed(), bytes)),
                Ok(None) => return Ok(answer),
                Err(error) => {
                    answer.broke = Some(format!("{error:?}"));
                    return Ok(answer);
                }
            }
        }
    }

    /// Sends a chat request, reads until `until` bytes came, and goes away.
    pub async fn chat_and_leave(&self, model: &str, stream: bool, until: usize) -> anyhow::Result<Answer> {
        let request = self.client.post(format!("{}/v1/chat/completions", self.base));
        let request = request.header("content-type", "application/json").body(chat_body(model, stream));
        let (mut answer, mut response, since) = self.begin(request).await?;
        let mut length = 0;
        while length < until
            && let Some(bytes) = response.chunk().await?
        {
            length += bytes.len();
            answer.reads.push((since.elapsed(), bytes));
        }
        Ok(answer)
    }

    /// A request to a path of this node, with the key.
    pub fn request(&self, method: &str, path: &str) -> anyhow::Result<reqwest::RequestBuilder> {
        Ok(self.client.request(method.parse()?, format!("{}{path}", self.base)))
    }

    async fn begin(
        &self,
        request: reqwest::RequestBuilder,
    ) -> anyhow::Result<(Answer, reqwest::Response, Instant)> {
        let request = if self.key.is_empty() { request } else { request.bearer_auth(&self.key) };
        let since = Instant::now();
        let response = request.send().await?;
        let answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            reads: vec![],
            broke: None,
        };
        Ok((answer, response, since))
    }
}

/// A small chat request. Its white space and its unknown field must reach the upstream as they are.
pub fn chat_body(model: &str, stream: bool) -> String {
    format!(
        "{{ \"model\": {},\n  \"messages\": [{{\"role\": \"user\", \"content\": \"grüß dich\"}}],\n  \
         \"x_unknown\": [1, 2.50],  \"stream\": {stream} }}",
        serde_json::json!(model),
    )
}
