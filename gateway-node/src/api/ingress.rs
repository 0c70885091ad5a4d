//! What comes in: the request body, read once into one buffer that every hop shares, within the
//! limit for one request and the limit for all together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use common::code::Code;
use common::limits::{REQUEST_BYTES_MAX, REQUEST_BYTES_TOTAL_MAX};

/// A caller that sends nothing of its body for this long is given up.
const BODY_IDLE: Duration = Duration::from_secs(30);
/// As many bytes of a body that nobody wants are taken in and forgotten. A connection that is closed in the
/// middle of them takes the answer with it: the caller sees a reset and never learns why.
const FORGOTTEN_BYTES_MAX: usize = 4 * REQUEST_BYTES_MAX;
/// And for this long.
const FORGOTTEN_TIME_MAX: Duration = Duration::from_secs(30);

/// The bytes of all request bodies that are held.
#[derive(Debug, Clone, Default)]
pub struct BodyBudget(Arc<AtomicUsize>);

/// A share of the budget, given back when dropped.
#[derive(Debug)]
pub struct BodyHold {
    budget: BodyBudget,
    bytes: usize,
}

impl BodyBudget {
    fn hold(&self) -> BodyHold {
        BodyHold { budget: self.clone(), bytes: 0 }
    }
}

impl BodyHold {
    fn grow(&mut self, bytes: usize) -> Result<(), Code> {
        let before = self.budget.0.fetch_add(bytes, Ordering::AcqRel);
        self.bytes += bytes;
        if before + bytes > REQUEST_BYTES_TOTAL_MAX { Err(Code::GatewayOverloaded) } else { Ok(()) }
    }
}

impl Drop for BodyHold {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A body and its share of the budget, given back with the last slice of it.
struct Held {
    bytes: BytesMut,
    _share: BodyHold,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body. It counts against the budget as long as any slice of it is there, also in the hands of an
/// upstream's connection that answered before it had read all.
pub async fn read(headers: &HeaderMap, mut body: Incoming, budget: &BodyBudget) -> Result<Bytes, Code> {
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

async fn gather(headers: &HeaderMap, body: &mut Incoming, budget: &BodyBudget) -> Result<Bytes, Code> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<usize>().ok());
    if announced.is_some_and(|length| length > REQUEST_BYTES_MAX) {
        return Err(Code::RequestTooLarge);
    }
    let mut hold = budget.hold();
    // What is announced is believed once it comes.
    let mut whole = BytesMut::new();
    loop {
        let frame = match timeout(BODY_IDLE, body.frame()).await {
            Err(_) => return Err(Code::RequestTimeout),
            Ok(None) => return Ok(Bytes::from_owner(Held { bytes: whole, _share: hold })),
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
            hold.grow(room - whole.capacity())?;
            whole.reserve(room - whole.len());
        }
        whole.extend_from_slice(&data);
    }
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

    #[test]
    fn a_body_holds_its_share_of_the_budget_until_the_last_slice_of_it_is_gone() {
        let budget = BodyBudget::default();
        let mut hold = budget.hold();
        hold.grow(REQUEST_BYTES_TOTAL_MAX).unwrap();
        let body = Bytes::from_owner(Held { bytes: BytesMut::from("{}"), _share: hold });
        let slice = body.slice(1..);
        drop(body);
        assert_eq!(budget.hold().grow(1), Err(Code::GatewayOverloaded));
        drop(slice);
        assert_eq!(budget.hold().grow(1), Ok(()));
    }

    #[test]
    fn the_sum_of_all_bodies_is_bounded_and_given_back() {
        let budget = BodyBudget::default();
        let mut first = budget.hold();
        assert_eq!(first.grow(REQUEST_BYTES_TOTAL_MAX), Ok(()));
        let mut second = budget.hold();
        assert_eq!(second.grow(1), Err(Code::GatewayOverloaded));
        drop(second);
        drop(first);
        assert_eq!(budget.hold().grow(REQUEST_BYTES_TOTAL_MAX), Ok(()));
    }
}
