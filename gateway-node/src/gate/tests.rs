//! What the gate and the tap do with the streams and bodies that upstreams really send.

mod anthropic;
mod cases;
mod committed;
mod every_dialect;
mod gemini;
mod leave_out;
mod responses;
mod splits;

use common::class::FailureClass as F;
use common::limits::{GATE_EVENT_BYTES_MAX, GATE_HELD_BYTES_MAX, GATE_HELD_EVENTS_MAX};

use super::*;
use crate::dialect::openai_chat::RULES;
pub(super) use crate::fuzz::drive::{How, Seen, Tail, attempt};

pub(super) const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":null}],\"usage\":null}\n\n";
pub(super) const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}],\"usage\":null}\n\n";
pub(super) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n";
pub(super) const LENGTH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
pub(super) const FAIL: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n";
pub(super) const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n";
pub(super) const DONE: &str = "data: [DONE]\n\n";
pub(super) const ERROR: &str = "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"param\":null,\"code\":\"server_error\"}}\n\n";
pub(super) const WHOLE: &str = "{\"id\":\"c\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";

pub(super) fn stream_gate() -> Gate {
    Gate::new(&RULES, true, Some("text/event-stream; charset=utf-8"), Until::Content)
}

pub(super) fn complete_gate() -> Gate {
    Gate::new(&RULES, true, Some("text/event-stream"), Until::Complete)
}

pub(super) fn whole_gate() -> Gate {
    Gate::new(&RULES, false, Some("application/json"), Until::Content)
}

/// A stream that comes in one read and ends cleanly.
pub(super) fn stream(frames: &[&str]) -> Seen {
    attempt(stream_gate(), &[frames.concat().as_bytes()], Tail::Clean)
}

pub(super) fn whole(body: &str) -> Seen {
    attempt(whole_gate(), &[body.as_bytes()], Tail::Clean)
}

pub(super) fn sent(decision: Decision, frames: &[&str], how: How) -> Seen {
    Seen::Sent(decision, frames.concat().into_bytes(), how)
}

/// The class of a drop; `None` where the answer was committed.
pub(super) fn dropped(seen: &Seen) -> Option<F> {
    match seen {
        Seen::Dropped(fault) => Some(fault.class),
        Seen::Sent(..) => None,
    }
}

#[test]
fn e_01_to_e_26_in_a_stream_move_on_with_their_class() {
    let role_with = |more: &str| ROLE.replace(",\"usage\":null", more);
    let openrouter = "data: {\"id\":\"c1\",\"error\":{\"code\":502,\"message\":\"down\",\"metadata\":{\"error_type\":\"provider_unavailable\"}},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n";
    let gemini = "{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n";
    let groq = role_with(",\"x_groq\":{\"id\":\"q\",\"error\":\"over capacity\"}");
    for (id, frames, class) in [
        ("E-01", &[ERROR][..], F::UpstreamError),
        (
            "E-02",
            &[ROLE, "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"code\":429}}\n\n"],
            F::RateLimited,
        ),
        (
            "E-03",
            &[
                ROLE,
                "data: {\"error\":{\"message\":\"b\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n",
                DONE,
            ],
            F::UpstreamError,
        ),
        (
            "E-04",
            &[
                "data: {\"error\":{\"object\":\"error\",\"message\":\"too long\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n",
                DONE,
            ],
            F::BadRequest,
        ),
        ("E-05", &["data: {\"error\":\"boom\"}\n\n"], F::UpstreamError),
        (
            "E-06",
            &["event: error\ndata: {\"message\":\"boom\",\"type\":\"server_error\",\"code\":500}\n\n"],
            F::UpstreamError,
        ),
        ("E-07", &[": OPENROUTER PROCESSING\n\n", ROLE, openrouter], F::UpstreamError),
        ("E-08", &[ROLE, FAIL, DONE], F::UpstreamError),
        ("E-09", &[&groq], F::Overloaded),
        (
            "E-10",
            &[
                ROLE,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n",
            ],
            F::Balance,
        ),
        ("E-14", &[gemini], F::Overloaded),
        ("E-17", &["<html><body>sign in</body></html>"], F::Malformed),
        ("E-18", &[], F::Empty),
        ("E-18, blank", &["\n\n"], F::Empty),
        ("E-19, comments", &[": keep-alive\n\n", ":\n\n"], F::Empty),
        ("E-19, role", &[ROLE], F::Empty),
        ("E-19, [DONE]", &[ROLE, DONE], F::Empty),
        ("E-19, usage", &[ROLE, USAGE, DONE], F::Empty),
        ("E-24", &["data: {\"id\":\n\n"], F::Malformed),
        ("E-24, cut", &["data: {\"id\":"], F::Malformed),
        ("E-25", &["[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]"], F::RateLimited),
        (
            "E-26",
            &["data: {\"error\":{\"code\":11200,\"message\":\"AppIdNoAuthError\"}}\n\n"],
            F::UpstreamError,
        ),
    ] {
        assert_eq!(dropped(&stream(frames)), Some(class), "{id}");
        let bytes = frames.concat();
        assert_eq!(
            dropped(&attempt(complete_gate(), &[bytes.as_bytes()], Tail::Clean)),
            Some(class),
            "{id}, complete"
        );
    }
}

