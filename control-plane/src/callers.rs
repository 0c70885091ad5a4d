//! What applications may ask the control plane, with the key that they call nodes with: what became of a request of
//! theirs, and what they used by day and model. Nothing of anybody else.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use common::day;
use common::money::Amount;
use common::pb::fleet as pb;
use common::snapshot::digest;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::error::Error;
use crate::grpc::auth::admin::shown;
use crate::page::api::refused;
use crate::plane::Plane;
use crate::records;
use crate::store::USAGE_KEPT;
use crate::store::rows::{UsageFilter, Used, UsedBy};

/// So many are answered at once: whoever shows no valid key asks the store as well.
const AT_ONCE: usize = 8;
const API_KEY: &str = "x-api-key";

#[derive(Clone)]
struct Callers {
    plane: Arc<Plane>,
    places: Arc<Semaphore>,
}

/// What applications may ask. Each request shows a client key, whatever the listener asks of others.
pub fn routes(plane: Arc<Plane>) -> Router {
    let callers = Callers { plane, places: Arc::new(Semaphore::new(AT_ONCE)) };
    Router::new().route("/v1/requests/{id}", get(request)).route("/v1/usage", get(usage)).with_state(callers)
}

/// A request as its caller sees it.
#[derive(Serialize)]
struct Shown {
    request_id: String,
    client_request_id: Option<String>,
    began_at_ms: u64,
    model: String,
    dialect: String,
    operation: String,
    stream: bool,
    revision: u64,
    /// Whose answer it was; the answer said so as well.
    channel: Option<String>,
    attempts: usize,
    outcome: String,
    status: u32,
    code: Option<String>,
    /// Until the answer began.
    first_byte_ms: Option<u64>,
    duration_ms: u64,
    usage: Option<UsageJson>,
    /// Exact; absent where it is not known.
    price_usd: Option<String>,
}

#[derive(Serialize)]
struct UsageJson {
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
    searches: u64,
    audio_ms: u64,
}

#[derive(Serialize)]
struct UsedJson {
    from: String,
    to: String,
    usage: Vec<Row>,
    total: Sum,
}

#[derive(Serialize)]
struct Row {
    day: String,
    model: String,
    #[serde(flatten)]
    sum: Sum,
}

#[derive(Serialize)]
struct Sum {
    requests: u64,
    served: u64,
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    searches: u64,
    audio_ms: u64,
    price_usd: String,
    /// Answers that are not in the price, as it is not known what they come to.
    unpriced: u64,
}

impl From<Used> for Sum {
    fn from(used: Used) -> Self {
        Sum {
            requests: used.requests,
            served: used.served,
            input_tokens: used.input,
            cached_input_tokens: used.cached_input,
            output_tokens: used.output,
            searches: used.searches,
            audio_ms: used.audio_ms,
            price_usd: Amount::from_pico(used.price).to_string(),
            unpriced: used.unpriced,
        }
    }
}

/// The query string of a question for use.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskUsage {
    /// The first day, UTC.
    from: Option<String>,
    /// The last day, UTC.
    to: Option<String>,
}

async fn request(State(callers): State<Callers>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    match callers.request(&headers, id).await {
        Ok(shown) => Json(shown).into_response(),
        Err(error) => refused(&error),
    }
}

async fn usage(
    State(callers): State<Callers>,
    headers: HeaderMap,
    ask: Result<Query<AskUsage>, QueryRejection>,
) -> Response {
    let ask = ask.map_err(|rejection| Error::Argument { field: "query", message: rejection.body_text() });
    let used = async { callers.usage(&headers, ask?.0).await };
    match used.await {
        Ok(used) => Json(used).into_response(),
        Err(error) => refused(&error),
    }
}

impl Callers {
    async fn request(&self, headers: &HeaderMap, id: String) -> Result<Shown, Error> {
        let _place = self.places.acquire().await.map_err(|_| Error::NotReady)?;
        let key = self.key(headers).await?;
        let none = || Error::NotFound { what: "request", name: id.clone() };
        // No id has a zero in it, and not every database takes one as text.
        if id.contains('\0') {
            return Err(none());
        }
        let found = self.plane.store.record(&id, Some(&key)).await?.ok_or_else(none)?;
        let price = found.price.map(Amount::from_pico);
        Ok(told(records::read(&found)?, price))
    }

    async fn usage(&self, headers: &HeaderMap, ask: AskUsage) -> Result<UsedJson, Error> {
        let _place = self.places.acquire().await.map_err(|_| Error::NotReady)?;
        let key = self.key(headers).await?;
        let read = |field, text: Option<String>| {
            let day = text.map(|text| day::parse(&text)).transpose();
            day.map_err(|message| Error::Argument { field, message })
        };
        let (first, last) = (read("from", ask.from)?, read("to", ask.to)?);
        let (first_day, last_day) = day::span(first, last, self.plane.clock.now_ms());
        let kept = u32::try_from(USAGE_KEPT.as_secs() / (24 * 60 * 60)).unwrap_or(u32::MAX);
        if first_day > last_day || last_day - first_day > kept {
            let message = format!("must lie at or before \"to\", and at most {kept} days before");
            return Err(Error::Argument { field: "from", message });
        }
        let key = Some(key);
        let filter =
            UsageFilter { first_day, last_day, key, by_day: true, by_model: true, ..UsageFilter::default() };
        let listed = self.plane.store.usage(&filter).await?;
        let mut total = Used::default();
        listed.iter().for_each(|(_, used)| total.add(used));
        let row = |(by, used): (UsedBy, Used)| Row {
            day: day::shown(by.day.unwrap_or(0)),
            model: by.model.unwrap_or_default(),
            sum: used.into(),
        };
        Ok(UsedJson {
            from: day::shown(first_day),
            to: day::shown(last_day),
            usage: listed.into_iter().map(row).collect(),
            total: total.into(),
        })
    }

    /// The id of the key that is shown, as bearer token or as Anthropic's SDK shows it.
    async fn key(&self, headers: &HeaderMap) -> Result<String, Error> {
        let ours = || headers.get(API_KEY).map(|key| key.as_bytes().to_vec());
        let secret = shown(headers).or_else(ours).ok_or(Error::Unauthenticated(
            "show the client key that nodes are called with: authorization: Bearer KEY, or x-api-key: KEY",
        ))?;
        let key = self.plane.store.valid_key(&digest(&secret)).await?;
        key.ok_or(Error::Unauthenticated("the client key is not valid here"))
    }
}

fn told(record: pb::Record, price: Option<Amount>) -> Shown {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let answering = records::cost::answering(&record).and_then(|attempt| {
        let hop = record.chain.get(attempt.hop as usize)?;
        Some(hop.channel.clone())
    });
    Shown {
        channel: answering,
        request_id: record.request_id,
        client_request_id: some(record.client_request_id),
        began_at_ms: record.began_at_ms,
        model: record.model,
        dialect: record.dialect,
        operation: record.operation,
        stream: record.is_stream,
        revision: record.revision,
        attempts: record.attempts.len(),
        outcome: record.outcome,
        status: record.status,
        code: some(record.code),
        first_byte_ms: record.committed_us.map(|us| us / 1000),
        duration_ms: record.ended_us / 1000,
        usage: record.usage.map(|usage| UsageJson {
            input_tokens: usage.input,
            cached_input_tokens: usage.cached_input,
            output_tokens: usage.output,
            reasoning_tokens: usage.reasoning,
            searches: usage.searches,
            audio_ms: usage.audio_ms,
        }),
        price_usd: price.map(|price| price.to_string()),
    }
}
