//! Frames of OpenAI and of all that imitate it.

use common::class::FailureClass as F;

use super::{Row, row};
use crate::fuzz::frames::{Held, Seeing};

pub(super) const CHAT: &[Row] = &[
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
    row(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3},\"error\":{}}\n\n",
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

pub(super) const RESPONSES: &[Row] = &[
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

pub(super) const IMAGES: &[Row] = &[
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
