//! Every form there is.

use super::super::says::Speech;
use super::{Answer, Form, Stream, Style, Way};

pub const CHAT: Form = Form {
    dialect: "openai-chat",
    way: Way::Chain,
    method: "POST",
    name: "streamed",
    path: "/v1/chat/completions",
    upstream: "/v1/chat/completions",
    ask: r#"{"model":"MODEL","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
    ask_media: "application/json",
    is_held: false,
    speech: Speech::OpenAi,
    answer: Answer::Stream(Stream {
        style: Style::Chunks,
        preamble: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        content: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"WHO says grüß dich\"},\"finish_reason\":null}]}\n\n",
        finish: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        last: "data: [DONE]\n\n",
        needs_last: false,
        nothing: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
    }),
};

pub const COMPLETIONS: Form = Form {
    dialect: "openai-completions",
    path: "/v1/completions",
    upstream: "/v1/completions",
    ask: r#"{"model":"MODEL","stream":true,"prompt":"once upon"}"#,
    answer: Answer::Stream(Stream {
        style: Style::Chunks,
        preamble: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":null}]}\n\n",
        content: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"text\":\" a time WHO\",\"finish_reason\":null}]}\n\n",
        finish: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n",
        last: "data: [DONE]\n\n",
        needs_last: false,
        nothing: "data: {\"id\":\"WHO\",\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    }),
    ..CHAT
};

pub const RESPONSES: Form = Form {
    dialect: "openai-responses",
    path: "/v1/responses",
    upstream: "/v1/responses",
    ask: r#"{"model":"MODEL","stream":true,"input":"hi"}"#,
    answer: Answer::Stream(Stream {
        style: Style::Named,
        preamble: "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"WHO\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n",
        content: "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"delta\":\"WHO says grüß dich\"}\n\n",
        finish: "",
        last: "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"WHO\",\"status\":\"completed\",\"error\":null,\"output\":[]}}\n\n",
        needs_last: true,
        nothing: "event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"sequence_number\":1,\"response\":{\"id\":\"WHO\",\"status\":\"incomplete\",\"error\":null,\"output\":[]}}\n\n",
    }),
    ..CHAT
};

const IMAGES: Form = Form {
    dialect: "openai-images",
    path: "/v1/images/generations",
    upstream: "/v1/images/generations",
    ask: r#"{"model":"MODEL","stream":true,"prompt":"a sluice"}"#,
    answer: Answer::Stream(Stream {
        style: Style::Named,
        preamble: ": wait\n\n",
        content: "event: image_generation.partial_image\ndata: {\"type\":\"image_generation.partial_image\",\"b64_json\":\"WHO1\"}\n\n",
        finish: "",
        last: "event: image_generation.completed\ndata: {\"type\":\"image_generation.completed\",\"b64_json\":\"WHO2\"}\n\n",
        needs_last: true,
        nothing: "",
    }),
    ..CHAT
};

pub const MESSAGES: Form = Form {
    dialect: "anthropic-messages",
    path: "/v1/messages",
    upstream: "/v1/messages",
    ask: r#"{"model":"MODEL","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
    speech: Speech::Anthropic,
    answer: Answer::Stream(Stream {
        style: Style::Messages,
        preamble: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"WHO\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
        content: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"WHO says grüß dich\"}}\n\n",
        finish: "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n",
        last: "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        needs_last: true,
        nothing: "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},\"usage\":{\"output_tokens\":0}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    }),
    ..CHAT
};

pub const GEMINI: Form = Form {
    dialect: "gemini",
    way: Way::Chain,
    method: "POST",
    name: "streamed (server-sent events)",
    path: "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
    upstream: "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
    ask: r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#,
    ask_media: "application/json",
    is_held: false,
    speech: Speech::Google,
    answer: Answer::Stream(Stream {
        style: Style::Google,
        preamble: "data: {\"usageMetadata\": {\"promptTokenCount\": 3},\"responseId\": \"WHO\"}\r\n\r\n",
        content: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"WHO says grüß dich\"}]}}]}\r\n\r\n",
        finish: "",
        last: "data: {\"candidates\": [{\"finishReason\": \"STOP\"}],\"responseId\": \"WHO\"}\r\n\r\n",
        needs_last: true,
        nothing: "data: {\"candidates\": [{\"finishReason\": \"MAX_TOKENS\"}],\"responseId\": \"WHO\"}\r\n\r\n",
    }),
};

const GEMINI_ARRAY: Form = Form {
    name: "streamed (JSON array)",
    path: "/v1beta/models/MODEL:streamGenerateContent",
    upstream: "/v1beta/models/MODEL:streamGenerateContent",
    answer: Answer::Stream(Stream {
        style: Style::Array,
        preamble: "[{\"usageMetadata\": {\"promptTokenCount\": 3},\"responseId\": \"WHO\"}\r\n",
        content: ",\r\n{\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"WHO says grüß dich\"}]}}]}\r\n",
        finish: "",
        last: ",\r\n{\"candidates\": [{\"finishReason\": \"STOP\"}],\"responseId\": \"WHO\"}\r\n]\r\n",
        needs_last: true,
        nothing: ",\r\n{\"candidates\": [{\"finishReason\": \"MAX_TOKENS\"}],\"responseId\": \"WHO\"}\r\n]\r\n",
    }),
    ..GEMINI
};

const SPEECH: Form = Form {
    dialect: "openai-audio",
    name: "speech, streamed",
    path: "/v1/audio/speech",
    upstream: "/v1/audio/speech",
    ask: r#"{"model":"MODEL","input":"hi","voice":"alloy","stream_format":"sse"}"#,
    answer: Answer::Stream(Stream {
        style: Style::Typed,
        preamble: ": wait\n\n",
        content: "data: {\"type\":\"speech.audio.delta\",\"audio\":\"WHO1\"}\n\n",
        finish: "",
        last: "data: {\"type\":\"speech.audio.done\",\"usage\":{\"output_tokens\":5}}\n\n",
        needs_last: true,
        nothing: "",
    }),
    ..CHAT
};

const TRANSCRIBE: &str = "--B\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nMODEL\r\n--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\nID3\r\n--B--\r\n";
const TRANSCRIBE_STREAM: &str = "--B\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nMODEL\r\n--B\r\ncontent-disposition: form-data; name=\"stream\"\r\n\r\ntrue\r\n--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\nID3\r\n--B--\r\n";
const EDIT: &str = "--B\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nMODEL\r\n--B\r\ncontent-disposition: form-data; name=\"prompt\"\r\n\r\na sluice\r\n--B\r\ncontent-disposition: form-data; name=\"image\"; filename=\"a.png\"\r\ncontent-type: image/png\r\n\r\nPNG\r\n--B--\r\n";

const STORED: Answer = Answer::Whole(
    "{\"id\":\"thing_1\",\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[],\"by\":\"WHO\"}\n",
);

/// What is asked of a stored response.
const RESPONSE_BY_ID: Form = Form {
    way: Way::ById,
    method: "GET",
    name: "read by id",
    path: "/v1/responses/thing_1",
    upstream: "/v1/responses/thing_1",
    ask: "",
    answer: STORED,
    ..RESPONSES
};

const VIDEO: Form = Form {
    dialect: "openai-videos",
    way: Way::Submission,
    name: "submission",
    path: "/v1/videos",
    upstream: "/v1/videos",
    ask: r#"{"model":"MODEL","prompt":"a sluice","seconds":"4"}"#,
    answer: Answer::Whole(
        "{\"id\":\"video_WHO\",\"object\":\"video\",\"status\":\"queued\",\"progress\":0}\n",
    ),
    ..CHAT
};

/// What is asked of a video.
const VIDEO_BY_ID: Form = Form {
    way: Way::ById,
    method: "GET",
    name: "read by id",
    path: "/v1/videos/thing_1",
    upstream: "/v1/videos/thing_1",
    ask: "",
    answer: Answer::Whole(
        "{\"id\":\"thing_1\",\"object\":\"video\",\"status\":\"completed\",\"by\":\"WHO\"}\n",
    ),
    ..VIDEO
};

const HELD: &str = "streamed, held to its end";

/// Every form, dialect by dialect; those that are held to their end behind the others.
pub const FORMS: [Form; 36] = [
    CHAT,
    Form {
        name: "whole",
        ask: r#"{"model":"MODEL","messages":[{"role":"user","content":"hi"}]}"#,
        answer: Answer::Whole(
            "{\"id\":\"WHO\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"grüß dich\"},\"finish_reason\":\"stop\"}]}\n",
        ),
        ..CHAT
    },
    COMPLETIONS,
    Form {
        name: "whole",
        ask: r#"{"model":"MODEL","prompt":"once upon"}"#,
        answer: Answer::Whole(
            "{\"id\":\"WHO\",\"choices\":[{\"index\":0,\"text\":\" a time\",\"finish_reason\":\"stop\"}]}\n",
        ),
        ..COMPLETIONS
    },
    RESPONSES,
    Form {
        name: "whole",
        ask: r#"{"model":"MODEL","input":"hi"}"#,
        answer: Answer::Whole(
            "{\"id\":\"WHO\",\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[{\"type\":\"message\"}]}\n",
        ),
        ..RESPONSES
    },
    MESSAGES,
    Form {
        name: "whole",
        ask: r#"{"model":"MODEL","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#,
        answer: Answer::Whole(
            "{\"id\":\"WHO\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\"}\n",
        ),
        ..MESSAGES
    },
    Form {
        name: "count_tokens",
        path: "/v1/messages/count_tokens",
        upstream: "/v1/messages/count_tokens",
        ask: r#"{"model":"MODEL","messages":[{"role":"user","content":"hi"}]}"#,
        answer: Answer::Whole("{\"input_tokens\": 3, \"by\":\"WHO\"}\n"),
        ..MESSAGES
    },
    GEMINI,
    GEMINI_ARRAY,
    Form {
        name: "generateContent",
        path: "/v1beta/models/MODEL:generateContent",
        upstream: "/v1beta/models/MODEL:generateContent",
        answer: Answer::Whole(
            "{\n  \"candidates\": [{\"content\": {\"parts\": [{\"text\": \"WHO\"}]}, \"finishReason\": \"STOP\"}]\n}\n",
        ),
        ..GEMINI
    },
    Form {
        name: "embedContent",
        path: "/v1beta/models/MODEL:embedContent",
        upstream: "/v1beta/models/MODEL:embedContent",
        ask: r#"{"content":{"parts":[{"text":"hi"}]}}"#,
        answer: Answer::Whole("{\n  \"embedding\": {\"values\": [0.5]}, \"by\": \"WHO\"\n}\n"),
        ..GEMINI
    },
    Form {
        name: "countTokens",
        path: "/v1beta/models/MODEL:countTokens",
        upstream: "/v1beta/models/MODEL:countTokens",
        answer: Answer::Whole("{\n  \"totalTokens\": 3, \"by\": \"WHO\"\n}\n"),
        ..GEMINI
    },
    Form {
        dialect: "openai-embeddings",
        name: "whole",
        path: "/v1/embeddings",
        upstream: "/v1/embeddings",
        ask: r#"{"model":"MODEL","input":["hi"]}"#,
        answer: Answer::Whole(
            "{\"object\":\"list\",\"data\":[{\"index\":0,\"embedding\":[0.5]}],\"by\":\"WHO\"}\n",
        ),
        ..CHAT
    },
    IMAGES,
    Form {
        name: "whole",
        ask: r#"{"model":"MODEL","prompt":"a sluice"}"#,
        answer: Answer::Whole("{\"created\":1,\"data\":[{\"b64_json\":\"iVBO\"}],\"by\":\"WHO\"}\n"),
        ..IMAGES
    },
    Form {
        name: "edits",
        path: "/v1/images/edits",
        upstream: "/v1/images/edits",
        ask: EDIT,
        ask_media: "multipart/form-data; boundary=B",
        answer: Answer::Whole("{\"created\":1,\"data\":[{\"b64_json\":\"iVBO\"}],\"by\":\"WHO\"}\n"),
        ..IMAGES
    },
    SPEECH,
    Form {
        name: "speech, whole",
        ask: r#"{"model":"MODEL","input":"hi","voice":"alloy"}"#,
        answer: Answer::Sound("ID3 the voice of WHO"),
        ..SPEECH
    },
    Form {
        name: "transcription, streamed",
        path: "/v1/audio/transcriptions",
        upstream: "/v1/audio/transcriptions",
        ask: TRANSCRIBE_STREAM,
        ask_media: "multipart/form-data; boundary=B",
        answer: Answer::Stream(Stream {
            style: Style::Typed,
            preamble: ": wait\n\n",
            content: "data: {\"type\":\"transcript.text.delta\",\"delta\":\"WHO heard grüß dich\"}\n\n",
            finish: "",
            last: "data: {\"type\":\"transcript.text.done\",\"text\":\"WHO heard grüß dich\"}\n\n",
            needs_last: true,
            nothing: "data: {\"type\":\"transcript.text.done\",\"text\":\"\"}\n\n",
        }),
        ..SPEECH
    },
    Form {
        name: "transcription, whole",
        path: "/v1/audio/transcriptions",
        upstream: "/v1/audio/transcriptions",
        ask: TRANSCRIBE,
        ask_media: "multipart/form-data; boundary=B",
        answer: Answer::Whole("{\"text\":\"WHO heard grüß dich\"}\n"),
        ..SPEECH
    },
    Form {
        dialect: "openai-moderations",
        name: "whole",
        path: "/v1/moderations",
        upstream: "/v1/moderations",
        ask: r#"{"model":"MODEL","input":"hi"}"#,
        answer: Answer::Whole("{\"id\":\"WHO\",\"results\":[{\"flagged\":false}]}\n"),
        ..CHAT
    },
    Form {
        dialect: "rerank",
        name: "whole",
        path: "/v1/rerank",
        upstream: "/v1/rerank",
        ask: r#"{"model":"MODEL","query":"q","documents":["a","b"]}"#,
        answer: Answer::Whole("{\"id\":\"WHO\",\"results\":[{\"index\":1,\"relevance_score\":0.9}]}\n"),
        ..CHAT
    },
    Form {
        way: Way::GoesOn,
        name: "whole, going on from a response",
        ask: r#"{"model":"MODEL","input":"hi","previous_response_id":"thing_1"}"#,
        answer: Answer::Whole(
            "{\"id\":\"WHO\",\"object\":\"response\",\"status\":\"completed\",\"error\":null,\"output\":[{\"type\":\"message\"}]}\n",
        ),
        ..RESPONSES
    },
    RESPONSE_BY_ID,
    Form {
        method: "POST",
        name: "canceled by id",
        path: "/v1/responses/thing_1/cancel",
        upstream: "/v1/responses/thing_1/cancel",
        ..RESPONSE_BY_ID
    },
    Form { method: "DELETE", name: "deleted by id", ..RESPONSE_BY_ID },
    VIDEO,
    VIDEO_BY_ID,
    Form {
        name: "downloaded by id",
        path: "/v1/videos/thing_1/content",
        upstream: "/v1/videos/thing_1/content",
        answer: Answer::Sound("ftypmp42 the film of WHO"),
        ..VIDEO_BY_ID
    },
    Form { method: "DELETE", name: "deleted by id", ..VIDEO_BY_ID },
    Form { name: HELD, is_held: true, ..CHAT },
    Form { name: HELD, is_held: true, ..RESPONSES },
    Form { name: HELD, is_held: true, ..MESSAGES },
    Form { name: HELD, is_held: true, ..GEMINI },
];
