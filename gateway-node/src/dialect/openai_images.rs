//! Images: whole answers, and the stream of partial images that ends in the finished one. An event is mostly larger
//! than what is kept of one, so that its name has to tell what it means.

use common::class::FailureClass as F;
use serde_json::Map;

use super::json::{is_error_event, kind, name, read};
use super::json_answer::{self, Wanted};
use super::sse::Event;
use super::{After, Rules, Verdict, openai_error, usage};
use crate::upstream::classify;
use crate::upstream::credential::Auth;

/// The rules of the dialect.
pub const RULES: Rules = Rules {
    auth: Auth::Bearer,
    headers: &[],
    judge,
    judge_whole: |body| json_answer::judge_whole(body, &IMAGES),
    observe,
    find_error: json_answer::find_error,
    usage: &usage::TOP,
    error_body: openai_error::body,
    closing_frame: openai_error::closing_event,
};

/// Filters of some upstreams leave images out, perhaps all.
const IMAGES: Wanted = Wanted { arrays: ["data", "data"], may_be_empty: true };

fn judge(event: &Event<'_>) -> Verdict {
    if event.is_opaque {
        return if is_error_event(event) { Verdict::failed(F::UpstreamError) } else { Verdict::Content };
    }
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Verdict::Hold;
    }
    if openai_error::is_done(data) {
        return Verdict::failed(F::Empty);
    }
    let Some(document) = read(data) else { return Verdict::failed(F::Malformed) };
    let kind = kind(event, &document);
    let error = openai_error::find_in_event(event, kind, &document, json_answer::find_error);
    match (error, kind) {
        (Some(parts), _) => Verdict::Error(Box::new(classify::error_value(&parts))),
        (None, Some("ping" | "keepalive")) => Verdict::Hold,
        (None, None) if document.is_null() || document.as_object().is_some_and(Map::is_empty) => {
            Verdict::Hold
        }
        (None, _) => Verdict::Content,
    }
}

fn observe(event: &Event<'_>) -> After {
    let name = name(event);
    if event.is_opaque || (name.is_some_and(|name| name != "error") && !may_be_error(event)) {
        return match name {
            Some("error") => After::FailedQuietly,
            // One for each image; the end of the body is the end of the last.
            Some(name) if name.ends_with(".completed") => After::Finish,
            Some(_) => After::Ordinary,
            // It may be the last image.
            None => After::Finish,
        };
    }
    if openai_error::is_done(event.data.trim_ascii()) {
        return After::Ends;
    }
    let Some(document) = read(event.data.trim_ascii()) else { return After::Ordinary };
    let member = document.as_object().and_then(|map| openai_error::find_member(map, true));
    match kind(event, &document) {
        _ if member.is_some() => After::Raises,
        _ if is_error_event(event) => After::FailedQuietly,
        Some("error") => After::FailedQuietly,
        Some(kind) if kind.ends_with(".completed") => After::Finish,
        _ => After::Ordinary,
    }
}

fn may_be_error(event: &Event<'_>) -> bool {
    memchr::memmem::find(&event.data, b"\"error\"").is_some()
}

#[cfg(test)]
mod tests;
