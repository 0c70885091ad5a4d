//! What goes up, what comes back, and what never does. Pure.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers of a connection, not of a message (RFC 9110 section 7.6.1), and those that this hop writes anew.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
];

/// A caller's, and no upstream's business: credentials, cookies, where it called from, and what it asked of us. Also
/// what turns a good request into one that must fail or an answer into half of one: what a caller asks for by a
/// header must not look like a channel's failure.
const NEVER_UP: &[&str] = &[
    "host",
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-goog-user-project",
    "cookie",
    "accept-encoding",
    "expect",
    "forwarded",
    "via",
    "x-real-ip",
    "x-request-id",
    "x-client-request-id",
    "openai-organization",
    "openai-project",
    "origin",
    "referer",
    "anthropic-dangerous-direct-browser-access",
    "content-encoding",
    "x-server-timeout",
    "x-goog-fieldmask",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "range",
    "if-range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];
const NEVER_UP_PREFIXES: &[&str] = &["x-sluice-", "x-forwarded-", "x-envoy-", "sec-", "access-control-"];

/// The operator's account at the upstream, the upstream's edge, and what we say ourselves; also that a part of the answer
/// may be asked for, which does not go up.
const NEVER_DOWN: &[&str] = &[
    "accept-ranges",
    "set-cookie",
    "set-cookie2",
    "x-should-retry",
    "openai-project",
    "server",
    "via",
    "alt-svc",
    "nel",
    "report-to",
    "strict-transport-security",
    "www-authenticate",
    "x-request-id",
    "request-id",
    "x-client-request-id",
    "date",
    "x-ms-region",
    "x-ms-deployment-name",
];
const NEVER_DOWN_PREFIXES: &[&str] =
    &["x-sluice-", "anthropic-", "cf-", "access-control-", "x-litellm-", "llm_provider-"];
/// Every vendor writes its limits and its organisations with a prefix of its own.
const NEVER_DOWN_PARTS: &[&str] = &["ratelimit", "rate-limit", "retry-after", "organization"];

fn is_named(name: &HeaderName, names: &[&str], prefixes: &[&str]) -> bool {
    let name = name.as_str();
    names.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn is_listed_in_connection(name: &HeaderName, headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|listed| listed.trim().eq_ignore_ascii_case(name.as_str()))
}

fn filtered(from: &HeaderMap, is_private: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(from.len() + 8);
    for (name, value) in from {
        let is_dropped = is_named(name, HOP_BY_HOP, &[])
            || is_private(name)
            || (from.contains_key(header::CONNECTION) && is_listed_in_connection(name, from));
        if !is_dropped {
            to.append(name.clone(), value.clone());
        }
    }
    to
}

/// The headers of the upstream request: the caller's without what is the caller's alone, what the
/// dialect wants besides, the channel's own, and its credential. A caller's credential never passes,
/// whatever the channel has.
pub fn upward(
    caller: &HeaderMap,
    defaults: &[(&'static str, &'static str)],
    channel: &HeaderMap,
    credential: Option<(HeaderName, HeaderValue)>,
) -> HeaderMap {
    let mut headers = filtered(caller, |name| is_named(name, NEVER_UP, NEVER_UP_PREFIXES));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in defaults {
        headers.entry(*name).or_insert(HeaderValue::from_static(value));
    }
    for (name, value) in channel {
        headers.insert(name.clone(), value.clone());
    }
    if let Some((name, value)) = credential {
        headers.insert(name, value);
    }
    headers
}

/// The headers of the upstream's answer that the caller may see.
pub fn downward(upstream: &HeaderMap) -> HeaderMap {
    filtered(upstream, |name| {
        is_named(name, NEVER_DOWN, NEVER_DOWN_PREFIXES)
            || NEVER_DOWN_PARTS.iter().any(|part| name.as_str().contains(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn br_114_a_callers_credential_never_goes_up_even_when_the_channel_has_none() {
        let caller = headers(&[
            ("authorization", "Bearer sk-caller"),
            ("x-api-key", "sk-caller"),
            ("api-key", "sk-caller"),
            ("cookie", "session=1"),
            ("user-agent", "app"),
            ("x-sluice-gate", "complete"),
            ("x-forwarded-for", "10.0.0.1"),
            // Google fails with a 500 when the time is short, and leaves the answer out behind a mask.
            ("x-server-timeout", "1"),
            ("x-goog-fieldmask", "usageMetadata"),
            ("x-http-method-override", "GET"),
            ("x-envoy-upstream-rq-timeout-ms", "1"),
            ("range", "bytes=0-9"),
            // Anthropic refuses the key of who seems to be a page in a browser.
            ("origin", "https://app.example"),
            ("referer", "https://app.example/chat"),
            ("sec-fetch-mode", "cors"),
            // The body was read as it is: it is in no encoding.
            ("content-encoding", "gzip"),
            ("if-none-match", "*"),
        ]);
        let up = upward(&caller, &[], &HeaderMap::new(), None);
        assert_eq!(up, headers(&[("user-agent", "app"), ("accept-encoding", "identity")]));
        let up = upward(
            &caller,
            &[("user-agent", "ours"), ("x-version", "1")],
            &headers(&[("x-org", "us")]),
            Some((header::AUTHORIZATION, HeaderValue::from_static("Bearer ours"))),
        );
        assert_eq!(up.get("authorization").unwrap(), "Bearer ours");
        assert_eq!(up.get("x-org").unwrap(), "us");
        assert_eq!(
            (&up["user-agent"], &up["x-version"]),
            (&HeaderValue::from_static("app"), &HeaderValue::from_static("1"))
        );
    }

    #[test]
    fn br_112_the_callers_length_and_hop_by_hop_headers_are_written_anew() {
        let caller = headers(&[
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("connection", "keep-alive, x-mine"),
            ("x-mine", "1"),
            ("content-type", "application/json"),
        ]);
        let up = upward(&caller, &[], &HeaderMap::new(), None);
        assert_eq!(up, headers(&[("content-type", "application/json"), ("accept-encoding", "identity")]));
    }

    #[test]
    fn br_046_what_an_upstream_says_of_the_operators_account_never_comes_down() {
        let upstream = headers(&[
            ("content-type", "text/event-stream"),
            ("x-should-retry", "false"),
            ("retry-after", "100"),
            ("x-ratelimit-remaining-tokens", "1"),
            ("set-cookie", "a=b"),
            ("openai-organization", "ours"),
            ("anthropic-organization-id", "ours"),
            ("x-ratelimitbysize-remaining-minute", "1"),
            ("ratelimit-policy", "60;w=60"),
            ("x-ms-retry-after-ms", "100"),
            // The names of the operator's resources.
            ("x-ms-region", "East US"),
            ("x-ms-deployment-name", "our-gpt"),
            ("anthropic-ratelimit-tokens-remaining", "1"),
            ("cf-ray", "1"),
            ("x-litellm-key-spend", "12.5"),
            ("llm_provider-set-cookie", "a=b"),
            ("x-request-id", "theirs"),
            ("openai-processing-ms", "12"),
        ]);
        let down = downward(&upstream);
        assert_eq!(down, headers(&[("content-type", "text/event-stream"), ("openai-processing-ms", "12")]));
    }
}
