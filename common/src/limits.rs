//! Every number of the product, named and explained once. Other files use the names.

use std::time::Duration;

use crate::catalog::rollout::Stage;

/// Routes of a chain. More hops would outlast the callers' own timeouts.
pub const ROUTING_CHAIN_MAX: usize = 3;

/// Failures inside [`BREAKER_WINDOW`] that take a channel out.
pub const BREAKER_FAILURES: u32 = 3;
/// The sliding window in which failures are counted.
pub const BREAKER_WINDOW: Duration = Duration::from_secs(5 * 60);
/// How long an open breaker keeps a channel out.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(60);

/// An undecided answer is committed this long after the response headers.
pub const GATE_TIMEOUT: Duration = Duration::from_secs(30);
/// Where the gate is fuzzed it holds this many times less: a fuzzer that needs 64 KiB to see a limit sees it rarely.
const GATE_DIVISOR: usize = if cfg!(fuzzing) { 32 } else { 1 };
/// Bytes of a stream that the gate holds at most before it commits; no error frame is that big.
pub const GATE_HELD_BYTES_MAX: usize = 256 * 1024 / GATE_DIVISOR;
/// Events of a stream that the gate holds at most before it commits.
pub const GATE_HELD_EVENTS_MAX: usize = if cfg!(fuzzing) { 16 } else { 64 };
/// One unfinished event larger than this commits: no error frame is that big.
pub const GATE_EVENT_BYTES_MAX: usize = 64 * 1024 / GATE_DIVISOR;
/// A whole answer is held up to this size, then committed and streamed on.
pub const GATE_WHOLE_BYTES_MAX: usize = if cfg!(fuzzing) { 16 * 1024 } else { 4 * 1024 * 1024 };
/// What all gates of a process hold together. Above it a gate commits with the next bytes that come.
pub const GATE_HELD_BYTES_TOTAL_MAX: usize = 256 * 1024 * 1024;

/// Secrets that a control plane keeps at most: all of them go to each node in one message, …
pub const SECRETS_MAX: usize = 1000;
/// … which this many bytes keep small beside a snapshot.
pub const SECRETS_BYTES_MAX: usize = 512 * 1024;
/// How often a node looks whether a file with a credential has changed.
pub const CREDENTIAL_LOOK_EVERY: Duration = Duration::from_secs(2);

/// A usage object has a few hundred bytes; of a larger one nothing is kept.
pub const USAGE_BYTES_MAX: usize = 8 * 1024;
/// A number in it above this is none: tokens of an answer are far below, and what is priced must not overflow.
pub const USAGE_COUNT_MAX: f64 = 1e12;
/// The frame that a stream has only because it was asked for its usage is never larger.
pub const USAGE_FRAME_BYTES_MAX: usize = 16 * 1024;

/// Time to reach an upstream (DNS, TCP and TLS together).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Layer 4: from the start of an attempt to its response headers.
pub const HEADERS_TIMEOUT: Duration = Duration::from_secs(240);
/// A committed stream without an event for this long is cut.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// A request older than this does not walk on after a timeout: two headers timeouts stay below the SDKs' 600 s.
pub const TIMEOUT_WALK_AGE_MAX: Duration = Duration::from_secs(300);
/// A reset on a reused connection this soon after sending means that the pool was stale, not the upstream.
pub const STALE_CONNECTION_MAX: Duration = Duration::from_secs(5);

/// Cooldown after a rate limit that names no delay.
pub const COOLDOWN_DEFAULT: Duration = Duration::from_secs(15);
/// Shortest cooldown and shortest hint to callers.
pub const COOLDOWN_MIN: Duration = Duration::from_secs(1);
/// Longest cooldown and longest hint to callers: some SDKs sleep for whatever they are told.
pub const COOLDOWN_MAX: Duration = Duration::from_secs(60);
/// First suspension of a credential, channel or route; each further one doubles it.
pub const SUSPENSION_FIRST: Duration = Duration::from_secs(60);
/// The longest suspension before one request may try again.
pub const SUSPENSION_MAX: Duration = Duration::from_secs(15 * 60);

/// A caller has this long for its TLS handshake and, from its first byte on, for the head of a request.
pub const CALLER_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A caller's connection on which nothing is asked for this long is closed, before as much again has passed. Longer
/// than load balancers and the SDKs keep theirs, so that it is they who close first.
pub const CALLER_IDLE: Duration = Duration::from_secs(2 * 60);
/// Largest head of a request, its headers together.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of a request.
pub const HEADERS_MAX: usize = 100;

/// Largest request body.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Request bodies of all requests together.
pub const REQUEST_BYTES_TOTAL_MAX: usize = 1024 * 1024 * 1024;
/// Content encodings on top of each other that are undone where an upstream used them unasked.
pub const CONTENT_CODINGS_MAX: usize = 3;
/// Nothing of a request body for this long, and the request is given up.
pub const REQUEST_BODY_IDLE: Duration = Duration::from_secs(30);
/// A body that comes more slowly than this, after [`REQUEST_BODY_IDLE`] to begin with, is given up too.
pub const REQUEST_BYTES_PER_SECOND_MIN: u64 = 1024;
/// Bytes of an upstream's error body that are read, decoded.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// Time within which an upstream's error body is read.
pub const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest message of an upstream that is kept for logs or shown for a bad request.
pub const ERROR_MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// A node seals its counters this often.
pub const WINDOW_LENGTH: Duration = Duration::from_secs(10);
/// Unsent windows are merged inside one bucket of this length.
pub const WINDOW_BUCKET: Duration = Duration::from_secs(5 * 60);

