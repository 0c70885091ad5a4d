//! A notice in the shapes that receivers take: our own JSON, Slack's. Nothing stands in it but what alerts say of
//! the fleet. Pure.

use serde::{Deserialize, Serialize};

use super::{Alert, Notice};

/// So many alerts stand in one message; of the others their number.
const ALERTS_MAX: usize = 50;

/// What a webhook is sent, and what is kept until it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Of this shape.
    pub version: u32,
    /// The same, however often it is sent.
    pub id: String,
    /// The kind of alerts.
    pub kind: String,
    /// `firing` or `resolved`; `test` for a test.
    pub status: String,
    /// One line that says it all.
    pub summary: String,
    /// Where it is written what to do.
    pub runbook: String,
    /// When it was made.
    pub at: String,
    /// So many are so.
    pub firing: usize,
    /// So many are over since the message before.
    pub resolved: usize,
    /// Each of them, the first fifty.
    pub alerts: Vec<Told>,
}

/// An alert in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The alert.
    pub id: String,
    /// `firing` or `resolved`.
    pub status: String,
    /// A channel, a node, a job, a revision.
    pub object: String,
    /// What is wrong.
    pub summary: String,
    /// Since when.
    pub since: String,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub until: Option<String>,
}

impl Message {
    /// What a notice says.
    pub fn of(notice: &Notice, runbooks: &str) -> Self {
        let alerts = notice.active.iter().chain(&notice.over);
        let (firing, resolved) = (notice.active.len(), notice.over.len());
        let first = notice.active.first().or(notice.over.first());
        let what = first.map_or("", |alert| &alert.summary);
        let summary = match (firing, resolved) {
            (0, 1) => format!("over: {what}"),
            (0, over) => format!("over: {over} alerts: {what}, …"),
            (1, _) => what.to_owned(),
            (so, _) => format!("{so} alerts: {what}, …"),
        };
        Message {
            version: 1,
            id: notice.id.clone(),
            kind: notice.kind.to_string(),
            status: if firing > 0 { "firing" } else { "resolved" }.to_owned(),
            summary,
            runbook: runbook(runbooks, notice.kind.as_str()),
            at: time(notice.at_ms),
            firing,
            resolved,
            alerts: alerts.take(ALERTS_MAX).map(told).collect(),
        }
    }

    /// One that shows whether a receiver is reached.
    pub fn test(id: String, now_ms: u64, who: &str) -> Self {
        Message {
            version: 1,
            id,
            kind: "test".to_owned(),
            status: "test".to_owned(),
            summary: format!("a test of alerts, asked for by {who}: nothing is wrong"),
            runbook: String::new(),
            at: time(now_ms),
            firing: 0,
            resolved: 0,
            alerts: vec![],
        }
    }

    /// As an incoming webhook of Slack takes it, and of those who are like it.
    pub fn slack(&self) -> serde_json::Value {
        let sign = match self.status.as_str() {
            "firing" => ":red_circle:",
            "resolved" => ":large_green_circle:",
            _ => ":white_circle:",
        };
        let text = format!("{sign} *{}* {}", escaped(&self.kind), escaped(&self.summary));
        let section =
            |text: &str| serde_json::json!({"type": "section", "text": {"type": "mrkdwn", "text": text}});
        let mut blocks = vec![section(&text)];
        // A block of Slack takes 3,000 characters.
        let lines = self.alerts.iter().map(|alert| format!("• {}", escaped(&alert.line())));
        let mut list = String::new();
        for line in lines {
            if list.len() + line.len() > 2_500 {
                list.push_str("\n• …");
                break;
            }
            list = if list.is_empty() { line } else { format!("{list}\n{line}") };
        }
        if !list.is_empty() {
            blocks.push(section(&list));
        }
        if !self.runbook.is_empty() {
            blocks.push(section(&format!("Runbook: {}", escaped(&self.runbook))));
        }
        serde_json::json!({"text": text, "blocks": blocks})
    }
}

