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
        assert_eq!(shown(u32::MAX), format!("day {}", u32::MAX));
    }
}
