//! A picture as lines: a page for a terminal, a compact block for everything else, and the summary at
//! the end. Pure.

use std::fmt::Write as _;

use common::pb::admin;

use super::picture::{Break, Picture, clock, state_of, words};
use super::traffic::{Counts, RECENT, Seen};

/// How a piece of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Dim,
    Title,
    Good,
    Bad,
}

/// A line, piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<(Tone, String)>);

impl Line {
    fn of(tone: Tone, text: impl Into<String>) -> Line {
        Line::default().and(tone, text)
    }

    fn and(mut self, tone: Tone, text: impl Into<String>) -> Line {
        self.0.push((tone, text.into()));
        self
    }

    fn plain(self, text: impl Into<String>) -> Line {
        self.and(Tone::Plain, text)
    }
}

/// News on the page.
const NEWS: usize = 5;
/// Width of the column with what a provider does, and of one with a breaker in it.
const PROVIDER: usize = 13;
const BREAKER: usize = 18;

/// The page of a terminal.
pub(super) fn page(picture: &Picture<'_>) -> Vec<Line> {
    let mut lines = vec![head(picture), Line::default()];
    chains(picture, &mut lines);
    channels(picture, &mut lines);
    models(picture, &mut lines);
    nodes(picture, &mut lines);
    lines.push(Line::of(Tone::Title, "NEWS"));
    let news = lines.len();
    lines.extend(picture.story.newest(NEWS).map(|text| Line::of(Tone::Plain, format!("  {text}"))));
    lines.resize(news + NEWS, Line::default());
    keys(picture, &mut lines);
    lines
}

fn head(picture: &Picture<'_>) -> Line {
    let Picture { seen, look, .. } = picture;
    let per_second =
        total(seen.recent_all) as f64 / RECENT.as_secs_f64().min(picture.uptime.as_secs_f64().max(1.0));
    let revision = look.status.as_ref().map_or(0, |status| status.revision);
    let mut line = Line::of(Tone::Title, "Sluice demo").plain(format!(
        "  {}  revision {revision}  {per_second:.1} requests/s  {} in flight",
        clock(picture.uptime),
        seen.in_flight
    ));
    if picture.is_paused {
        line = line.and(Tone::Bad, "  paused");
    }
    if let Some(left) = picture.left {
        line = line.plain(format!("  ends in {} s", left.as_secs()));
    }
    line.and(Tone::Dim, format!("  {}", picture.dir.display()))
}

fn chains(picture: &Picture<'_>, lines: &mut Vec<Line>) {
    lines.push(Line::of(Tone::Title, "CHAINS").and(
        Tone::Dim,
        format!("  cheapest first, USD per million tokens; (n): answers in the last {} s", RECENT.as_secs()),
    ));
    for chain in &picture.look.chains {
        let mut line = Line::of(Tone::Plain, format!("  {:<14}", chain.model));
        for (at, hop) in chain.hops.iter().enumerate() {
            let served = picture.seen.recent.get(&(chain.model.clone(), hop.channel.clone()));
            let is_out = picture.look.out.keys().any(|(_, channel)| *channel == hop.channel);
            let tone = match (is_out, served) {
                (true, _) => Tone::Bad,
                (false, Some(_)) => Tone::Good,
                (false, None) => Tone::Plain,
            };
            line = line.and(Tone::Dim, if at == 0 { "" } else { "  →  " });
            line = line.and(tone, format!("{} {}", hop.channel, hop.order));
            line = line.and(Tone::Dim, format!(" ({})", served.copied().unwrap_or_default()));
        }
        lines.push(line);
    }
}

fn channels(picture: &Picture<'_>, lines: &mut Vec<Line>) {
    let mut title = Line::of(Tone::Title, "CHANNELS    ");
    if !picture.providers.is_empty() {
        title = title.and(Tone::Dim, format!("{:<PROVIDER$}", "provider"));
    }
    for node in &picture.look.asked {
        title = title.and(Tone::Dim, format!("{:<BREAKER$}", format!("breaker on {node}")));
    }
    lines.push(title.and(Tone::Dim, "counted ok/failed"));
    for channel in channel_ids(picture) {
        let at = picture.providers.iter().position(|provider| provider.name() == channel);
        let mark = match at {
            Some(at) if at == picture.chosen => format!("›{} {channel:<9}", at + 1),
            Some(at) => format!(" {} {channel:<9}", at + 1),
            None => format!("  {channel:<10}"),
        };
        let tone = if at == Some(picture.chosen) { Tone::Title } else { Tone::Plain };
        let mut line = Line::of(tone, mark);
        if let Some(provider) = at.and_then(|at| picture.providers.get(at)) {
            let does = state_of(&provider.script(""));
            let tone = if does == "healthy" { Tone::Good } else { Tone::Bad };
            line = line.and(tone, format!("{does:<PROVIDER$}"));
        }
        for node in &picture.look.asked {
            let state = state(picture, node, &channel);
            let tone = if state == "closed" { Tone::Good } else { Tone::Bad };
            line = line.and(tone, format!("{state:<BREAKER$}"));
        }
        let counted = picture.look.status.as_ref().and_then(|status| of_channel(status, &channel));
        lines.push(line.plain(match counted {
            Some(counted) => format!("{}/{} {}", counted.ok, counted.failed, rate(counted.success_rate)),
            None => "no data".to_owned(),
        }));
    }
}

