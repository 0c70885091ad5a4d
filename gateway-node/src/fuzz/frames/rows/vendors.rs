//! Frames of Anthropic and Google.

use common::class::FailureClass as F;

use super::{Row, row};
use crate::fuzz::frames::{Held, Seeing};

pub(super) const MESSAGES: &[Row] = &[
    row(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}} }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row("event: ping\ndata: {\"type\":\"ping\" }\n\n", Held::Hold, Seeing::Ordinary),
    row(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"} }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"} }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\"} }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0 }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":null},\"usage\":{\"output_tokens\":1} }\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"web_search_tool_result\",\"content\":[]} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud83d\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s\"} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"cited_text\":\"x\"}} }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: something_new\ndata: {\"type\":\"something_new\",\"x\":1 }\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1} }\n\n",
        Held::End,
        Seeing::Ordinary,
    ),
    row(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"} }\n\n",
        Held::End,
        Seeing::Ordinary,
    ),
    row(
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"error\"} }\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row("event: message_stop\ndata: {\"type\":\"message_stop\" }\n\n", Held::Error(F::Empty), Seeing::Done),
    row(
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"} }\n\n",
        Held::Error(F::Overloaded),
        Seeing::Raises,
    ),
    row(
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"b\",\"details\":{\"error_code\":\"enforced_spend_limit_reached\"}} }\n\n",
        Held::Error(F::Balance),
        Seeing::Raises,
    ),
    row(
        "event: error\ndata: {\"code\":500,\"message\":\"b\",\"type\":\"server_error\"}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Raises,
    ),
    row(
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        Held::Error(F::Overloaded),
        Seeing::Quiet,
    ),
    row("event: message_start\ndata: {\"type\":\n\n", Held::Error(F::Malformed), Seeing::Ordinary),
];

pub(super) const GEMINI: &[Row] = &[
    row(
        "data: {\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"groundingMetadata\":{\"webSearchQueries\":[\"q\"]},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}],\"role\":\"model\"}}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\\ud83d\"}],\"role\":\"model\"}}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}],\"role\":\"model\"}}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"x\"}}]}}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row("data: {\"somethingNew\":\"x\"}\n\n", Held::Content, Seeing::Ordinary),
    row(
        "data: {\"candidates\":[{\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::End,
        Seeing::Finish,
    ),
    row(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"MAX_TOKENS\"}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::Content,
        Seeing::Finish,
    ),
    row(
        "data: {\"candidates\":[{\"finishReason\":\"SAFETY\",\"safetyRatings\":[{\"category\":\"x\"}]}],\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"m\"}\n\n",
        Held::End,
        Seeing::Finish,
    ),
    row("data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\n\n", Held::End, Seeing::Finish),
    row(
        "data: {\"error\":{\"code\":429,\"message\":\"b\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[]}}\n\n",
        Held::Error(F::RateLimited),
        Seeing::Raises,
    ),
    row(
        "data: {\"error\":{\"code\":503,\"message\":\"b\",\"status\":\"UNAVAILABLE\"}}\n\n",
        Held::Error(F::Overloaded),
        Seeing::Raises,
    ),
    row(
        "data: {\"error\":{\"code\":400,\"message\":\"b\",\"status\":\"INVALID_ARGUMENT\"}}\n\n",
        Held::Error(F::BadRequest),
        Seeing::Raises,
    ),
    row("data: {\"candidates\":\n\n", Held::Error(F::Malformed), Seeing::Ordinary),
];
