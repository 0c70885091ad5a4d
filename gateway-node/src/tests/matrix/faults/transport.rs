//! What happens before response headers, and callers that leave.

use common::class::FailureClass as F;

use super::super::super::support::{Act, Unreachable, ms, s};
use super::super::forms::{Answer, Form, Way};
use super::{Ends, Failed, Fault, Phase, Play, fault};

/// What is no fault, as far as headers tell.
pub fn none() -> Vec<Fault> {
    vec![
        fault(Phase::None, "healthy", "a good answer", |form, who| Some(Play::healthy(form, who))),
        fault(Phase::None, "slow-headers", "response headers after 239 s", |form, who| {
            let script = [vec![Act::Wait(s(239))], form.healthy(who)].concat();
            let (bytes, media) = (form.good(who), form.media());
            Some(Play::new(script, Ends::Served { bytes, media, after: s(239), took: s(239) }))
        }),
        fault(Phase::None, "stale", "a pooled connection closed as it is used again", |form, who| {
            if !uses_the_pool(form) {
                return None;
            }
            let scripts = vec![form.healthy(who), vec![Act::Close], form.healthy(who)];
            Some(Play { scripts, is_warm: true, calls: 2, ..Play::healthy(form, who) })
        }),
    ]
}

/// A submission goes over a connection of its own, so that none is ever found stale.
fn uses_the_pool(form: &Form) -> bool {
    form.way != Way::Submission
}

/// Faults of connections.
pub fn faults() -> Vec<Fault> {
    let unreachable = |id, what, why, takes| {
        fault(Phase::Transport, id, what, move |_, _| {
            let failed = Failed { is_untaken: true, ..Failed::after(F::Connect, takes) };
            let play = Play::failing(vec![], failed);
            Some(Play { unreachable: Some(why), calls: 0, ..play })
        })
    };
    let answers = |id, what, script: fn() -> Vec<Act>, failed: fn() -> Failed| {
        fault(Phase::Transport, id, what, move |_, _| Some(Play::failing(script(), failed())))
    };
    let warm = |id, what, scripts: fn() -> Vec<Vec<Act>>, failed: fn() -> Failed| {
        fault(Phase::Transport, id, what, move |form: &Form, who| {
            if !uses_the_pool(form) {
                return None;
            }
            let scripts: Vec<_> = [vec![form.healthy(who)], scripts()].concat();
            let calls = scripts.len() - 1;
            Some(Play { scripts, is_warm: true, calls, ..Play::failing(vec![], failed()) })
        })
    };
    let connect = || Failed::of(F::Connect);
    vec![
        unreachable("refused", "connection refused", Unreachable::Refused, s(0)),
        unreachable("dns", "the name does not resolve", Unreachable::Unresolved, s(0)),
        unreachable("tls", "the TLS handshake fails", Unreachable::Untrusted, s(0)),
        unreachable("connect-timeout", "no connection within 10 s", Unreachable::Silent, s(10)),
        answers("closed", "a fresh connection closed before the headers", || vec![Act::Close], connect),
        answers(
            "half-head",
            "closed inside the headers",
            || vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec()), Act::Close],
            connect,
        ),
        answers(
            "no-http",
            "something that is no HTTP",
            || vec![Act::Send(b"SSH-2.0-upstream\r\n\r\n".to_vec()), Act::Close],
            connect,
        ),
        warm(
            "stale-twice",
            "a stale pooled connection, then the fresh one closed too",
            || vec![vec![Act::Close], vec![Act::Close]],
            connect,
        ),
        warm(
            "stale-late",
            "a pooled connection closed 6 s after sending",
            || vec![vec![Act::Wait(s(6)), Act::Close]],
            || Failed::after(F::Connect, s(6)),
        ),
        answers(
            "headers-timeout",
            "no response headers within 240 s",
            || vec![Act::Hang],
            || Failed::after(F::Timeout, s(240)),
        ),
    ]
}

/// Callers that leave.
pub fn callers() -> Vec<Fault> {
    vec![
        fault(Phase::Caller, "gone-waiting", "the caller leaves before the headers", |_, _| {
            Some(Play::new(vec![Act::Hang], Ends::Left { has_answer: false }))
        }),
        fault(Phase::Caller, "gone-held", "the caller leaves while the answer is held", |form, who| {
            let begun = match &form.answer {
                Answer::Stream(stream) => stream.preamble.replace("WHO", who),
                Answer::Whole(body) | Answer::Sound(body) => {
                    body.replace("WHO", who).chars().take(9).collect()
                }
            };
            let script = [form.begins(&[begun]), vec![Act::Hang]].concat();
            Some(Play::new(script, Ends::Left { has_answer: false }))
        }),
        fault(
            Phase::Caller,
            "gone-streaming",
            "the caller leaves in the middle of the stream",
            |form, who| {
                let stream = form.stream()?;
                let begun = [stream.preamble, stream.content].concat().replace("WHO", who);
                let script = [form.begins(&[begun]), vec![Act::Wait(ms(900_000))]].concat();
                Some(Play::new(script, Ends::Left { has_answer: true }))
            },
        ),
    ]
}
