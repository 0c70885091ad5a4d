//! Layer 4 through the whole path.

use super::support::*;

#[tokio::test(start_paused = true)]
async fn headers_at_239_seconds_pass_and_at_241_the_next_channel_is_asked() {
    for (seconds, channel) in [(239, "a"), (241, "b")] {
        let node = Node::new(2);
        node.up("a").does([[vec![Act::Wait(s(seconds))], whole("a")].concat()]);
        node.up("b").does([whole("b")]);
        let answered = node.call(false).await;
        assert_eq!(answered.header("x-sluice-channel"), Some(channel), "headers at {seconds} s");
        assert_eq!(answered.after, s(seconds.min(240)));
    }
}

#[tokio::test(start_paused = true)]
async fn after_two_headers_timeouts_the_third_channel_is_not_asked() {
    let node = Node::new(3);
    for name in ["a", "b", "c"] {
        node.up(name).does([vec![Act::Hang]]);
    }
    let answered = node.call(true).await;
    assert_eq!((answered.status.as_u16(), answered.after), (504, s(480)));
    assert_eq!(answered.header("x-should-retry"), Some("false"));
    assert_eq!(answered.code().await.1, "upstream_timeout");
    assert_eq!(node.called(), [1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn br_027_a_slow_healthy_stream_of_twenty_minutes_is_not_cut() {
    let node = Node::new(1);
    let mut script = vec![sse_head()];
    for _ in 0..120 {
        script.extend([chunk(&content("x")), Act::Wait(s(10))]);
    }
    script.extend([chunk(&finish()), chunk(DONE), end()]);
    node.up("a").does([script]);
    let (text, took) = node.call(true).await.text().await;
    assert_eq!(took, s(1200));
    assert_eq!(text, [content("x").repeat(120), finish(), DONE.into()].concat());
    assert_eq!(node.counted().1, [("served".into(), 1)].into());
}
