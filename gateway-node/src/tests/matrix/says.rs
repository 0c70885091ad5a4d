//! What an upstream says is wrong, in the words of its dialect, and what the design makes of it.

use common::class::FailureClass as F;

/// How the errors of a dialect are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    OpenAi,
    Anthropic,
    Google,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// It failed.
    Failed,
    Overloaded,
    Throttled,
    TimedOut,
    /// The account has no money.
    Broke,
    /// It does not know our key.
    BadKey,
    /// It does not have the model that the catalog names.
    UnknownModel,
    /// The key may not do this, or not from here.
    Forbidden,
    /// A parameter of the request is wrong.
    Invalid,
    /// The prompt is too long.
    TooLong,
    /// The content policy forbids it.
    Policy,
}

impl Says {
    /// All that an error inside a 200 is played with.
    pub const ALL: [(Says, &'static str, &'static str); 11] = [
        (Says::Failed, "failed", "server error"),
        (Says::Overloaded, "overloaded", "overloaded"),
        (Says::Throttled, "throttled", "rate limit"),
        (Says::TimedOut, "timed-out", "timeout of the upstream's own"),
        (Says::Broke, "broke", "no credit left"),
        (Says::BadKey, "bad-key", "our key is refused"),
        (Says::UnknownModel, "unknown-model", "the model is not there"),
        (Says::Forbidden, "forbidden", "permission or region"),
        (Says::Invalid, "invalid", "invalid parameter"),
        (Says::TooLong, "too-long", "context length"),
        (Says::Policy, "policy", "content policy"),
    ];

    /// The class that the design gives it.
    pub fn class(self) -> F {
        match self {
            Says::Failed => F::UpstreamError,
            Says::Overloaded => F::Overloaded,
            Says::Throttled => F::RateLimited,
            Says::TimedOut => F::Timeout,
            Says::Broke => F::Balance,
            Says::BadKey => F::Credential,
            Says::UnknownModel | Says::Forbidden => F::Misconfigured,
            Says::Invalid | Says::TooLong | Says::Policy => F::BadRequest,
        }
    }

    /// The words; `None` where the vendor of the dialect has none for it.
    pub fn words(self, speech: Speech) -> Option<Words> {
        let words = match speech {
            Speech::OpenAi => self.openai(),
            Speech::Anthropic => self.anthropic()?,
            Speech::Google => self.google()?,
        };
        Some(words)
    }

    /// Applications look for it.
    fn shown(self) -> Option<&'static str> {
        (self == Says::TooLong).then_some("context_length_exceeded")
    }

    fn openai(self) -> Words {
        let (message, kind, code, param) = match self {
            Says::Failed => ("it broke", "server_error", "server_error", None),
            Says::Overloaded => ("try later", "server_error", "server_is_overloaded", None),
            Says::Throttled => ("slow down", "requests", "rate_limit_exceeded", None),
            Says::TimedOut => ("took too long", "server_error", "timeout", None),
            Says::Broke => ("check your plan", "insufficient_quota", "insufficient_quota", None),
            Says::BadKey => ("wrong key", "invalid_request_error", "invalid_api_key", None),
            Says::UnknownModel => ("no such model", "invalid_request_error", "model_not_found", None),
            Says::Forbidden => {
                ("not here", "request_forbidden", "unsupported_country_region_territory", None)
            }
            Says::Invalid => ("n must be positive", "invalid_request_error", "invalid_value", Some("n")),
            Says::TooLong => (
                "this model's maximum context length is 8 tokens",
                "invalid_request_error",
                "context_length_exceeded",
                Some("messages"),
            ),
            Says::Policy => ("flagged", "invalid_request_error", "content_policy_violation", None),
        };
        Words { message, kind: Some(kind), code: Some(code), param, ..Words::PLAIN }
    }

    fn anthropic(self) -> Option<Words> {
        let (message, kind) = match self {
            Says::Failed => ("Internal server error", "api_error"),
            Says::Overloaded => ("Overloaded", "overloaded_error"),
            Says::Throttled => ("slow down", "rate_limit_error"),
            Says::TimedOut => ("took too long", "timeout_error"),
            Says::Broke => ("check your plan", "billing_error"),
            Says::BadKey => ("invalid x-api-key", "authentication_error"),
            Says::UnknownModel => ("model: m-up", "not_found_error"),
            Says::Forbidden => ("not allowed", "permission_error"),
            Says::Invalid => ("max_tokens: must be positive", "invalid_request_error"),
            Says::TooLong => ("prompt is too long: 9 tokens > 8 maximum", "invalid_request_error"),
            Says::Policy => ("Output blocked by content filtering policy", "invalid_request_error"),
        };
        Some(Words { message, kind: Some(kind), shown: self.shown(), ..Words::PLAIN })
    }

    fn google(self) -> Option<Words> {
        let (message, number, status) = match self {
            Says::Failed => ("An internal error has occurred.", 500, "INTERNAL"),
            Says::Overloaded => ("The model is overloaded.", 503, "UNAVAILABLE"),
            Says::Throttled => ("Resource has been exhausted.", 429, "RESOURCE_EXHAUSTED"),
            Says::TimedOut => ("The request timed out.", 504, "DEADLINE_EXCEEDED"),
            Says::BadKey => ("Request had invalid authentication credentials.", 401, "UNAUTHENTICATED"),
            Says::UnknownModel => ("models/m-up is not found for API version v1beta.", 404, "NOT_FOUND"),
            Says::Forbidden => ("Permission denied.", 403, "PERMISSION_DENIED"),
            Says::Invalid => ("topK must be positive", 400, "INVALID_ARGUMENT"),
            Says::TooLong => (
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                400,
                "INVALID_ARGUMENT",
            ),
            Says::Broke | Says::Policy => return None,
        };
        Some(Words { message, kind: Some(status), number: Some(number), shown: self.shown(), ..Words::PLAIN })
    }
}

/// An error in an upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    pub message: &'static str,
    /// `type`, and Google's `status`.
    pub kind: Option<&'static str>,
    pub code: Option<&'static str>,
    /// `code` where that is a number.
    pub number: Option<u16>,
    pub param: Option<&'static str>,
    /// The code that callers are shown where it has none of its own.
    pub shown: Option<&'static str>,
}

impl Words {
    /// A message, and nothing that says what it means.
    pub const PLAIN: Words =
        Words { message: "so it is", kind: None, code: None, number: None, param: None, shown: None };

    /// What stands behind `"error":`.
    pub fn member(&self, speech: Speech) -> String {
        let text = |text: Option<&str>| text.map_or("null".into(), |text| format!("\"{text}\""));
        let (message, kind, param) = (self.message, text(self.kind), text(self.param));
        match speech {
            Speech::OpenAi => {
                let code = self.number.map_or(text(self.code), |number| number.to_string());
                format!(r#"{{"message":"{message}","type":{kind},"param":{param},"code":{code}}}"#)
            }
            Speech::Anthropic => format!(r#"{{"type":{kind},"message":"{message}"}}"#),
            Speech::Google => {
                let code = self.number.map_or("null".into(), |number| number.to_string());
                format!(r#"{{"code":{code},"message":"{message}","status":{kind}}}"#)
            }
        }
    }

    /// The whole document.
    pub fn document(&self, speech: Speech) -> String {
        let error = self.member(speech);
        match speech {
            Speech::Anthropic => format!(r#"{{"type":"error","error":{error},"request_id":"req_upstream"}}"#),
            Speech::OpenAi | Speech::Google => format!(r#"{{"error":{error}}}"#),
        }
    }
}
