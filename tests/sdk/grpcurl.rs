//! The control plane by `grpcurl`, with the commands of the documentation: it finds every call by reflection.

use harness::documented::{commands_below, run};
use harness::fleet::Fleet;
use harness::tools::tools_dir;

#[tokio::test]
async fn grpcurl_lists_describes_and_calls_as_documented() -> anyhow::Result<()> {
    let fleet = Fleet::start(0).await?;
    let token = fleet.control_plane.data_dir().join("admin.token");
    let block = commands_below("### grpcurl")?
        .replace("cp/admin.token", &token.to_string_lossy())
        .replace("127.0.0.1:7443", &fleet.control_plane.address("admin")?.to_string());
    let shown = run(&block, &[], &[tools_dir()?.join("venv/bin")])?;
    for part in [
        "sluice.admin.v1.CatalogService\n",
        "rpc CreateKey ( .sluice.admin.v1.CreateKeyRequest )",
        "\"windowSeconds\": \"3600\"",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    fleet.finish()
}