#[test]
fn e_15_and_e_16_a_document_instead_of_a_stream_is_judged_as_one() {
    for content_type in
        ["application/json", "Application/JSON; charset=utf-8", "text/event-stream", "text/plain"]
    {
        let gate = || Gate::new(&RULES, true, Some(content_type), Until::Content);
        let error = br#"{"error":{"message":"b","code":502}}"#;
        assert_eq!(
            dropped(&attempt(gate(), &[error], Tail::Clean)),
            Some(F::UpstreamError),
            "{content_type}"
        );
        let seen = attempt(gate(), &[b"\n\n", WHOLE.as_bytes()], Tail::Clean);
        assert_eq!(seen, sent(Decision::Whole, &["\n\n", WHOLE], How::Complete), "{content_type}");
        let cut = attempt(gate(), &[&WHOLE.as_bytes()[..40]], Tail::Clean);
        assert_eq!(dropped(&cut), Some(F::Malformed), "{content_type}");
    }
    let gate = Gate::new(&RULES, true, None, Until::Content);
    assert_eq!(dropped(&attempt(gate, &[b"{\"error\":\"b\"}"], Tail::Clean)), Some(F::UpstreamError));
}

#[test]
fn e_20_to_e_23_how_a_stream_ends_decides_what_it_was() {
    let run = |frames: &[&str], tail| attempt(stream_gate(), &[frames.concat().as_bytes()], tail);
    assert_eq!(dropped(&run(&[ROLE], Tail::Broken)), Some(F::UpstreamError), "E-20");
    assert_eq!(run(&[ROLE, TEXT], Tail::Broken), sent(Decision::Content, &[ROLE, TEXT], How::Cut), "E-21");
    assert_eq!(run(&[ROLE, TEXT], Tail::Clean), sent(Decision::Content, &[ROLE, TEXT], How::Cut), "E-22");
    assert_eq!(
        run(&[TEXT, STOP], Tail::Clean),
        sent(Decision::Content, &[TEXT, STOP], How::Complete),
        "E-23"
    );
}

#[test]
fn healthy_streams_pass_untouched() {
    let tool = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\n\n";
    let refusal =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"I\"},\"finish_reason\":null}]}\n\n";
    let azure = "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n";
    for (what, frames, decision) in [
        ("OAI-1", &[ROLE, TEXT, STOP, USAGE, DONE][..], Decision::Content),
        ("OAI-2", &[ROLE, tool, STOP, DONE], Decision::Content),
        ("OAI-3", &[ROLE, refusal, STOP, DONE], Decision::Content),
        ("OAI-4", &[ROLE, LENGTH, USAGE, DONE], Decision::End),
        ("Azure", &[azure, ROLE, TEXT, STOP, DONE], Decision::Content),
        ("comments", &[": x\n\n", ROLE, ": x\n\n", TEXT, STOP, DONE], Decision::Content),
    ] {
        assert_eq!(stream(frames), sent(decision, frames, How::Finished), "{what}");
    }
}