fn models(picture: &Picture<'_>, lines: &mut Vec<Line>) {
    let title = Line::of(Tone::Title, format!("{:<16}", "REQUESTS"));
    let title = title.and(Tone::Dim, format!("{:<25}", "seen by this demo"));
    lines.push(title.and(Tone::Dim, format!("counted {}", age(picture))));
    for model in picture.look.chains.iter().map(|chain| &chain.model) {
        let seen = picture.seen.models.get(model).copied().unwrap_or_default();
        let counted = picture.look.status.as_ref().and_then(|status| of_model(status, model));
        let counted = counted.map_or_else(|| "no data".to_owned(), counted_counts);
        let line = Line::of(Tone::Plain, format!("  {model:<14}{:<25}", counts(seen)));
        lines.push(line.plain(counted));
    }
    let moved = picture.seen.moved;
    lines.push(Line::of(
        Tone::Dim,
        format!("  served/exhausted/cut rate; {moved} served after another channel had failed"),
    ));
}

fn nodes(picture: &Picture<'_>, lines: &mut Vec<Line>) {
    lines.push(Line::of(Tone::Title, "NODES"));
    for node in &picture.look.nodes {
        let state = node_state(node);
        let tone = if state == "in sync" { Tone::Good } else { Tone::Bad };
        let line = Line::of(Tone::Plain, format!("  {:<10}", node.id)).and(tone, format!("{state:<12}"));
        let runs = format!("runs revision {} of {}", node.applied_revision, node.target_revision);
        lines.push(line.plain(format!("{runs:<24}http://{}", node.data_address)));
    }
    if let Some(trouble) = &picture.look.trouble {
        lines.push(Line::of(Tone::Bad, format!("  {trouble}")));
    }
}

fn keys(picture: &Picture<'_>, lines: &mut Vec<Line>) {
    let put =
        |line: Line, key: &str, what: &str| line.and(Tone::Title, key).and(Tone::Dim, format!(" {what}  "));
    if !picture.providers.is_empty() {
        let line = put(Line::default(), "1 2 3", "choose");
        let ways = Break::ALL.into_iter().map(Break::key);
        lines.push(ways.fold(line, |line, (key, what)| put(line, &key.to_string(), what)));
    }
    let line = put(Line::default(), "p", if picture.is_paused { "go on" } else { "pause" });
    lines.push(put(put(line, "?", "lines to paste"), "q", "quit"));
}

/// How a block is read; printed once.
pub(super) fn legend() -> String {
    format!(
        "A chain reads: channel, cost in USD per million tokens, (answers in the last {} s); the cheapest comes \
         first.\nRequests read: served/exhausted/cut and the rate, as this demo saw them and as the control \
         plane counted them.\n",
        RECENT.as_secs()
    )
}

/// The block of lines that is printed where there is no terminal.
pub(super) fn block(picture: &Picture<'_>) -> String {
    let at = clock(picture.uptime);
    let mut text = String::new();
    for chain in &picture.look.chains {
        let hops = chain.hops.iter().map(|hop| {
            let served = picture.seen.recent.get(&(chain.model.clone(), hop.channel.clone()));
            format!("{} {} ({})", hop.channel, hop.order, served.copied().unwrap_or_default())
        });
        let hops: Vec<String> = hops.collect();
        let _ = write!(text, "{at}  {:<11} {}", chain.model, hops.join(" > "));
        let seen = picture.seen.models.get(&chain.model).copied().unwrap_or_default();
        let counted = picture.look.status.as_ref().and_then(|status| of_model(status, &chain.model));
        let counted = counted.map_or_else(|| "no data".to_owned(), counted_counts);
        let _ = writeln!(text, "  requests seen {}, counted {counted}", counts(seen));
    }
    let channels = channel_ids(picture).into_iter().map(|channel| {
        let states = picture.look.asked.iter().map(|node| state(picture, node, &channel));
        let states: Vec<String> = states.collect();
        let counted = picture.look.status.as_ref().and_then(|status| of_channel(status, &channel));
        let counted = counted.map_or_else(
            || "no data".to_owned(),
            |counted| format!("{}/{} {}", counted.ok, counted.failed, rate(counted.success_rate)),
        );
        format!("{channel} {} ({counted})", states.join("/"))
    });
    let channels: Vec<String> = channels.collect();
    let nodes = picture.look.nodes.iter();
    let nodes: Vec<String> =
        nodes.map(|node| format!("{} r{} {}", node.id, node.applied_revision, node_state(node))).collect();
    let _ = writeln!(
        text,
        "{at}  breakers on {} (attempts counted ok/failed rate): {}",
        picture.look.asked.join("/"),
        channels.join(", ")
    );
    let _ = write!(text, "{at}  nodes {}; counted {}", nodes.join(", "), age(picture));
    if let Some(trouble) = &picture.look.trouble {
        let _ = write!(text, "; {trouble}");
    }
    text
}

