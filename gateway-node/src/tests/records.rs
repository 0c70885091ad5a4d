//! What the record of a request says. That its decisions follow from it alone is checked of every request of every test:
//! see [`Recorded`].

use common::pb::fleet as pb;
use prost::Message as _;

use super::support::*;

/// The record of the one request that a node was asked.
fn only(node: &Node) -> pb::Record {
    let mut records = node.records.take();
    assert_eq!(records.len(), 1, "{records:#?}");
    records.remove(0)
}

const SECOND: u64 = 1_000_000;

#[tokio::test(start_paused = true)]
async fn a_failover_stands_in_it_with_every_attempt_and_its_times() {
    let node = Node::new(3);
    node.up("a").does([answer(503, "x-request-id: theirs\r\n", "{}")]);
    let usage = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\n";
    node.up("b").does([vec![
        Act::Wait(s(2)),
        sse_head(),
        chunk(&role()),
        Act::Wait(s(3)),
        chunk(&content("hello")),
        Act::Wait(s(4)),
        chunk(&finish()),
        chunk(usage),
        chunk(DONE),
        end(),
    ]]);
    let mut request = chat(true);
    request.headers_mut().insert("x-request-id", "mine-1".parse().unwrap());
    let answered = node.send(request).await;
    let id = answered.header("x-request-id").unwrap().to_owned();
    let (text, _) = answered.text().await;
    let record = only(&node);
    assert_eq!((record.request_id, record.client_request_id.as_str()), (id, "mine-1"));
    assert_eq!((record.model.as_str(), record.dialect.as_str()), ("m", "openai-chat"));
    assert_eq!((record.operation.as_str(), record.is_stream), ("/v1/chat/completions", true));
    assert_eq!((record.epoch, record.revision, record.boot_id.as_str()), (1, 1, "boot"));
    let chain: Vec<_> =
        record.chain.iter().map(|hop| (hop.channel.as_str(), hop.upstream_model.as_str())).collect();
    assert_eq!(chain, [("a", "m-at-a"), ("b", "m-at-b"), ("c", "m-at-c")]);
    let [first, second] = &record.attempts[..] else { panic!("{:#?}", record.attempts) };
    assert_eq!(
        (first.hop, first.class.as_str(), first.status, first.gate.as_str()),
        (0, "overloaded", 503, "")
    );
    assert_eq!(first.upstream_request_id, "theirs");
    assert_eq!(
        (second.hop, second.class.as_str(), second.status, second.gate.as_str()),
        (1, "ok", 200, "content")
    );
    let began = second.began_us;
    let times = [second.headers_us, second.first_byte_us, second.decisive_us]
        .map(|at| (at.unwrap() - began) / SECOND);
    assert_eq!(times, [2, 2, 5]);
    assert_eq!((record.committed_us.unwrap() - began) / SECOND, 5);
    assert_eq!((record.ended_us - began) / SECOND, 9, "its last bytes were handed on");
    assert_eq!((record.outcome.as_str(), record.status, record.code.as_str()), ("served", 200, ""));
    assert_eq!(record.answer_bytes, text.len() as u64);
    let used = record.usage.unwrap();
    assert_eq!((used.input, used.output), (7, 2));
}

#[tokio::test(start_paused = true)]
async fn times_to_the_first_byte_are_counted_as_the_caller_and_as_each_channel_saw_them() {
    let node = Node::new(2);
    let fails_late = [vec![Act::Wait(s(4))], failing(503)].concat();
    node.up("a").does([fails_late, stream("a")]);
    node.up("b").does([vec![
        Act::Wait(s(2)),
        sse_head(),
        chunk(&role()),
        Act::Wait(s(3)),
        chunk(&content("hello")),
        Act::Wait(s(30)),
        chunk(&finish()),
        chunk(DONE),
        end(),
    ]]);
    // Of the first answer: 4 s for nothing, 2 s until the first byte of the second channel, 3 s until it was decisive.
    for _ in 0..2 {
        node.call(true).await.text().await;
    }
    let observer = &node.gateway.observer;
    observer.seal().unwrap();
    let window = observer.next(observer.boot()).unwrap().unwrap().window.unwrap();
    let of = |channel: &str| {
        let times = window.first_bytes.iter().filter(|row| row.channel == channel && row.model == "m");
        times.map(|row| (row.bound_ms, row.count)).collect::<Vec<_>>()
    };
    assert_eq!(of(""), [(1, 1), (10_000, 1)]);
    assert_eq!(
        (of("a"), of("b")),
        (vec![(1, 1)], vec![(2200, 1)]),
        "a channel that failed has no first byte"
    );
}

