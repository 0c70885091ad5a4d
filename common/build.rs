//! Compiles `../proto` with protox, so that no protoc is needed.

use std::path::PathBuf;

use prost::Message as _;

const FILES: &[&str] = &[
    "sluice/admin/v1/access.proto",
    "sluice/admin/v1/alerts.proto",
    "sluice/admin/v1/audit.proto",
    "sluice/admin/v1/authority.proto",
    "sluice/admin/v1/backup.proto",
    "sluice/admin/v1/catalog.proto",
    "sluice/admin/v1/chains.proto",
    "sluice/admin/v1/doctor.proto",
    "sluice/admin/v1/keys.proto",
    "sluice/admin/v1/nodes.proto",
    "sluice/admin/v1/requests.proto",
    "sluice/admin/v1/rollouts.proto",
    "sluice/admin/v1/secrets.proto",
    "sluice/admin/v1/status.proto",
    "sluice/admin/v1/tokens.proto",
    "sluice/fleet/v1/bindings.proto",
    "sluice/fleet/v1/enrol.proto",
    "sluice/fleet/v1/records.proto",
    "sluice/fleet/v1/report.proto",
    "sluice/fleet/v1/secrets.proto",
    "sluice/fleet/v1/snapshot.proto",
    "sluice/fleet/v1/sync.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [&root])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?).join("sluice.bin");
    std::fs::write(out, descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".sluice.fleet.v1.ConfigUpdate")
        .bytes(".sluice.fleet.v1.ProbeRequest")
        // What holds a credential is shown without it: src/pb.rs says how.
        .skip_debug([".sluice.admin.v1.SetSecretRequest", ".sluice.fleet.v1.ChannelSecret"])
        .compile_fds(descriptors)?;
    Ok(())
}
