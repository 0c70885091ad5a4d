//! The words by which upstreams name their faults, and the phrases that are looked for where no name helps.
//!
//! A name is trusted: programs wrote it. A phrase is not: upstreams echo what a caller sent, so that a prompt
//! must never be able to suspend a channel. Phrases with such an effect are looked for only in front of anything
//! that is quoted.

use common::class::FailureClass as F;
pub(crate) use common::profile::unquoted;
use common::walk::Reason;

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// More than any status: this and nothing else is the matter.
    Exact(F, Reason),
    /// The kind of fault, where no status says it.
    General(F),
}

/// What a `code`, `type`, `status`, … says; `None` for names that are not known.
pub(super) fn word(name: &str) -> Option<Word> {
    use Word::{Exact, General};
    let name = name.to_ascii_lowercase();
    // AWS writes `namespace#Name`, and sometimes `Name:url`.
    let name = name.rsplit('#').next().unwrap_or_default();
    Some(match name.split("://").next().unwrap_or_default() {
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "enforced_spend_limit_reached"
        | "contract_spend_limit_reached"
        | "billing_error"
        | "billing_not_active"
        | "billing_hard_limit_reached"
        | "payment_required"
        | "insufficient_balance"
        | "insufficient_credits"
        | "insufficient_user_quota"
        | "personal-team-blocked:spending-limit" => Exact(F::Balance, Reason::Plain),

        "context_length_exceeded"
        | "exceed_context_size_error"
        | "token_limit_exceeded"
        | "max_tokens_exceeded"
        | "model_context_window_exceeded" => Exact(F::BadRequest, Reason::ContextLength),

        "content_filter"
        | "content_policy_violation"
        | "cyber_policy"
        | "bio_policy"
        | "invalid_prompt"
        | "responsibleaipolicyviolation"
        | "data_inspection_failed"
        | "image_content_policy_violation"
        | "moderation_blocked"
        | "refusal" => Exact(F::BadRequest, Reason::ContentPolicy),

        "invalid_api_key"
        | "authentication_error"
        | "authentication"
        | "unauthenticated"
        | "api_key_invalid"
        | "invalid_authentication"
        | "invalid_authentication_error"
        | "account_deactivated" => Exact(F::Credential, Reason::Plain),

        "model_not_found"
        | "deploymentnotfound"
        | "model_decommissioned"
        | "not_found"
        | "not_found_error"
        | "notfounderror"
        | "resourcenotfoundexception"
        | "permission_error"
        | "permission_denied"
        | "permission"
        | "accessdeniedexception"
        | "failed_precondition"
        | "precondition_failed"
        | "unsupported_country_region_territory" => Exact(F::Misconfigured, Reason::Plain),

        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limited"
        | "ratelimiterror"
        | "too_many_requests"
        | "resource_exhausted"
        | "servicequotaexceededexception"
        | "modelnotreadyexception"
        | "ramp_limit_exceeded"
        | "requests_rate_limit_exceeded"
        | "tokens_rate_limit_exceeded" => General(F::RateLimited),

        "overloaded_error"
        | "overloaded"
        | "server_is_overloaded"
        | "engine_overloaded"
        | "engine_overloaded_error"
        | "service_unavailable"
        | "service_unavailable_error"
        | "serviceunavailable"
        | "serviceunavailableerror"
        | "serviceunavailableexception"
        | "unavailable"
        | "unavailable_error"
        | "provider_overloaded"
        | "capacity_exceeded"
        | "model_overloaded"
        | "slow_down" => General(F::Overloaded),

        "timeout_error"
        | "timeout"
        | "timeouterror"
        | "gateway_timeout"
        | "deadline_exceeded"
        | "modeltimeoutexception" => General(F::Timeout),

        "conflict_error" | "conflict" | "aborted" => General(F::Transient),

        "server_error"
        | "servererror"
        | "server"
        | "internal"
        | "internal_error"
        | "internal_server_error"
        | "internalservererror"
        | "internalserverexception"
        | "api_error"
        | "upstream_error"
        | "provider_unavailable"
        | "bad_gateway"
        | "unmapped"
        | "modelerrorexception"
        | "modelstreamerrorexception" => General(F::UpstreamError),

        "payload_too_large" | "request_too_large" | "request_entity_too_large" => {
            Exact(F::BadRequest, Reason::TooLarge)
        }

        // A server of tools that the request names does not answer.
        "external_connector_error" => Exact(F::BadRequest, Reason::Plain),

        "badrequesterror"
        | "bad_request"
        | "bad_request_error"
        | "validationexception"
        | "validation_error"
        | "unprocessable"
        | "unprocessable_entity"
        | "unprocessableentityerror"
        | "string_too_long"
        | "out_of_range"
        | "image_too_large"
        | "image_too_small"
        | "image_file_too_large"
        | "image_parse_error"
        | "image_file_not_found"
        | "empty_image_file"
        | "failed_to_download_image" => General(F::BadRequest),

        other if other.starts_with("throttling") => General(F::RateLimited),
        other if ["invalid_", "unsupported_", "missing_"].iter().any(|start| other.starts_with(start)) => {
            General(F::BadRequest)
        }
        _ => return None,
    })
}