#[test]
fn the_content_type_is_a_hint_and_the_first_byte_decides() {
    let frames = [ROLE, TEXT, STOP, DONE];
    let bytes = frames.concat();
    for content_type in [
        None,
        Some(""),
        Some("TEXT/Event-Stream;charset=utf-8"),
        Some("application/json"),
        Some("text/html"),
        Some("junk"),
    ] {
        for first in ["", "\u{feff}", ": x\n\n", "\n", "retry: 5\n\n", "id: 1\n"] {
            let body = [first, &bytes].concat();
            let gate = Gate::new(&RULES, true, content_type, Until::Content);
            let seen = attempt(gate, &[body.as_bytes()], Tail::Clean);
            assert_eq!(
                seen,
                Seen::Sent(Decision::Content, body.into_bytes(), How::Finished),
                "{content_type:?} {first:?}"
            );
        }
    }
    for (content_type, class) in
        [("application/json", F::Malformed), ("text/html", F::Malformed), ("text/plain", F::Empty)]
    {
        let gate = Gate::new(&RULES, true, Some(content_type), Until::Content);
        assert_eq!(
            dropped(&attempt(gate, &[b"Service Unavailable"], Tail::Clean)),
            Some(class),
            "{content_type}"
        );
    }
}

#[test]
fn whole_answers_are_held_until_they_are_complete() {
    let mut gate = whole_gate();
    for byte in WHOLE.as_bytes() {
        assert_eq!(gate.on_bytes(Bytes::copy_from_slice(&[*byte])), Step::Read);
        assert_eq!((gate.has_timer(), gate.on_timeout()), (false, Step::Read));
    }
    assert_eq!(gate.on_end(), Step::Commit(Decision::Whole));
    let committed = gate.commit();
    assert!(committed.whole);
    assert_eq!(committed.held.concat(), WHOLE.as_bytes());

    for (body, class) in [
        ("", F::Empty),
        ("\n\n", F::Empty),
        ("<html>", F::Malformed),
        (&WHOLE[..30], F::Malformed),
        (&[ROLE, TEXT, STOP, DONE].concat(), F::Malformed),
        ("{\"error\":{\"code\":429}}", F::RateLimited),
        ("[{\"error\":{\"code\":503}}]", F::Overloaded),
        ("{\"choices\":[]}", F::Empty),
    ] {
        assert_eq!(dropped(&whole(body)), Some(class), "{body}");
    }
    assert_eq!(whole(&format!("\n\n{WHOLE}")), sent(Decision::Whole, &["\n\n", WHOLE], How::Complete));
    assert_eq!(dropped(&attempt(whole_gate(), &[WHOLE.as_bytes()], Tail::Broken)), Some(F::UpstreamError));
}

#[test]
fn a_whole_answer_above_the_limit_is_committed_and_passed_on() {
    let body = vec![b' '; GATE_WHOLE_BYTES_MAX];
    let mut gate = whole_gate();
    assert_eq!(gate.on_bytes(body.into()), Step::Read);
    assert_eq!(gate.on_bytes(Bytes::from_static(b" ")), Step::Commit(Decision::Bounds));
    let mut committed = gate.commit();
    assert!(!committed.whole && !committed.tap.is_stream());
    assert_eq!(committed.held.concat().len(), GATE_WHOLE_BYTES_MAX + 1);
    assert_eq!(committed.tap.on_bytes(b"{}"), Flow::Pass);
    assert!(committed.tap.saw_event());
    assert_eq!(committed.tap.on_end(), TapEnd::Complete);
}

