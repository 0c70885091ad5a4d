//! Who is told of alerts, how patient alerts are, and which URLs periodic jobs ping: the file of `--alerts-file`. What
//! stands in it is secret, so that nothing of it is printed; a value may also stand elsewhere, behind `env:` or `file:`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::Timing;
use crate::access::oidc::is_safe;
use crate::config::Hidden;

/// What a job's ping is called for: these, and all of them by `default`.
const DEFAULT: &str = "default";

/// Whom alerts are told, and whom the beats of jobs.
#[derive(Debug, Clone, Default)]
pub struct Receivers {
    /// Each under a name of its own.
    pub all: Vec<Receiver>,
    /// How patient alerts are.
    pub timing: Timing,
    /// By job, and by `default` for the others: the URL that is pinged.
    pub pings: BTreeMap<String, Hidden>,
}

/// Somebody who is told.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// What operators call it.
    pub name: String,
    /// Where it is sent a POST.
    pub url: Hidden,
    /// In which shape.
    pub shape: Shape,
    /// What signs the body.
    pub secret: Option<Hidden>,
}

/// The shape of what a webhook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Our own.
    #[default]
    Json,
    /// That of Slack.
    Slack,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReceiversFault {
    /// It is not there or not readable.
    #[error("cannot read the alerts file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what it must be.
    #[error("faulty alerts file {}: {}", path.display(), faults.join("; "))]
    Faulty {
        /// The file.
        path: PathBuf,
        /// All that is wrong.
        faults: Vec<String>,
    },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    webhooks: Vec<WebhookTable>,
    timing: TimingTable,
    pings: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WebhookTable {
    name: String,
    url: String,
    #[serde(default)]
    format: Shape,
    secret: Option<String>,
    #[serde(default)]
    insecure_plaintext: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct TimingTable {
    wait: Option<String>,
    interval: Option<String>,
    repeat: Option<String>,
    resolve_after: Option<String>,
    missed_after: Option<String>,
}

impl Receivers {
    /// Reads the file, if there is one. Every fault is told, and never a value.
    pub fn load(path: Option<&Path>, jobs: &[&str]) -> Result<Self, ReceiversFault> {
        let Some(path) = path else { return Ok(Receivers::default()) };
        let unreadable = |source| ReceiversFault::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let env = |name: &str| std::env::var(name).ok();
        Receivers::parse(&text, jobs, env)
            .map_err(|faults| ReceiversFault::Faulty { path: path.to_owned(), faults })
    }

    fn parse(text: &str, jobs: &[&str], env: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<String>> {
        let file: File = toml::from_str(text).map_err(|fault| vec![located(text, &fault)])?;
        let mut faults = Vec::new();
        let mut all: Vec<Receiver> = Vec::new();
        for (at, table) in file.webhooks.into_iter().enumerate() {
            let place = format!("webhooks[{at}]");
            let url = value(&format!("{place}.url"), &table.url, &env, &mut faults);
            if !table.insecure_plaintext && !url.is_empty() && !is_safe(&url) {
                faults.push(format!(
                    "{place}.url is no https:// URL, nor an http:// one on loopback (insecure-plaintext = true \
                     lets any http:// one through)"
                ));
            }
            let secret =
                table.secret.map(|secret| value(&format!("{place}.secret"), &secret, &env, &mut faults));
            let (url, secret) = (Hidden::new(url), secret.map(Hidden::new));
            all.push(Receiver { name: table.name, url, shape: table.format, secret });
        }
        for (at, receiver) in all.iter().enumerate() {
            if receiver.name.is_empty() || receiver.name.len() > 64 {
                faults.push(format!("receiver {} needs a name of 1 to 64 bytes", at + 1));
            }
            if all[..at].iter().any(|other| other.name == receiver.name) {
                faults.push(format!("two receivers are called {:?}", receiver.name));
            }
        }
        let mut pings = BTreeMap::new();
        for (job, url) in file.pings {
            if job != DEFAULT && !jobs.contains(&job.as_str()) {
                faults.push(format!("pings.{job}: no such job; there are {DEFAULT}, {}", jobs.join(", ")));
            }
            let url = value(&format!("pings.{job}"), &url, &env, &mut faults);
            if !url.is_empty() && !is_safe(&url) {
                faults.push(format!("pings.{job} is no https:// URL, nor an http:// one on loopback"));
            }
            pings.insert(job, Hidden::new(url));
        }
        let timing = timing(&file.timing, &mut faults);
        if faults.is_empty() { Ok(Receivers { all, timing, pings }) } else { Err(faults) }
    }

    /// Where the beat of a job goes.
    pub fn ping(&self, job: &str) -> Option<&Hidden> {
        self.pings.get(job).or_else(|| self.pings.get(DEFAULT))
    }
}

/// A value that stands in the file, in the environment, or in a file of its own.
fn value(place: &str, text: &str, env: impl Fn(&str) -> Option<String>, faults: &mut Vec<String>) -> String {
    let found = match text.split_once(':') {
        Some(("env", name)) => env(name).ok_or_else(|| format!("{place}: the environment has no {name}")),
        Some(("file", path)) => {
            std::fs::read_to_string(path).map_err(|cause| format!("{place}: cannot read {path}: {cause}"))
        }
        _ => Ok(text.to_owned()),
    };
    match found.map(|found| found.trim().to_owned()) {
        Ok(found) if found.is_empty() => faults.push(format!("{place} is empty")),
        Ok(found) => return found,
        Err(fault) => faults.push(fault),
    }
    String::new()
}

fn timing(table: &TimingTable, faults: &mut Vec<String>) -> Timing {
    let default = Timing::default();
    let day = Duration::from_secs(24 * 60 * 60);
    let mut read = |name: &str, given: &Option<String>, default: Duration, max: Duration| {
        let Some(text) = given else { return default };
        match humantime::parse_duration(text) {
            Ok(read) if read <= max => read,
            Ok(_) => {
                faults.push(format!("timing.{name}: at most {}", humantime::format_duration(max)));
                default
            }
            Err(fault) => {
                faults.push(format!("timing.{name}: {fault}; write it with a unit: 30s, 5m"));
                default
            }
        }
    };
    // A missed beat is told within five minutes, whatever stands here.
    let missed_max = Duration::from_secs(4 * 60);
    Timing {
        wait: read("wait", &table.wait, default.wait, Duration::from_secs(60)),
        interval: read("interval", &table.interval, default.interval, day),
        repeat: read("repeat", &table.repeat, default.repeat, 30 * day),
        resolve_after: read("resolve-after", &table.resolve_after, default.resolve_after, day),
        missed_after: read("missed-after", &table.missed_after, default.missed_after, missed_max),
    }
}

/// Where the file is wrong, without the line itself: a secret may stand in it.
fn located(text: &str, fault: &toml::de::Error) -> String {
    let line = fault.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = fault.message().lines().next().unwrap_or_default();
    // The other messages name what was found, which may be a value.
    let is_of_keys = ["unknown field", "missing field"].iter().any(|begin| message.starts_with(begin));
    let message = if is_of_keys { message } else { "this is not what belongs here" };
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Receivers, String> {
        let env = |name: &str| (name == "HOOK").then(|| "https://hooks.example/T0/s3cret\n".to_owned());
        Receivers::parse(text, &["leader", "nodes"], env).map_err(|faults| faults.join("; "))
    }

    #[test]
    fn secrets_stand_in_the_file_in_the_environment_or_in_files_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "k3y\n").unwrap();
        let receivers = parse(&format!(
            "[[webhooks]]\nname = 'chat'\nurl = 'env:HOOK'\nformat = 'slack'\n\
             [[webhooks]]\nname = 'ops'\nurl = 'http://127.0.0.1:1/x'\nsecret = 'file:{}'\n\
             [timing]\nwait = '0s'\nrepeat = '1h'\n[pings]\ndefault = 'https://ping.example/d'\nleader = 'env:HOOK'",
            path.display()
        ))
        .unwrap();
        let [chat, ops] = &receivers.all[..] else { panic!("{receivers:?}") };
        let Receiver { url, shape, secret, .. } = chat;
        assert_eq!(
            (url.expose(), *shape, secret.is_none()),
            ("https://hooks.example/T0/s3cret", Shape::Slack, true)
        );
        let Receiver { secret, shape, .. } = ops;
        assert_eq!((secret.as_ref().map(Hidden::expose), *shape), (Some("k3y"), Shape::Json));
        assert_eq!(
            (receivers.timing.wait, receivers.timing.repeat),
            (Duration::ZERO, Duration::from_secs(3600))
        );
        assert_eq!(receivers.timing.resolve_after, Timing::default().resolve_after);
        assert_eq!(receivers.ping("leader").unwrap().expose(), "https://hooks.example/T0/s3cret");
        assert_eq!(receivers.ping("nodes").unwrap().expose(), "https://ping.example/d");
        let printed = format!("{receivers:?}");
        assert!(!printed.contains("s3cret") && !printed.contains("k3y"), "{printed}");
    }

    #[test]
    fn every_fault_is_told_and_never_a_value() {
        for (text, part) in [
            (
                "[[webhooks]]\nname = 'a'\nurl = 'http://s3cret.example/'",
                "webhooks[0].url is no https:// URL",
            ),
            ("[[webhooks]]\nname = 'a'\nurl = 'env:NONE'", "webhooks[0].url: the environment has no NONE"),
            ("[[webhooks]]\nname = 'a'\nurl = 'file:/none/s'", "webhooks[0].url: cannot read /none/s"),
            ("[[webhooks]]\nname = 'a'\nurl = 's3cret'", "no https:// URL"),
            ("[[webhooks]]\nname = 'a'\nurl = ''", "webhooks[0].url is empty"),
            ("[[webhooks]]\nname = ''\nurl = 'https://a.example'", "receiver 1 needs a name"),
            ("[[webhooks]]\nname = 'a'\nformat = 's3cret'\nurl = 'https://a'", "line 3: this is not"),
            ("[[webhooks]]\nname = 'a'\nsecret = s3cret", "line 3"),
            ("\nwebhook = 's3cret'", "line 2: unknown field"),
            ("[timing]\nwait = '5m'", "timing.wait: at most 1m"),
            ("[timing]\nmissed-after = 'soon'", "timing.missed-after"),
            (
                "[pings]\nlead = 'https://ping.example/s3cret'",
                "pings.lead: no such job; there are default, leader",
            ),
            ("[pings]\nleader = 'ftp://s3cret'", "pings.leader is no https:// URL"),
        ] {
            let faults = parse(text).unwrap_err();
            assert!(faults.contains(part), "{part} is not in {faults}");
            assert!(!faults.contains("s3cret"), "{faults}");
        }
        let two = "[[webhooks]]\nname = 'a'\nurl = 'https://a.example'\n";
        assert!(parse(&two.repeat(2)).unwrap_err().contains("two receivers are called \"a\""));
        let plain = "[[webhooks]]\nname = 'a'\nurl = 'http://hook.internal/'\ninsecure-plaintext = true";
        assert_eq!(parse(plain).unwrap().all.len(), 1);
    }
}
