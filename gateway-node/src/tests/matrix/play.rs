//! Plays one cell: a node of its own with scripted channels, one request through the whole path, and a look at all
//! that came of it.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use common::dialect::Dialect;
use common::pb::fleet as pb;
use http::{Method, Request};
use http_body_util::Full;
use tokio::time::{Instant, sleep, timeout};

use crate::bindings::Name;
use crate::channel::pause::Admission;
use crate::dialect::operation::{self, Asked};
use crate::table::{Lookup, Route};

use super::super::support::*;
use super::faults::{Ends, Play};
use super::forms::{Form, THING, Way};
use super::outcome::{Ending, ID, Mark, Outcome};
use super::says::Speech;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Plays a request of a form against channels that do this, with a clock and a runtime of its own.
pub fn play(form: &Form, plays: &[Play]) -> Outcome {
    play_with(form, plays, |_| {})
}

/// The same with this done to the catalog before.
pub fn play_with(form: &Form, plays: &[Play], change: impl Fn(&mut pb::Snapshot)) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(observe(form, plays, change))
}

async fn observe(form: &Form, plays: &[Play], change: impl Fn(&mut pb::Snapshot)) -> Outcome {
    let node = node(form, plays, change);
    let warmed = if plays.iter().any(|play| play.is_warm) {
        node.send(ask(form)).await.text().await;
        node.counted();
        plays.iter().zip(NAMES).map(|(_, who)| node.up(who).called()).collect()
    } else {
        vec![0; plays.len()]
    };
    let mut seen = Outcome::default();
    let leaves = plays.iter().find_map(|play| match play.ends {
        Ends::Left { has_answer } => Some(has_answer),
        Ends::Served { .. } | Ends::Failed(_) | Ends::Broken { .. } => None,
    });
    let called_before: usize = warmed.iter().sum();
    match leaves {
        None => {
            let mut answered = node.send(ask(form)).await;
            head(&mut seen, &answered);
            seen.ending = read(&mut seen, &mut answered).await;
            seen.took = answered.began.elapsed();
        }
        Some(false) => {
            assert!(timeout(s(2), node.send(ask(form))).await.is_err(), "it was answered before it left");
            seen.ending = left(&node, plays).await;
        }
        Some(true) => {
            let mut answered = node.send(ask(form)).await;
            head(&mut seen, &answered);
            seen.body = answered.next().await.unwrap().unwrap();
            drop(answered);
            seen.ending = left(&node, plays).await;
        }
    }
    seen.calls =
        plays.iter().zip(NAMES).zip(&warmed).map(|((_, who), n)| node.up(who).called() - n).collect();
    assert!(called_before <= 3, "one request warms the pool");
    (seen.attempts, seen.requests) = node.counted();
    seen.marks = marks(form, &node, plays.len());
    seen.wrongs.extend(wrong_calls(form, &node, plays.len()));
    if [&seen.body, &format!("{:?}", seen.headers)].iter().any(|text| text.contains("sk-")) {
        seen.wrongs.push("a credential came down".into());
    }
    seen
}

/// Status and headers, with our id of the request under its own name.
fn head(seen: &mut Outcome, answered: &Answered) {
    seen.status = answered.status.as_u16();
    seen.after = answered.after;
    let id = answered.header("x-request-id").unwrap_or_default();
    for (name, value) in &answered.headers {
        // hyper writes them.
        if !["date", "content-length", "transfer-encoding"].contains(&name.as_str()) {
            let value = value.to_str().unwrap();
            let value = if id.len() == 36 { value.replace(id, ID) } else { value.to_owned() };
            seen.headers.insert(name.as_str().to_owned(), value);
        }
    }
}

async fn read(seen: &mut Outcome, answered: &mut Answered) -> Ending {
    let id = answered.header("x-request-id").unwrap_or_default().to_owned();
    let mut body = String::new();
    let ending = loop {
        match answered.next().await {
            None => break Ending::Clean,
            Some(Ok(piece)) => body += &piece,
            Some(Err(_)) => break Ending::Aborted,
        }
    };
    seen.body = body.replace(&id, ID);
    ending
}

/// Whether the upstream that had the request when the caller left it sees so within a second.
async fn left(node: &Node, plays: &[Play]) -> Ending {
    let asked = plays.iter().position(|play| matches!(play.ends, Ends::Left { .. })).unwrap();
    let deadline = Instant::now() + s(1);
    while node.up(NAMES[asked]).closed.load(std::sync::atomic::Ordering::Acquire) == 0 {
        if Instant::now() >= deadline {
            return Ending::Clean;
        }
        sleep(ms(10)).await;
    }
    Ending::Left
}

