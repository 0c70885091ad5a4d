//! The dialects that stream, each with what its upstreams send: for rules that hold in all of them.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;

use super::support::*;
use crate::dialect::Rules;
use crate::dialect::operation::{Asked, Operation, find};

/// A dialect, and the frames of its streams.
#[derive(Debug)]
pub struct Speaks {
    pub dialect: &'static str,
    path: &'static str,
    whole_path: &'static str,
    /// Without the model and the flag.
    members: &'static str,
    /// Proves nothing.
    pub preamble: &'static str,
    /// `SAID` stands for what is said.
    pub content: &'static str,
    /// The same of what the model only thought, where the dialect has that.
    pub thought: Option<&'static str>,
    /// The lawful end.
    pub end: &'static str,
    /// A whole answer.
    pub whole: &'static str,
    /// Events of an upstream that gave up: for a fault of its own, too many requests, an empty account, too much to do.
    pub failed: &'static str,
    pub limited: &'static str,
    pub broke: &'static str,
    pub overloaded: &'static str,
    /// The request is at fault: it says `too long`.
    pub bad: &'static str,
}

pub const ALL: [Speaks; 5] = [CHAT, COMPLETIONS, RESPONSES, MESSAGES, GEMINI];

const CHAT: Speaks = Speaks {
    dialect: "openai-chat",
    path: "/v1/chat/completions",
    whole_path: "/v1/chat/completions",
    members: r#""messages":[{"role":"user","content":"grüß"}]"#,
    preamble: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
    content: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"SAID\"},\"finish_reason\":null}]}\n\n",
    thought: Some(
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n",
    ),
    end: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    whole: r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#,
    failed: "data: {\"error\":{\"message\":\"b\",\"type\":\"server_error\",\"code\":null}}\n\n",
    limited: "data: {\"error\":{\"message\":\"b\",\"type\":\"requests\",\"code\":\"rate_limit_exceeded\"}}\n\n",
    broke: "data: {\"error\":{\"message\":\"b\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}\n\n",
    overloaded: "data: {\"error\":{\"message\":\"b\",\"type\":\"overloaded_error\"}}\n\n",
    bad: "data: {\"error\":{\"message\":\"too long\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\n",
};

const COMPLETIONS: Speaks = Speaks {
    dialect: "openai-completions",
    path: "/v1/completions",
    whole_path: "/v1/completions",
    members: r#""prompt":"grüß""#,
    preamble: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":null}]}\n\n",
    content: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"SAID\",\"finish_reason\":null}]}\n\n",
    thought: None,
    end: "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    whole: r#"{"id":"c","choices":[{"index":0,"text":"Hi","finish_reason":"stop"}]}"#,
    ..CHAT
};

const RESPONSES: Speaks = Speaks {
    dialect: "openai-responses",
    path: "/v1/responses",
    whole_path: "/v1/responses",
    members: r#""input":"grüß""#,
    preamble: "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n",
    content: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"SAID\"}\n\n",
    thought: Some(
        "event: response.reasoning_summary_text.delta\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"sequence_number\":1,\"delta\":\"hm\"}\n\n",
    ),
    end: "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"error\":null,\"output\":[]}}\n\n",
    whole: r#"{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"message"}]}"#,
    failed: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"b\"}}}\n\n",
    limited: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"b\"}}}\n\n",
    broke: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\",\"message\":\"b\",\"param\":null}}\n\n",
    overloaded: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"b\",\"param\":null}\n\n",
    bad: "event: error\ndata: {\"type\":\"error\",\"code\":\"context_length_exceeded\",\"message\":\"too long\",\"param\":\"input\"}\n\n",
};

const MESSAGES: Speaks = Speaks {
    dialect: "anthropic-messages",
    path: "/v1/messages",
    whole_path: "/v1/messages",
    members: r#""max_tokens":9,"messages":[{"role":"user","content":"grüß"}]"#,
    preamble: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
    content: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"SAID\"}}\n\n",
    thought: Some(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
    ),
    end: "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    whole: r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#,
    failed: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"b\"}}\n\n",
    limited: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"b\"}}\n\n",
    broke: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"b\"}}\n\n",
    overloaded: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    bad: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"too long\"}}\n\n",
};

const GEMINI: Speaks = Speaks {
    dialect: "gemini",
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    whole_path: "/v1beta/models/m:generateContent",
    members: r#""contents":[{"parts":[{"text":"grüß"}]}]"#,
    preamble: "data: {\"usageMetadata\":{\"promptTokenCount\":3},\"modelVersion\":\"v\"}\r\n\r\n",
    content: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"SAID\"}],\"role\":\"model\"}}]}\r\n\r\n",
    thought: Some(
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true}],\"role\":\"model\"}}]}\r\n\r\n",
    ),
    end: "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\r\n\r\n",
    whole: r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}"#,
    failed: "data: {\"error\":{\"code\":500,\"message\":\"b\",\"status\":\"INTERNAL\"}}\r\n\r\n",
    limited: "data: {\"error\":{\"code\":429,\"message\":\"b\",\"status\":\"RESOURCE_EXHAUSTED\"}}\r\n\r\n",
    broke: "data: {\"error\":{\"code\":402,\"message\":\"b\",\"status\":\"FAILED_PRECONDITION\"}}\r\n\r\n",
    overloaded: "data: {\"error\":{\"code\":503,\"message\":\"b\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n",
    bad: "data: {\"error\":{\"code\":400,\"message\":\"too long\",\"status\":\"INVALID_ARGUMENT\"}}\r\n\r\n",
};

