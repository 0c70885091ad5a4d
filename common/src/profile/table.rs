//! The profiles. Each rule says where it comes from; what a vendor does as the dialect has it is not
//! repeated. No profile sets headers: what a dialect needs is the dialect's, and what an operator
//! wants besides (such as OpenRouter's `x-title`) is the operator's.

use std::borrow::Cow;

use super::{Auth, Limits, Override, Profile};
use crate::class::FailureClass;
use crate::dialect::Dialect::{
    AnthropicMessages, Gemini, OpenaiAudio, OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiImages,
    OpenaiModerations, OpenaiResponses, OpenaiVideos,
};

/// What a server does that does all as the dialects have it.
const PLAIN: Profile = Profile {
    name: "",
    base_url: "",
    appended: &[],
    speaks: &[],
    auth: None,
    paths: &[],
    query: &[],
    overrides: &[],
    limits: Limits::Route,
    refuses_unknown_fields: false,
};

const fn rule(status: u16, code: &'static str, class: FailureClass) -> Override {
    Override { status: Some(status), code: Some(Cow::Borrowed(code)), message: None, class }
}

const DEPLOYMENTS: &str = "/openai/deployments/{model}{operation}";
const AZURE_V1: &str = "/openai/v1{operation}";
const GOOGLES_OPENAI: &str = "/openai{operation}";

/// Where Azure says that a deployment does something else than what is asked, it says so under a 400
/// (`OperationNotSupported`, seen in public reports such as microsoft/graphrag#1557): our catalog is at
/// fault, not the request.
const AZURE: &[Override] = &[rule(400, "OperationNotSupported", FailureClass::Misconfigured)];

