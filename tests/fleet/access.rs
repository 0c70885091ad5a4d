//! Who may do what, by `sluice` itself: tokens with roles, their end, and the first admin's token by each way.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use harness::eventually::eventually;
use harness::fleet::{Fleet, Plan, SOON};
use harness::operator::Operator;
use harness::process::{Process, Program};
use harness::provider::Provider;
use harness::sluice::Said;

/// Makes a token and puts it into a file. Returns its id and the file.
async fn made(fleet: &Fleet, name: &str, args: &[&str]) -> anyhow::Result<(String, PathBuf)> {
    let args = [&["access", "create", "--name", name, "-o", "json"], args].concat();
    let said = fleet.sluice(&args).await?.with_code(0)?.json()?;
    let text = |of: &str| said[of].as_str().map(str::to_owned).with_context(|| format!("no {of}: {said}"));
    let file = fleet.dir().join(format!("{name}.token"));
    std::fs::write(&file, format!("{}\n", text("token")?))?;
    Ok((text("id")?, file))
}

async fn sluice(fleet: &Fleet, token: &Path, args: &[&str]) -> anyhow::Result<Said> {
    Operator::of(&fleet.control_plane, token.to_owned()).sluice(args).await
}

#[tokio::test]
async fn each_role_does_what_it_may_and_a_refusal_names_the_role_that_is_needed() -> anyhow::Result<()> {
    let provider = Provider::start("p1").await?;
    let fleet = Fleet::start_as(Plan { without_key: true, ..Plan::default() }).await?;
    let file = fleet.dir().join("catalog.toml");
    std::fs::write(&file, harness::catalog::chain_of("m", &[&provider]).text())?;
    let apply = ["catalog", "apply", "-f", &file.to_string_lossy()];
    let (viewer_id, viewer) = made(&fleet, "sees", &["--role", "viewer"]).await?;
    let (_, operator) = made(&fleet, "does", &["--role", "operator", "--ttl", "1h"]).await?;

    let whoami = sluice(&fleet, &viewer, &["access", "whoami", "-o", "json"]).await?.with_code(0)?.json()?;
    assert_eq!(
        (whoami["name"].as_str(), whoami["role"].as_str(), whoami["credential"].as_str()),
        (Some("sees"), Some("viewer"), Some(viewer_id.as_str()))
    );
    sluice(&fleet, &viewer, &["nodes", "list"]).await?.with_code(0)?;
    sluice(&fleet, &viewer, &["audit", "list"]).await?.with_code(0)?;
    for args in [&apply[..], &["keys", "create", "--name", "k"], &["rollout", "pause"]] {
        let refused = sluice(&fleet, &viewer, args).await?.with_code(2)?;
        assert!(refused.err.contains("needs the role operator; sees has the role viewer"), "{refused:?}");
        assert!(refused.err.contains("help: "), "{refused:?}");
    }
    sluice(&fleet, &operator, &apply).await?.with_code(0)?;
    let create = ["access", "create", "--name", "more", "--role", "admin"];
    let refused = sluice(&fleet, &operator, &create).await?.with_code(2)?;
    assert!(refused.err.contains("needs the role admin; does has the role operator"), "{refused:?}");

    let listed = fleet.sluice(&["access", "list"]).await?.with_code(0)?;
    let secret = std::fs::read_to_string(&viewer)?;
    assert!(listed.out.contains("sees") && listed.out.contains("does"), "{}", listed.out);
    assert!(!listed.out.contains(secret.trim()) && !listed.out.contains("more"), "{}", listed.out);
    fleet.sluice(&["access", "revoke", &viewer_id]).await?.with_code(0)?;
    let refused = sluice(&fleet, &viewer, &["nodes", "list"]).await?.with_code(2)?;
    assert!(refused.err.contains("token") && refused.err.contains("help: "), "{refused:?}");
    fleet.sluice(&["access", "revoke", "tok-unknown"]).await?.with_code(1)?;

    let log = fleet.sluice(&["audit", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    let entries = log["entries"].as_array().context("no entries")?;
    let done: Vec<_> =
        entries.iter().filter_map(|e| Some((e["actor"].as_str()?, e["action"].as_str()?))).collect();
    let applied =
        done.iter().filter(|(actor, action)| *actor == "does" && action.starts_with("catalog")).count();
    assert_eq!(applied, 1, "{done:?}");
    assert!(!done.iter().any(|(actor, _)| *actor == "sees"), "what is refused changes nothing: {done:?}");
    fleet.finish()
}

#[tokio::test]
async fn a_token_that_has_expired_is_refused_with_what_to_do() -> anyhow::Result<()> {
    let fleet = Fleet::start_as(Plan { without_key: true, ..Plan::default() }).await?;
    let (_, short) = made(&fleet, "short", &["--role", "viewer", "--ttl", "3s"]).await?;
    sluice(&fleet, &short, &["access", "whoami"]).await?.with_code(0)?;
    eventually("the token is over", SOON, || async {
        let refused = sluice(&fleet, &short, &["access", "whoami"]).await?.with_code(2)?;
        ensure!(refused.err.contains("token") && refused.err.contains("help: "), "{refused:?}");
        Ok(())
    })
    .await?;
    fleet.sluice(&["access", "whoami"]).await?.with_code(0)?;
    fleet.finish()
}

#[tokio::test]
async fn the_first_admins_token_may_come_from_a_file_or_the_environment() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("given");
    std::fs::write(&file, "a-token-of-sixteen-characters-or-more\n")?;
    let environment = dir.path().join("environment");
    std::fs::write(&environment, "another-token-of-sixteen-or-more\n")?;
    let by_file = vec!["--admin-token-file".to_owned(), file.to_string_lossy().into_owned()];
    let by_environment = ("SLUICE_ADMIN_TOKEN".to_owned(), "another-token-of-sixteen-or-more".to_owned());
    for (name, args, env, good, bad) in [
        ("by-file", by_file, vec![], &file, &environment),
        ("by-environment", vec![], vec![by_environment], &environment, &file),
    ] {
        let listen = ["--admin-listen", "--fleet-listen", "--http-listen"];
        let listen = listen.into_iter().flat_map(|flag| [flag.to_owned(), "127.0.0.1:0".to_owned()]);
        let control_plane = Process::start(Program {
            binary: "control-plane",
            label: name.to_owned(),
            data_dir: dir.path().join(name),
            args: listen.chain(args).collect(),
            env,
            ready_at: Some("http"),
        })
        .await?;
        let whoami = ["access", "whoami", "-o", "json"];
        let said = Operator::of(&control_plane, good.clone()).sluice(&whoami).await?.with_code(0)?.json()?;
        assert_eq!(said["role"], "admin", "{said}");
        Operator::of(&control_plane, bad.clone()).sluice(&whoami).await?.with_code(2)?;
        assert!(!dir.path().join(name).join("admin.token").exists(), "none is made beside the given one");
    }
    Ok(())
}

#[tokio::test]
async fn a_token_for_nodes_is_made_listed_and_revoked() -> anyhow::Result<()> {
    let fleet = Fleet::start_as(Plan { without_key: true, ..Plan::default() }).await?;
    let create = ["tokens", "create", "--ttl", "1h", "--uses", "3", "--label", "zone=eu", "-o", "json"];
    let made = fleet.sluice(&create).await?.with_code(0)?.json()?;
    let (id, secret) = (made["id"].as_str().context("no id")?, made["token"].as_str().context("no token")?);
    let listed = fleet.sluice(&["tokens", "list"]).await?.with_code(0)?;
    assert!(listed.out.contains("0/3") && listed.out.contains("zone=eu"), "{}", listed.out);
    assert!(!listed.out.contains(secret), "it is shown once");
    fleet.sluice(&["tokens", "revoke", id]).await?.with_code(0)?;
    let listed = fleet.sluice(&["tokens", "list", "-o", "json"]).await?.with_code(0)?.json()?;
    assert!(listed["tokens"][0]["revoked_at_ms"].is_u64(), "{listed}");
    fleet.sluice(&["tokens", "revoke", "token-unknown"]).await?.with_code(1)?;
    fleet.finish()
}