/// What a message says by itself: the last resort.
pub(super) fn phrase(message: &str) -> Option<(F, Reason)> {
    let head = unquoted(message);
    let said = |phrases: &[&str]| phrases.iter().any(|phrase| head.contains(phrase));
    Some(match () {
        () if is_about_money(&head) => (F::Balance, Reason::Plain),
        () if is_about_key(&head) => (F::Credential, Reason::Plain),
        () if said(&["rate limit", "rate-limit", "ratelimit", "too many requests", "throttl"]) => {
            (F::RateLimited, Reason::Plain)
        }
        () if said(&["overloaded", "over capacity", "at capacity", "no capacity", "unavailable"]) => {
            (F::Overloaded, Reason::Plain)
        }
        () if said(&["timed out", "timeout"]) => (F::Timeout, Reason::Plain),
        () if is_about_length(message) => (F::BadRequest, Reason::ContextLength),
        () if is_about_policy(message) => (F::BadRequest, Reason::ContentPolicy),
        () => return None,
    })
}

/// Takes what [`unquoted`] gives.
pub(super) fn is_about_money(head: &str) -> bool {
    let phrases = [
        "credit balance is too low",
        "insufficient balance",
        "insufficient account balance",
        "insufficient credits",
        "spend limit",
        "spending limit",
        "reached your specified api usage limits",
        "exceeded your current quota",
    ];
    phrases.iter().any(|phrase| head.contains(phrase))
}

/// Takes what [`unquoted`] gives.
pub(super) fn is_about_key(head: &str) -> bool {
    let phrases = [
        "api key not valid",
        "invalid api key",
        "incorrect api key",
        "api key is invalid",
        "api key expired",
    ];
    phrases.iter().any(|phrase| head.contains(phrase))
}

/// Whether the message says that the upstream does not know the model that we asked it for. A name may be quoted right
/// behind the word; nothing that is quoted later counts.
pub(super) fn is_about_model(message: &str) -> bool {
    let lower = message.trim().to_lowercase();
    let missing = [
        "not exist",
        "not found",
        "no access",
        "not have access",
        "not available",
        "deprecated",
        "decommissioned",
    ];
    let is_missing = |text: &str| {
        let head = unquoted(text);
        missing.iter().any(|phrase| head.contains(phrase))
    };
    let is_id = |name: &str| !name.trim_end().contains(char::is_whitespace);
    if ["invalid model", "unknown model", "no such model"].iter().any(|start| lower.starts_with(start))
        || lower.strip_suffix("is not a valid model id").is_some_and(is_id)
    {
        return true;
    }
    let starts = ["the requested model", "the model", "this model", "model"];
    let Some(rest) = starts.iter().find_map(|start| lower.strip_prefix(start)) else { return false };
    if !rest.starts_with([' ', ':']) {
        return false;
    }
    let rest = rest.trim_start_matches([' ', ':']);
    let rest = ["with id ", "with name ", "named ", "id "]
        .iter()
        .find_map(|by| rest.strip_prefix(by))
        .unwrap_or(rest);
    is_missing(rest) || rest.split_once(' ').is_some_and(|(_name, rest)| is_missing(rest))
}

/// Whether something that the request names is not that account's, or not ready, as Google says it of files and cached
/// content (under a 403, as if the key were at fault, or as a precondition of the account). Takes lower case.
pub(super) fn is_about_resource(message: &str) -> bool {
    message.starts_with("cachedcontent not found")
        || (message.starts_with("the file ") && message.contains("is not in an active state"))
        || (message.starts_with("you do not have permission to access the file")
            && message.ends_with("or it may not exist."))
}

/// Whether what is missing has an id that the request names, as OpenAI says it of what it stores.
pub(super) fn is_about_id(message: &str) -> bool {
    let head = unquoted(message);
    (head.contains(" with id") || head.starts_with("no such file"))
        && !["model", "deployment"].iter().any(|ours| head.contains(ours))
}

/// What it decides is harmless, so the whole message is looked at.
pub(super) fn is_about_length(message: &str) -> bool {
    let lower = message.to_lowercase();
    let phrases = [
        "maximum context length",
        "context length exceeded",
        "exceeds the context",
        "exceed the context",
        "exceeds the available context size",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
    ];
    phrases.iter().any(|phrase| lower.contains(phrase))
}

/// What it decides is harmless, so the whole message is looked at.
pub(super) fn is_about_policy(message: &str) -> bool {
    let lower = message.to_lowercase();
    let phrases = [
        "content filtering policy",
        "content management policy",
        "content policy",
        "usage guidelines",
        "usage policies",
        "flagged",
    ];
    phrases.iter().any(|phrase| lower.contains(phrase))
}