#[test]
fn a_stream_is_committed_when_it_exceeds_what_is_held() {
    // 64 events: an error among them still moves on, one behind them does not.
    let held = ROLE.repeat(GATE_HELD_EVENTS_MAX - 1);
    assert_eq!(dropped(&stream(&[&held, ERROR])), Some(F::UpstreamError));
    let held = ROLE.repeat(GATE_HELD_EVENTS_MAX);
    assert_eq!(stream(&[&held, ERROR]), sent(Decision::Bounds, &[&held, ERROR], How::Raised));
    // 256 KiB, comments included.
    let pad = |bytes: usize| format!(": {}\n\n", "x".repeat(1020)).repeat(bytes / 1024);
    let error_at = GATE_HELD_BYTES_MAX - 1024;
    assert_eq!(dropped(&stream(&[&pad(error_at), ERROR])), Some(F::UpstreamError));
    let held = pad(GATE_HELD_BYTES_MAX);
    assert_eq!(stream(&[&held, ERROR]), sent(Decision::Bounds, &[&held, ERROR], How::Raised));
    let mut gate = stream_gate();
    assert_eq!(gate.on_bytes(Bytes::from(held)), Step::Read);
    assert_eq!(gate.on_bytes(Bytes::from_static(b":")), Step::Commit(Decision::Bounds));
    // 64 KiB in one event that has no end.
    let mut gate = stream_gate();
    let event = format!("data: {}", "x".repeat(GATE_EVENT_BYTES_MAX - 6));
    assert_eq!(gate.on_bytes(Bytes::from(event)), Step::Read);
    assert_eq!(gate.on_bytes(Bytes::from_static(b"x")), Step::Commit(Decision::Bounds));
    assert!(gate.commit().tap.is_mid_event());
    // Likewise where the end came with the same read: whatever it says, it was not looked at.
    let large = ERROR.replace("\"b\"", &format!("\"{}\"", "b".repeat(GATE_EVENT_BYTES_MAX)));
    let seen = stream(&[&large, TEXT, STOP, DONE]);
    assert_eq!(seen, sent(Decision::Bounds, &[&large, TEXT, STOP, DONE], How::Finished));
    // Nothing but blanks.
    let mut gate = stream_gate();
    assert_eq!(gate.on_bytes(vec![b'\n'; GATE_HELD_BYTES_MAX].into()), Step::Read);
    assert_eq!(gate.on_bytes(Bytes::from_static(b"\n")), Step::Commit(Decision::Bounds));
}

#[test]
fn blanks_beyond_what_is_held_are_passed_on_and_up_to_there_they_are_none_however_the_reads_cut() {
    let error = b"{\"error\":{\"message\":\"b\"}}";
    for (blanks, is_held) in [(GATE_HELD_BYTES_MAX, true), (GATE_HELD_BYTES_MAX + 1, false)] {
        let body = [&vec![b' '; blanks][..], error].concat();
        for size in [body.len(), 1_000, GATE_HELD_BYTES_MAX + 7, blanks] {
            let chunks: Vec<_> = body.chunks(size).collect();
            let gate = Gate::new(&RULES, true, Some("text/event-stream"), Until::Content);
            match (attempt(gate, &chunks, Tail::Clean), is_held) {
                (Seen::Dropped(fault), true) => assert_eq!(fault.class, F::UpstreamError),
                (Seen::Sent(decision, sent, how), false) => {
                    assert_eq!((decision, how), (Decision::Bounds, How::Cut), "reads of {size}");
                    assert!(body.starts_with(&sent));
                }
                (seen, _) => panic!("{blanks} blanks in reads of {size}: {seen:?}"),
            }
        }
    }
}

