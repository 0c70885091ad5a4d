use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::*;
use crate::dialect::openai_chat::RULES;

fn answer(status: u16, body: &str) -> Fault {
    with_headers(status, &[], body)
}

fn with_headers(status: u16, pairs: &[(&'static str, &'static str)], body: &str) -> Fault {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    let headers = pairs.iter().map(pair).collect();
    classify(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), 0, &RULES)
}

/// An error in the dialect's shape: `members` are those beside the message.
fn error(message: &str, members: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}"{members}}}}}"#)
}

const HTML: &str = "<html><body>502 Bad Gateway</body></html>";
const INVALID: &str = r#","type":"invalid_request_error","param":null,"code":null"#;

#[test]
fn every_status_has_the_class_of_the_design() {
    let plain = error("b", "");
    for (statuses, class) in [
        (&[301, 302, 307, 308, 404, 405, 410][..], F::Misconfigured),
        (&[400, 413, 415, 422, 431], F::BadRequest),
        (&[401], F::Credential),
        (&[402], F::Balance),
        (&[403], F::Misconfigured),
        (&[408, 504, 524], F::Timeout),
        (&[409, 425], F::Transient),
        (
            &[424, 499, 500, 501, 502, 505, 507, 520, 521, 522, 523, 525, 526, 530, 599, 600, 999],
            F::UpstreamError,
        ),
        (&[429], F::RateLimited),
        (&[498, 503, 529], F::Overloaded),
    ] {
        for status in statuses {
            let fault = answer(*status, &plain);
            assert_eq!((fault.class, fault.status), (class, Some(*status)), "{status}");
            if *status != 403 && class != F::BadRequest {
                assert_eq!(answer(*status, HTML).class, class, "{status} with a page");
                assert_eq!(answer(*status, "").class, class, "{status} without a body");
            }
        }
    }
}