fn node(form: &Form, plays: &[Play], change: impl Fn(&mut pb::Snapshot)) -> Node {
    let node = Node::speaking(form.dialect, plays.len());
    let mut snapshot = snapshot_speaking(form.dialect, 2, plays.len());
    for channel in &mut snapshot.channels {
        channel.credential = format!("file:{}", credential(&channel.id).display());
        if form.speech == Speech::Google {
            channel.base_url = channel.base_url.replace("/v1", "/v1beta");
        }
    }
    change(&mut snapshot);
    node.install(&snapshot);
    for (play, who) in plays.iter().zip(NAMES) {
        node.up(who).does(play.scripts.iter().cloned());
        if let Some(unreachable) = play.unreachable {
            node.up(who).is(unreachable);
        }
        if play.is_maker {
            let dialect: Dialect = form.dialect.parse().unwrap();
            let name = Name { dialect, id: THING.into(), key: "k".into() };
            node.gateway.bindings.bind(name, who.into(), "m".into());
        }
    }
    node
}

/// A file with the credential of a channel.
fn credential(who: &str) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        for who in NAMES {
            std::fs::write(folder.path().join(who), format!("sk-upstream-{who}")).unwrap();
        }
        folder
    });
    folder.path().join(who)
}

fn ask(form: &Form) -> Request<Full<Bytes>> {
    let (name, key) = match form.speech {
        Speech::OpenAi => ("authorization", format!("Bearer {KEY}")),
        Speech::Anthropic => ("x-api-key", KEY.to_owned()),
        Speech::Google => ("x-goog-api-key", KEY.to_owned()),
    };
    let gate = if form.is_held { "complete" } else { "content" };
    Request::builder()
        .method(form.method)
        .uri(form.path.replace("MODEL", "m"))
        .header("x-sluice-gate", gate)
        .header("host", "node")
        .header(name, key)
        .header("content-type", form.ask_media)
        .body(Full::new(Bytes::from(form.ask.replace("MODEL", "m"))))
        .unwrap()
}

/// What upstreams were asked that they should not have been: another path, another body, another's credential.
fn wrong_calls(form: &Form, node: &Node, channels: usize) -> Vec<String> {
    let mut wrongs = Vec::new();
    for who in &NAMES[..channels] {
        let model = format!("m-at-{who}");
        let line = format!("{} {} http/1.1\r\n", form.method, form.upstream.replace("MODEL", &model));
        let line = line.to_lowercase();
        for call in node.up(who).calls() {
            if !call.head.starts_with(&line) {
                wrongs.push(format!("{who} was asked for {}", call.head.lines().next().unwrap_or_default()));
            }
            if call.body != form.ask.replace("MODEL", &model) {
                wrongs.push(format!("{who} was sent {}", call.body));
            }
            if call.head.matches("sk-").count() != 1 || !call.head.contains(&format!("sk-upstream-{who}\r\n"))
            {
                wrongs.push(format!("{who} was not shown its own credential alone"));
            }
        }
    }
    wrongs
}

fn marks(form: &Form, node: &Node, channels: usize) -> Vec<Mark> {
    let now = Instant::now();
    let path = form.path.split('?').next().unwrap().replace("MODEL", "m");
    let method: Method = form.method.parse().unwrap();
    let Asked::Operation(operation, _) = operation::find(&method, &path) else {
        panic!("{path} is no operation");
    };
    let table = node.gateway.tables.load().unwrap();
    if form.way == Way::ById {
        let of =
            |who: &&str| table.thing_of(&(*who).into(), operation.dialect).expect("its channel is there");
        return NAMES[..channels].iter().map(|who| mark(of(who), operation.ability, now)).collect();
    }
    let Lookup::Chain(_, routes) = table.chain("m", operation.dialect) else { panic!("no chain") };
    routes.iter().map(|route| mark(route, operation.ability, now)).collect()
}

fn mark(route: &Route, ability: operation::Ability, now: Instant) -> Mark {
    let suspended = |admission: Admission| -> Option<Duration> {
        match admission {
            Admission::Clear => None,
            Admission::Trial | Admission::Out(None) => Some(Duration::ZERO),
            Admission::Out(Some(until)) => Some(until - now),
        }
    };
    let state = &route.channel.state;
    let marks: Vec<Mark> = [
        route.state.cooling_until(now).map(|until| Mark::Cooldown(until - now)),
        suspended(state.credential_suspension.look(now)).map(Mark::Credential),
        suspended(state.suspension.look(now)).map(Mark::Channel),
        suspended(route.state.suspension(ability).look(now)).map(Mark::Route),
        Some(failures(route, now)).filter(|failures| *failures > 0).map(Mark::Failures),
    ]
    .into_iter()
    .flatten()
    .collect();
    match marks.as_slice() {
        [] => Mark::Nothing,
        [one] => *one,
        // No class does two things to a channel.
        many => panic!("{many:?}"),
    }
}

/// How many failures the breaker has counted: as many as it needs fewer to open at three.
fn failures(route: &Route, now: Instant) -> usize {
    let more = (0..=3).find(|_| {
        let is_open = route.channel.open_until(now).is_some();
        if !is_open {
            route.channel.record_failure(now);
        }
        is_open
    });
    3 - more.unwrap_or(3)
}
