//! The stable error codes that callers see, with status and fixed text. A caller is shown nothing
//! that is not built from one of these, save the fault that an upstream found in the request itself.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $kind:literal, $text:literal;)+) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $name,)+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Code] = &[$(Code::$name,)+];

            /// The code as callers, counters and logs show it.
            pub fn as_str(self) -> &'static str { match self { $(Code::$name => $code,)+ } }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 { match self { $(Code::$name => $status,)+ } }

            /// The `type` of an error in the OpenAI dialects.
            pub fn kind(self) -> &'static str { match self { $(Code::$name => $kind,)+ } }

            /// What it means, in a sentence for the caller.
            pub fn text(self) -> &'static str { match self { $(Code::$name => $text,)+ } }
        }
    };
}

codes! {
    /// No key, or one that is not known.
    InvalidApiKey = "invalid_api_key", 401, "authentication_error",
        "the API key is missing, unknown or revoked";
    /// The account cannot pay for the worst case of this request.
    InsufficientBalance = "insufficient_balance", 402, "insufficient_balance",
        "the balance of this account does not cover the request";
    /// The catalog has no such model for this dialect.
    ModelNotFound = "model_not_found", 404, "invalid_request_error",
        "the model does not exist or is not served in this API";
    /// What a request continues was not made with this key, or nobody knows it any more.
    PreviousResponseNotFound = "previous_response_not_found", 400, "invalid_request_error",
        "there is no such previous response, or it was not made with this key";
    /// Whether there is such an id cannot be found out at the moment.
    BindingUnavailable = "binding_unavailable", 503, "server_error",
        "which channel made this id cannot be found out at the moment";
    /// A path or method that no dialect has.
    NotFound = "not_found", 404, "invalid_request_error", "there is no such path";
    /// The path exists, the method does not.
    MethodNotAllowed = "method_not_allowed", 405, "invalid_request_error", "this path takes another method";
    /// A body that is not what the dialect wants.
    InvalidRequest = "invalid_request", 400, "invalid_request_error", "the request body is not valid";
    /// The body took too long to arrive.
    RequestTimeout = "request_timeout", 408, "invalid_request_error", "the request body did not arrive in time";
    /// A body above the limit.
    RequestTooLarge = "request_too_large", 413, "invalid_request_error", "the request body is too large";
    /// The sum of all bodies is above the limit.
    GatewayOverloaded = "gateway_overloaded", 503, "server_error",
        "the gateway holds as many request bodies as it may";
    /// This node never had a config.
    NoConfig = "no_config", 503, "server_error", "this gateway node has no configuration yet";
    /// The node is going away.
    ShuttingDown = "shutting_down", 503, "server_error", "this gateway node is shutting down";
    /// Every channel is out before anything was sent, or only the operator can help.
    NoAvailableChannel = "no_available_channel", 503, "server_error",
        "no channel for this model is available at the moment";
    /// As above, because all of them are rate limited.
    AllRateLimited = "no_available_channel", 429, "rate_limit_error",
        "every channel for this model is rate limited at the moment";
    /// No response headers in time.
    UpstreamTimeout = "upstream_timeout", 504, "server_error", "the upstream did not answer in time";
    /// The upstream said that it has no capacity.
    UpstreamOverloaded = "upstream_overloaded", 503, "server_error", "the upstream is overloaded";
    /// The upstream said that we ask too often.
    UpstreamRateLimited = "upstream_rate_limited", 429, "rate_limit_error", "the upstream is rate limited";
    /// The upstream could not be reached.
    UpstreamUnavailable = "upstream_unavailable", 503, "server_error", "the upstream could not be reached";
    /// The upstream failed.
    UpstreamError = "upstream_error", 502, "server_error", "the upstream failed";
    /// The upstream broke off in the middle of an answer.
    UpstreamStreamError = "upstream_stream_error", 502, "upstream_stream_error",
        "the upstream broke off in the middle of the answer";
    /// The caller went away; in logs only.
    Canceled = "canceled", 499, "invalid_request_error", "the caller went away";
    /// A fault of our own.
    Internal = "internal_error", 500, "server_error", "the gateway failed";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
