//! What goes back to the caller: headers of every answer, errors in the caller's dialect, and the
//! hint whether coming back helps. Nothing here is built from an upstream's words, save what it found
//! wrong in the request itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use serde_json::Value;
use uuid::Builder;

use common::code::Code;
use common::walk::Retry;

use crate::dialect::{ErrorBody, Rules};
use crate::relay::{BrokenOff, Relay};
use crate::table::Route;
use crate::upstream::headers::downward;
use crate::walk::Refusal;

/// Longest request id of a caller that is kept.
const CLIENT_REQUEST_ID_MAX: usize = 128;

/// A body on its way to a caller.
pub enum AnswerBody {
    /// Written at once.
    Whole(Full<Bytes>),
    /// Passed on as it comes.
    Relayed(Box<Relay>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            AnswerBody::Whole(whole) => Pin::new(whole).poll_frame(cx).map_err(|never| match never {}),
            AnswerBody::Relayed(relay) => Pin::new(&mut **relay).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Whole(whole) => whole.is_end_stream(),
            AnswerBody::Relayed(relay) => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(whole) => whole.size_hint(),
            AnswerBody::Relayed(relay) => relay.size_hint(),
        }
    }
}

/// What every answer to a request says in its headers.
#[derive(Debug, Clone)]
pub struct Head {
    /// Our id of the request.
    pub request_id: Arc<str>,
    /// Says errors in the caller's dialect.
    rules: &'static Rules,
    client_request_id: Option<HeaderValue>,
    revision: Option<u64>,
    attempts: usize,
    served_by: Option<(HeaderValue, Option<HeaderValue>)>,
}

impl Head {
    /// A request that came at `now_ms` with these headers, by a caller who reads errors as `rules` write them,
    /// and the revision that it uses.
    pub fn of(headers: &HeaderMap, rules: &'static Rules, revision: Option<u64>, now_ms: u64) -> Self {
        let id = headers.get("x-request-id").filter(|id| {
            let bytes = id.as_bytes();
            (1..=CLIENT_REQUEST_ID_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        });
        Head {
            request_id: request_id(now_ms),
            rules,
            client_request_id: id.cloned(),
            revision,
            attempts: 0,
            served_by: None,
        }
    }

    /// The caller's own id of it; empty without one.
    pub fn client_request_id(&self) -> &str {
        self.client_request_id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default()
    }

    /// One more route was asked; it is named until the next.
    pub fn tried(&mut self, route: &Route) {
        self.attempts += 1;
        let channel = HeaderValue::from_str(route.channel.id.as_str()).ok();
        let model = HeaderValue::from_str(&route.upstream_model).ok().filter(|model| !model.is_empty());
        self.served_by = channel.map(|channel| (channel, model));
    }

    fn write(&self, headers: &mut HeaderMap) {
        if let Ok(id) = HeaderValue::from_str(&self.request_id) {
            headers.insert("x-request-id", id.clone());
            headers.insert("request-id", id);
        }
        if let Some(id) = &self.client_request_id {
            headers.insert("x-client-request-id", id.clone());
        }
        if let Some(revision) = self.revision {
            headers.insert("x-sluice-revision", revision.into());
        }
        headers.insert("x-sluice-attempts", self.attempts.into());
        if let Some((channel, model)) = &self.served_by {
            headers.insert("x-sluice-channel", channel.clone());
            if let Some(model) = model {
                headers.insert("x-sluice-upstream-model", model.clone());
            }
        }
    }
}

/// A UUIDv7. Its random part is to be unique, not secret, so that it takes no call of the system.
fn request_id(now_ms: u64) -> Arc<str> {
    let mut random = [0; 10];
    fastrand::fill(&mut random);
    Builder::from_unix_timestamp_millis(now_ms, &random).into_uuid().to_string().into()
}

/// An answer of ours, whole.
pub fn json_answer(head: &Head, status: StatusCode, value: &Value) -> Response<AnswerBody> {
    bytes_answer(head, status, Bytes::from(value.to_string()))
}

fn bytes_answer(head: &Head, status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    let mut answer = Response::new(AnswerBody::Whole(Full::new(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.write(answer.headers_mut());
    answer
}

/// A refusal of our own, before any channel was asked.
pub fn refused(head: &Head, code: Code, message: &str) -> Response<AnswerBody> {
    let retry = match code {
        Code::NoConfig | Code::GatewayOverloaded | Code::ShuttingDown => Retry::After(Duration::from_secs(1)),
        _ => Retry::Unsaid,
    };
    let refusal = Refusal { code, status: code.status(), detail: None, retry };
    error(head, &refusal, message)
}

/// The refusal that a walk ended with.
pub fn exhausted(head: &Head, refusal: &Refusal) -> Response<AnswerBody> {
    error(head, refusal, refusal.code.text())
}

fn error(head: &Head, refusal: &Refusal, message: &str) -> Response<AnswerBody> {
    let detail = refusal.detail.as_ref();
    let body = (head.rules.error_body)(&ErrorBody {
        status: refusal.status,
        message: detail.map_or(message, |detail| &detail.message),
        kind: detail.and_then(|detail| detail.kind.as_deref()).unwrap_or(refusal.code.kind()),
        code: detail.and_then(|detail| detail.code.as_deref()).unwrap_or(refusal.code.as_str()),
        param: detail.and_then(|detail| detail.param.as_deref()),
        request_id: &head.request_id,
    });
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = bytes_answer(head, status, body);
    let headers = answer.headers_mut();
    match refusal.retry {
        Retry::Unsaid => {}
        Retry::Never => {
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        }
        Retry::After(after) => {
            // Rounded up, so that who obeys them does not come too early.
            headers.insert(header::RETRY_AFTER, number(after.as_nanos().div_ceil(1_000_000_000)));
            headers.insert("retry-after-ms", number(after.as_nanos().div_ceil(1_000_000)));
        }
    }
    answer
}

fn number(n: u128) -> HeaderValue {
    HeaderValue::from(u64::try_from(n).unwrap_or(u64::MAX))
}

/// The upstream's answer: its status, the headers that a caller may see, and ours.
pub fn committed(
    head: &Head,
    status: StatusCode,
    upstream: &HeaderMap,
    length: Option<u64>,
    body: AnswerBody,
) -> Response<AnswerBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    *answer.headers_mut() = downward(upstream);
    if let Some(length) = length {
        answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    head.write(answer.headers_mut());
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_rounded_up_so_that_nobody_comes_too_early() {
        let head = Head::of(&HeaderMap::new(), &crate::dialect::openai_chat::RULES, None, 0);
        for (micros, ms, seconds) in
            [(1_000_000, "1000", "1"), (1_000_001, "1001", "2"), (1_500_000, "1500", "2")]
        {
            let retry = Retry::After(Duration::from_micros(micros));
            let answer = exhausted(&head, &Refusal::of(Code::NoAvailableChannel, retry));
            assert_eq!(answer.headers()["retry-after-ms"], ms);
            assert_eq!(answer.headers()["retry-after"], seconds);
        }
    }
}
