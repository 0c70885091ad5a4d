//! Credentials of channels, from an operator's hand to an upstream: over mutual TLS alone, within seconds, and in no file
//! or log on the way.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use harness::caller::Caller;
use harness::catalog::{Document, chain_of, credential};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::process::{Process, get};
use harness::provider::{Provider, Script};
use tempfile::TempDir;
use tokio::time::Instant;

use super::Secure;
use crate::traffic::{Seen, Traffic};

const FIRST: &str = "sk-first-of-the-values-5e1";
const SECOND: &str = "sk-second-of-the-values-9c7";
/// A changed secret is shown upstream within this time: pushed, not polled.
const CHANGED_WITHIN: Duration = Duration::from_secs(5);

fn key_file(dir: &Path) -> anyhow::Result<PathBuf> {
    let path = dir.join("secret.key");
    std::fs::write(&path, [0x5a; 32])?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

/// The chain of a test whose one channel shows a secret of its own name.
fn catalog(provider: &Provider) -> Document {
    let (variable, _) = credential(provider.name());
    chain_of("m", &[provider])
        .map_text(|text| text.replace(&format!("env:{variable}"), &format!("secret:{}", provider.name())))
}

/// What the upstream was shown last.
fn shown(provider: &Provider) -> anyhow::Result<String> {
    let call = provider.calls().pop().context("no call yet")?;
    Ok(call.headers["authorization"].to_str()?.to_owned())
}

/// Slow enough that answers are on their way at the moment of a change.
async fn slow(provider: &Provider) {
    provider.set(Script::Slow { deltas: 4, every: Duration::from_millis(20) }).await;
}

/// There was traffic, and none of it failed.
fn all_good(seen: &Seen) -> anyhow::Result<()> {
    ensure!(!seen.answers.is_empty() && seen.errors.is_empty(), "{:?}", seen.errors);
    let failed = seen.answers.iter().find(|answer| answer.status != 200);
    ensure!(failed.is_none(), "a request failed: {:?}", failed.map(|answer| answer.text()));
    Ok(())
}

/// No file of a folder holds one of the values, nor a log of a process.
fn is_nowhere(dir: &Path, processes: &[&Process]) -> anyhow::Result<()> {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A database's journal may go while we look.
            let Ok(bytes) = std::fs::read(&path) else { continue };
            for value in [FIRST, SECOND] {
                let holds = bytes.windows(value.len()).any(|part| part == value.as_bytes());
                ensure!(!holds, "{} holds a value in clear", path.display());
            }
        }
    }
    for process in processes {
        for line in process.log() {
            ensure!(![FIRST, SECOND].iter().any(|value| line.contains(value)), "{}: {line}", process.label());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_is_shown_upstream_and_a_changed_one_within_seconds_without_a_failed_request()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    slow(&provider).await;
    let dir = TempDir::with_prefix("sluice-secure-")?;
    let key = key_file(dir.path())?;
    let args = ["--ca-server-names", "127.0.0.1,localhost", "--secret-key-file", &key.to_string_lossy()];
    let mut fleet = Secure::start_as(dir, &args, "control-plane/ca.crt").await?;
    // Beside the folder, so that nothing in it holds a value.
    let values = TempDir::with_prefix("sluice-values-")?;
    let set = async |value: &str| {
        let file = values.path().join("value");
        std::fs::write(&file, format!("{value}\n"))?;
        fleet.json(&["secret", "set", "p1", "--from-file", &file.to_string_lossy()]).await
    };
    set(FIRST).await?;
    fleet.apply(&catalog(&provider)).await?;
    let token = fleet.token("token", &[]).await?;
    let mut node = Process::start(fleet.node("node-1", Some(&token))).await?;
    assert_eq!(fleet.in_sync("node-1").await?["warnings"], serde_json::json!([]));
    let caller = Caller::new(node.address("data")?, "")?;
    assert_eq!(caller.chat("m", false).await?.status, 200);
    assert_eq!(shown(&provider)?, format!("Bearer {FIRST}"));

    let traffic = Traffic::start(&caller, "m", 2);
    let changed = Instant::now();
    let second = set(SECOND).await?;
    eventually("the new value is shown", CHANGED_WITHIN, || async {
        let shown = shown(&provider)?;
        ensure!(shown == format!("Bearer {SECOND}"), "the old one is");
        Ok(())
    })
    .await?;
    ensure!(changed.elapsed() < CHANGED_WITHIN, "it took {:?}", changed.elapsed());
    let seen = traffic.stop().await?;
    all_good(&seen)?;
    let listed = fleet.json(&["secret", "list"]).await?;
    assert_eq!(listed["secrets"][0]["version"], second["version"]);
    assert_eq!(listed["secrets"][0]["used_by"], serde_json::json!([{"channel": "p1", "revision": 1}]));

    // A restart without the control plane, from what lies sealed on the node's disk.
    fleet.control_plane.kill().await?;
    node.kill().await?;
    node.start_again().await?;
    let caller = Caller::new(node.address("data")?, "")?;
    assert_eq!(caller.chat("m", false).await?.status, 200);
    assert_eq!(shown(&provider)?, format!("Bearer {SECOND}"));
    is_nowhere(fleet.dir(), &[&fleet.control_plane, &node])?;
    let (_, page) = get(node.address("ops")?, "/debug/chains").await?;
    ensure!(page.contains("secret:p1") && !page.contains(SECOND), "{page}");

    // With another key file nothing starts, and it is said which one is wanted.
    std::fs::write(&key, [0x6b; 32])?;
    fleet.control_plane.spawn()?;
    fleet.control_plane.says("--secret-key-file gives", SOON).await?;
    ensure!(!fleet.control_plane.ended(SOON).await?.success(), "it started with the wrong key");
    std::fs::write(&key, [0x5a; 32])?;
    fleet.control_plane.start_again().await?;
    fleet.ready().await?;
    fleet.in_sync("node-1").await?;
    fleet.finish(&[&node])
}

#[tokio::test]
async fn a_node_without_a_certificate_of_its_own_is_never_given_a_secret_and_it_is_said_what_it_lacks()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let outside = TempDir::with_prefix("sluice-values-")?;
    let key = key_file(outside.path())?;
    let control_plane_args = vec![format!("--secret-key-file={}", key.display())];
    let fleet = Fleet::start_as(Plan { nodes: 1, control_plane_args, ..Plan::default() }).await?;
    let value = outside.path().join("value");
    std::fs::write(&value, FIRST)?;
    fleet.sluice(&["secret", "set", "p1", "--from-file", &value.to_string_lossy()]).await?.with_code(0)?;
    let file = outside.path().join("catalog.toml");
    std::fs::write(&file, catalog(&provider).text())?;
    let dry = ["catalog", "apply", "-f", &file.to_string_lossy(), "--dry-run"];
    let said = fleet.sluice(&dry).await?.with_code(0)?;
    ensure!(said.err.contains("node-1 will not get it") && said.err.contains("mutual TLS"), "{said:?}");

    let revision = fleet.apply(&catalog(&provider)).await?;
    fleet.in_sync(revision).await?;
    let node = fleet.node("node-1").await?;
    let [warning] = &node.warnings[..] else { anyhow::bail!("{node:?}") };
    ensure!(
        warning.path == "channels[0].credential" && warning.message.contains("mutual TLS"),
        "{warning:?}"
    );
    let answer = fleet.caller(0)?.chat("m", false).await?;
    assert_eq!((answer.status, answer.code().as_str()), (503, "no_available_channel"));
    assert_eq!(provider.call_count(), 0);
    let (_, metrics) = fleet.ops(0, "/metrics").await?;
    ensure!(metrics.contains(r#"sluice_credential_fault{channel="p1"} 1"#), "{metrics}");
    is_nowhere(fleet.dir(), &fleet.processes().collect::<Vec<_>>())?;
    fleet.finish()
}

#[tokio::test]
async fn a_file_that_is_replaced_is_read_without_a_new_revision_and_one_that_vanishes_keeps_the_last()
-> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    slow(&provider).await;
    let fleet = Fleet::start(1).await?;
    let path = fleet.dir().join("upstream.key");
    let replace = |value: &str| -> anyhow::Result<()> {
        let beside = fleet.dir().join("upstream.key.new");
        std::fs::write(&beside, value)?;
        Ok(std::fs::rename(beside, &path)?)
    };
    replace(FIRST)?;
    let (variable, _) = credential("p1");
    let file = format!("file:{}", path.display());
    let document =
        chain_of("m", &[&provider]).map_text(|text| text.replace(&format!("env:{variable}"), &file));
    fleet.in_sync(fleet.apply(&document).await?).await?;
    let caller = fleet.caller(0)?;
    assert_eq!(caller.chat("m", false).await?.status, 200);
    assert_eq!(shown(&provider)?, format!("Bearer {FIRST}"));

    let traffic = Traffic::start(&caller, "m", 2);
    replace(SECOND)?;
    eventually("the new content is shown", CHANGED_WITHIN, || async {
        ensure!(shown(&provider)? == format!("Bearer {SECOND}"), "the old one is");
        Ok(())
    })
    .await?;
    std::fs::remove_file(&path)?;
    let warned = eventually("it is told that the file is gone", SOON, || async {
        let node = fleet.node("node-1").await?;
        node.warnings.first().map(|warning| warning.message.clone()).context("no warning yet")
    })
    .await?;
    ensure!(warned.contains("goes on with the last credential"), "{warned}");
    let seen = traffic.stop().await?;
    all_good(&seen)?;
    assert_eq!(shown(&provider)?, format!("Bearer {SECOND}"));
    replace(SECOND)?;
    eventually("it is told that the file is back", SOON, || async {
        let node = fleet.node("node-1").await?;
        ensure!(node.warnings.is_empty(), "{:?}", node.warnings);
        Ok(())
    })
    .await?;
    fleet.finish()
}
