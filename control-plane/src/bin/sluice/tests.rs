//! Command lines against a real control plane in this process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use common::tasks::Tasks;
use control_plane::{Config, Settings, serve_with};
use tokio::sync::oneshot;

use super::*;
use crate::output::Captured;

const BOUND: Duration = Duration::from_secs(30);

const CATALOG: &str = r#"
[channels.direct]
dialects = ["openai-chat"]
base_url = "https://direct.example/v1"
credential = "env:KEY"
[channels.reseller]
dialects = ["openai-chat"]
base_url = "https://reseller.example/v1"
credential = "env:KEY"
[models."gpt-4o"]
routes = [
  { channel = "direct", upstream_model = "gpt-4o", cost = { input = "2.50", output = "10.00" } },
  { channel = "reseller", upstream_model = "gpt-4o", cost = { input = "2.00", output = "8.00" } },
]
"#;

struct Fixture {
    dir: tempfile::TempDir,
    admin: SocketAddr,
    tasks: Tasks,
}

/// How a command ended and what it said.
#[derive(Debug)]
struct Ended {
    code: u8,
    out: String,
    err: String,
}

impl Ended {
    fn json(&self) -> serde_json::Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

impl Fixture {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let any = || Some("127.0.0.1:0".to_owned());
        let key = dir.path().join("secret.key");
        std::fs::write(&key, [7; 32]).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let settings = Settings {
            secret_key_file: Some(vec![key]),
            data_dir: Some(dir.path().join("data")),
            admin_listen: any(),
            fleet_listen: any(),
            http_listen: any(),
            ..Settings::default()
        };
        let config = Config::check(settings).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let tasks = Tasks::new();
        tasks.spawn("control plane", |stop| async move {
            serve_with(config, stop, |addresses| ready.send(addresses.admin).unwrap()).await.unwrap();
        });
        let admin = tokio::time::timeout(BOUND, is_ready).await.unwrap().unwrap();
        Fixture { dir, admin, tasks }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs a command line as `main` does.
    async fn sluice(&self, line: &[&str]) -> Ended {
        let server = format!("http://{}", self.admin);
        let token = self.dir.path().join("data/admin.token");
        let given = ["sluice", "--server", &server, "--token-file", token.to_str().unwrap()];
        sluice(given.iter().chain(line)).await
    }

