//! Messages as released versions wrote them, kept as files: today's code reads from each what was meant, and writes the
//! same bytes for the same meaning. Files are written once, for a version that is to be released, by
//! `SLUICE_WRITE_GOLDEN=1 cargo test -p common --test golden`; one that exists is never written again.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::unreachable, reason = "a test")]
#![allow(
    clippy::needless_update,
    reason = "fields that come later are not set in messages of earlier versions"
)]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

use common::pb::fleet as pb;
use common::snapshot::{decode, digest, pack, unpack};
use pb::{sync_request, sync_response};
use prost::Message;

fn folder(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

/// The files of one version, and which of them were looked at.
struct Golden {
    folder: PathBuf,
    seen: BTreeSet<String>,
}

impl Golden {
    fn of(version: &str) -> Self {
        Golden { folder: folder(version), seen: BTreeSet::new() }
    }

    fn read(&mut self, name: &str, if_absent: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        let path = self.folder.join(name);
        self.seen.insert(name.to_owned());
        if !path.exists() && std::env::var_os("SLUICE_WRITE_GOLDEN").is_some() {
            std::fs::write(&path, if_absent()).unwrap();
        }
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn check<M: Message + Default + PartialEq + Debug>(&mut self, name: &str, meaning: &M) {
        let bytes = self.read(&format!("{name}.bin"), || meaning.encode_to_vec());
        assert_eq!(&M::decode(bytes.as_slice()).unwrap(), meaning, "{name} means something else today");
        assert_eq!(meaning.encode_to_vec(), bytes, "{name} is written in another way today");
    }

    fn up(&mut self, name: &str, message: sync_request::Message) {
        self.check(name, &pb::SyncRequest { message: Some(message) });
    }

    fn down(&mut self, name: &str, message: sync_response::Message) {
        self.check(name, &pb::SyncResponse { message: Some(message) });
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn part(version: u64, byte: u8) -> pb::Part {
    pb::Part { version, sha256: vec![byte; 32] }
}

fn target() -> pb::Target {
    pb::Target {
        epoch: 1_796_047_753_153,
        catalog: Some(part(42, 0xca)),
        keys: Some(part(7, 0x4e)),
        ..Default::default()
    }
}

fn violation() -> pb::Violation {
    pb::Violation { path: text("channels[3].base_url"), message: text("not an http or https address") }
}

fn rejection() -> pb::Rejection {
    let kind = pb::PartKind::Catalog.into();
    pb::Rejection { part: Some(part(41, 0xbd)), kind, violations: vec![violation()] }
}

fn snapshot() -> pb::Snapshot {
    let channel = pb::Channel {
        id: text("reseller"),
        dialects: vec![text("openai-chat"), text("openai-embeddings")],
        base_url: text("https://reseller.example/v1"),
        credential: text("env:RESELLER_KEY"),
        headers: vec![pb::Field { name: text("x-team"), value: text("a") }],
        query: vec![pb::Field { name: text("api-version"), value: text("2024-10-21") }],
        breaker: Some(pb::Breaker { failures: 3, window_ms: 300_000, cooldown_ms: 60_000 }),
        tls_ca_file: text("/etc/ca.pem"),
        include_usage: true,
        auth: Some(pb::Auth {
            place: pb::AuthPlace::Header.into(),
            name: text("api-key"),
            prefix: text("Key "),
        }),
        paths: vec![pb::Path { dialect: text("openai-chat"), template: text("/d/{model}{operation}") }],
        overrides: vec![pb::Override {
            status: 400,
            code: text("quota"),
            message: text("used up"),
            class: text("balance"),
        }],
        limits: pb::Limits::Channel.into(),
        ..Default::default()
    };
    let route = pb::Route {
        channel: text("reseller"),
        upstream_model: text("gpt-4o-2024-11-20"),
        gate: Some(pb::Gate { timeout_ms: 30_000, until: pb::GateUntil::Complete.into() }),
        timeouts: Some(pb::Timeouts { connect_ms: 10_000, headers_ms: 240_000, idle_ms: 300_000 }),
        context_window: 128_000,
        ..Default::default()
    };
    let chain = pb::Chain { dialect: text("openai-chat"), routes: vec![route], ..Default::default() };
    pb::Snapshot {
        revision: 42,
        channels: vec![channel],
        models: vec![pb::Model { name: text("gpt-4o"), chains: vec![chain], ..Default::default() }],
        schema: 1,
        features: vec![text("auth"), text("gate-complete")],
        ..Default::default()
    }
}

fn keys() -> pb::KeySet {
    let key = pb::ClientKey { id: text("key-1"), sha256: vec![0x5a; 32], ..Default::default() };
    pb::KeySet { version: 7, keys_exist: true, keys: vec![key], ..Default::default() }
}

#[test]
fn messages_of_version_0_1_are_read_as_they_were_meant_and_written_as_they_were() {
    use sync_request::Message as Up;
    use sync_response::Message as Down;
    let mut golden = Golden::of("v0.1");
    golden.check("snapshot", &snapshot());
    golden.check("keys", &keys());
    golden.up(
        "hello",
        Up::Hello(pb::Hello {
            node_id: text("node-a"),
            boot_id: text("0199"),
            version: text("0.1.0"),
            schema: 1,
            features: vec![text("auth"), text("probe")],
            labels: vec![pb::Label { name: text("zone"), value: text("eu") }],
            applied: Some(target()),
            rejected: vec![rejection()],
            quarantined: vec![pb::Quarantine { part: Some(part(40, 0xdd)), crashes: 2 }],
            data_address: text("127.0.0.1:8080"),
            ops_address: text("127.0.0.1:9090"),
            ..Default::default()
        }),
    );
    let ack = |result: pb::AckResult| pb::ConfigAck {
        update_id: 3,
        result: result.into(),
        applied: Some(target()),
        ..Default::default()
    };
    let warned = pb::ConfigAck { warnings: vec![violation()], ..ack(pb::AckResult::Applied) };
    golden.up("ack-applied", Up::Ack(warned));
    let rejected = pb::ConfigAck { rejected: vec![rejection()], ..ack(pb::AckResult::Rejected) };
    golden.up("ack-rejected", Up::Ack(rejected));
    golden.up(
        "node-heartbeat",
        Up::Heartbeat(pb::NodeHeartbeat {
            applied: Some(target()),
            open_channels: vec![text("reseller")],
            in_flight: 9,
            oldest_window_age_ms: 12_000,
            ..Default::default()
        }),
    );
    golden.up("node-drain", Up::Drain(pb::NodeDrain { reason: text("shutting down") }));
    golden.up(
        "probe-result",
        Up::Probe(pb::ProbeResult {
            probe_id: 5,
            violations: vec![violation()],
            warnings: vec![violation()],
            not_tried: text("busy"),
        }),
    );
    golden.down(
        "welcome",
        Down::Welcome(pb::Welcome {
            epoch: 1_796_047_753_153,
            control_plane_id: text("cp-1"),
            version: text("0.1.0"),
            heartbeat_ms: 15_000,
            authorities_sha256: vec![0xa0; 32],
            ..Default::default()
        }),
    );
    golden.down("up-to-date", Down::UpToDate(pb::UpToDate { target: Some(target()) }));
    let (target_now, authorities_sha256) = (Some(target()), vec![0xa0; 32]);
    let beat = pb::ServerHeartbeat { target: target_now, authorities_sha256, ..Default::default() };
    golden.down("server-heartbeat", Down::Heartbeat(beat));
    golden.down("server-drain", Down::Drain(pb::ServerDrain { reason: text("old stream") }));
    golden.down("leave", Down::Leave(pb::LeaveOrder { reason: text("maintenance") }));
    golden.down("retry", Down::Retry(pb::RetryOrder {}));

    // Compressed as it was then; another version of zstd may write other bytes for the same content.
    let packed = golden.read("snapshot.zst", || pack(&snapshot().encode_to_vec()).unwrap());
    let catalog = pb::Part { version: 42, sha256: digest(&snapshot().encode_to_vec()).to_vec() };
    let unpacked = unpack(&packed, &catalog.sha256).unwrap();
    assert_eq!(decode::<pb::Snapshot>(&unpacked).unwrap(), snapshot());
    golden.down(
        "update",
        Down::Update(pb::ConfigUpdate {
            update_id: 3,
            target: Some(pb::Target { catalog: Some(catalog.clone()), ..target() }),
            catalog_zstd: packed.clone().into(),
            ..Default::default()
        }),
    );
    golden.down(
        "probe",
        Down::Probe(pb::ProbeRequest { probe_id: 5, catalog: Some(catalog), catalog_zstd: packed.into() }),
    );

    let window = pb::Window {
        first_seq: 11,
        last_seq: 12,
        start_ms: 1_000,
        end_ms: 21_000,
        attempts: vec![pb::AttemptCount {
            model: text("gpt-4o"),
            channel: text("reseller"),
            class: text("overloaded"),
            count: 2,
        }],
        requests: vec![pb::RequestCount { model: text("gpt-4o"), outcome: text("served"), count: 5 }],
        first_bytes: vec![],
        ..Default::default()
    };
    golden.check(
        "report",
        &pb::ReportRequest {
            node_id: text("node-a"),
            boot_id: text("0199"),
            window: Some(window),
            totals: Some(pb::Totals { attempts: 9, attempts_ok: 7, requests: 8, requests_served: 8 }),
            acknowledged_through: 10,
            ..Default::default()
        },
    );
    golden.check("report-response", &pb::ReportResponse { claimed_through: 12 });
    let binding = pb::Binding {
        dialect: text("openai-responses"),
        id: text("resp_1"),
        key_id: text("key-1"),
        channel: text("reseller"),
        model: text("gpt-4o"),
        made_at_ms: 1_796_047_753_153,
    };
    let bindings = vec![binding.clone()];
    golden.check("bindings", &pb::ReportBindingsRequest { node_id: text("node-a"), bindings });
    let asked = pb::FindBindingRequest {
        dialect: text("openai-responses"),
        id: text("resp_1"),
        key_id: text("key-1"),
    };
    golden.check("find-binding", &asked);
    golden.check("found-binding", &pb::FindBindingResponse { binding: Some(binding), in_doubt: false });
    golden.check("doubted-binding", &pb::FindBindingResponse { binding: None, in_doubt: true });

    let node_id = text("node-a");
    golden.check("enrol", &pb::EnrolRequest { node_id: node_id.clone(), csr: vec![0x30, 0x82] });
    golden.check("renew", &pb::RenewRequest { node_id, csr: vec![0x30, 0x82] });
    let certificate = Some(pb::NodeCertificate {
        certificate_pem: text("-----BEGIN CERTIFICATE-----"),
        authorities_pem: text("-----BEGIN CERTIFICATE-----"),
    });
    golden.check("enrolled", &pb::EnrolResponse { certificate: certificate.clone() });
    golden.check("renewed", &pb::RenewResponse { certificate });

    let files = std::fs::read_dir(&golden.folder).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(files, golden.seen, "every file is looked at");
}