/// Every profile, by name.
pub const PROFILES: &[Profile] = &[
    // platform.claude.com, "OpenAI SDK compatibility": chat under the same base address, with a bearer.
    Profile {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1",
        speaks: &[AnthropicMessages, OpenaiChat],
        ..PLAIN
    },
    // learn.microsoft.com, "Azure OpenAI REST API reference": `api-key`, and `api-version` in each
    // address. Which operations lie below a deployment is in the official SDKs (openai-python,
    // lib/azure.py); 2024-10-21 is the last dated version that is no preview.
    Profile {
        name: "azure-openai",
        base_url: "https://NAME.openai.azure.com",
        appended: &["/openai", "/openai/v1", "/openai/deployments"],
        speaks: &[
            OpenaiChat,
            OpenaiCompletions,
            OpenaiResponses,
            OpenaiEmbeddings,
            OpenaiImages,
            OpenaiAudio,
        ],
        auth: Some(Auth::API_KEY),
        paths: &[
            (OpenaiChat, DEPLOYMENTS),
            (OpenaiCompletions, DEPLOYMENTS),
            (OpenaiEmbeddings, DEPLOYMENTS),
            (OpenaiImages, DEPLOYMENTS),
            (OpenaiAudio, DEPLOYMENTS),
            (OpenaiResponses, "/openai{operation}"),
        ],
        query: &[("api-version", "2024-10-21")],
        overrides: AZURE,
        ..PLAIN
    },
    // learn.microsoft.com, "API version lifecycle": `/openai/v1` without `api-version`; the `model` of
    // the body is the deployment.
    Profile {
        name: "azure-openai-v1",
        base_url: "https://NAME.openai.azure.com",
        appended: &["/openai", "/openai/v1"],
        speaks: &[
            OpenaiChat,
            OpenaiCompletions,
            OpenaiResponses,
            OpenaiEmbeddings,
            OpenaiImages,
            OpenaiAudio,
            OpenaiVideos,
        ],
        auth: Some(Auth::API_KEY),
        paths: &[
            (OpenaiChat, AZURE_V1),
            (OpenaiCompletions, AZURE_V1),
            (OpenaiResponses, AZURE_V1),
            (OpenaiEmbeddings, AZURE_V1),
            (OpenaiImages, AZURE_V1),
            (OpenaiAudio, AZURE_V1),
            (OpenaiVideos, AZURE_V1),
        ],
        overrides: AZURE,
        ..PLAIN
    },
    // help.aliyun.com/model-studio: limits count for each model; 429 `insufficient_quota` is a throttle
    // ("Throttling.AllocationQuota/insufficient_quota: rate or quota limit reached") that ends within a
    // minute; an account in arrears is told so by 400 `Arrearage`.
    Profile {
        name: "dashscope",
        base_url: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        speaks: &[OpenaiChat, OpenaiCompletions, OpenaiResponses, OpenaiEmbeddings],
        overrides: &[
            rule(429, "insufficient_quota", FailureClass::RateLimited),
            rule(400, "Arrearage", FailureClass::Balance),
            rule(403, "Arrearage", FailureClass::Balance),
        ],
        ..PLAIN
    },
    // api-docs.deepseek.com: messages below /anthropic, text completions (FIM) below /beta; limits count
    // for each model.
    Profile {
        name: "deepseek",
        base_url: "https://api.deepseek.com",
        appended: &["/v1", "/beta", "/anthropic"],
        speaks: &[OpenaiChat, OpenaiCompletions, AnthropicMessages],
        paths: &[(OpenaiCompletions, "/beta{operation}"), (AnthropicMessages, "/anthropic/v1{operation}")],
        ..PLAIN
    },
    // ai.google.dev, "OpenAI compatibility": below /openai, with a bearer.
    Profile {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        appended: &["/openai"],
        speaks: &[Gemini, OpenaiChat, OpenaiEmbeddings, OpenaiImages],
        paths: &[
            (OpenaiChat, GOOGLES_OPENAI),
            (OpenaiEmbeddings, GOOGLES_OPENAI),
            (OpenaiImages, GOOGLES_OPENAI),
        ],
        ..PLAIN
    },
    Profile {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        speaks: &[OpenaiChat, OpenaiResponses, OpenaiAudio],
        ..PLAIN
    },
    // Its server takes a bearer on every route.
    Profile { name: "llama-cpp", base_url: "http://HOST:8080/v1", auth: Some(Auth::BEARER), ..PLAIN },
    // 422 `extra_forbidden` for what it does not know, `stream_options` too (dnakov/anon-kode#53); usage
    // comes unasked. Text completions (FIM) lie below /fim.
    Profile {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        speaks: &[OpenaiChat, OpenaiCompletions, OpenaiEmbeddings, OpenaiModerations, OpenaiAudio],
        paths: &[(OpenaiCompletions, "/fim{operation}")],
        refuses_unknown_fields: true,
        ..PLAIN
    },
    // platform.moonshot.ai/docs/pricing/limits: concurrency, requests and tokens count for the account,
    // whichever model is asked.
    Profile {
        name: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        speaks: &[OpenaiChat],
        limits: Limits::Channel,
        ..PLAIN
    },
    // Its cloud takes a bearer on the messages route too, and no `x-api-key` (ollama/ollama#16922).
    Profile { name: "ollama", base_url: "http://HOST:11434/v1", auth: Some(Auth::BEARER), ..PLAIN },
    Profile {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        speaks: &[
            OpenaiChat,
            OpenaiCompletions,
            OpenaiResponses,
            OpenaiEmbeddings,
            OpenaiImages,
            OpenaiAudio,
            OpenaiModerations,
            OpenaiVideos,
        ],
        ..PLAIN
    },
    // A bearer for every dialect. What its errors mean stands in them (`metadata.error_type`).
    Profile {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        speaks: &[OpenaiChat, OpenaiCompletions, OpenaiResponses, OpenaiEmbeddings, AnthropicMessages],
        auth: Some(Auth::BEARER),
        ..PLAIN
    },
    // Checks `--api-key` against a bearer.
    Profile { name: "sglang", base_url: "http://HOST:30000/v1", auth: Some(Auth::BEARER), ..PLAIN },
    // 429 `overloaded` is `--max-concurrent-requests` of the whole server (its router's `InferError`).
    Profile {
        name: "tgi",
        base_url: "http://HOST:3000/v1",
        auth: Some(Auth::BEARER),
        limits: Limits::Channel,
        ..PLAIN
    },
    // cloud.google.com, "Generate content with the Gemini API in Vertex AI": an access token as a bearer.
    Profile {
        name: "vertex",
        base_url: "https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION/publishers/google",
        speaks: &[Gemini],
        auth: Some(Auth::BEARER),
        ..PLAIN
    },
    // Checks `--api-key` against a bearer, on the messages route too (vllm-project/vllm#51572).
    Profile { name: "vllm", base_url: "http://HOST:8000/v1", auth: Some(Auth::BEARER), ..PLAIN },
    Profile {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        speaks: &[OpenaiChat, OpenaiCompletions, OpenaiResponses, OpenaiEmbeddings, OpenaiImages],
        ..PLAIN
    },
];

impl Profile {
    /// Whether an `api-version` of Azure has the Responses API, which came with 2025-03-01-preview.
    pub(crate) fn azure_has_responses(api_version: &str) -> bool {
        // `preview` and `latest` are versions too.
        !api_version.starts_with(|c: char| c.is_ascii_digit()) || api_version >= "2025-03-01"
    }
}
