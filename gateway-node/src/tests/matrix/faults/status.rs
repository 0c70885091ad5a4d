//! Refusals: statuses with the bodies that upstreams send under them (wire formats, section 4).

use std::time::Duration;

use common::class::FailureClass as F;

use super::super::super::support::{Act, ms, s};
use super::super::forms::{answers, head};
use super::super::says::{Says, Speech, Words};
use super::{Failed, Fault, Phase, Play, Quirk, fault};

/// What stands in the body.
#[derive(Clone, Copy)]
enum Body {
    /// An error of the dialect that says nothing beyond the status.
    Plain,
    /// A page, as proxies and edges write it.
    Page,
    /// An error of the dialect.
    Says(Says),
    /// These bytes, from upstreams of some dialects only.
    Of(&'static [Speech], &'static str, Words),
}

/// One refusal.
#[derive(Clone, Copy)]
struct Row {
    status: u16,
    /// Behind the status in the id.
    mark: &'static str,
    what: &'static str,
    body: Body,
    headers: &'static str,
    class: F,
    quirk: Quirk,
    hint: Option<Duration>,
    /// The status that a caller sees of a bad request, where it is not the upstream's.
    shown: Option<u16>,
}

const ROW: Row = Row {
    status: 0,
    mark: "",
    what: "",
    body: Body::Plain,
    headers: "",
    class: F::UpstreamError,
    quirk: Quirk::None,
    hint: None,
    shown: None,
};

const OPENAI: &[Speech] = &[Speech::OpenAi];
const AWS: &[Speech] = &[Speech::OpenAi, Speech::Anthropic];
const ANTHROPIC: &[Speech] = &[Speech::Anthropic];
const GOOGLE: &[Speech] = &[Speech::Google];

/// What each status means where the body says no more.
const PLAIN: [(F, &[u16]); 9] = [
    (F::Misconfigured, &[301, 302, 303, 307, 308, 403, 404]),
    (F::BadRequest, &[400, 422]),
    (F::Credential, &[401]),
    (F::Balance, &[402]),
    (F::Timeout, &[408, 504, 524]),
    (F::Transient, &[409, 425]),
    (F::UpstreamError, &[424, 499, 500, 501, 502, 520, 521, 522, 523, 525, 526, 527, 530]),
    (F::RateLimited, &[429]),
    (F::Overloaded, &[498, 503, 529]),
];

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (class, statuses) in PLAIN {
        rows.extend(statuses.iter().map(|status| Row { status: *status, class, ..ROW }));
    }
    let page = Row { mark: "page", body: Body::Page, what: "a page", ..ROW };
    for status in [502, 520, 521, 522, 523, 525, 526] {
        rows.push(Row { status, ..page });
    }
    rows.extend([
        Row { status: 401, class: F::Credential, ..page },
        Row { status: 404, class: F::Misconfigured, ..page },
        Row { status: 429, class: F::RateLimited, ..page },
        Row { status: 503, class: F::Overloaded, ..page },
        Row { status: 504, class: F::Timeout, ..page },
        Row { status: 524, class: F::Timeout, ..page },
    ]);
    let unshaped = Row { class: F::BadRequest, quirk: Quirk::Unshaped, ..page };
    rows.extend([
        Row { status: 400, ..unshaped },
        // The caller never sees an upstream's 403.
        Row { status: 403, shown: Some(400), ..unshaped },
        Row { status: 413, ..unshaped },
        Row {
            status: 413,
            mark: "",
            body: Body::Plain,
            what: "larger than it takes, within our limit",
            ..unshaped
        },
    ]);
    rows.extend(named());
    rows.sort_by_key(|row| row.status);
    rows
}