impl Told {
    fn line(&self) -> String {
        match &self.until {
            None => format!("{} (since {})", self.summary, self.since),
            Some(until) => format!("over: {} ({} to {until})", self.summary, self.since),
        }
    }
}

fn told(alert: &Alert) -> Told {
    Told {
        id: alert.id.clone(),
        status: if alert.is_active() { "firing" } else { "resolved" }.to_owned(),
        object: alert.object.clone(),
        summary: alert.summary.clone(),
        since: time(alert.raised_at_ms),
        until: (!alert.is_active()).then(|| time(alert.resolved_at_ms)),
    }
}

/// Where the runbook of a kind is.
pub fn runbook(base: &str, kind: &str) -> String {
    format!("{}/{kind}.md", base.trim_end_matches('/'))
}

fn time(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map(|at| format!("{at:.0}")).unwrap_or_default()
}

/// As Slack wants it: nothing in it is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::{Kind, Told as Knows};

    const NOW_MS: u64 = 1_796_046_279_000;

    fn alert(object: &str, resolved_at_ms: u64) -> Alert {
        Alert {
            id: format!("id-{object}"),
            kind: Kind::NodeLost,
            object: object.to_owned(),
            summary: format!("node {object} is not <heard> of"),
            raised_at_ms: NOW_MS - 60_000,
            gone_since_ms: 0,
            resolved_at_ms,
            told: Knows::Raised,
        }
    }

    fn message(active: &[&str], over: &[&str]) -> Message {
        let notice = Notice {
            id: "node-lost-1-2".to_owned(),
            kind: Kind::NodeLost,
            at_ms: NOW_MS,
            active: active.iter().map(|o| alert(o, 0)).collect(),
            over: over.iter().map(|o| alert(o, NOW_MS)).collect(),
        };
        Message::of(&notice, "https://runbooks.example/x/")
    }

    #[test]
    fn a_message_says_what_is_so_what_is_over_and_where_it_is_written_what_to_do() {
        let json = serde_json::to_value(message(&["a"], &["b"])).unwrap();
        assert_eq!(json["summary"], "node a is not <heard> of");
        assert_eq!(
            (&json["status"], &json["firing"], &json["resolved"]),
            (&"firing".into(), &1.into(), &1.into())
        );
        assert_eq!(json["runbook"], "https://runbooks.example/x/node-lost.md");
        assert_eq!(json["alerts"][0]["since"], "2026-11-30T13:43:39Z");
        assert_eq!(json["alerts"][1]["until"], "2026-11-30T13:44:39Z");
        assert!(json["alerts"][0].get("until").is_none());
        let over = message(&[], &["a", "b"]);
        assert_eq!(
            (over.status.as_str(), over.summary.as_str()),
            ("resolved", "over: 2 alerts: node a is not <heard> of, …")
        );
        assert_eq!(serde_json::from_str::<Message>(&serde_json::to_string(&over).unwrap()).unwrap(), over);
    }

    #[test]
    fn slack_gets_its_shape_with_nothing_in_it_that_it_takes_for_markup() {
        let slack = message(&["a", "b"], &[]).slack();
        assert_eq!(slack["text"], ":red_circle: *node-lost* 2 alerts: node a is not &lt;heard&gt; of, …");
        assert_eq!(slack["blocks"][1]["text"]["text"].as_str().unwrap().lines().count(), 2);
        assert_eq!(slack["blocks"][2]["text"]["text"], "Runbook: https://runbooks.example/x/node-lost.md");
        let many: Vec<String> = (0..200).map(|n| format!("a-node-with-a-long-name-{n}")).collect();
        let many = message(&many.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        assert!(many.slack()["blocks"][1]["text"]["text"].as_str().unwrap().len() < 3_000);
        assert_eq!((many.alerts.len(), many.firing), (ALERTS_MAX, 200));
    }
}
