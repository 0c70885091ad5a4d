//! What somebody searches for: the filters of `sluice requests list`, as a form and as the query string that it makes. Pure.

use std::time::Duration;

use common::pb::admin as pb;
use serde::Deserialize;

use super::super::super::html::Html;
use super::super::frame;

/// The query string. Each is a text, as a form sends what nobody filled in as nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Ask {
    /// Of one request: ours or the caller's own id.
    id: String,
    /// Not older than this. Without it the last hour; empty for any.
    since: Option<String>,
    model: String,
    channel: String,
    class: String,
    node: String,
    key: String,
    outcome: String,
    status: String,
    min_hops: String,
    slower_than: String,
    /// Only requests that began before this one.
    pub before: String,
}

const SINCE: &str = "1h";

impl Ask {
    /// The one request that is asked for, if one is.
    pub fn id(&self) -> Option<&str> {
        Some(self.id.trim()).filter(|id| !id.is_empty())
    }

    /// As the admin protocol has it, or what is wrong with it.
    pub fn filter(&self, now_ms: u64) -> Result<pb::RequestFilter, String> {
        let since = duration("since", self.since())?;
        let since_ms = since.map_or(0, |age| u128::from(now_ms).saturating_sub(age.as_millis()));
        let slower_than = duration("slower than", &self.slower_than)?;
        Ok(pb::RequestFilter {
            since_ms: i64::try_from(since_ms).unwrap_or(i64::MAX),
            until_ms: 0,
            model: self.model.trim().to_owned(),
            channel: self.channel.trim().to_owned(),
            class: self.class.trim().to_owned(),
            node: self.node.trim().to_owned(),
            key: self.key.trim().to_owned(),
            outcome: self.outcome.trim().to_owned(),
            status: number("status", &self.status)?,
            attempts_min: number("attempts", &self.min_hops)?,
            slower_than_ms: slower_than.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        })
    }

    fn since(&self) -> &str {
        self.since.as_deref().unwrap_or(SINCE)
    }

    fn fields(&self) -> [(&'static str, &'static str, &str); 10] {
        [
            ("since", "Not older than", self.since()),
            ("model", "Model", &self.model),
            ("channel", "Asked channel", &self.channel),
            ("class", "Failed with class", &self.class),
            ("outcome", "Outcome", &self.outcome),
            ("status", "Status", &self.status),
            ("min_hops", "Attempts, at least", &self.min_hops),
            ("slower_than", "Took at least", &self.slower_than),
            ("node", "Node", &self.node),
            ("key", "Key id", &self.key),
        ]
    }

    /// The forms: for one request, and for those that match.
    pub fn form(&self, html: &mut Html) {
        let action = ("action", "/admin/requests");
        html.node("form", &[action, ("class", "ask")], |html| {
            html.node("p", &[], |html| {
                html.leaf("label", &[("for", "id")], "Request id, ours or the caller's own");
                html.void("input", &[("id", "id"), ("name", "id"), ("required", "")]);
            });
            html.leaf("button", &[("type", "submit")], "Show");
        });
        html.node("form", &[action, ("class", "ask"), ("aria-label", "Search")], |html| {
            for (name, label, value) in self.fields() {
                html.node("p", &[], |html| {
                    html.leaf("label", &[("for", name)], label);
                    html.void("input", &[("id", name), ("name", name), ("value", value)]);
                });
            }
            html.leaf("button", &[("type", "submit")], "Search");
        });
        let said = "Times have a unit: 90s, 15m, 1h. An empty field is any.";
        html.leaf("p", &[("class", "quiet")], said);
    }

    /// Where the requests before this one are listed.
    pub fn older_than(&self, id: &str) -> String {
        let fields =
            self.fields().into_iter().filter(|(name, _, value)| *name == "since" || !value.is_empty());
        let pairs: Vec<_> =
            fields.map(|(name, _, value)| format!("{name}={}", frame::encoded(value))).collect();
        format!("/admin/requests?{}&before={}", pairs.join("&"), frame::encoded(id))
    }
}

fn duration(field: &str, text: &str) -> Result<Option<Duration>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let read = humantime::parse_duration(text);
    read.map(Some).map_err(|fault| format!("{field}: {fault}; write it with a unit: 90s, 15m, 1h"))
}

fn number(field: &str, text: &str) -> Result<u32, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| format!("{field}: \"{text}\" is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_filled_in_is_any_and_what_is_wrong_is_said() {
        const HOUR_MS: u64 = 3_600_000;
        let filter = Ask::default().filter(2 * HOUR_MS).unwrap();
        assert_eq!(filter, pb::RequestFilter { since_ms: HOUR_MS as i64, ..Default::default() });
        let ask = Ask {
            since: Some(String::new()),
            model: " m ".to_owned(),
            status: "503".to_owned(),
            min_hops: "2".to_owned(),
            slower_than: "1500ms".to_owned(),
            ..Ask::default()
        };
        let want = pb::RequestFilter {
            model: "m".to_owned(),
            status: 503,
            attempts_min: 2,
            slower_than_ms: 1500,
            ..Default::default()
        };
        assert_eq!(ask.filter(HOUR_MS).unwrap(), want);
        for (ask, said) in [
            (Ask { since: Some("5".to_owned()), ..Ask::default() }, "since: time unit needed"),
            (Ask { slower_than: "x".to_owned(), ..Ask::default() }, "slower than: "),
            (Ask { status: "5xx".to_owned(), ..Ask::default() }, "status: \"5xx\" is no number"),
        ] {
            let fault = ask.filter(HOUR_MS).unwrap_err();
            assert!(fault.starts_with(said), "{fault}");
        }
    }

    #[test]
    fn the_way_to_older_ones_keeps_what_was_searched_for() {
        let ask = Ask { model: "a/b&c".to_owned(), status: "503".to_owned(), ..Ask::default() };
        assert_eq!(ask.older_than("id-1"), "/admin/requests?since=1h&model=a%2Fb%26c&status=503&before=id-1");
    }
}
