use http::{HeaderName, HeaderValue};

use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    pairs.iter().map(pair).collect()
}

const MS: Duration = Duration::from_millis(1);

/// Sun, 06 Nov 1994 08:49:37 GMT
const NOW_MS: u64 = 784_111_777_000;

#[test]
fn a_hint_is_read_in_all_its_forms_and_junk_is_none() {
    for (pairs, hint) in [
        (&[("retry-after", "7")][..], Some(7000 * MS)),
        (&[("retry-after", "0")], Some(Duration::ZERO)),
        (&[("retry-after", "1.5")], Some(1500 * MS)),
        (&[("retry-after", " 20 ")], Some(20_000 * MS)),
        (&[("retry-after", "86400")], Some(86_400_000 * MS)),
        (&[("retry-after-ms", "50"), ("retry-after", "1")], Some(50 * MS)),
        (&[("retry-after-ms", "12.5")], Some(12_500_000 * Duration::from_nanos(1))),
        (&[("retry-after-ms", "soon"), ("retry-after", "1")], Some(1000 * MS)),
        (&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30_000 * MS)),
        (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(Duration::ZERO)),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "nan")], None),
        (&[("retry-after", "1e9")], None),
        (&[("retry-after", "99999999999999999999999999")], None),
        (&[("retry-after", "a while")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", ".")], None),
        (&[("retry-after", "Sun, 99 Nov 1994 08:00:00 GMT")], None),
        (&[("x-ratelimit-reset-requests", "1s")], None),
        (&[], None),
    ] {
        assert_eq!(retry_after(&headers(pairs), b"", NOW_MS), hint, "{pairs:?}");
    }
}

#[test]
fn googles_delay_is_read_from_the_body_where_no_header_has_one() {
    let body = |delay: &str| {
        let kind = "type.googleapis.com/google.rpc";
        format!(
            r#"{{"error":{{"code":429,"details":[{{"@type":"{kind}.Help"}},{{"@type":"{kind}.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
        )
    };
    let none = HeaderMap::new();
    assert_eq!(retry_after(&none, body("46s").as_bytes(), 0), Some(46_000 * MS));
    assert_eq!(retry_after(&none, body("0.5s").as_bytes(), 0), Some(500 * MS));
    assert_eq!(retry_after(&none, format!("[{}]", body("46s")).as_bytes(), 0), Some(46_000 * MS));
    assert_eq!(retry_after(&headers(&[("retry-after", "3")]), body("46s").as_bytes(), 0), Some(3000 * MS));
    for junk in ["46", "s", "-4s", "soon"] {
        assert_eq!(retry_after(&none, body(junk).as_bytes(), 0), None, "{junk}");
    }
    assert_eq!(retry_after(&none, b"retryDelay <html>", 0), None);
    assert_eq!(retry_after(&none, br#"{"error":"retryDelay"}"#, 0), None);
}

#[test]
fn a_limit_that_is_used_up_says_when_it_is_full_again() {
    for (pairs, hint) in [
        (&[("x-ratelimit-reset-requests", "120ms")][..], Some(120 * MS)),
        (&[("x-ratelimit-reset-requests", "6m0s")], Some(360_000 * MS)),
        (&[("x-ratelimit-reset-tokens", "1h2m3.5s")], Some(3_723_500 * MS)),
        (&[("x-ratelimit-reset-requests", "8s"), ("x-ratelimit-reset-tokens", "2s")], Some(2000 * MS)),
        (
            &[
                ("x-ratelimit-reset-requests", "8s"),
                ("x-ratelimit-reset-tokens", "2s"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-remaining-tokens", "700"),
            ],
            Some(8000 * MS),
        ),
        (&[("x-ratelimit-reset-requests", "8")], None),
        (&[("x-ratelimit-reset-requests", "1792000000")], None),
        (&[("x-ratelimit-reset-requests", "5 parsecs")], None),
        (&[("x-ratelimit-reset-requests", "s")], None),
        (&[("x-ratelimit-reset-requests", "")], None),
        (&[], None),
    ] {
        assert_eq!(reset(&headers(pairs)), hint, "{pairs:?}");
    }
}