#[test]
fn an_undecided_stream_is_committed_when_the_time_is_over() {
    for held in ["", "\n", ": keep-alive\n\n", ROLE] {
        let mut gate = stream_gate();
        assert_eq!(gate.on_bytes(Bytes::from(held)), Step::Read, "{held}");
        assert!(gate.has_timer());
        assert_eq!(gate.on_timeout(), Step::Commit(Decision::Timeout));
        let mut committed = gate.commit();
        assert_eq!(committed.held.concat(), held.as_bytes());
        assert!(committed.tap.is_stream() && !committed.whole);
        assert_eq!(committed.tap.on_bytes(TEXT.as_bytes()), Flow::Pass);
        assert_eq!(committed.tap.on_bytes(DONE.as_bytes()), Flow::Finish);
    }
    let gate = Gate::new(&RULES, true, Some("application/json"), Until::Content);
    assert!(!gate.has_timer(), "a document is held until it is complete");
    assert!(!whole_gate().has_timer() && !complete_gate().has_timer());
}

#[test]
fn until_complete_a_done_behind_a_finish_that_is_no_frame_of_the_dialect_ends_the_stream() {
    let image = "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"x\"}\n\n";
    let done = "data: [DONE]\n\n";
    let gate =
        || Gate::new(&crate::dialect::openai_images::RULES, true, Some("text/event-stream"), Until::Complete);
    let seen = attempt(gate(), &[image.as_bytes(), done.as_bytes()], Tail::Clean);
    assert_eq!(seen, sent(Decision::Content, &[image, done], How::Finished));
    assert_eq!(dropped(&attempt(gate(), &[done.as_bytes()], Tail::Clean)), Some(F::Empty));
}

#[test]
fn until_complete_a_stream_is_held_to_its_terminal_frame() {
    let run = |frames: &[&str], tail| {
        let chunks: Vec<&[u8]> = frames.iter().map(|frame| frame.as_bytes()).collect();
        attempt(complete_gate(), &chunks, tail)
    };
    for (frames, decision, how) in [
        (&[ROLE, TEXT, STOP, USAGE, DONE][..], Decision::Content, How::Finished),
        (&[TEXT, DONE], Decision::Content, How::Finished),
        (&[ROLE, LENGTH, USAGE, DONE], Decision::End, How::Finished),
        (&[TEXT, STOP], Decision::Content, How::Complete),
        (&[ROLE, LENGTH], Decision::End, How::Complete),
    ] {
        assert_eq!(run(frames, Tail::Clean), sent(decision, frames, how), "{frames:?}");
    }
    for (frames, tail, class) in [
        (&[ROLE, TEXT][..], Tail::Clean, F::UpstreamError),
        (&[ROLE, TEXT], Tail::Broken, F::UpstreamError),
        (&[ROLE, TEXT, STOP], Tail::Broken, F::UpstreamError),
        (&[ROLE, TEXT, ERROR], Tail::Clean, F::UpstreamError),
        (&[ROLE, TEXT, "data: {\"error\":{\"code\":429}}\n\n", DONE], Tail::Clean, F::RateLimited),
        (&[ROLE, TEXT, FAIL, DONE], Tail::Clean, F::UpstreamError),
        (&[ROLE, TEXT, "data: {\"cho\n\n", DONE], Tail::Clean, F::Malformed),
        (&[ROLE, USAGE, DONE], Tail::Clean, F::Empty),
        (&[ROLE], Tail::Clean, F::Empty),
    ] {
        assert_eq!(dropped(&run(frames, tail)), Some(class), "{frames:?} {tail:?}");
    }
    // Neither the 64 events, nor a large one, nor the time open it; 4 MiB do.
    let mut gate = complete_gate();
    let large = TEXT.replace("Hi", &"x".repeat(2 * GATE_EVENT_BYTES_MAX));
    for frame in [TEXT; 200].into_iter().chain([large.as_str()]) {
        assert_eq!(gate.on_bytes(Bytes::copy_from_slice(frame.as_bytes())), Step::Read);
        assert_eq!(gate.on_timeout(), Step::Read);
    }
    let mut gate = complete_gate();
    let mut reads = 0;
    while gate.on_bytes(Bytes::copy_from_slice(large.as_bytes())) == Step::Read {
        reads += 1;
    }
    assert_eq!(reads, GATE_WHOLE_BYTES_MAX / large.len());
}
