//! An answer as a caller reads it.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::time::Instant;

/// An answer whose headers have come.
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// From sending to the headers.
    pub after: Duration,
    pub began: Instant,
    pub(super) body: hyper::body::Incoming,
    pub(super) _driver: tokio::task::JoinSet<()>,
    pub(super) _sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
}

impl Answered {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The next piece of the body; `Err` when the connection was aborted.
    pub async fn next(&mut self) -> Option<Result<String, hyper::Error>> {
        let frame = self.body.frame().await?;
        Some(frame.map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()))
    }

    /// The whole body as it is, and whether it came to its end.
    pub async fn bytes(mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        while let Some(frame) = self.body.frame().await {
            let Ok(frame) = frame else { return (bytes, false) };
            bytes.extend_from_slice(&frame.into_data().unwrap());
        }
        (bytes, true)
    }

    /// The whole body and when it ended, from the start of the request.
    pub async fn text(mut self) -> (String, Duration) {
        let mut text = String::new();
        while let Some(piece) = self.next().await {
            text += &piece.unwrap();
        }
        (text, self.began.elapsed())
    }

    pub async fn code(self) -> (StatusCode, String) {
        let status = self.status;
        let (text, _) = self.text().await;
        let body: serde_json::Value = serde_json::from_str(&text).unwrap();
        (status, body["error"]["code"].as_str().unwrap().to_owned())
    }
}
