//! Days since 1970 in UTC, as use is counted by: of a time, and as people write them.

use jiff::civil::{Date, date};

const EPOCH: Date = date(1970, 1, 1);

/// The day of a time in milliseconds since 1970.
pub fn of(at_ms: u64) -> u32 {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    u32::try_from(at_ms / DAY_MS).unwrap_or(u32::MAX)
}

/// Reads a date, `2026-12-01`. The error says what is wrong with it.
pub fn parse(text: &str) -> Result<u32, String> {
    let wrong = || format!("\"{}\" is no day: write it like 2026-12-01", text.escape_debug());
    let date: Date = text.parse().map_err(|_| wrong())?;
    let span = date.since((jiff::Unit::Day, EPOCH)).map_err(|_| wrong())?;
    u32::try_from(span.get_days()).map_err(|_| wrong())
}

/// The first and the last day of a time that somebody asks for: up to today, and 30 days, unless they say otherwise.
pub fn span(first: Option<u32>, last: Option<u32>, now_ms: u64) -> (u32, u32) {
    const DAYS: u32 = 30;
    let last = last.unwrap_or_else(|| of(now_ms));
    (first.unwrap_or(last.saturating_sub(DAYS - 1)), last)
}

/// A day as [`parse`] reads it.
pub fn shown(day: u32) -> String {
    let span = jiff::Span::new().try_days(day);
    let date = span.and_then(|span| EPOCH.checked_add(span));
    date.map_or_else(|_| format!("day {day}"), |date| date.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_as_it_is_shown() {
        for (day, text) in [(0, "1970-01-01"), (20_788, "2026-12-01"), (20_454, "2026-01-01")] {
            assert_eq!((parse(text), shown(day).as_str()), (Ok(day), text));
        }
        assert_eq!(of(1_796_047_200_000), 20_787);
        assert_eq!((of(86_399_999), of(86_400_000)), (0, 1));
        for wrong in ["", "yesterday", "2026-13-01", "1969-12-31", "12/01/2026", "2026-12-01T10:00\u{7}"] {
            assert!(parse(wrong).unwrap_err().contains("2026-12-01"), "{wrong}");
        }
        let now_ms = 1_796_047_200_000;
        assert_eq!(span(None, None, now_ms), (20_758, 20_787));
        assert_eq!(span(Some(7), None, now_ms), (7, 20_787));
        assert_eq!((span(None, Some(40), now_ms), span(None, Some(3), now_ms)), ((11, 40), (0, 3)));
        assert_eq!(shown(u32::MAX), format!("day {}", u32::MAX));
    }
}