#[test]
fn what_the_body_names_counts_more_than_the_status() {
    use Reason::{ContentPolicy, ContextLength, Plain, SingleRequest, TooLarge, Unshaped};
    let long = "This model's maximum context length is 8 tokens";
    let too_large =
        "Request too large for m in organization org-AbC12345 on tokens per min (TPM): Limit 3, Requested 4";
    for (status, body, class, reason) in [
        // 400
        (400, error("b", INVALID), F::BadRequest, Plain),
        (400, error("b", r#","type":"invalid_request_error","param":"n","code":"invalid_value""#), F::BadRequest, Plain),
        (400, error("b", r#","code":"context_length_exceeded""#), F::BadRequest, ContextLength),
        (400, error(long, r#","type":"BadRequestError","code":400"#), F::BadRequest, ContextLength),
        (400, error("b", r#","code":400,"type":"exceed_context_size_error""#), F::BadRequest, ContextLength),
        (400, error("prompt is too long: 9 tokens > 8", INVALID), F::BadRequest, ContextLength),
        (400, error("b", r#","code":400,"metadata":{"error_type":"token_limit_exceeded"}"#), F::BadRequest, ContextLength),
        (400, error("b", r#","code":"content_filter""#), F::BadRequest, ContentPolicy),
        (400, error("b", r#","code":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}"#), F::BadRequest, ContentPolicy),
        (400, error("Output blocked by content filtering policy", INVALID), F::BadRequest, ContentPolicy),
        (400, error("b", r#","code":400,"status":"FAILED_PRECONDITION""#), F::Misconfigured, Plain),
        (400, error("b", r#","code":400,"status":"INVALID_ARGUMENT""#), F::BadRequest, Plain),
        (
            400,
            error("API key not valid. Please pass one.", r#","code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]"#),
            F::Credential,
            Plain,
        ),
        (400, error("API key not valid.", r#","code":400,"status":"INVALID_ARGUMENT""#), F::Credential, Plain),
        (400, r#"{"__type":"com.amazon#ServiceQuotaExceededException","message":"q"}"#.into(), F::RateLimited, Plain),
        (400, r#"{"__type":"ThrottlingException","message":"q"}"#.into(), F::RateLimited, Plain),
        (400, error("b", r#","type":"invalid_request_error","code":"request_too_large""#), F::BadRequest, TooLarge),
        // 402 and 403
        (402, error("b", r#","code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}"#), F::RateLimited, Plain),
        (402, error("b", r#","code":402,"metadata":{"limit_source":"openrouter_credits"}"#), F::Balance, Plain),
        (403, error("b", r#","code":403,"metadata":{"limit_source":"openrouter_workspace_budget"}"#), F::Balance, Plain),
        (403, error("b", r#","code":403,"metadata":{"reasons":["x"],"flagged_input":"y"}"#), F::BadRequest, ContentPolicy),
        (403, error("b", r#","code":403,"metadata":{"error_type":"content_policy_violation"}"#), F::BadRequest, ContentPolicy),
        (403, error("Content violates usage guidelines", ""), F::BadRequest, ContentPolicy),
        (403, error("b", r#","code":"unsupported_country_region_territory""#), F::Misconfigured, Plain),
        (403, error("b", r#","type":"permission_error""#), F::Misconfigured, Plain),
        (403, error("b", r#","code":"invalid_api_key""#), F::Credential, Plain),
        // A caller that names what is not the account's must not take the route away from everybody either.
        (403, error("CachedContent not found (or permission denied)", r#","code":403,"status":"PERMISSION_DENIED""#), F::BadRequest, Unshaped),
        (403, error("You do not have permission to access the File abc or it may not exist.", r#","code":403,"status":"PERMISSION_DENIED""#), F::BadRequest, Unshaped),
        (400, error("The File abc is not in an ACTIVE state and usage is not allowed.", r#","code":400,"status":"FAILED_PRECONDITION""#), F::BadRequest, Unshaped),
        (403, error("no access to that file", r#","type":"invalid_request_error","param":"file_id""#), F::BadRequest, Unshaped),
        (403, error("no access to that model", r#","type":"invalid_request_error","param":"model""#), F::Misconfigured, Plain),
        (403, error("b", r#","code":403,"status":"PERMISSION_DENIED""#), F::Misconfigured, Plain),
        (403, r#"{"message":"Forbidden"}"#.into(), F::BadRequest, Unshaped),
        // A filter's page must not take the route away from everybody.
        (403, HTML.into(), F::BadRequest, Unshaped),
        // 404
        (404, error("b", r#","code":"DeploymentNotFound""#), F::Misconfigured, Plain),
        (404, error("No endpoints found that support tool use", r#","code":404"#), F::BadRequest, Unshaped),
        (404, error("No such File object", r#","type":"invalid_request_error","param":"id","code":null"#), F::BadRequest, Unshaped),
        (404, error("Vector store with id ['vs_model'] not found.", INVALID), F::BadRequest, Unshaped),
        (404, error("No such File object: file-1", INVALID), F::BadRequest, Unshaped),
        (404, error("Model with id 'm' not found", INVALID), F::Misconfigured, Plain),
        (404, error("Invalid URL (POST /v1/x)", INVALID), F::Misconfigured, Plain),
        // 424: a tool server of the caller's, three times asked, must not open the breaker.
        (424, error("Error retrieving tool list from MCP server: 'x'", r#","type":"external_connector_error","param":"tools","code":"http_error""#), F::BadRequest, Plain),
        (424, error("b", r#","type":"invalid_request_error","param":"tools""#), F::BadRequest, Plain),
        (424, error("b", ""), F::UpstreamError, Plain),
        // 413
        (413, error("b", r#","type":"request_too_large""#), F::BadRequest, Unshaped),
        (413, HTML.into(), F::BadRequest, Unshaped),
        (413, error(too_large, r#","type":"tokens","code":"rate_limit_exceeded""#), F::RateLimited, SingleRequest),
        // 429
        (429, error("b", r#","code":"rate_limit_exceeded""#), F::RateLimited, Plain),
        (429, error(too_large, r#","type":"tokens","code":"rate_limit_exceeded""#), F::RateLimited, SingleRequest),
        (429, error("You exceeded your current quota", r#","code":429,"status":"RESOURCE_EXHAUSTED""#), F::RateLimited, Plain),
        (429, error("q", r#","code":"credit_balance_exhausted""#), F::Balance, Plain),
        (429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"b","details":{"error_code":"enforced_spend_limit_reached"}}}"#.into(), F::Balance, Plain),
        (429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"b","details":{"error_code":"ramp_limit_exceeded"}}}"#.into(), F::RateLimited, Plain),
        // 5xx
        (500, error("b", r#","type":"overloaded_error""#), F::Overloaded, Plain),
        (500, error("rate limit: insufficient_quota", r#","type":"server_error""#), F::UpstreamError, Plain),
        (502, error("b", r#","code":502,"metadata":{"error_type":"provider_overloaded"}"#), F::Overloaded, Plain),
        (503, error("Loading model", r#","type":"unavailable_error","code":503"#), F::Overloaded, Plain),
        (503, error("b", r#","code":"slow_down""#), F::Overloaded, Plain),
        (504, error("b", r#","type":"timeout_error""#), F::Timeout, Plain),
    ] {
        let fault = answer(status, &body);
        assert_eq!((fault.class, fault.reason), (class, reason), "{status} {body}");
    }
}

#[test]
fn a_4xx_without_the_dialects_shape_walks_on() {
    use Reason::{Plain, Unshaped};
    for (status, body, reason) in [
        (400, "", Unshaped),
        (400, HTML, Unshaped),
        (400, "bad request", Unshaped),
        (400, "{}", Unshaped),
        (400, r#"{"message":"no Route matched"}"#, Unshaped),
        (400, r#"{"detail":"Not Found"}"#, Unshaped),
        (422, r#"{"detail":[{"loc":["body","n"],"msg":"must be one"}]}"#, Plain),
        (
            422,
            r#"{"object":"error","message":"b","type":"invalid_request_error","param":null,"code":null}"#,
            Plain,
        ),
        (400, r#"{"code":"Client specified an invalid argument","error":"b"}"#, Plain),
        (400, "\n\n {\"error\":{\"message\":\"b\"}}", Plain),
        (400, r#"{"error":{"message":"#, Unshaped),
        (418, HTML, Unshaped),
    ] {
        let fault = answer(status, body);
        assert_eq!(
            (fault.class, fault.reason, fault.status),
            (F::BadRequest, reason, Some(status)),
            "{status} {body}"
        );
    }
}

#[test]
fn a_bad_request_keeps_the_upstreams_words_and_a_status_that_may_be_shown() {
    let body = r#"{"error":{"message":"n must be 1, not sk-live-Abcdefgh12","type":"invalid_request_error","param":"n","code":"invalid_value"}}"#;
    let detail = answer(400, body).detail.unwrap();
    assert_eq!(detail.message, "n must be 1, not [redacted]");
    assert_eq!(detail.kind.as_deref(), Some("invalid_request_error"));
    assert_eq!(detail.code.as_deref(), Some("invalid_value"));
    assert_eq!(detail.param.as_deref(), Some("n"));

    let detail = answer(422, r#"{"detail":[{"loc":["body","messages",0,"role"],"msg":"unknown role"}]}"#)
        .detail
        .unwrap();
    assert_eq!((detail.message.as_str(), detail.param.as_deref()), ("unknown role", Some("messages.0.role")));

    // Callers never see an upstream's 401, 402 or 403, nor a status that their SDKs repeat.
    for status in [401, 402, 403, 409, 429, 500] {
        assert_eq!(answer(status, &error("b", r#","code":"content_filter""#)).status, Some(400), "{status}");
    }
    assert_eq!(answer(422, &error("b", "")).status, Some(422));
    assert_eq!(answer(500, "").detail, None);
}

#[test]
fn a_prompt_that_is_echoed_changes_nothing() {
    for message in [
        "Invalid value: 'credit balance is too low'. Supported values are: 'user'",
        "Invalid role \\\"insufficient balance\\\"",
        "unknown tool: invalid api key",
        "cannot parse {\\\"error\\\":{\\\"code\\\":\\\"insufficient_quota\\\"}}",
        "bad image: the model x does not exist",
        "This model does not take 'the model x was not found'",
        "The model could not answer \\\"x is not available\\\"",
        "cannot read the prompt x is not a valid model ID",
    ] {
        let fault = answer(400, &error(message, INVALID));
        assert_eq!((fault.class, fault.reason), (F::BadRequest, Reason::Plain), "{message}");
    }
    let pointed = error("credit balance is too low", r#","param":"messages[0].role","code":"invalid_value""#);
    assert_eq!(answer(400, &pointed).class, F::BadRequest);
}

#[test]
fn an_error_inside_a_200_is_judged_by_its_names_then_its_numbers_then_its_words() {
    for (members, class, status) in [
        (r#"{"code":"rate_limit_exceeded"}"#, F::RateLimited, None),
        (r#"{"code":429}"#, F::RateLimited, Some(429)),
        (r#"{"code":"429"}"#, F::RateLimited, Some(429)),
        (r#"{"code":400}"#, F::BadRequest, Some(400)),
        (r#"{"code":422}"#, F::BadRequest, Some(422)),
        (r#"{"code":404}"#, F::Misconfigured, Some(404)),
        (r#"{"type":"not_found_error","message":"m","param":"id"}"#, F::BadRequest, Some(400)),
        (r#"{"type":"not_found_error","message":"m"}"#, F::Misconfigured, None),
        (r#"{"code":401}"#, F::Credential, Some(401)),
        (r#"{"code":503,"status":"UNAVAILABLE"}"#, F::Overloaded, Some(503)),
        (r#"{"status":"RESOURCE_EXHAUSTED"}"#, F::RateLimited, None),
        (r#"{"status":529}"#, F::Overloaded, Some(529)),
        (r#"{"type":"invalid_request_error"}"#, F::BadRequest, Some(400)),
        (r#"{"type":"server_error","code":"server_error","message":"overloaded"}"#, F::UpstreamError, None),
        (r#"{"type":"server_error","code":"context_length_exceeded"}"#, F::BadRequest, Some(400)),
        (r#"{"code":502,"metadata":{"error_type":"rate_limit_exceeded"}}"#, F::RateLimited, Some(502)),
        (r#"{"type":"overloaded_error","message":"Overloaded"}"#, F::Overloaded, None),
        (r#"{"type":"insufficient_quota","code":"insufficient_quota"}"#, F::Balance, None),
        (r#"{"code":999,"message":"b"}"#, F::UpstreamError, None),
        (r#"{"code":-1}"#, F::UpstreamError, None),
        (r#"{"code":200}"#, F::UpstreamError, None),
        (r#"{"message":"the service is overloaded"}"#, F::Overloaded, None),
        (r#"{"message":"Too Many Requests"}"#, F::RateLimited, None),
        (r#"{"message":"prompt said: rate limit"}"#, F::UpstreamError, None),
        (r#""over capacity""#, F::Overloaded, None),
        (r#""boom""#, F::UpstreamError, None),
        ("7", F::UpstreamError, None),
        ("{}", F::UpstreamError, None),
    ] {
        let fault = error_value(&Parts::of(&serde_json::from_str(members).unwrap(), None));
        assert_eq!((fault.class, fault.status), (class, status), "{members}");
    }
}

#[test]
fn the_hint_of_a_refusal_is_kept_and_reset_headers_count_under_a_429_alone() {
    let second = |n| Some(Duration::from_secs(n));
    assert_eq!(with_headers(429, &[("retry-after", "7")], "").retry_after, second(7));
    assert_eq!(with_headers(503, &[("retry-after", "7")], "").retry_after, second(7));
    let reset = [("x-ratelimit-reset-tokens", "6s")];
    assert_eq!(with_headers(429, &reset, "").retry_after, second(6));
    assert_eq!(with_headers(503, &reset, "").retry_after, None);
    assert_eq!(with_headers(429, &[("retry-after", "7"), reset[0]], "").retry_after, second(7));
    let google = r#"[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}]}}]"#;
    assert_eq!(answer(429, google).retry_after, second(46));
}

#[test]
fn br_006_a_vendors_own_number_is_no_http_status() {
    let parts = Parts::of(&serde_json::json!({"code": 11200, "message": "AppIdNoAuthError"}), None);
    let fault = error_value(&parts);
    assert_eq!((fault.class, fault.status), (F::UpstreamError, None));
    assert_eq!(fault.detail.unwrap().code.as_deref(), Some("11200"));
}

#[test]
fn br_021_an_error_in_an_array_of_one_is_unwrapped() {
    let body = r#"[{"error":{"code":400,"message":"Unknown name","status":"INVALID_ARGUMENT"}}]"#;
    let fault = answer(400, body);
    assert_eq!((fault.class, fault.reason, fault.status), (F::BadRequest, Reason::Plain, Some(400)));
    assert_eq!(fault.detail.unwrap().message, "Unknown name");
}

#[test]
fn br_022_json_inside_a_message_is_not_taken_apart() {
    for (code, class) in [(500, F::UpstreamError), (429, F::RateLimited)] {
        let nested = r#"{\"error\":{\"code\":401,\"type\":\"insufficient_quota\"}}"#;
        let body = error(nested, &format!(r#","code":{code}"#));
        assert_eq!(answer(code, &body).class, class);
        let parts = (RULES.find_error)(&serde_json::from_str(&body).unwrap()).unwrap();
        assert_eq!(error_value(&parts).class, class);
    }
}

#[test]
fn br_039_a_prompt_that_is_too_long_stays_a_400() {
    let body =
        error("This model's maximum context length is 8 tokens", r#","type":"BadRequestError","code":400"#);
    let fault = answer(400, &body);
    assert_eq!((fault.class, fault.reason, fault.status), (F::BadRequest, Reason::ContextLength, Some(400)));
}

#[test]
fn br_042_an_empty_account_is_no_rate_limit() {
    let body = error(
        "You exceeded your current quota",
        r#","type":"insufficient_quota","code":"insufficient_quota""#,
    );
    assert_eq!(answer(429, &body).class, F::Balance);
}

#[test]
fn br_044_an_exhausted_credit_under_a_400_is_about_money_and_other_400s_are_not() {
    let anthropic = |message: &str| {
        answer(
            400,
            &format!(
                r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{message}"}}}}"#
            ),
        )
    };
    assert_eq!(anthropic("Your credit balance is too low to access the Anthropic API.").class, F::Balance);
    assert_eq!(anthropic("You have reached your specified API usage limits.").class, F::Balance);
    assert_eq!(anthropic("max_tokens: must be greater than 0").class, F::BadRequest);
}

#[test]
fn br_047_a_429_that_says_nothing_is_a_rate_limit_without_a_hint() {
    for body in ["", "Too Many Requests", HTML] {
        let fault = answer(429, body);
        assert_eq!((fault.class, fault.reason, fault.retry_after), (F::RateLimited, Reason::Plain, None));
    }
}

#[test]
fn br_052_an_upstream_that_does_not_know_our_model_is_misconfigured() {
    let nf = r#","type":"invalid_request_error","param":null,"code":"model_not_found""#;
    for (status, message, members) in [
        (404, "The model `x` does not exist", nf),
        (400, "The model `x` does not exist", nf),
        (404, "The model `x` does not exist.", r#","type":"NotFoundError","code":404"#),
        (400, "b", r#","type":"invalid_request_error","param":"model","code":null"#),
        (400, "x is not a valid model ID", r#","code":400"#),
        (
            400,
            "Model Not Exist",
            r#","type":"invalid_request_error","param":null,"code":"invalid_request_error""#,
        ),
        (400, "Invalid model: x", r#","code":"1500""#),
        (400, "The requested model 'x' does not exist.", r#","type":"invalid_request_error""#),
        (400, "model llama3:8b not found, try pulling it first", r#","type":"api_error""#),
        (400, "Model with id \\\"x\\\" not found", r#","type":"invalid_request_error""#),
        (400, "This model is not available in your region", r#","type":"invalid_request_error""#),
    ] {
        assert_eq!(answer(status, &error(message, members)).class, F::Misconfigured, "{status} {message}");
    }
    assert_eq!(answer(404, HTML).class, F::Misconfigured);
}
