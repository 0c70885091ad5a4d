//! Style as a test: what a reviewer would otherwise have to look for in every change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use harness::process::binary_path;
use harness::tools::package_path;

/// A file with more lines has a second question in it.
const LINES_MAX: usize = 500;

/// Code that decides and does nothing else: files, or folders with all that is in them.
const PURE: [&str; 66] = [
    "common/src/backoff.rs",
    "common/src/catalog.rs",
    "common/src/catalog/",
    "common/src/class.rs",
    "common/src/code.rs",
    "common/src/dialect.rs",
    "common/src/first_byte.rs",
    "common/src/money.rs",
    "common/src/policy.rs",
    "common/src/profile.rs",
    "common/src/profile/",
    "common/src/record.rs",
    "common/src/record/words.rs",
    "common/src/snapshot.rs",
    "common/src/window.rs",
    "control-plane/src/access/oidc/jwt.rs",
    "control-plane/src/alerts/find.rs",
    "control-plane/src/alerts/machine.rs",
    "control-plane/src/alerts/message.rs",
    "control-plane/src/beats/pace.rs",
    "control-plane/src/doctor/checks.rs",
    "control-plane/src/fleet/admit.rs",
    "control-plane/src/fleet/session.rs",
    "control-plane/src/fleet/session/",
    "control-plane/src/nodes/boots.rs",
    "control-plane/src/nodes/facts.rs",
    "control-plane/src/nodes/view.rs",
    "control-plane/src/observed.rs",
    "control-plane/src/observed/incidents.rs",
    "control-plane/src/observed/series.rs",
    "control-plane/src/page/admin/origin.rs",
    "control-plane/src/page/admin/serving.rs",
    "control-plane/src/page/bars.rs",
    "control-plane/src/page/html.rs",
    "control-plane/src/page/out.rs",
    "control-plane/src/page/rates.rs",
    "control-plane/src/page/sees.rs",
    "control-plane/src/page/words.rs",
    "control-plane/src/records.rs",
    "control-plane/src/records/cost.rs",
    "control-plane/src/rollout.rs",
    "control-plane/src/rollout/choose.rs",
    "control-plane/src/rollout/judge.rs",
    "control-plane/src/rollout/rate.rs",
    "gateway-node/src/bindings/entry.rs",
    "gateway-node/src/bindings/table.rs",
    "gateway-node/src/channel/breaker.rs",
    "gateway-node/src/channel/pause.rs",
    "gateway-node/src/dialect.rs",
    "gateway-node/src/dialect/",
    "gateway-node/src/fault.rs",
    "gateway-node/src/gate.rs",
    "gateway-node/src/gate/",
    "gateway-node/src/journal.rs",
    "gateway-node/src/sync/paused.rs",
    "gateway-node/src/sync/reconnect.rs",
    "gateway-node/src/sync/session.rs",
    "gateway-node/src/table/path.rs",
    "gateway-node/src/upstream/classify.rs",
    "gateway-node/src/upstream/classify/",
    "gateway-node/src/upstream/encoding.rs",
    "gateway-node/src/upstream/encoding/",
    "gateway-node/src/upstream/headers.rs",
    "gateway-node/src/upstream/hint.rs",
    "gateway-node/src/walk/eligible.rs",
    "gateway-node/src/walk/trace.rs",
];

/// What pure code has no use for.
const IMPURE: [&str; 9] = [
    "tokio::net",
    "tokio::fs",
    "tokio::spawn",
    "hyper::",
    "hyper_util::",
    "sqlx::",
    "std::fs",
    "std::net::Tcp",
    "reqwest::",
];

/// Crates that would bring a second TLS library into the programs.
const BANNED_CRATES: [&str; 4] = ["aws-lc-rs", "aws-lc-sys", "native-tls", "openssl-sys"];

