//! A prompt that is too long for one route goes on to one that declares a larger window and to no other, in whatever
//! form it is asked and however the upstream says so.

use super::faults::{self, Play};
use super::forms::{FORMS, Way};
use super::play::play_with;

const TOO_LONG: [&str; 4] = ["400-too-long", "first-too-long", "behind-too-long", "json-too-long"];

#[test]
fn a_prompt_that_is_too_long_goes_on_to_a_larger_window_and_to_no_other_in_every_form() {
    let faults = faults::all();
    let mut played = 0;
    for form in FORMS.iter().filter(|form| form.way == Way::Chain && !form.is_held) {
        for fault in faults.iter().filter(|fault| TOO_LONG.contains(&fault.id.as_str())) {
            for (windows, calls, server) in [
                ([8_000, 8_000, 128_000], [1, 0, 1], Some("c")),
                ([8_000, 128_000, 9_000], [1, 1, 0], Some("b")),
                ([8_000, 0, 8_000], [1, 0, 0], None),
                // Nothing says that the others are larger.
                ([0, 128_000, 128_000], [1, 0, 0], None),
            ] {
                let Some(first) = fault.play(form, "a") else { continue };
                let plays = [first, Play::healthy(form, "b"), Play::healthy(form, "c")];
                let seen = play_with(form, &plays, |snapshot| {
                    let routes = &mut snapshot.models[0].chains[0].routes;
                    routes.iter_mut().zip(windows).for_each(|(route, window)| route.context_window = window);
                });
                let what = format!("{} {}, {}, {windows:?}", form.dialect, form.name, fault.id);
                assert_eq!(seen.calls, calls, "{what}");
                match server {
                    Some(who) => assert_eq!((seen.status, seen.body), (200, form.good(who)), "{what}"),
                    None => assert_eq!(seen.status, 400, "{what}"),
                }
                let end = if server.is_some() { "served" } else { "bad_request" };
                assert_eq!(seen.requests, [(end.to_owned(), 1)].into(), "{what}");
                played += 1;
            }
        }
    }
    assert!(played > 150, "{played}");
}