    async fn stop(self) {
        assert!(self.tasks.stop(BOUND).await);
    }
}

async fn sluice<'a>(line: impl Iterator<Item = &'a &'a str>) -> Ended {
    let args = Args::try_parse_from(line.copied()).unwrap();
    let (mut output, captured) = Captured::new(args.output);
    let exit = match run(args, &mut output).await {
        Ok(exit) => exit,
        Err(fault) => output.fault(&fault),
    };
    Ended { code: exit.code(), out: captured.out(), err: captured.err() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_goes_in_and_comes_back_byte_for_byte() {
    let fixture = Fixture::start().await;
    let empty = fixture.sluice(&["catalog", "get"]).await;
    assert_eq!((empty.code, empty.out.as_str()), (1, ""));
    assert!(empty.err.starts_with("error: no catalog was applied yet\nhelp: "), "{}", empty.err);
    assert_eq!(fixture.sluice(&["chain", "gpt-4o"]).await.code, 1);

    let file = fixture.file("catalog.toml", CATALOG);
    let file = file.to_str().unwrap();
    let valid = fixture.sluice(&["catalog", "validate", "-f", file]).await;
    assert_eq!((valid.code, valid.out), (0, format!("{file} is valid\n")));
    let applied = fixture.sluice(&["catalog", "apply", "-f", file, "-m", "first", "-o", "json"]).await;
    assert_eq!((applied.code, applied.out.as_str()), (0, "{\"revision\": 1}\n"));
    let again = fixture.sluice(&["catalog", "apply", "-f", file]).await;
    assert_eq!((again.code, again.out), (0, format!("no change: {file} is revision 1 already\n")));
    assert_eq!(fixture.sluice(&["catalog", "get"]).await.out, CATALOG);
    assert_eq!(fixture.sluice(&["catalog", "get", "1", "-o", "json"]).await.json()["document"], CATALOG);
    assert_eq!(fixture.sluice(&["catalog", "get", "9"]).await.code, 1);
    let history = fixture.sluice(&["catalog", "history", "-o", "json"]).await.json();
    assert_eq!(
        (&history["revisions"][0]["message"], &history["revisions"][1]),
        (&"first".into(), &serde_json::Value::Null)
    );

    let chain = fixture.sluice(&["chain", "gpt-4o", "--dialect", "openai-chat"]).await;
    let hops: Vec<_> =
        chain.out.lines().skip(2).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(hops, ["reseller", "direct"]);
    assert_eq!(fixture.sluice(&["chains", "-o", "json"]).await.json()["chains"][0]["revision"], 1);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_faulty_catalog_is_refused_with_a_line_for_each_fault_and_nothing_is_kept() {
    let fixture = Fixture::start().await;
    let faulty = CATALOG
        .replace("channel = \"direct\"", "channel = \"dirct\"")
        .replace("https://reseller", "ftp://reseller");
    let file = fixture.file("bad.toml", &faulty);
    let file = file.to_str().unwrap();
    for command in ["validate", "apply"] {
        let refused = fixture.sluice(&["catalog", command, "-f", file]).await;
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{command}");
        let lines: Vec<_> = refused.err.lines().collect();
        assert!(lines[0].starts_with(&format!("{file}:8: channels.reseller.base_url: ")), "{}", refused.err);
        assert!(
            lines[1].starts_with(&format!("{file}:12: models.gpt-4o.routes[0].channel: no such channel"))
        );
        assert_eq!(lines[2], format!("error: {file} has 2 faults"));
    }
    let json = fixture.sluice(&["catalog", "validate", "-f", file, "-o", "json"]).await;
    assert_eq!((json.code, json.json()["faults"][1]["line"].as_u64()), (2, Some(12)));
    assert_eq!(fixture.sluice(&["catalog", "history"]).await.out, "no revisions\n");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_faults_arrive_with_an_apply() {
    let fixture = Fixture::start().await;
    let channels = (0..400).map(|n| format!("[channels.c{n}]\ndialects = [\"openai-chat\"]\n"));
    let file = fixture.file("faulty.toml", &channels.collect::<String>());
    let refused = fixture.sluice(&["catalog", "apply", "-f", file.to_str().unwrap()]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!((0..400).all(|n| refused.err.contains(&format!("channels.c{n}"))), "{}", refused.err);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_expectation_is_refused_with_the_current_number() {
    let fixture = Fixture::start().await;
    let first = fixture.file("1.toml", CATALOG);
    let second = fixture.file("2.toml", &format!("{CATALOG}# changed\n"));
    for (file, expect) in [(&first, "0"), (&second, "1")] {
        let applied =
            fixture.sluice(&["catalog", "apply", "-f", file.to_str().unwrap(), "--expect", expect]).await;
        assert_eq!(applied.code, 0, "{applied:?}");
    }
    let stale = fixture.sluice(&["catalog", "apply", "-f", first.to_str().unwrap(), "--expect", "1"]).await;
    assert_eq!(stale.code, 2);
    assert!(stale.err.contains("the catalog is at revision 2 by now, not at 1"), "{}", stale.err);
    assert!(stale.err.contains("--expect 2"), "{}", stale.err);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_compared_tried_applied_once_and_taken_back() {
    let fixture = Fixture::start().await;
    let first = fixture.file("1.toml", CATALOG);
    let second = fixture.file("2.toml", &CATALOG.replace("8.00", "9.00"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let fresh = fixture.sluice(&["catalog", "diff", "-f", first]).await;
    assert_eq!(fresh.code, 1, "{fresh:?}");
    assert!(fresh.out.ends_with(&format!("changes from no catalog at all to {first}\n")), "{}", fresh.out);
    assert_eq!(fixture.sluice(&["catalog", "apply", "-f", first]).await.code, 0);

    let same = fixture.sluice(&["catalog", "diff", "-f", first]).await;
    assert_eq!((same.code, same.out), (0, format!("no difference between revision 1 and {first}\n")));
    let diff = fixture.sluice(&["catalog", "diff", "-f", second]).await;
    let [_header, change, count] = diff.out.lines().collect::<Vec<_>>()[..] else { panic!("{}", diff.out) };
    let change: Vec<_> = change.split_whitespace().collect();
    assert_eq!(change, ["~", "models.gpt-4o.routes[reseller].cost.output", "8.00", "9.00"]);
    assert_eq!((diff.code, count), (1, format!("1 change from revision 1 to {second}").as_str()));
    let dry = fixture.sluice(&["catalog", "apply", "-f", second, "--dry-run"]).await;
    assert_eq!(dry.code, 0, "{dry:?}");
    let said = format!("{second} would be revision 2, with 1 change; nothing was applied\n");
    assert!(dry.out.ends_with(&said), "{}", dry.out);
    let dry = fixture.sluice(&["catalog", "apply", "-f", second, "--dry-run", "-o", "json"]).await.json();
    assert_eq!((&dry["revision"], &dry["changes"][0]["after"]), (&2.into(), &"9.00".into()));

    for _ in 0..2 {
        let line = ["catalog", "apply", "-f", second, "--idempotency-key", "job-17", "-o", "json"];
        let applied = fixture.sluice(&line).await;
        assert_eq!((applied.code, applied.out.as_str()), (0, "{\"revision\": 2}\n"));
        assert_eq!(fixture.sluice(&["catalog", "rollback", "1", "-m", "dear"]).await.code, 0);
    }
    let line = ["catalog", "apply", "-f", first, "--idempotency-key", "job-17"];
    let other = fixture.sluice(&line).await;
    assert_eq!(other.code, 2);
    assert!(other.err.contains("used already, for revision 2"), "{}", other.err);

    let shown = fixture.sluice(&["catalog", "show"]).await;
    assert!(shown.out.starts_with("revision 3  ") && shown.out.contains("\ndear\n"), "{}", shown.out);
    assert!(shown.out.contains("1 change against revision 2\n"), "{}", shown.out);
    let shown = fixture.sluice(&["catalog", "show", "3", "-o", "json"]).await.json();
    assert_eq!((&shown["before"], &shown["changes"][0]["after"]), (&2.into(), &"8.00".into()));
    assert_eq!(fixture.sluice(&["catalog", "show", "1"]).await.code, 0);
    assert_eq!(fixture.sluice(&["catalog", "diff", "1", "3"]).await.code, 0, "the same again");
    let between = fixture.sluice(&["catalog", "diff", "1", "2", "-o", "json"]).await;
    assert_eq!((between.code, &between.json()["to"]), (1, &2.into()));
    for line in [["catalog", "rollback", "9"], ["catalog", "diff", "9"], ["catalog", "show", "9"]] {
        assert_eq!(fixture.sluice(&line).await.code, 1, "{line:?}");
    }
    let stale = fixture.sluice(&["catalog", "rollback", "2", "--expect", "1"]).await;
    assert!(stale.err.contains("the catalog is at revision 3 by now, not at 1"), "{}", stale.err);
    let bad = fixture.file("bad.toml", &CATALOG.replace("\"direct\", up", "\"dirct\", up"));
    let bad = bad.to_str().unwrap();
    let refused = fixture.sluice(&["catalog", "diff", "-f", bad]).await;
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.starts_with(&format!("{bad}:12: models.gpt-4o.routes[0].channel: ")),
        "{}",
        refused.err
    );
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_listed_and_revoked() {
    let fixture = Fixture::start().await;
    let made = fixture.sluice(&["keys", "create", "--name", "app", "-o", "json"]).await.json();
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with("sk-"));
    let list = fixture.sluice(&["keys", "list"]).await;
    assert!(list.out.contains(id) && !list.out.contains(key), "{}", list.out);
    assert_eq!(fixture.sluice(&["keys", "revoke", id]).await.out, format!("revoked key {id} (app)\n"));
    assert_eq!(fixture.sluice(&["keys", "revoke", "nobody"]).await.code, 1);
    let empty = fixture.sluice(&["keys", "create", "--name", ""]).await;
    assert_eq!((empty.code, empty.err.lines().count()), (2, 1), "{}", empty.err);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_in_is_listed_without_its_value_and_stays_while_a_channel_uses_it() {
    let fixture = Fixture::start().await;
    let value = fixture.file("value", "sk-hidden\n");
    let named = fixture.file("c.toml", &CATALOG.replacen("env:KEY", "secret:direct", 1));
    let apply = ["catalog", "apply", "-f", named.to_str().unwrap()];
    let refused = fixture.sluice(&apply).await;
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains(":5: channels.direct.credential: no such secret"), "{}", refused.err);

    let set = ["secret", "set", "direct", "--from-file", value.to_str().unwrap()];
    assert_eq!(fixture.sluice(&set).await.out, "secret direct set, version 2\n");
    assert_eq!(fixture.sluice(&apply).await.code, 0);
    let list = fixture.sluice(&["secret", "list", "-o", "json"]).await;
    assert_eq!(list.json()["secrets"][0]["used_by"][0]["channel"], "direct");
    let audit = fixture.sluice(&["audit", "list", "--action", "secret", "-o", "json"]).await;
    assert_eq!(audit.json()["entries"][0]["object"], "direct");
    assert!(![&list, &audit].iter().any(|said| said.out.contains("sk-hidden")));

    let kept = fixture.sluice(&["secret", "delete", "direct"]).await;
    assert_eq!(kept.code, 2);
    assert!(
        kept.err.contains("is used by direct (revision 1)") && kept.err.contains("--force"),
        "{}",
        kept.err
    );
    let rekeyed = fixture.sluice(&["secret", "rekey", "-o", "json"]).await.json();
    assert_eq!(rekeyed["resealed"], 0);
    let deleted = fixture.sluice(&["secret", "delete", "direct", "--force"]).await;
    assert_eq!((deleted.code, deleted.out.as_str()), (0, "deleted secret direct\n"));
    assert_eq!(fixture.sluice(&["secret", "list"]).await.out, "no secrets\n");
    assert_eq!(fixture.sluice(&["secret", "delete", "direct"]).await.code, 1);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_may_what_its_role_may_until_it_is_revoked() {
    let fixture = Fixture::start().await;
    let create = async |name: &str, role: &str, ttl: &str| {
        let line = ["access", "create", "--name", name, "--role", role, "--ttl", ttl, "-o", "json"];
        let made = fixture.sluice(&line).await.json();
        let file = fixture.file(name, made["token"].as_str().unwrap());
        (made["id"].as_str().unwrap().to_owned(), file.to_str().unwrap().to_owned())
    };
    let (viewer_id, viewer) = create("grafana", "viewer", "1d").await;
    let (_, operator) = create("ci", "operator", "90d").await;
    let (_, brief) = create("brief", "admin", "1s").await;
    let catalog = fixture.file("catalog.toml", CATALOG);
    let apply = ["catalog", "apply", "-f", catalog.to_str().unwrap(), "-o", "json"];
    let with =
        async |token: &str, line: &[&str]| fixture.sluice(&[&["--token-file", token], line].concat()).await;

    let refused = with(&viewer, &apply).await;
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    let said = format!(
        "error: the token from {viewer} may not do it: this needs the role operator; grafana has the role viewer\n"
    );
    assert!(refused.err.starts_with(&said), "{}", refused.err);
    assert_eq!(with(&viewer, &["keys", "list"]).await.code, 0);
    assert_eq!(with(&viewer, &["access", "list"]).await.code, 2, "who has access is for admins");
    assert_eq!(with(&operator, &apply).await.out, "{\"revision\": 1}\n");
    let more = with(&operator, &["access", "create", "--name", "me", "--role", "admin"]).await;
    assert!(more.err.contains("this needs the role admin; ci has the role operator"), "{}", more.err);
    assert!(with(&operator, &["access", "whoami"]).await.out.starts_with("ci, operator, "));
    let author = fixture.sluice(&["catalog", "history", "-o", "json"]).await.json();
    assert_eq!(author["revisions"][0]["author"], "ci");

    let expired = eventually(async || {
        let ended = with(&brief, &["access", "whoami"]).await;
        (ended.code == 2).then_some(ended)
    });
    let expired = expired.await;
    assert!(expired.err.contains("the token of brief has expired"), "{}", expired.err);
    let revoked = fixture.sluice(&["access", "revoke", &viewer_id]).await;
    assert_eq!(revoked.out, format!("revoked token {viewer_id} (grafana)\n"));
    let after = with(&viewer, &["keys", "list"]).await;
    assert!(after.code == 2 && after.err.contains("the token of grafana was revoked"), "{}", after.err);
    let listed = fixture.sluice(&["access", "list"]).await.out;
    assert!(listed.contains("grafana") && !listed.contains("sla-"), "{listed}");
    let log = fixture.sluice(&["audit", "list", "--action", "access", "-o", "json"]).await.json();
    assert_eq!(log["entries"].as_array().unwrap().len(), 4);
    fixture.stop().await;
}

/// Asks again until there is an answer.
async fn eventually<T>(ask: impl AsyncFn() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(BOUND, asking).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_says_who_did_what_and_is_verified() {
    let fixture = Fixture::start().await;
    assert_eq!(fixture.sluice(&["audit", "list"]).await.out, "no entries\n");
    let made = fixture.sluice(&["keys", "create", "--name", "app", "-o", "json"]).await.json();
    fixture.sluice(&["keys", "revoke", made["id"].as_str().unwrap()]).await;
    let file = fixture.file("catalog.toml", CATALOG);
    fixture.sluice(&["catalog", "apply", "-f", file.to_str().unwrap(), "-m", "first"]).await;
    let listed = fixture.sluice(&["audit", "list", "--since", "1h", "-o", "json"]).await.json();
    let entries = listed["entries"].as_array().unwrap();
    let actions: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["catalog.apply", "key.revoke", "key.create"]);
    assert_eq!((&entries[0]["revision"], &entries[0]["after"]["message"]), (&1.into(), &"first".into()));
    assert_eq!((&entries[0]["before"]["revision"], &entries[0]["actor"]), (&0.into(), &"admin".into()));
    assert!(entries[0]["origin"].as_str().unwrap().starts_with("127.0.0.1:"), "{entries:?}");
    let some = fixture.sluice(&["audit", "list", "--action", "key", "--limit", "1"]).await;
    assert!(some.out.contains("key.revoke") && !some.out.contains("key.create"), "{}", some.out);

    let verified = fixture.sluice(&["audit", "verify"]).await;
    assert_eq!(verified.code, 0, "{verified:?}");
    let known = verified.out.trim_end().rsplit(' ').next().unwrap();
    assert!(verified.out.starts_with("3 entries, unbroken") && known.starts_with("3:"), "{}", verified.out);
    assert_eq!(fixture.sluice(&["audit", "verify", "--from", known]).await.code, 0);
    let other = format!("3:{}", "0".repeat(64));
    let other = fixture.sluice(&["audit", "verify", "--from", &other, "-o", "json"]).await;
    assert_eq!((other.code, &other.json()["broken"]["number"]), (1, &4.into()));
    assert_eq!(fixture.sluice(&["audit", "verify", "--from", "3"]).await.code, 2);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_without_traffic_shows_no_data() {
    let fixture = Fixture::start().await;
    let file = fixture.file("catalog.toml", CATALOG);
    fixture.sluice(&["catalog", "apply", "-f", file.to_str().unwrap()]).await;
    let status = fixture.sluice(&["status", "--window", "5m", "-o", "json"]).await.json();
    assert_eq!(
        (&status["window_seconds"], &status["data_until_ms"]),
        (&300.into(), &serde_json::Value::Null)
    );
    assert_eq!(status["models"][0]["success_rate"], serde_json::Value::Null);
    assert!(fixture.sluice(&["status"]).await.out.contains("no data was ever reported"));
    let unknown = fixture.sluice(&["status", "--model", "gpt-40"]).await;
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("did you mean \"gpt-4o\"?"), "{}", unknown.err);
    assert_eq!(fixture.sluice(&["nodes", "list"]).await.out, "no node was ever connected\n");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused_and_its_source_named() {
    let fixture = Fixture::start().await;
    let wrong = fixture.file("wrong.token", "nonsense\n");
    let refused = fixture.sluice(&["--token-file", wrong.to_str().unwrap(), "chains"]).await;
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .err
            .contains(&format!("does not take the token from {}: the token is wrong", wrong.display())),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("admin.token"), "{}", refused.err);
    fixture.stop().await;
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_a_call_with_code_4() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("t");
    std::fs::write(&token, "token").unwrap();
    let line = [
        "sluice",
        "--server",
        &server,
        "--token-file",
        token.to_str().unwrap(),
        "--timeout",
        "300ms",
        "chains",
    ];
    let ended = sluice(line.iter()).await;
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.err.contains("--timeout"), "{}", ended.err);
}
