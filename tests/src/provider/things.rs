//! What a simulated provider keeps under an id: the responses and videos that it made. Whoever made one finds it here,
//! and no other provider does.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::script::{Asked, Plan, Step, openai};

/// Everything that one provider made, by id.
#[derive(Debug, Default)]
pub(super) struct Things(BTreeMap<String, Asked>);

/// A path below an id.
struct Place<'a> {
    id: &'a str,
    below: &'a str,
    is_video: bool,
}

/// The bytes of a video.
pub fn content(id: &str) -> String {
    format!("\0\0\0\u{18}ftypmp42 {id} {}", "frame ".repeat(100_000))
}

fn place(path: &str) -> Option<Place<'_>> {
    let path = path.split('?').next().unwrap_or_default();
    let (rest, is_video) = match (path.split_once("/responses/"), path.split_once("/videos/")) {
        (Some((_, rest)), _) => (rest, false),
        (None, Some((_, rest))) => (rest, true),
        (None, None) => return None,
    };
    let (id, below) = rest.split_once('/').unwrap_or((rest, ""));
    Some(Place { id, below, is_video })
}

impl Things {
    /// Answers what is about a thing, or makes one in the background; `None` where the call is neither.
    pub(super) fn answer(&mut self, method: &str, asked: &Asked, body: &[u8]) -> Option<Plan> {
        if let Some(place) = place(&asked.path) {
            return Some(self.of_thing(method, &place, asked));
        }
        let path = asked.path.as_str();
        let is_made = method == "POST" && (path.ends_with("/responses") || path.ends_with("/videos"));
        if !is_made {
            return None;
        }
        let id = asked.answer_id();
        self.0.insert(id, asked.clone());
        let fields: Value = serde_json::from_slice(body).unwrap_or_default();
        let is_background = fields["background"] == true && !asked.stream;
        let waits = || whole(&openai::response(asked, "queued", json!([])));
        (path.ends_with("/responses") && is_background).then(waits)
    }

    fn of_thing(&mut self, method: &str, place: &Place<'_>, asked: &Asked) -> Plan {
        let Some(made) = self.0.get(place.id).cloned() else { return missing(place) };
        match (method, place.below, place.is_video) {
            ("DELETE", "", _) => {
                self.0.remove(place.id);
                let object = if place.is_video { "video.deleted" } else { "response" };
                whole(&json!({"id": place.id, "object": object, "deleted": true}))
            }
            ("GET", "", true) => whole(&openai::video(&made, "completed")),
            ("GET", "content", true) => {
                let headers = vec![
                    ("content-type", "video/mp4".to_owned()),
                    ("accept-ranges", "bytes".to_owned()),
                    ("set-cookie", "session=upstream".to_owned()),
                ];
                Plan::Answer { status: 200, headers, steps: vec![Step::Send(content(place.id).into())] }
            }
            ("POST", "remix", true) => {
                self.0.insert(asked.answer_id(), asked.clone());
                whole(&openai::video(asked, "queued"))
            }
            ("GET", "", false) if asked.path.contains("stream=true") => stream(&made, &asked.path),
            ("GET", "", false) => whole(&openai::completed(&made)),
            ("POST", "cancel", false) => whole(&openai::response(&made, "cancelled", json!([]))),
            ("GET", "input_items", false) => whole(&json!({
                "object": "list", "has_more": false, "first_id": "msg_in", "last_id": "msg_in",
                "data": [{"type": "message", "id": "msg_in", "role": "user", "status": "completed",
                    "content": [{"type": "input_text", "text": "grüß dich"}]}],
            })),
            _ => missing(place),
        }
    }
}

/// The events behind the one that the query names.
fn stream(made: &Asked, path: &str) -> Plan {
    let after = path.split(['?', '&']).find_map(|pair| pair.strip_prefix("starting_after="));
    let after: i64 = after.and_then(|number| number.parse().ok()).unwrap_or(-1);
    let events = openai::events(made);
    let number = |event: &str| -> Option<i64> {
        let (_, rest) = event.split_once("\"sequence_number\":")?;
        rest.split(',').next()?.trim().parse().ok()
    };
    let behind = events.split_inclusive("\n\n").filter(|event| number(event).is_none_or(|n| n > after));
    let steps = behind.map(|event| Step::Send(Bytes::copy_from_slice(event.as_bytes()))).collect();
    let headers = vec![("content-type", "text/event-stream; charset=utf-8".to_owned())];
    Plan::Answer { status: 200, headers, steps }
}

fn whole(document: &Value) -> Plan {
    let headers =
        vec![("content-type", "application/json".to_owned()), ("set-cookie", "session=upstream".to_owned())];
    let body = Bytes::from(format!("{document:#}\n"));
    Plan::Answer { status: 200, headers, steps: vec![Step::Send(body)] }
}

fn missing(place: &Place<'_>) -> Plan {
    let what = if place.is_video { "Video" } else { "Response" };
    let message = format!("{what} with id '{}' not found.", place.id);
    let error = json!({"message": message, "type": "invalid_request_error", "param": null, "code": null});
    let Plan::Answer { headers, steps, .. } = whole(&json!({ "error": error })) else { return Plan::Reset };
    Plan::Answer { status: 404, headers, steps }
}
