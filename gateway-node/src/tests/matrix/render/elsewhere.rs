//! What does not fit into cells of one request against one fault, with the tests that show it.

use std::fmt::Write as _;

/// What is shown, in which file of tests, by tests whose names begin so.
const ROWS: &[(&str, &str, &str, &str)] = &[
    (
        "an upstream over HTTP/2 that refuses streams, or ends its connection in order (GOAWAY), loses no request and counts for nothing",
        "http_2_upstreams.rs",
        include_str!("../../http_2_upstreams.rs"),
        "br_126_",
    ),
    (
        "a prompt that is too long goes on to a route that declares a larger `context_window`, and to no other",
        "matrix/windows.rs",
        include_str!("../windows.rs"),
        "a_prompt_that_is_too_long_goes_on_to_a_larger_window_and_to_no_other_in_every_form",
    ),
    (
        "`overrides` of a channel give an error another class, in whatever way the upstream says it",
        "overrides.rs",
        include_str!("../../overrides.rs"),
        "br_006_a_rule_about_a_vendors_number_holds_for_statuses_bodies_and_frames_alike",
    ),
    (
        "a stored response that is taken up again as a stream (`GET …?stream=true`)",
        "bindings/by_id.rs",
        include_str!("../../bindings/by_id.rs"),
        "a_background_stream_is_taken_up_again_wherever_it_stood",
    ),
    (
        "an id that another node has bound, that nobody knows, or of which it cannot be told",
        "bindings.rs",
        include_str!("../../bindings.rs"),
        "what_another_node_bound_is_found_at_the_control_plane_once",
    ),
    (
        "one failure more inside the window opens the breaker again",
        "breaker.rs",
        include_str!("../../breaker.rs"),
        "one_more_failure_inside_the_window_opens_it_again",
    ),
];

pub fn write(text: &mut String) {
    text.push_str("\n## What is shown elsewhere\n\nIt takes more than one request or another catalog: tests of `gateway-node/src/tests`.\n\n");
    super::head(text, &["what", "where"]);
    for (what, file, source, name) in ROWS {
        let is_there = ["fn ", "async fn "].iter().any(|begin| source.contains(&format!("\n{begin}{name}")));
        assert!(is_there, "{file} has no test {name}");
        let rest = if name.ends_with('_') { "…" } else { "" };
        let _ = writeln!(text, "| {what} | `{file}`, `{name}{rest}` |");
    }
}
