use super::*;

use FailureClass as F;

fn chain(length: usize) -> Vec<Hop> {
    (0..length).map(|n| Hop { credential: Some([n as u8; 32]), context_window: None }).collect()
}

/// Walks a chain on which every attempt fails as told; returns the routes tried and the ending.
fn walked(hops: Vec<Hop>, failures: Vec<Failure>, hint: Option<Duration>) -> (Vec<usize>, Ending) {
    let now = Instant::now();
    let mut walk = Walk::new(hops, now);
    let (mut tried, mut failures) = (Vec::new(), failures.into_iter());
    while let Some(index) = walk.next_hop() {
        tried.push(index);
        walk.on_failure(index, failures.next().unwrap(), now);
    }
    (tried, walk.ending(hint))
}

fn failed(class: F) -> Failure {
    Failure { class, reason: Reason::Plain, status: None, is_untaken: false }
}

fn failures(classes: &[F]) -> Vec<Failure> {
    classes.iter().copied().map(failed).collect()
}

#[tokio::test]
async fn br_049_a_walk_tries_each_route_once_in_the_order_of_the_chain() {
    let (tried, _) = walked(chain(3), failures(&[F::RateLimited, F::Connect, F::Overloaded]), None);
    assert_eq!(tried, [0, 1, 2]);
}

#[tokio::test]
async fn br_039_a_bad_request_is_returned_at_once_with_its_own_status() {
    let failure = Failure { status: Some(422), ..failed(F::BadRequest) };
    let (tried, ending) = walked(chain(3), vec![failure], None);
    assert_eq!((tried, ending.status, ending.retry), (vec![0], 422, Retry::Unsaid));
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
        let (_, ending) = walked(chain(3), failures(classes), None);
        assert_eq!(ending.status, status, "{classes:?}");
        let is_rate_limited = classes.iter().all(|class| *class == F::RateLimited);
        let expected = if is_rate_limited { Retry::After(COOLDOWN_MIN) } else { Retry::Never };
        assert_eq!(ending.retry, expected, "{classes:?}");
    }
}

#[tokio::test]
async fn a_single_failure_may_be_retried_when_waiting_helps_and_never_above_a_minute() {
    let hour = Some(Duration::from_secs(3600));
    let (_, ending) = walked(chain(1), failures(&[F::Overloaded]), hour);
    assert_eq!(ending.retry, Retry::After(COOLDOWN_MAX));
    let (_, ending) = walked(chain(1), failures(&[F::Balance]), hour);
    assert_eq!((ending.code, ending.retry), (Code::NoAvailableChannel, Retry::Never));
}

#[tokio::test]
async fn a_request_that_exceeds_a_limit_by_itself_is_not_to_be_repeated() {
    let alone = Failure { reason: Reason::SingleRequest, ..failed(F::RateLimited) };
    for (failures, retry) in [
        (vec![alone], Retry::Never),
        (vec![alone, alone], Retry::Never),
        (vec![alone, failed(F::RateLimited)], Retry::After(COOLDOWN_MIN)),
    ] {
        let (_, ending) = walked(chain(failures.len()), failures, None);
        assert_eq!((ending.status, ending.retry), (429, retry));
    }
}

#[tokio::test]
async fn a_refused_credential_is_not_shown_again_in_the_same_request() {
    let mut hops = chain(3);
    hops[1].credential = hops[0].credential;
    let (tried, _) = walked(hops, failures(&[F::Credential, F::Overloaded]), None);
    assert_eq!(tried, [0, 2]);
}

#[tokio::test]
async fn a_timeout_moves_on_unless_the_request_is_five_minutes_old() {
    let start = Instant::now();
    for (age, moves_on) in [(240, true), (299, true), (300, false), (480, false)] {
        let mut walk = Walk::new(chain(2), start);
        let index = walk.next_hop().unwrap();
        walk.on_failure(index, failed(F::Timeout), start + Duration::from_secs(age));
        assert_eq!(walk.next_hop().is_some(), moves_on, "{age} s");
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_walks_only_to_a_larger_window() {
    let too_long = Failure { status: Some(400), reason: Reason::ContextLength, ..failed(F::BadRequest) };
    let window = |tokens| Hop { credential: None, context_window: tokens };
    let hops = vec![window(Some(8_000)), window(Some(8_000)), window(Some(128_000))];
    let (tried, ending) = walked(hops, vec![too_long, too_long], None);
    assert_eq!((tried, ending.status), (vec![0, 2], 400));
    let (tried, _) = walked(vec![window(None), window(Some(128_000))], vec![too_long], None);
    assert_eq!(tried, [0], "nothing says that the second is larger");
}

#[tokio::test]
async fn a_page_that_no_upstream_wrote_walks_on_and_its_status_is_kept_only_if_all_agree() {
    let page = |status| Failure { status: Some(status), reason: Reason::Unshaped, ..failed(F::BadRequest) };
    let (tried, ending) = walked(chain(2), vec![page(413), page(413)], None);
    assert_eq!((tried.len(), ending.status), (2, 413));
    let (_, ending) = walked(chain(2), vec![page(413), page(404)], None);
    assert_eq!((ending.status, ending.retry), (502, Retry::Never));
}