/// Things with an id that a node remembers the channel of; the control plane keeps those that it forgets.
pub const BINDINGS_MAX: usize = 100_000;
/// What a channel made is found again for as long: responses are stored for 30 days.
pub const BINDING_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Longest id that is bound.
pub const BINDING_ID_BYTES_MAX: usize = 512;
/// Records of requests that wait on a node's disk for the control plane: about half a million.
pub const RECORDS_SPOOL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Records in one upload.
pub const RECORDS_IN_UPLOAD_MAX: usize = 500;

/// Bindings in one report.
pub const BINDINGS_IN_REPORT_MAX: usize = 1_000;
/// A call by id that this node does not know waits at most this long for the control plane.
pub const BINDING_LOOKUP: Duration = Duration::from_secs(2);
/// Calls by id that wait for the control plane at the same time; a flood of made-up ids must not become one there.
pub const BINDING_LOOKUPS_MAX: usize = 256;
/// The control plane waits this long for an id that it does not know: another node may be about to report it.
pub const BINDING_WAIT: Duration = Duration::from_millis(500);
/// A node that was lost so recently may come back with bindings of its own; until then it is not said that there
/// is no such id.
pub const BINDING_DOUBT: Duration = Duration::from_secs(5 * 60);

/// Heartbeats on the stream, both ways.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// A peer that was silent this long is gone.
pub const HEARTBEAT_LOST: Duration = Duration::from_secs(45);
/// A connected node that owes what it should run for this long, and did not refuse it, is stale.
pub const NODE_STALE: Duration = Duration::from_secs(60);
/// Reconnects start from this and double.
pub const RECONNECT_BASE: Duration = Duration::from_millis(500);
/// Reconnects wait at most this long.
pub const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// A stream that lived this long starts the reconnect delay anew.
pub const RECONNECT_RESET: Duration = Duration::from_secs(60);
/// New streams that one control plane admits in a second.
pub const STREAMS_PER_SECOND: u32 = 200;
/// A node that comes with too many others is told of a place at most so far ahead.
pub const PLACE_WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// Age at which the control plane drains a stream, give or take [`STREAM_AGE_JITTER`].
pub const STREAM_AGE: Duration = Duration::from_secs(30 * 60);
/// Share of [`STREAM_AGE`] by which it is moved at random.
pub const STREAM_AGE_JITTER: f64 = 0.2;
/// Largest message on the fleet's stream, and largest snapshot after decompression.
pub const SNAPSHOT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Largest catalog document.
pub const CATALOG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Labels that a node may give itself.
pub const LABELS_MAX: usize = 32;
/// How a revision reaches the fleet unless its catalog says otherwise: one node, a quarter, all.
pub const ROLLOUT_STAGES: [Stage; 3] = [Stage::Count(1), Stage::Share(25), Stage::ALL];
/// A stage is watched this long: counters of ten seconds come home several times.
pub const ROLLOUT_BAKE: Duration = Duration::from_secs(60);
/// Requests of a stage, and of what it is compared with, below which its success is not judged.
pub const ROLLOUT_REQUESTS_MIN: u64 = 20;
/// Success that falls by less is no reason to undo a rollout.
pub const ROLLOUT_DROP_MIN: f64 = 0.02;
/// Standard errors that a fall must have: looked at every second for minutes, chance alone stays below one in a thousand.
pub const ROLLOUT_Z_MIN: f64 = 4.0;
/// Requests are judged over so much time, so that what failed just now is not lost in hours of success.
pub const ROLLOUT_JUDGED: Duration = Duration::from_secs(5 * 60);

/// Two unclean ends this soon after activating a snapshot put it aside.
pub const QUARANTINE_WITHIN: Duration = Duration::from_secs(60);
/// Crashes that put a snapshot aside; the first only retries.
pub const QUARANTINE_CRASHES: u32 = 2;

/// Requests in flight get this long at shutdown unless the settings say otherwise.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);
/// A node that leaves serves new requests on for this long after `/readyz` turned: balancers ask every few seconds.
pub const DRAIN_DELAY: Duration = Duration::from_secs(5);
/// Whoever did not ask for the readiness for this long does not go by it, and is not waited for.
pub const READINESS_WATCHED: Duration = Duration::from_secs(60);
/// Shutdown is bounded by this after the grace period.
pub const SHUTDOWN_BOUND: Duration = Duration::from_secs(10);

/// The schema of snapshots that this version writes and reads.
pub const SNAPSHOT_SCHEMA: u32 = 1;

/// The files of a certificate are looked at this often: whoever replaces them sees the new one in use soon, and a few
/// kilobytes are no load.
pub const CERTIFICATE_LOOK: Duration = Duration::from_secs(2);
/// A node's certificate, unless the settings say otherwise: a stolen one is of use for a week at most, and a control plane
/// that is away for half of that stops nobody.
pub const NODE_CERTIFICATE_LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The fleet's own authority. Nobody is there to renew it by hand in time; it can be rotated at any time.
pub const AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Certificates begin this long before they are made: clocks of a fleet differ by so much.
pub const CERTIFICATE_SKEW: Duration = Duration::from_secs(5 * 60);
/// A renewal that failed is tried again after this long at most.
pub const CERTIFICATE_RETRY_MAX: Duration = Duration::from_secs(60);
/// Nodes that hear of other authorities renew within this time, not all at once.
pub const RENEWAL_SPREAD: Duration = Duration::from_secs(5);
/// A token for enrolment lives so long unless it is said otherwise.
pub const ENROLMENT_TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);
/// The longest life of one.
pub const ENROLMENT_TOKEN_LIFE_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Nodes that one token may enrol.
pub const ENROLMENT_TOKEN_USES_MAX: u64 = 100_000;
/// Processes that took turns with one node's id this recently are two, not one that was started again.
pub const CLONE_WITHIN: Duration = Duration::from_secs(10 * 60);
