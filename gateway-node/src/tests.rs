//! The path of a request, whole: the real client and server code over in-memory pipes, scripted
//! upstreams, and a paused clock, so that 30 s, 240 s and 5 min cost about a millisecond.

pub mod speaks;
mod support;

mod anthropic;
mod audio;
mod azure;
mod bindings;
mod breaker;
mod callers;
mod cases;
mod connections;
mod cuts;
mod encodings;
mod every_dialect;
mod gate;
mod gemini;
mod headers_timeout;
mod http_2_upstreams;
mod json_answers;
mod leaving;
mod listening;
mod matrix;
mod multipart;
mod overrides;
mod pauses;
mod profiles;
mod records;
mod responses;
mod slowloris;
mod usage;
mod videos;
mod walking;
