//! What comes in: the request body, read once into one buffer that every hop shares, within the
//! limit for one request and the limit for all together.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};

use common::code::Code;
use common::limits::{REQUEST_BODY_IDLE, REQUEST_BYTES_MAX, REQUEST_BYTES_PER_SECOND_MIN};

use crate::budget::Budget;

/// As many bytes of a body that nobody wants are taken in and forgotten. A connection that is closed in the
/// middle of them takes the answer with it: the caller sees a reset and never learns why.
const FORGOTTEN_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;
/// And for this long.
const FORGOTTEN_TIME_MAX: Duration = Duration::from_secs(30);

/// Reads a body. It counts against the budget as long as any slice of it is there, also in the hands of an
/// upstream's connection that answered before it had read all.
pub async fn read(headers: &HeaderMap, mut body: Incoming, budget: &Budget) -> Result<Bytes, Code> {
    let read = gather(headers, &mut body, budget).await;
    if let Err(Code::RequestTooLarge | Code::GatewayOverloaded) = read {
        forget(headers, body).await;
    }
    read
}

/// Takes in what a caller still sends of a request that is refused, so that it comes to read the answer.
pub async fn forget(headers: &HeaderMap, mut body: Incoming) {
    // Who asks before it sends is told no by the answer itself; to read on would tell it to begin.
    if headers.contains_key(header::EXPECT) {
        return;
    }
    let reading = async {
        let mut forgotten = 0;
        while let Some(Ok(frame)) = body.frame().await {
            forgotten += frame.data_ref().map_or(0, Bytes::len);
            if forgotten > FORGOTTEN_BYTES_MAX {
                break;
            }
        }
    };
    // Either way the answer goes out now.
    let _is_whole = timeout(FORGOTTEN_TIME_MAX, reading).await.is_ok();
}

async fn gather(headers: &HeaderMap, body: &mut Incoming, budget: &Budget) -> Result<Bytes, Code> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    if announced.is_some_and(|length| length > REQUEST_BYTES_MAX) {
        return Err(Code::RequestTooLarge);
    }
    let began = Instant::now();
    let mut share = budget.share();
    // What is announced is believed once it comes.
    let mut whole = BytesMut::new();
    loop {
        let deadline = (Instant::now() + REQUEST_BODY_IDLE).min(began + time_for(whole.len()));
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Code::RequestTimeout),
            Ok(None) => return Ok(share.hold(whole)),
            // The connection broke: nobody is left to read the answer.
            Ok(Some(Err(_))) => return Err(Code::Canceled),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let length = whole.len() + data.len();
        if length > REQUEST_BYTES_MAX {
            return Err(Code::RequestTooLarge);
        }
        if length > whole.capacity() {
            let room = room(length, announced);
            if !share.grow(room - whole.capacity()) {
                return Err(Code::GatewayOverloaded);
            }
            whole.reserve(room - whole.len());
        }
        whole.extend_from_slice(&data);
    }
}

/// How long a body may have taken of which so many bytes came: who trickles holds a connection and memory for nothing.
fn time_for(bytes: usize) -> Duration {
    REQUEST_BODY_IDLE + Duration::from_secs(bytes as u64 / REQUEST_BYTES_PER_SECOND_MIN)
}

/// How large the buffer becomes when `length` bytes have come. As much again, for what follows; but of what is
/// announced, no more than that.
fn room(length: usize, announced: Option<usize>) -> usize {
    let double = (2 * length).min(REQUEST_BYTES_MAX);
    announced.filter(|announced| *announced >= length).map_or(double, |announced| announced.min(double))
}

/// What a refusal for its size says.
pub fn too_large() -> String {
    format!("the request body is larger than the limit of {} MiB", REQUEST_BYTES_MAX / 1024 / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_with_what_came_and_never_beyond_what_was_announced() {
        for (length, announced, expected) in [
            (100, Some(100), 100),
            (100, Some(150), 150),
            (100, Some(REQUEST_BYTES_MAX), 200),
            (100, Some(50), 200),
            (100, None, 200),
            (REQUEST_BYTES_MAX - 1, None, REQUEST_BYTES_MAX),
        ] {
            assert_eq!(room(length, announced), expected, "{length} of {announced:?}");
        }
    }
}
