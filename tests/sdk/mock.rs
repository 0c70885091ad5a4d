//! A mock of LLM providers that nobody here wrote (LLMock) as the upstream, well and with its faults: every official
//! SDK over it, each operation that the mock has × each fault of the first of two of them.
//!
//! Our own simulated provider sends what we believe that providers send; this one what somebody else believes.

use anyhow::ensure;
use harness::catalog::Document;
use harness::fleet::Fleet;
use serde_json::{Value, json};

use crate::application::{Api, Language, run_cases};
use crate::foreign::Foreign;
use crate::matrix::{CHAT, GEMINI, Gives, MESSAGES, OPERATIONS, Operation};

for_each_sdk! {
    a_mock_of_somebody_else_is_read_in_chat_completions => |l| drive(l, &MOCKED_CHAT);
    a_mock_of_somebody_else_is_read_in_responses => |l| drive(l, &MOCKED_RESPONSES);
    a_mock_of_somebody_else_is_read_in_messages => |l| drive(l, &MOCKED_MESSAGES);
    a_mock_of_somebody_else_is_read_in_gemini => |l| drive(l, &MOCKED_GEMINI);
}

/// What the mock has of an API.
struct Mocked {
    api: Api,
    base: &'static str,
    operations: &'static [Operation],
    without: &'static [&'static str],
    /// How many events of a stream are behind its first content.
    content_after: u32,
}

const MOCKED_CHAT: Mocked =
    Mocked { api: Api::Chat, base: "/v1", operations: CHAT, without: &[], content_after: 2 };
const MOCKED_RESPONSES: Mocked = Mocked {
    api: Api::Operations,
    base: "/v1",
    operations: OPERATIONS,
    without: &["completions", "completions_stream", "moderations", "images", "images_stream"],
    content_after: 5,
};
const MOCKED_MESSAGES: Mocked = Mocked {
    api: Api::Messages,
    base: "/anthropic/v1",
    operations: MESSAGES,
    without: &["parse", "parse_stream", "count"],
    content_after: 4,
};
const MOCKED_GEMINI: Mocked = Mocked {
    api: Api::Gemini,
    base: "/gemini/v1beta",
    operations: GEMINI,
    without: &["count", "embed"],
    content_after: 1,
};

impl Mocked {
    fn operations(&self) -> impl Iterator<Item = Operation> {
        self.operations.iter().copied().filter(|(name, ..)| !self.without.contains(name))
    }
}

/// What becomes of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The first channel's answer.
    First,
    /// The second's, and the caller notices nothing.
    Second,
    /// An error with this status, and the second channel is not asked.
    Status(u16),
    /// Our error in the stream, and the second channel is not asked.
    Broken,
}