/// Bodies that say more than the status.
fn named() -> Vec<Row> {
    let says = |status, mark, says: Says, what| Row {
        status,
        mark,
        what,
        body: Body::Says(says),
        class: says.class(),
        ..ROW
    };
    let of = |status, mark, to, body, class, what| Row {
        status,
        mark,
        what,
        body: Body::Of(to, body, Words::PLAIN),
        class,
        ..ROW
    };
    let throttled = |mark, headers, hint, what| Row {
        headers,
        hint: Some(hint),
        ..says(429, mark, Says::Throttled, what)
    };
    let shaped = |mut row: Row, words| {
        if let Body::Of(to, body, _) = row.body {
            row.body = Body::Of(to, body, words);
        }
        row
    };
    let words = Words { message: "so it is", ..Words::PLAIN };
    vec![
        says(400, "invalid", Says::Invalid, "invalid parameter"),
        says(400, "too-long", Says::TooLong, "context length"),
        says(400, "policy", Says::Policy, "content policy"),
        of(
            400,
            "credit",
            ANTHROPIC,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            F::Balance,
            "credit balance too low",
        ),
        of(
            400,
            "unknown-model",
            OPENAI,
            r#"{"error":{"message":"The model `m-up` does not exist","type":"invalid_request_error","param":null,"code":null}}"#,
            F::Misconfigured,
            "the model is not there, in words",
        ),
        of(
            400,
            "precondition",
            GOOGLE,
            r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
            F::Misconfigured,
            "region or billing of the account",
        ),
        of(
            400,
            "bad-key",
            GOOGLE,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
            F::Credential,
            "our key is refused",
        ),
        of(
            400,
            "quota",
            AWS,
            r#"{"__type":"ServiceQuotaExceededException","message":"so it is"}"#,
            F::RateLimited,
            "Bedrock's service quota",
        ),
        Row {
            headers: "x-amzn-errortype: ThrottlingException:http://internal\r\n",
            ..of(
                400,
                "throttled",
                AWS,
                r#"{"message":"Rate exceeded"}"#,
                F::RateLimited,
                "Bedrock's throttling, named in a header",
            )
        },
        shaped(
            of(
                400,
                "array",
                OPENAI,
                r#"[{"error":{"code":400,"message":"so it is","status":"INVALID_ARGUMENT"}}]"#,
                F::BadRequest,
                "Google's array of one",
            ),
            Words { kind: Some("INVALID_ARGUMENT"), number: Some(400), ..words },
        ),
        says(401, "bad-key", Says::BadKey, "our key is refused"),
        says(402, "broke", Says::Broke, "no credit left"),
        Row {
            headers: "retry-after: 3\r\n",
            hint: Some(s(3)),
            ..of(
                402,
                "in-flight",
                OPENAI,
                r#"{"error":{"code":402,"message":"so it is","metadata":{"limit_source":"openrouter_in_flight_budget"}}}"#,
                F::RateLimited,
                "OpenRouter's budget in flight",
            )
        },
        of(
            402,
            "key-limit",
            OPENAI,
            r#"{"error":{"code":402,"message":"so it is","metadata":{"limit_source":"openrouter_key_limit"}}}"#,
            F::Balance,
            "OpenRouter's limit of the key",
        ),
        says(403, "forbidden", Says::Forbidden, "permission or region"),
        of(
            403,
            "budget",
            OPENAI,
            r#"{"error":{"code":403,"message":"so it is","metadata":{"limit_source":"workspace_budget"}}}"#,
            F::Balance,
            "OpenRouter's budget",
        ),
        Row {
            shown: Some(400),
            ..shaped(
                of(
                    403,
                    "moderated",
                    OPENAI,
                    r#"{"error":{"code":403,"message":"so it is","metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
                    F::BadRequest,
                    "OpenRouter's moderation",
                ),
                Words { number: Some(403), ..words },
            )
        },
        says(404, "unknown-model", Says::UnknownModel, "the model is not there"),
        shaped(
            of(
                404,
                "deployment",
                OPENAI,
                r#"{"error":{"code":"DeploymentNotFound","message":"so it is"}}"#,
                F::Misconfigured,
                "no such deployment",
            ),
            Words { code: Some("DeploymentNotFound"), ..words },
        ),
        Row {
            quirk: Quirk::SingleRequest,
            ..of(
                413,
                "tokens",
                OPENAI,
                r#"{"error":{"message":"Request too large for m-up on tokens per minute (TPM): Limit 3, Requested 4","type":"tokens","code":"rate_limit_exceeded"}}"#,
                F::RateLimited,
                "this request alone exceeds a rate limit",
            )
        },
        says(422, "invalid", Says::Invalid, "invalid parameter"),
        shaped(
            of(
                422,
                "detail",
                OPENAI,
                r#"{"detail":[{"loc":["body","n"],"msg":"so it is","type":"value_error"}]}"#,
                F::BadRequest,
                "FastAPI's detail",
            ),
            Words { param: Some("n"), ..words },
        ),
        says(429, "throttled", Says::Throttled, "rate limit, no hint"),
        throttled("retry-after", "retry-after: 7\r\n", s(7), "`retry-after: 7`"),
        throttled(
            "retry-after-ms",
            "retry-after-ms: 1500\r\nretry-after: 2\r\n",
            ms(1500),
            "`retry-after-ms: 1500`",
        ),
        throttled(
            "retry-date",
            "retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n",
            s(60),
            "`retry-after` with a date far away",
        ),
        throttled("retry-long", "retry-after: 3600\r\n", s(60), "`retry-after: 3600`"),
        throttled("retry-zero", "retry-after: 0\r\n", s(1), "`retry-after: 0`"),
        throttled(
            "reset",
            "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 12s\r\n",
            s(12),
            "`x-ratelimit-reset-tokens: 12s`",
        ),
        Row {
            hint: Some(s(46)),
            ..of(
                429,
                "retry-info",
                GOOGLE,
                r#"{"error":{"code":429,"message":"so it is","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}]}}"#,
                F::RateLimited,
                "`RetryInfo` of 46 s",
            )
        },
        says(429, "broke", Says::Broke, "quota used up"),
        of(
            429,
            "spend-limit",
            ANTHROPIC,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"so it is","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            F::Balance,
            "spend limit reached",
        ),
        Row {
            quirk: Quirk::SingleRequest,
            ..of(
                429,
                "tokens",
                OPENAI,
                r#"{"error":{"message":"Request too large for m-up on tokens per minute (TPM): Limit 3, Requested 4","type":"tokens","code":"rate_limit_exceeded"}}"#,
                F::RateLimited,
                "this request alone exceeds a rate limit",
            )
        },
        of(
            498,
            "flex",
            OPENAI,
            r#"{"error":{"message":"so it is","type":"capacity_exceeded"}}"#,
            F::Overloaded,
            "Groq's flex tier",
        ),
        says(500, "failed", Says::Failed, "server error"),
        says(503, "overloaded", Says::Overloaded, "overloaded"),
        of(
            503,
            "loading",
            OPENAI,
            r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#,
            F::Overloaded,
            "llama.cpp loads the model",
        ),
        says(504, "timed-out", Says::TimedOut, "timeout of the upstream's own"),
        says(529, "overloaded", Says::Overloaded, "overloaded"),
    ]
}

