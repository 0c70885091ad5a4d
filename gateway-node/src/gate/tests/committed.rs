//! What the tap says of an answer that the caller already sees.

use super::*;

#[test]
fn after_commit_the_tap_says_how_the_answer_ends() {
    let tap = || {
        let mut gate = stream_gate();
        assert_eq!(gate.on_bytes(Bytes::from_static(TEXT.as_bytes())), Step::Commit(Decision::Content));
        gate.commit().tap
    };
    let mut done = tap();
    assert_eq!(done.on_bytes([STOP, DONE].concat().as_bytes()), Flow::Finish);
    assert_eq!(done.on_bytes(b"more"), Flow::Finish, "what follows is forwarded");
    assert_eq!(done.on_end(), TapEnd::Complete);

    let mut raised = tap();
    assert_eq!(raised.on_bytes(ERROR.as_bytes()), Flow::Raised);
    assert_eq!(raised.on_bytes(DONE.as_bytes()), Flow::Raised);
    assert_eq!(raised.on_end(), TapEnd::Truncated);

    let mut failed = tap();
    let chunk = [TEXT, FAIL, DONE].concat();
    assert_eq!(failed.on_bytes(chunk.as_bytes()), Flow::Replace { keep: TEXT.len() + FAIL.len() });
    assert_eq!(failed.on_bytes(DONE.as_bytes()), Flow::Replace { keep: 0 });
    assert_eq!(failed.on_end(), TapEnd::Truncated);

    let mut cut = tap();
    assert_eq!(cut.on_bytes(&TEXT.as_bytes()[..9]), Flow::Pass);
    assert!(cut.is_mid_event() && !cut.saw_event());
    assert_eq!(cut.on_end(), TapEnd::Truncated);

    let mut unclosed = tap();
    assert_eq!(unclosed.on_bytes(STOP.trim_end().as_bytes()), Flow::Pass);
    assert_eq!(unclosed.on_end(), TapEnd::Complete);
    assert!(unclosed.is_mid_event(), "the blank line is still missing");
}

#[test]
fn only_events_keep_a_stream_from_being_idle() {
    let mut tap = attempt_to_commit(&[TEXT]).tap;
    for (chunk, is_event) in [
        (": keep-alive\n\n", false),
        ("\n\n", false),
        ("retry: 5\n\n", false),
        (TEXT, true),
        ("", false),
        ("data: {", false),
        ("}\n\n", true),
        (": x\n\ndata: {}\n\n: y\n\n", true),
    ] {
        tap.on_bytes(chunk.as_bytes());
        assert_eq!(tap.saw_event(), is_event, "{chunk:?}");
    }
}

#[test]
fn what_the_held_bytes_already_say_is_not_lost() {
    for (frames, flow, held) in [
        (&[TEXT, STOP, DONE][..], Flow::Finish, [TEXT, STOP, DONE].concat()),
        (&[TEXT, ERROR], Flow::Raised, [TEXT, ERROR].concat()),
        (
            &[ROLE, TEXT, FAIL, DONE],
            Flow::Replace { keep: ROLE.len() + TEXT.len() + FAIL.len() },
            [ROLE, TEXT, FAIL].concat(),
        ),
        (&[TEXT, STOP], Flow::Pass, [TEXT, STOP].concat()),
    ] {
        let committed = attempt_to_commit(frames);
        assert_eq!(committed.flow, flow);
        assert_eq!(committed.held.concat(), held.as_bytes());
        let mut tap = committed.tap;
        let after = tap.on_bytes(b": x\n\n");
        assert_eq!(after, if let Flow::Replace { .. } = flow { Flow::Replace { keep: 0 } } else { flow });
    }
}

/// Gives all frames in one read, which must decide.
fn attempt_to_commit(frames: &[&str]) -> Committed {
    let mut gate = stream_gate();
    assert!(matches!(gate.on_bytes(Bytes::from(frames.concat())), Step::Commit(_)));
    gate.commit()
}