/// A fault of the first mock: its name, what it is told, whether it is one of streams alone, what becomes of it.
type Fault = (&'static str, Option<Value>, bool, Seen);

fn faults(mocked: &Mocked) -> Vec<Fault> {
    let fail = |status: u16| Some(json!({"type": "fail", "status": status}));
    let stream = |kind: &str, after_chunks: u32| {
        Some(json!({"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, "stall_seconds": 60}))
    };
    let before = mocked.content_after - 1;
    let behind = mocked.content_after;
    vec![
        ("none", None, false, Seen::First),
        ("503", fail(503), false, Seen::Second),
        ("529", fail(529), false, Seen::Second),
        ("500", fail(500), false, Seen::Second),
        ("429", Some(json!({"type": "fail", "status": 429, "retry_after": 30})), false, Seen::Second),
        ("400", fail(400), false, Seen::Status(400)),
        ("no-event", stream("truncate", 0), true, Seen::Second),
        ("disconnect-at-once", stream("disconnect", 0), true, Seen::Second),
        ("disconnect-before", stream("disconnect", before), true, Seen::Second),
        ("truncate-before", stream("truncate", before), true, Seen::Second),
        ("malformed-before", stream("malformed", before), true, Seen::Second),
        ("disconnect-behind", stream("disconnect", behind), true, Seen::Broken),
        ("truncate-behind", stream("truncate", behind), true, Seen::Broken),
        ("stall-behind", stream("stall", behind), true, Seen::Broken),
    ]
}

struct Case {
    name: String,
    model: String,
    gives: Gives,
    seen: Seen,
}

async fn drive(language: Language, mocked: &Mocked) -> anyhow::Result<()> {
    let mut mocks = [Foreign::new()?, Foreign::new()?];
    for mock in &mut mocks {
        mock.start("llmock", &["serve", "--log-level", "warning"])?;
    }
    let [first, second] = &mocks;
    first.ready().await?;
    second.ready().await?;

    let mut catalog = Document::of(mocked.api.dialect())
        .channel("p1", &first.url(mocked.base), "")
        .channel("p2", &second.url(mocked.base), "")
        .policy("breaker = { failures = 1000, window = \"5m\", cooldown = \"60s\" }")
        .policy("timeouts = { idle = \"1500ms\" }");
    let (mut cases, mut behaviours) = (Vec::new(), Vec::new());
    for (fault, told, of_streams, seen) in faults(mocked) {
        for (operation, stream, gives) in mocked.operations() {
            // What breaks in the middle is seen by those that read event by event.
            let reads_events = operation.ends_with("stream") && gives == Gives::Text;
            // A call of a tool begins earlier than a text.
            let is_behind = fault.ends_with("before") && gives == Gives::Call;
            if (of_streams && !stream) || (seen == Seen::Broken && !reads_events) || is_behind {
                continue;
            }
            let model = format!("{operation}.{fault}");
            if let Some(mut told) = told.clone() {
                told["match"] = json!({"model": format!("up-{model}")});
                told["times"] = Value::Null;
                behaviours.push(told);
            }
            catalog = catalog.model(&model, &["p1", "p2"]);
            cases.push(Case { name: format!("{operation}={model}"), model, gives, seen });
        }
    }
    let fleet = Fleet::with_catalog(1, &catalog).await?;
    first.post("/_llmock/scenario", &json!({"behaviors": behaviours})).await?;

    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let results = run_cases(language, mocked.api, &fleet, &names.join(","), "", &fleet.key).await?;
    let journals = [first.json("/_llmock/requests", "").await?, second.json("/_llmock/requests", "").await?];
    let mut wrong = Vec::new();
    for case in &cases {
        let result = &results[&case.name];
        if let Err(error) = judge(case, result, &journals) {
            wrong.push(format!("{}: {error:#}: {result}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // It also judges its clients. It cannot see that another channel answers, so that what it misses are retries.
    let verdict = first.json("/_llmock/verdict", "").await?;
    for code in ["retry_after_ignored", "retried_non_retryable", "retry_storm", "no_backoff"] {
        assert!(!verdict.to_string().contains(code), "{verdict}");
    }
    fleet.finish()
}

fn judge(case: &Case, result: &Value, journals: &[Value; 2]) -> anyhow::Result<()> {
    let upstream_model = format!("up-{}", case.model);
    let asked = journals.each_ref().map(|journal| {
        let requests = journal["requests"].as_array().map_or(&[][..], Vec::as_slice);
        requests.iter().filter(|request| request["model"] == upstream_model.as_str()).count()
    });
    let calls = if case.seen == Seen::Second { [1, 1] } else { [1, 0] };
    ensure!(asked == calls, "asked {asked:?} times");
    let error = &result["error"];
    match case.seen {
        Seen::Status(status) => ensure!(error["status"] == status, "no {status}"),
        Seen::Broken => {
            ensure!(error.to_string().contains("upstream_stream_error"), "not our error");
            ensure!(result["text"].as_str().is_some_and(|text| !text.is_empty()), "nothing came before it");
        }
        Seen::First | Seen::Second => {
            ensure!(error.is_null(), "it raised");
            let member = match case.gives {
                Gives::Call => &result["tool"]["input"]["city"],
                Gives::Object => &result["object"]["answer"],
                _ => &result["text"],
            };
            ensure!(member.as_str().is_some_and(|text| !text.is_empty()), "no answer");
        }
    }
    Ok(())
}
