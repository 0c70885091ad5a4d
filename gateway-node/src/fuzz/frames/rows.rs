//! The frames, each with what it says: the tables of what upstreams are known to send, in our own words.

use super::{Held, Seeing};
use common::class::FailureClass as F;

/// A frame and its meaning.
#[derive(Debug)]
pub(super) struct Row {
    /// With LF as line ends.
    pub(super) frame: &'static str,
    pub(super) held: Held,
    pub(super) seeing: Seeing,
}

const fn row(frame: &'static str, held: Held, seeing: Seeing) -> Row {
    Row { frame, held, seeing }
}

/// By the path of an operation at an upstream.
pub(super) const DIALECTS: [(&str, &[Row]); 5] = [
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/messages", MESSAGES),
    ("/models/m:streamGenerateContent", GEMINI),
    ("/images/generations", IMAGES),
];

const CHAT: &[Row] = &[
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"finish_reason\":null}]}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":null}]}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"finish_reason\":null}]}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0}]}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row("data: {\"id\":\"c\",\"moderation\":{\"flagged\":false}}\n\n", Held::Hold, Seeing::Ordinary),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"role\":\"assistant\"},\"finish_reason\":null,\"content_filter_results\":{\"error\":{\"code\":\"content_filter_error\"}}}]}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row("data: null\n\n", Held::Hold, Seeing::Ordinary),
    row("data:\n\n", Held::Hold, Seeing::Ordinary),
    row("event: ping\ndata: {\"type\":\"ping\"}\n\n", Held::Hold, Seeing::Ordinary),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud83d\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"refusal\":\"I\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"\"}},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"audio\":{\"id\":\"a\"}},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\"}]},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"executed_tools\":[{\"index\":0}]},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"something_new\":\"x\"},\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"choices\":[{\"index\":0,\"text\":\"Hi\",\"finish_reason\":null}]}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        Held::End,
        Seeing::Finish,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
        Held::End,
        Seeing::Finish,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n",
        Held::End,
        Seeing::Finish,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ude00\"},\"finish_reason\":\"stop\"}]}\n\n",
        Held::Content,
        Seeing::Finish,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"network_error\"}]}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"network_error\"}]}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Finish,
    ),
    row(
        "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"param\":null,\"code\":\"server_error\"}}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Raises,
    ),
    row(
        "data: {\"error\":{\"message\":\"b\",\"code\":429}}\n\n",
        Held::Error(F::RateLimited),
        Seeing::Raises,
    ),
    row(
        "data: {\"error\":{\"object\":\"error\",\"message\":\"too long\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n",
        Held::Error(F::BadRequest),
        Seeing::Raises,
    ),
    row("data: {\"error\":\"boom\"}\n\n", Held::Error(F::UpstreamError), Seeing::Raises),
    row(
        "event: error\ndata: {\"message\":\"boom\",\"type\":\"server_error\",\"code\":500}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row(
        "data: {\"id\":\"c\",\"error\":{\"code\":502,\"message\":\"down\",\"metadata\":{\"error_type\":\"provider_overloaded\"}},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
        Held::Error(F::Overloaded),
        Seeing::Raises,
    ),
    row(
        "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}],\"x_groq\":{\"id\":\"q\",\"error\":\"over capacity\"}}\n\n",
        Held::Error(F::Overloaded),
        Seeing::Quiet,
    ),
    row("data: [DONE]\n\n", Held::Error(F::Empty), Seeing::Done),
    row("data:  [DONE] \n\n", Held::Error(F::Empty), Seeing::Done),
    row("data: {\"id\":\n\n", Held::Error(F::Malformed), Seeing::Ordinary),
];

const RESPONSES: &[Row] = &[
    row(
        "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[],\"error\":null}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.queued\ndata: {\"type\":\"response.queued\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"queued\",\"output\":[]}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"item\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"item\":{\"type\":\"reasoning\",\"summary\":[]}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"sequence_number\":1,\"part\":{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.reasoning_summary_part.added\ndata: {\"type\":\"response.reasoning_summary_part.added\",\"sequence_number\":1,\"part\":{\"type\":\"summary_text\",\"text\":\"\"}}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"\"}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":1}\n\n",
        Held::Hold,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"item\":{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"\"}}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"item\":{\"type\":\"web_search_call\"}}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"Hi\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.refusal.delta\ndata: {\"type\":\"response.refusal.delta\",\"sequence_number\":1,\"delta\":\"I\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.reasoning_summary_text.delta\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"sequence_number\":1,\"delta\":\"hm\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"sequence_number\":1,\"delta\":\"{\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.web_search_call.in_progress\ndata: {\"type\":\"response.web_search_call.in_progress\",\"sequence_number\":1,\"item_id\":\"i\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.image_generation_call.partial_image\ndata: {\"type\":\"response.image_generation_call.partial_image\",\"sequence_number\":1,\"partial_image_b64\":\"x\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.something_new\ndata: {\"type\":\"response.something_new\",\"sequence_number\":1,\"x\":1}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"output\":[]}}\n\n",
        Held::End,
        Seeing::Done,
    ),
    row(
        "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"incomplete\",\"output\":[]}}\n\n",
        Held::End,
        Seeing::Done,
    ),
    row(
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"failed\",\"output\":[],\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}}}\n\n",
        Held::Error(F::RateLimited),
        Seeing::Quiet,
    ),
    row(
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"failed\",\"output\":[],\"error\":{\"code\":\"server_error\",\"message\":\"b\"}}}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row(
        "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"object\":\"response\",\"status\":\"failed\",\"output\":[],\"error\":{\"code\":\"invalid_prompt\",\"message\":\"b\"}}}\n\n",
        Held::Error(F::BadRequest),
        Seeing::Quiet,
    ),
    row(
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"q\",\"param\":null}}\n\n",
        Held::Error(F::Balance),
        Seeing::Raises,
    ),
    row(
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"code\":\"server_error\",\"message\":\"b\",\"param\":null}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Quiet,
    ),
    row("data: {\"error\":{\"message\":\"b\",\"code\":503}}\n\n", Held::Error(F::Overloaded), Seeing::Raises),
    row("data: [DONE]\n\n", Held::Error(F::Empty), Seeing::Ends),
    row("event: response.created\ndata: {\"type\":\n\n", Held::Error(F::Malformed), Seeing::Ordinary),
];

const MESSAGES: &[Row] = &[
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

const GEMINI: &[Row] = &[
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

const IMAGES: &[Row] = &[
    row("event: ping\ndata: {\"type\":\"ping\"}\n\n", Held::Hold, Seeing::Ordinary),
    row("data: {}\n\n", Held::Hold, Seeing::Ordinary),
    row(
        "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"sequence_number\":1,\"b64_json\":\"x\"}\n\n",
        Held::Content,
        Seeing::Ordinary,
    ),
    row(
        "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"sequence_number\":1,\"b64_json\":\"x\"}\n\n",
        Held::Content,
        Seeing::Finish,
    ),
    row(
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"error\":{\"type\":\"image_generation_server_error\",\"code\":\"server_error\",\"message\":\"b\"}}\n\n",
        Held::Error(F::UpstreamError),
        Seeing::Raises,
    ),
    row(
        "event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}\n\n",
        Held::Error(F::RateLimited),
        Seeing::Quiet,
    ),
    row("data: [DONE]\n\n", Held::Error(F::Empty), Seeing::Ends),
    row("event: image_generation.completed\ndata: {\"type\":\n\n", Held::Error(F::Malformed), Seeing::Finish),
];