/// Faults reported against other gateways, each of which some test must name as `br_NNN`. A further one is added with
/// its test.
const CASES: [u16; 70] = [
    1, 2, 3, 5, 6, 8, 11, 12, 13, 14, 15, 17, 18, 20, 21, 22, 23, 24, 25, 27, 30, 32, 34, 36, 39, 41, 42, 43,
    44, 46, 47, 49, 52, 55, 58, 59, 61, 65, 67, 69, 72, 73, 75, 77, 80, 82, 84, 86, 97, 100, 102, 103, 105,
    109, 110, 112, 114, 116, 118, 120, 122, 124, 126, 128, 131, 133, 134, 137, 138, 141,
];

struct Source {
    /// Relative to the root.
    path: String,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// The text without the tests at its end.
    fn code(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }
}

fn root() -> PathBuf {
    package_path("..")
}

/// Every file that git knows and whose name ends so.
fn tracked(endings: &[&str]) -> anyhow::Result<Vec<Source>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout)?;
    let wanted = names.split('\0').filter(|name| endings.iter().any(|ending| name.ends_with(ending)));
    // A file that was deleted and not yet committed is listed, and gone.
    let present = wanted.filter(|name| root().join(name).is_file());
    present
        .map(|name| {
            let text = std::fs::read_to_string(root().join(name)).with_context(|| name.to_owned())?;
            Ok(Source { path: name.to_owned(), text })
        })
        .collect()
}

fn none(faults: Vec<String>) -> anyhow::Result<()> {
    ensure!(faults.is_empty(), "\n  {}", faults.join("\n  "));
    Ok(())
}

#[test]
fn no_file_has_two_questions_in_it() -> anyhow::Result<()> {
    let sources = tracked(&[".rs"])?;
    assert!(sources.len() > 50, "only {} files", sources.len());
    let long = sources.iter().map(|s| (s, s.text.lines().count())).filter(|(_, lines)| *lines > LINES_MAX);
    none(long.map(|(s, lines)| format!("{}: {lines} lines, more than {LINES_MAX}", s.path)).collect())
}

#[test]
fn every_file_says_what_it_answers() -> anyhow::Result<()> {
    let sources = tracked(&[".rs"])?;
    let silent = sources.iter().filter(|s| !s.path.ends_with("/tests.rs") && !s.text.starts_with("//!"));
    none(silent.map(|s| format!("{} does not begin with //!", s.path)).collect())
}

#[test]
fn pure_code_opens_nothing_and_asks_no_clock() -> anyhow::Result<()> {
    let sources = tracked(&[".rs"])?;
    let mut faults = Vec::new();
    for place in PURE {
        let is_in = |s: &&Source| s.path == place || (place.ends_with('/') && s.path.starts_with(place));
        let files: Vec<_> = sources.iter().filter(is_in).collect();
        if files.is_empty() {
            faults.push(format!("{place} is listed as pure and does not exist"));
        }
        for source in files.iter().filter(|s| !s.is_test()) {
            let bad = IMPURE.into_iter().chain(["Instant::now()", "SystemTime::now()", "now_ms()"]);
            for word in bad.filter(|word| source.code().contains(word)) {
                faults.push(format!("{} is pure and says {word}", source.path));
            }
        }
    }
    none(faults)
}

#[test]
fn nothing_is_left_for_later_and_no_test_is_skipped() -> anyhow::Result<()> {
    // Put together here, so that this file is not found.
    let words = ["to".to_owned() + "do!", "un".to_owned() + "implemented!", "FIX".to_owned() + "ME"];
    let skips = ["#[ig".to_owned() + "nore", "#[should_".to_owned() + "panic"];
    let mut faults = Vec::new();
    for source in tracked(&[".rs", ".sh", ".py", ".mjs", "tests/run"])? {
        for word in words.iter().chain(&skips) {
            if source.text.contains(word.as_str()) {
                faults.push(format!("{} says {word}", source.path));
            }
        }
    }
    none(faults)
}