impl Speaks {
    pub fn node(&self, channels: usize) -> Node {
        Node::speaking(self.dialect, channels)
    }

    /// What is asked for, by a stream or not.
    pub fn operation(&self, is_stream: bool) -> &'static Operation {
        let path = if is_stream { self.path } else { self.whole_path };
        match find(&Method::POST, path.split('?').next().unwrap()) {
            Asked::Operation(operation, _) => operation,
            other => panic!("{other:?}"),
        }
    }

    pub fn rules(&self) -> &'static Rules {
        self.operation(true).rules
    }

    pub fn ask(&self, is_stream: bool) -> Request<Full<Bytes>> {
        post_json(if is_stream { self.path } else { self.whole_path }, &self.body(is_stream, "m"))
    }

    /// The body as a caller sends it, or an upstream gets it.
    pub fn body(&self, is_stream: bool, model: &str) -> String {
        let members = self.members;
        if self.dialect == "gemini" {
            format!("{{ {members}, \"x_unknown\":2.50 }}")
        } else {
            format!(r#"{{"stream":{is_stream}, {members},"model" : "{model}","x_unknown":2.50 }}"#)
        }
    }

    /// A stream that says something.
    pub fn stream(&self, said: &str) -> String {
        [self.preamble, &self.content.replace("SAID", said), self.end].concat()
    }

    pub fn whole_of(&self, who: &str) -> String {
        self.whole.replace("Hi", who)
    }

    /// An error as its upstreams say it in a body.
    pub fn says(&self, status: u16, kind: &str, message: &str) -> String {
        match self.dialect {
            "gemini" => {
                format!(r#"{{"error":{{"code":{status},"message":"{message}","status":"{kind}"}}}}"#)
            }
            "anthropic-messages" => {
                format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
            }
            _ => {
                format!(r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":null}}}}"#)
            }
        }
    }

    /// The same in an event.
    pub fn frame(&self, error: &str) -> String {
        match self.dialect {
            "gemini" => format!("data: {error}\r\n\r\n"),
            "anthropic-messages" => format!("event: error\ndata: {error}\n\n"),
            "openai-responses" => {
                format!(
                    "event: error\ndata: {}\n\n",
                    error.replacen('{', r#"{"type":"error","sequence_number":1,"#, 1)
                )
            }
            _ => format!("data: {error}\n\n"),
        }
    }

    /// Every event of which nothing follows, as its upstreams send them in front of an answer.
    pub fn proves_nothing(&self) -> Vec<String> {
        let data = |data: &str| format!("data: {data}\n\n");
        let named =
            |name: &str, more: &str| format!("event: {name}\ndata: {{\"type\":\"{name}\",{more}}}\n\n");
        let filtered = data(
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#,
        );
        let own = match self.dialect {
            "openai-chat" => vec![
                filtered,
                data(
                    r#"{"choices":[{"content_filter_results":{},"delta":{"content":"","refusal":null,"role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"id":"c"}"#,
                ),
                data(r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}]}"#),
                data(r#"{"choices":[],"usage":null}"#),
                data(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}],"prompt_progress":{"total":9}}"#),
            ],
            "openai-completions" => vec![
                filtered,
                data(r#"{"choices":[{"index":0,"text":"","finish_reason":null,"content_filter_results":{}}],"id":"c"}"#),
                data(r#"{"choices":[],"usage":null}"#),
            ],
            "openai-responses" => {
                let response = r#""response":{"id":"r","status":"in_progress","error":null,"output":[]}"#;
                vec![
                    named("response.created", response),
                    named("response.queued", response),
                    named("response.in_progress", response),
                    named("response.output_item.added", r#""output_index":0,"item":{"id":"i","type":"reasoning","summary":[]}"#),
                    named("response.reasoning_summary_part.added", r#""part":{"type":"summary_text","text":""}"#),
                    named("response.output_item.added", r#""output_index":1,"item":{"id":"i","type":"message","role":"assistant","content":[]}"#),
                    named("response.content_part.added", r#""part":{"type":"output_text","text":"","annotations":[]}"#),
                ]
            }
            "anthropic-messages" => vec![
                self.preamble.to_owned(),
                named("content_block_start", r#""index":0,"content_block":{"type":"thinking","thinking":""}"#),
                named("content_block_delta", r#""index":0,"delta":{"type":"thinking_delta","thinking":""}"#),
                named("content_block_stop", r#""index":0"#),
                named("content_block_start", r#""index":1,"content_block":{"type":"text","text":""}"#),
                named("content_block_delta", r#""index":1,"delta":{"type":"text_delta","text":""}"#),
            ],
            "gemini" => [
                r#"{"usageMetadata":{"promptTokenCount":3}}"#,
                r#"{"candidates":[{"index":0,"groundingMetadata":{}}],"usageMetadata":{"promptTokenCount":3}}"#,
                r#"{"candidates":[{"content":{"role":"model"},"index":0}]}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}}]}"#,
            ]
            .map(|chunk| format!("data: {chunk}\r\n\r\n"))
            .into(),
            other => panic!("{other}"),
        };
        [vec![": wait\n\n".to_owned()], own].concat()
    }
}

/// An upstream that sends these frames, one a chunk, and ends as it should.
pub fn streamed(frames: &[&str]) -> Script {
    [vec![sse_head()], frames.iter().map(|frame| chunk(frame)).collect(), vec![end()]].concat()
}
