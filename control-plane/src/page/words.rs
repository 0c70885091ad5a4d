//! How times and counts are said on the page. Pure.

use std::time::Duration;

use common::first_byte::Percentiles;

use crate::observed::{Attempts, Requests};

/// A time span in its largest unit.
pub fn span(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// A moment, to the second.
pub fn moment(at_ms: u64) -> String {
    written(at_ms, "%Y-%m-%d %H:%M:%S UTC")
}

/// A moment, to the minute.
pub fn minute(at_ms: u64) -> String {
    written(at_ms, "%Y-%m-%d %H:%M UTC")
}

/// A moment as machines read it.
pub fn stamp(at_ms: u64) -> String {
    written(at_ms, "%Y-%m-%dT%H:%M:%SZ")
}

/// A name where few characters may stand.
pub fn hex(name: &str) -> String {
    name.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The beginning of a step: a day, or a time of it.
pub fn step(at_ms: u64, step_seconds: u64) -> String {
    if step_seconds >= 86_400 { written(at_ms, "%Y-%m-%d") } else { minute(at_ms) }
}

fn written(at_ms: u64, form: &str) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| "some time".to_owned(), |at| at.strftime(form).to_string())
}

/// What is in no rate, in words.
pub fn apart(requests: Requests) -> Option<String> {
    let Requests { bad_request, canceled, refused, exhausted, cut, .. } = requests;
    let counts = [
        (exhausted, "exhausted"),
        (cut, "cut"),
        (bad_request, "bad requests"),
        (canceled, "canceled by callers"),
        (refused, "refused by us"),
    ];
    let said: Vec<_> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!said.is_empty()).then(|| format!("In the last 24 h: {}.", said.join(", ")))
}

/// The endings of attempts that were not good.
pub fn classes(attempts: &Attempts) -> String {
    let said: Vec<_> = attempts.classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
    match (said.is_empty(), attempts.ok) {
        (true, 0) => "no data".to_owned(),
        (true, _) => "nothing".to_owned(),
        (false, _) => said.join(", "),
    }
}

/// How long the first byte took.
pub fn first_byte(seen: Option<Percentiles>) -> Option<String> {
    let Percentiles { p50_ms, p95_ms, p99_ms, .. } = seen?;
    Some(format!("first byte p50 {}, p95 {}, p99 {}", millis(p50_ms), millis(p95_ms), millis(p99_ms)))
}

fn millis(ms: u32) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1000..=9999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} s", ms / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_unit_that_fits() {
        for (ms, said) in
            [(1, "1 ms"), (820, "820 ms"), (1500, "1.5 s"), (10_000, "10 s"), (270_000, "270 s")]
        {
            assert_eq!(millis(ms), said);
        }
        for (seconds, said) in [(119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d")] {
            assert_eq!(span(Duration::from_secs(seconds)), said);
        }
        assert_eq!(moment(1_796_046_279_000), "2026-11-30 13:44:39 UTC");
        assert_eq!(step(1_796_046_279_000, 3600), "2026-11-30 13:44 UTC");
        assert_eq!(step(1_796_046_279_000, 86_400), "2026-11-30");
        assert_eq!(moment(u64::MAX), "some time");
    }
}
