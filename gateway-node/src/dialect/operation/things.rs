//! Operations on what has an id, or gives it one: stored responses and videos; and what of that there is not. Pure.

use common::dialect::Dialect;
use http::Method;

use super::super::{Rules, named, openai_responses};
use super::rows::{OPENAI, OPENAI_AND_GOOGLE};
use super::{Ability, Asked, Input, Operation, Verb};

pub(super) const OPERATIONS: &[Operation] = &[
    response(Verb::Read, &openai_responses::STORED, "/responses/{id}"),
    response(Verb::Delete, &named::DONE, "/responses/{id}"),
    response(Verb::Change, &named::DONE, "/responses/{id}/cancel"),
    response(Verb::Read, &named::THING, "/responses/{id}/input_items"),
    video(Input::FormOr("sora-2"), &named::THING, "/videos"),
    video(Input::Named(Verb::Make), &named::THING, "/videos/{id}/remix"),
    video(Input::Named(Verb::Read), &named::THING, "/videos/{id}"),
    video(Input::Named(Verb::Delete), &named::DONE, "/videos/{id}"),
    Operation {
        ability: Ability::Download,
        ..video(Input::Named(Verb::Read), &named::CONTENT, "/videos/{id}/content")
    },
];

/// What a stored response, or the list of its input, may be asked for with.
pub(super) const OF_RESPONSES: [&str; 9] = [
    "include",
    "include[]",
    "include_obfuscation",
    "starting_after",
    "stream",
    "after",
    "before",
    "limit",
    "order",
];

const fn response(verb: Verb, rules: &'static Rules, path: &'static str) -> Operation {
    Operation {
        dialect: Dialect::OpenaiResponses,
        rules,
        input: Input::Named(verb),
        ability: Ability::Answer,
        path,
        prefixes: OPENAI,
        upstream_path: path,
    }
}

const fn video(input: Input, rules: &'static Rules, path: &'static str) -> Operation {
    Operation {
        dialect: Dialect::OpenaiVideos,
        rules,
        input,
        ability: Ability::Answer,
        path,
        prefixes: OPENAI_AND_GOOGLE,
        upstream_path: path,
    }
}

/// What stands where an id could, and is something else: with a text where that is a thing that this version does
/// not do.
const NO_IDS: &[(&str, Option<&str>)] = &[
    ("/v1/responses/compact", None),
    ("/v1/responses/input_tokens", None),
    ("/v1/videos/edits", Some(NO_CHARACTERS)),
    ("/v1/videos/extensions", Some(NO_CHARACTERS)),
    ("/v1/videos/characters", Some(NO_CHARACTERS)),
];

const NO_LIST: &str = "there is no list of videos: each channel has its own, and a key sees only what it made; \
                       keep the ids, and ask for each";
const NO_CHARACTERS: &str = "this version of the gateway makes and remixes videos; it does not edit or extend them, and \
                             has no characters";
const NO_CONVERSATIONS: &str = "conversations are not served: they belong to no one model, so that no channel can be \
                                chosen for them; go on by previous_response_id, or send the whole conversation as input";

/// Why there is not what a path seems to ask for, where more can be said than that.
pub(super) fn not_there(method: &Method, path: &str) -> Option<Asked<'static>> {
    let is_below =
        |start: &str| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if let Some((_, text)) = NO_IDS.iter().find(|(start, _)| is_below(start)) {
        return Some(text.map_or(Asked::Nothing, Asked::NotServed));
    }
    match path {
        "/v1/videos" if method == Method::GET => Some(Asked::NotServed(NO_LIST)),
        _ if is_below("/v1/conversations") => Some(Asked::NotServed(NO_CONVERSATIONS)),
        _ => None,
    }
}