#[test]
fn every_known_case_has_a_test_that_carries_its_id() -> anyhow::Result<()> {
    let sources = tracked(&[".rs"])?;
    let mut named = BTreeSet::new();
    for source in &sources {
        let tests = source.text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
        for name in tests {
            let mut words = name.split('_').peekable();
            while let Some(word) = words.next() {
                if word == "br" {
                    named.extend(words.peek().and_then(|number| number.parse::<u16>().ok()));
                }
            }
        }
    }
    let lost = CASES.iter().filter(|case| !named.contains(case));
    none(lost.map(|case| format!("no test is named br_{case:03}")).collect())
}

#[test]
fn the_services_do_not_know_each_other_and_common_knows_neither() -> anyhow::Result<()> {
    let pairs = [
        ("common/", "control_plane"),
        ("common/", "gateway_node"),
        ("common/", "hyper::"),
        ("common/", "sqlx::"),
        ("control-plane/", "gateway_node"),
        ("gateway-node/", "control_plane::"),
    ];
    let mut faults = Vec::new();
    for source in tracked(&[".rs"])? {
        for (folder, word) in pairs.iter().filter(|(folder, _)| source.path.starts_with(folder)) {
            let uses = source.code().lines().filter(|line| !line.trim_start().starts_with("//"));
            if uses
                .into_iter()
                .any(|line| line.contains(&format!("use {word}")) || line.contains(&format!(" {word}::")))
            {
                faults.push(format!("{} in {folder} uses {word}", source.path));
            }
        }
    }
    none(faults)
}

#[test]
fn there_is_one_tls_library() -> anyhow::Result<()> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let found = BANNED_CRATES.iter().filter(|name| lock.contains(&format!("name = \"{name}\"\n")));
    none(found.map(|name| format!("{name} is in Cargo.lock")).collect())
}

/// README and docs, where operators look.
fn documentation() -> anyhow::Result<String> {
    let pages = tracked(&[".md"])?;
    let shown = pages.iter().filter(|p| p.path == "README.md" || p.path.starts_with("docs/"));
    Ok(shown.map(|page| page.text.as_str()).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_setting_is_documented() -> anyhow::Result<()> {
    let documentation = documentation()?;
    let mut missing = Vec::new();
    for program in ["control-plane", "gateway-node"] {
        let help = Command::new(binary_path(program)?).arg("--help").output()?;
        ensure!(help.status.success(), "{program} --help: {}", help.status);
        let help = String::from_utf8(help.stdout)?;
        let words = help.split(|c: char| c.is_whitespace() || ",[]=<>".contains(c));
        let flags: BTreeSet<&str> = words.filter(|w| w.starts_with("--") && w.len() > 3).collect();
        ensure!(flags.len() > 8, "{program} --help shows only {flags:?}");
        let shown = flags.into_iter().filter(|flag| !matches!(*flag, "--help" | "--version"));
        missing.extend(shown.filter(|f| !documentation.contains(f)).map(|f| format!("{program} {f}")));
    }
    none(missing)
}

/// The names in calls of `register`, as `/metrics` shows them, save for the ending of counters and units.
fn metric_names(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(path)?;
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let calls = code.split(".register").skip(1);
    let literals = calls.filter_map(|call| call.split('"').nth(1));
    Ok(literals.map(|name| format!("sluice_{}", name.trim_start_matches("sluice_"))).collect())
}

#[test]
fn every_metric_is_documented() -> anyhow::Result<()> {
    let documentation = documentation()?;
    let mut missing = Vec::new();
    for package in ["control-plane", "gateway-node"] {
        let names = metric_names(&root().join(package).join("src/metrics.rs"))?;
        ensure!(names.len() > 5, "{package} has only the metrics {names:?}");
        missing.extend(
            names.into_iter().filter(|n| !documentation.contains(n)).map(|n| format!("{package}: {n}")),
        );
    }
    none(missing)
}
