//! Where the time of a request went, drawn: one line for each attempt, all on the same scale. Pure.

use common::pb::fleet;
use common::record::words::{Phase, Phases};

/// Characters of the whole time.
const WIDTH: u64 = 60;

/// A line for each attempt, under its hop; empty where nothing was asked.
pub fn bars(record: &fleet::Record) -> String {
    if record.attempts.is_empty() {
        return String::new();
    }
    let name = |hop: u32| record.chain.get(hop as usize).map_or("", |hop| hop.channel.as_str());
    let widest = record.attempts.iter().map(|attempt| name(attempt.hop).chars().count()).max().unwrap_or(0);
    let mut text = String::from("- waits for headers   = held   # passed on\n");
    for attempt in &record.attempts {
        let bar = bar(attempt, record.ended_us);
        text += &format!(
            "{:>3}  {:widest$}  |{bar:<width$}|\n",
            attempt.hop + 1,
            name(attempt.hop),
            width = WIDTH as usize
        );
    }
    text
}

fn bar(attempt: &fleet::RecordAttempt, total_us: u64) -> String {
    let at = |us: u64| us.saturating_mul(WIDTH).checked_div(total_us).unwrap_or(0).min(WIDTH - 1);
    let phases = Phases::of(attempt, total_us);
    let sign = |phase| match phase {
        Phase::Waits => '-',
        Phase::Held => '=',
        Phase::PassedOn => '#',
    };
    let part = |column: u64| match column {
        _ if column < at(phases.began_us) || column > at(phases.ended_us) => ' ',
        _ if column < at(phases.headers_us) => sign(Phase::Waits),
        _ if column < at(phases.decided_us) => sign(Phase::Held),
        _ => sign(phases.last),
    };
    (0..WIDTH).map(part).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(times: (u64, Option<u64>, Option<u64>, u64), gate: &str) -> fleet::RecordAttempt {
        let (began_us, headers_us, decisive_us, ended_us) = times;
        fleet::RecordAttempt {
            began_us,
            headers_us,
            decisive_us,
            ended_us,
            gate: gate.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn each_part_of_an_attempt_is_as_long_as_it_took() {
        for (attempt, total_us, expected) in [
            (
                attempt((0, Some(20), Some(30), 60), "content"),
                60,
                "-".repeat(20) + &"=".repeat(10) + &"#".repeat(30),
            ),
            (attempt((30, None, None, 40), ""), 60, " ".repeat(30) + &"-".repeat(11)),
            (attempt((0, Some(10), Some(20), 20), "drop"), 60, "-".repeat(10) + &"=".repeat(11)),
            (attempt((0, Some(0), None, 3), ""), 60, "=".repeat(4)),
            (attempt((0, Some(0), Some(0), 0), "whole"), 0, "#".to_owned()),
            (attempt((7, Some(9), Some(9), u64::MAX), "whole"), 60, " ".repeat(7) + "--" + &"#".repeat(51)),
        ] {
            assert_eq!(bar(&attempt, total_us), expected, "{attempt:?}");
        }
    }

    #[test]
    fn nothing_is_drawn_of_what_asked_nobody() {
        assert_eq!(bars(&fleet::Record::default()), "");
    }
}