/// What the demo saw beside what the control plane counted, when all was reported.
pub(super) fn summary(seen: &Seen, counted: Option<&admin::Status>) -> String {
    let mut text = String::from("\nIn the end (served/exhausted/cut rate):\n");
    for (model, counts_seen) in &seen.models {
        let counted = match counted {
            None => "not known: the control plane could not be asked".to_owned(),
            Some(status) => of_model(status, model).map_or_else(|| "no data".to_owned(), counted_counts),
        };
        let _ = writeln!(
            text,
            "  {model:<14}seen by this demo: {}; counted by the control plane in the last hour: {counted}",
            counts(*counts_seen)
        );
    }
    for status in counted.iter().flat_map(|status| &status.channels) {
        let _ = writeln!(
            text,
            "  channel {:<14} attempts counted: {} ok, {} failed, {}",
            status.channel,
            status.ok,
            status.failed,
            rate(status.success_rate)
        );
    }
    let _ = writeln!(text, "  {} answers came after another channel had failed", seen.moved);
    text
}

fn channel_ids(picture: &Picture<'_>) -> Vec<String> {
    let mut ids: Vec<String> = picture.providers.iter().map(|provider| provider.name().to_owned()).collect();
    for hop in picture.look.chains.iter().flat_map(|chain| &chain.hops) {
        if !ids.contains(&hop.channel) {
            ids.push(hop.channel.clone());
        }
    }
    ids
}

fn state(picture: &Picture<'_>, node: &str, channel: &str) -> String {
    match picture.look.out.get(&(node.to_owned(), channel.to_owned())) {
        None => "closed".to_owned(),
        Some(out) => {
            let left = out.seconds_left.map(|left| format!(" {left:.1} s")).unwrap_or_default();
            let why = if out.why == "breaker_open" { "open".to_owned() } else { words(&out.why) };
            format!("{why}{left}")
        }
    }
}

/// How old the newest counted window is: counters are sealed every ten seconds.
fn age(picture: &Picture<'_>) -> String {
    match picture.look.status.as_ref() {
        Some(status) if status.data_until_ms > 0 => {
            let age_ms = status.at_ms.saturating_sub(status.data_until_ms).max(0);
            format!("until {} s ago (reported every 10 s)", age_ms / 1000)
        }
        _ => "nothing yet (reported every 10 s)".to_owned(),
    }
}

fn node_state(node: &admin::Node) -> &'static str {
    match node.state() {
        admin::NodeState::Unspecified => "unknown",
        admin::NodeState::InSync => "in sync",
        admin::NodeState::Behind => "behind",
        admin::NodeState::Rejected => "rejected",
        admin::NodeState::Quarantined => "quarantined",
        admin::NodeState::Stale => "stale",
        admin::NodeState::Drained => "drained",
        admin::NodeState::Incompatible => "incompatible",
        admin::NodeState::Lost => "lost",
    }
}

fn of_model<'a>(status: &'a admin::Status, model: &str) -> Option<&'a admin::ModelStatus> {
    status.models.iter().find(|status| status.model == model && has_requests(status))
}

fn has_requests(status: &admin::ModelStatus) -> bool {
    let admin::ModelStatus { served, exhausted, cut, bad_request, canceled, refused, .. } = status;
    served + exhausted + cut + bad_request + canceled + refused > 0
}

fn of_channel<'a>(status: &'a admin::Status, channel: &str) -> Option<&'a admin::ChannelStatus> {
    status.channels.iter().find(|s| s.channel == channel && s.ok + s.failed + s.neutral > 0)
}

fn counts(counts: Counts) -> String {
    let other = if counts.other > 0 { format!(" (and {} others)", counts.other) } else { String::new() };
    format!("{}/{}/{} {}{other}", counts.served, counts.exhausted, counts.cut, rate(counts.rate()))
}

fn counted_counts(status: &admin::ModelStatus) -> String {
    format!("{}/{}/{} {}", status.served, status.exhausted, status.cut, rate(status.success_rate))
}

fn total(counts: Counts) -> u64 {
    counts.served + counts.exhausted + counts.cut + counts.other
}

/// No data is not 100 %, and no failure is rounded away.
fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "no data".to_owned(),
        Some(rate) if rate < 1.0 => format!("{:.2} %", (rate * 10_000.0).floor() / 100.0),
        Some(_) => "100 %".to_owned(),
    }
}