impl Row {
    fn play(&self, speech: Speech) -> Option<Play> {
        // Google says the status once more in the body.
        let number = (speech == Speech::Google).then_some(self.status);
        let (media, body, words) = match self.body {
            Body::Plain => {
                let words = Words { number, ..Words::PLAIN };
                ("application/json", words.document(speech), words)
            }
            Body::Page => {
                let nothing = Words { message: "", ..Words::PLAIN };
                ("text/html", format!("<html><body>{}</body></html>", self.status), nothing)
            }
            Body::Says(says) => {
                let words = says.words(speech)?;
                ("application/json", words.document(speech), words)
            }
            Body::Of(to, body, words) if to.contains(&speech) => ("application/json", body.to_owned(), words),
            Body::Of(..) => return None,
        };
        let location = if (300..400).contains(&self.status) { "location: http://b/v1\r\n" } else { "" };
        let script = answers(self.status, media, &[self.headers, location].concat(), &body);
        let (class, quirk, hint) = (self.class, self.quirk, self.hint);
        let status = self.shown.unwrap_or(self.status);
        // With an error of the dialect these say that nothing was begun.
        let is_untaken = matches!(self.status, 401 | 402 | 403 | 404 | 429 | 503) && media != "text/html";
        let refused = Some(self.status);
        let failed = Failed { quirk, status, words, hint, is_untaken, refused, ..Failed::of(class) };
        Some(Play::failing(script, failed))
    }
}

pub fn faults() -> Vec<Fault> {
    let mut faults: Vec<Fault> = rows()
        .into_iter()
        .map(|row| {
            let id = [row.status.to_string().as_str(), row.mark].join("-");
            fault(Phase::Status, id.trim_end_matches('-'), row.what, move |form, _| row.play(form.speech))
        })
        .collect();
    faults.push(fault(Phase::Status, "500-endless", "an error body that does not end", |_, _| {
        let head = head(500, "application/json", "transfer-encoding: chunked\r\n");
        Some(Play::failing(vec![head, Act::Hang], Failed::after(F::UpstreamError, s(5))))
    }));
    faults
}