#[tokio::test(start_paused = true)]
async fn why_a_channel_was_not_asked_stands_in_it() {
    let node = Node::new(2);
    node.up("a").does([failing(500), failing(500), failing(500), whole("a")]);
    node.up("b").does([whole("b")]);
    for _ in 0..4 {
        node.call(false).await.text().await;
    }
    let records = node.records.take();
    let last = records.last().unwrap();
    assert_eq!(last.chain[0].out, "breaker_open");
    let left = last.chain[0].out_until_us.unwrap();
    assert!(left > 59 * SECOND && left <= 60 * SECOND, "{left}");
    assert_eq!(last.attempts.iter().map(|attempt| attempt.hop).collect::<Vec<_>>(), [1]);
    assert!(records[..3].iter().all(|record| record.chain[0].out.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_was_told_stands_in_it() {
    let node = Node::new(2);
    node.up("a").does([
        failing(503),
        answer(400, "", r#"{"error":{"message":"no","type":"t","param":null,"code":null}}"#),
    ]);
    node.up("b").does([failing(500)]);
    for (request, outcome, status, code, attempts) in [
        (chat(false), "exhausted", 502, "upstream_error", 2),
        (chat(false), "bad_request", 400, "invalid_request", 1),
        (with_body(r#"{"model":"unknown"}"#), "model_not_found", 404, "model_not_found", 0),
        (with_body("{"), "invalid_request", 400, "invalid_request", 0),
        (post_json("/v1/nothing", "{}"), "not_found", 404, "not_found", 0),
    ] {
        let answered = node.send(request).await;
        assert_eq!(answered.status.as_u16(), status);
        answered.text().await;
        let record = only(&node);
        let told = (record.outcome.as_str(), record.status, record.code.as_str(), record.attempts.len());
        assert_eq!(told, (outcome, u32::from(status), code, attempts));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_leaves_a_record_of_what_was_seen_until_then() {
    let node = Node::new(1);
    node.up("a").does([vec![Act::Wait(s(1)), sse_head(), chunk(&role()), Act::Hang]]);
    let asking = tokio::time::timeout(s(5), node.call(true));
    assert!(asking.await.is_err());
    node.until_closed("a", s(1)).await;
    let record = only(&node);
    assert_eq!((record.outcome.as_str(), record.status, record.committed_us), ("canceled", 0, None));
    let attempt = &record.attempts[0];
    assert_eq!((attempt.class.as_str(), attempt.gate.as_str()), ("canceled", ""));
    assert_eq!(attempt.headers_us.map(|at| (at - attempt.began_us) / SECOND), Some(1));
    assert!(attempt.first_byte_us.is_some() && attempt.decisive_us.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_of_what_is_asked_or_answered_and_no_credential_stands_in_it() {
    let node = Node::new(2);
    let said = r#"{"error":{"message":"PLANTED-WORDS","type":"t","param":null,"code":null}}"#;
    node.up("a").does([answer(400, "", said)]);
    node.up("b").does([whole("PLANTED-ANSWER")]);
    node.send(with_body(r#"{"model":"m","messages":[{"role":"user","content":"PLANTED-PROMPT"}]}"#))
        .await
        .text()
        .await;
    node.up("a").does([failing(500)]);
    node.call(false).await.text().await;
    let bytes: Vec<u8> = node.records.take().iter().flat_map(|record| record.encode_to_vec()).collect();
    assert!(!bytes.is_empty());
    for planted in ["PLANTED", KEY, "sk-"] {
        assert!(memchr::memmem::find(&bytes, planted.as_bytes()).is_none(), "{planted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_catalog_has_is_kept_in_part() {
    let node = Node::new(1);
    let body = format!(r#"{{"model":"{}"}}"#, "世".repeat(10_000));
    node.send(with_body(&body)).await.text().await;
    let model = only(&node).model;
    assert!(model.len() <= 256 && model.starts_with('世'), "{}", model.len());
}
