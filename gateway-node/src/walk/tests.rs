use super::*;

use FailureClass as F;

fn chain(length: usize) -> Vec<Hop> {
    (0..length).map(|n| Hop { credential: Some([n as u8; 32]), context_window: None }).collect()
}

/// Walks a chain on which every attempt fails as told; returns the routes tried and the refusal.
fn walked(hops: Vec<Hop>, faults: Vec<Fault>, hint: Option<Duration>) -> (Vec<usize>, Refusal) {
    let now = Instant::now();
    let mut walk = Walk::new(hops, now);
    let (mut tried, mut faults) = (Vec::new(), faults.into_iter());
    while let Some(index) = walk.next_hop() {
        tried.push(index);
        walk.on_fault(index, faults.next().unwrap(), now);
    }
    (tried, walk.refusal(hint))
}

fn faults(classes: &[F]) -> Vec<Fault> {
    classes.iter().map(|class| Fault::of(*class)).collect()
}

#[tokio::test]
async fn br_049_a_walk_tries_each_route_once_in_the_order_of_the_chain() {
    let (tried, _) = walked(chain(3), faults(&[F::RateLimited, F::Connect, F::Overloaded]), None);
    assert_eq!(tried, [0, 1, 2]);
}

#[tokio::test]
async fn br_039_a_bad_request_is_returned_at_once_with_its_own_status() {
    let fault = Fault::of(F::BadRequest).with_status(422);
    let (tried, refusal) = walked(chain(3), vec![fault], None);
    assert_eq!((tried, refusal.status, refusal.retry), (vec![0], 422, Retry::Unsaid));
}

#[tokio::test]
async fn the_last_failure_that_is_not_the_operators_matter_decides_the_status() {
    let table: [(&[F], u16); 8] = [
        (&[F::Connect, F::Timeout, F::Overloaded], 503),
        (&[F::Overloaded, F::Timeout, F::Credential], 504),
        (&[F::UpstreamError, F::Misconfigured, F::Balance], 502),
        (&[F::Credential, F::Balance, F::Misconfigured], 503),
        (&[F::RateLimited, F::RateLimited, F::RateLimited], 429),
        (&[F::Timeout, F::Connect, F::RateLimited], 429),
        (&[F::Malformed, F::Empty, F::Transient], 503),
        (&[F::Connect, F::Connect, F::Empty], 502),
    ];
    for (classes, status) in table {
        let (_, refusal) = walked(chain(3), faults(classes), None);
        assert_eq!(refusal.status, status, "{classes:?}");
        let is_rate_limited = classes.iter().all(|class| *class == F::RateLimited);
        let expected = if is_rate_limited { Retry::After(COOLDOWN_MIN) } else { Retry::Never };
        assert_eq!(refusal.retry, expected, "{classes:?}");
    }
}

#[tokio::test]
async fn a_single_failure_may_be_retried_when_waiting_helps_and_never_above_a_minute() {
    let hour = Some(Duration::from_secs(3600));
    let (_, refusal) = walked(chain(1), faults(&[F::Overloaded]), hour);
    assert_eq!(refusal.retry, Retry::After(COOLDOWN_MAX));
    let (_, refusal) = walked(chain(1), faults(&[F::Balance]), hour);
    assert_eq!((refusal.code, refusal.retry), (Code::NoAvailableChannel, Retry::Never));
}

#[tokio::test]
async fn a_request_that_exceeds_a_limit_by_itself_is_not_to_be_repeated() {
    let alone = || Fault::of(F::RateLimited).with_reason(Reason::SingleRequest);
    for (faults, retry) in [
        (vec![alone()], Retry::Never),
        (vec![alone(), alone()], Retry::Never),
        (vec![alone(), Fault::of(F::RateLimited)], Retry::After(COOLDOWN_MIN)),
    ] {
        let (_, refusal) = walked(chain(faults.len()), faults, None);
        assert_eq!((refusal.status, refusal.retry), (429, retry));
    }
}

#[tokio::test]
async fn a_refused_credential_is_not_shown_again_in_the_same_request() {
    let mut hops = chain(3);
    hops[1].credential = hops[0].credential;
    let (tried, _) = walked(hops, faults(&[F::Credential, F::Overloaded]), None);
    assert_eq!(tried, [0, 2]);
}

#[tokio::test]
async fn a_timeout_moves_on_unless_the_request_is_five_minutes_old() {
    let start = Instant::now();
    for (age, moves_on) in [(240, true), (299, true), (300, false), (480, false)] {
        let mut walk = Walk::new(chain(2), start);
        let index = walk.next_hop().unwrap();
        walk.on_fault(index, Fault::of(F::Timeout), start + Duration::from_secs(age));
        assert_eq!(walk.next_hop().is_some(), moves_on, "{age} s");
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_walks_only_to_a_larger_window() {
    let too_long = || {
        let mut fault = Fault::of(F::BadRequest).with_status(400);
        fault.reason = Reason::ContextLength;
        fault
    };
    let window = |tokens| Hop { credential: None, context_window: tokens };
    let hops = vec![window(Some(8_000)), window(Some(8_000)), window(Some(128_000))];
    let (tried, refusal) = walked(hops, vec![too_long(), too_long()], None);
    assert_eq!((tried, refusal.status), (vec![0, 2], 400));
    let (tried, _) = walked(vec![window(None), window(Some(128_000))], vec![too_long()], None);
    assert_eq!(tried, [0], "nothing says that the second is larger");
}

#[tokio::test]
async fn a_request_that_is_too_long_has_the_code_that_applications_look_for() {
    for (upstream, shown) in [
        (Some("400"), "context_length_exceeded"),
        (None, "context_length_exceeded"),
        (Some("string_above_max_length"), "string_above_max_length"),
    ] {
        let detail = Detail::new("too long", Some("exceed_context_size_error"), upstream, None);
        let fault = Fault::of(F::BadRequest).with_status(400).with_reason(Reason::ContextLength);
        let (_, refusal) = walked(chain(1), vec![fault.with_detail(Some(detail))], None);
        assert_eq!(refusal.detail.and_then(|detail| detail.code).as_deref(), Some(shown), "{upstream:?}");
    }
    let plain = Detail::new("no such thing", None, Some("400"), None);
    let fault = Fault::of(F::BadRequest).with_status(400).with_detail(Some(plain.clone()));
    let (_, refusal) = walked(chain(1), vec![fault], None);
    assert_eq!(refusal.detail, Some(plain), "what is no matter of length is shown as it was said");
}

#[tokio::test]
async fn a_page_that_no_upstream_wrote_walks_on_and_its_status_is_kept_only_if_all_agree() {
    let page = |status| {
        let mut fault = Fault::of(F::BadRequest).with_status(status);
        fault.reason = Reason::Unshaped;
        fault
    };
    let (tried, refusal) = walked(chain(2), vec![page(413), page(413)], None);
    assert_eq!((tried.len(), refusal.status), (2, 413));
    let (_, refusal) = walked(chain(2), vec![page(413), page(404)], None);
    assert_eq!((refusal.status, refusal.retry), (502, Retry::Never));
}
