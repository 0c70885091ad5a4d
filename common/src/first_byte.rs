//! Times to the first byte, counted by size so that windows of many nodes can be added up: a time falls into the bucket
//! of the smallest bound that it does not exceed, and a percentile is the bound of its bucket. It says "at most", never less
//! than was observed, and at most a quarter more. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds inside a decade, as resistors are graded.
const GRADES: [u32; 12] = [10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];
/// Longer than any request lasts; what is longer still falls in here too.
pub const LONGEST_MS: u32 = 820_000;

/// The times of one request that has an answer; what did not come has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FirstByte {
    /// From the beginning of the request until its answer began to leave, whatever failed before: what the caller saw.
    pub of_request: Option<Duration>,
    /// From the beginning of the attempt that was good until the first byte of the upstream's answer.
    pub of_attempt: Option<Duration>,
}

/// How many times there were in each bucket, by its bound in milliseconds.
pub type Histogram = BTreeMap<u32, u64>;

/// Percentiles, each at most so many milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Percentiles {
    /// So many times are known.
    pub count: u64,
    /// Half of them.
    pub p50_ms: u32,
    /// 95 of 100.
    pub p95_ms: u32,
    /// 99 of 100.
    pub p99_ms: u32,
}

impl Percentiles {
    /// Of what was counted; `None` when that is nothing.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let count: u64 = histogram.values().sum();
        let at = |percent: u64| {
            let rank = (u128::from(count) * u128::from(percent)).div_ceil(100);
            let mut below = 0;
            let mut found = histogram.iter().skip_while(|(_, n)| {
                below += u128::from(**n);
                below < rank
            });
            found.next().map(|(bound, _)| *bound)
        };
        (count > 0).then_some(())?;
        Some(Percentiles { count, p50_ms: at(50)?, p95_ms: at(95)?, p99_ms: at(99)? })
    }
}

/// The bound of the bucket that a time falls into, in milliseconds.
pub fn bucket_ms(time: Duration) -> u32 {
    let ms = time.as_micros().div_ceil(1000).max(1);
    let Ok(ms) = u32::try_from(ms) else { return LONGEST_MS };
    if ms <= 10 {
        return ms;
    }
    let decades = [1, 10, 100, 1000, 10_000];
    let bounds = decades.into_iter().flat_map(|decade| GRADES.map(|grade| grade * decade));
    bounds.into_iter().find(|bound| ms <= *bound).unwrap_or(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_falls_into_the_smallest_bucket_that_holds_it() {
        for (micros, bound) in [
            (0, 1),
            (1000, 1),
            (1001, 2),
            (9_500, 10),
            (10_001, 12),
            (82_000, 82),
            (82_001, 100),
            (240_000_000, 270_000),
            (820_000_001, LONGEST_MS),
            (u64::MAX, LONGEST_MS),
        ] {
            assert_eq!(bucket_ms(Duration::from_micros(micros)), bound, "{micros} µs");
        }
    }

    #[test]
    fn percentiles_are_bounds_of_what_was_seen_and_none_where_nothing_was() {
        assert_eq!(Percentiles::of(&Histogram::new()), None);
        let of = |counts: &[(u32, u64)]| {
            let Percentiles { count, p50_ms, p95_ms, p99_ms } =
                Percentiles::of(&counts.iter().copied().collect()).unwrap();
            (count, p50_ms, p95_ms, p99_ms)
        };
        assert_eq!(of(&[(12, 1)]), (1, 12, 12, 12));
        assert_eq!(of(&[(12, 50), (100, 45), (220, 4), (390, 1)]), (100, 12, 100, 220));
        assert_eq!(of(&[(12, 1), (100, 1)]), (2, 12, 100, 100));
    }

    proptest! {
        #[test]
        fn a_bound_is_never_below_its_time_and_at_most_a_quarter_above(ms in 1_u32..LONGEST_MS) {
            let bound = bucket_ms(Duration::from_millis(ms.into()));
            prop_assert!(bound >= ms && f64::from(bound) <= f64::from(ms) * 1.25 + 1.0, "{ms} → {bound}");
        }
    }
}
