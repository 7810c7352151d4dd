//! Medians of repeated rounds.

use core::hint::black_box;
use core::num::NonZeroU32;
use core::time::Duration;
use std::time::Instant;

use crate::failure::Result;

/// Number of rounds of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds(Option<NonZeroU32>);

/// Time of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Took {
    /// The median of the rounds.
    pub(super) nanoseconds: u64,
    pub(super) rounds: u32,
}

impl Rounds {
    /// The given number of rounds, or as many as fit in [`TIME`].
    pub(super) const fn new(asked: Option<NonZeroU32>) -> Self {
        Self(asked)
    }

    /// Measures `call`. A call that is too short for the clock runs several times in one round.
    pub(super) fn measure(self, mut call: impl FnMut() -> Result<()>) -> Result<Took> {
        let begun = Instant::now();
        // The first call has no warm cache and is not counted.
        call()?;
        let times = times_in_a_round(begun.elapsed());
        let mut rounds = Vec::new();
        while self.goes_on(rounds.len(), begun.elapsed()) {
            let start = Instant::now();
            for _ in 0..times {
                black_box(call()?);
            }
            rounds.push(start.elapsed());
        }
        rounds.sort_unstable();
        let median = rounds.get(rounds.len() / 2).copied().unwrap_or_default();
        let nanoseconds = u64::try_from(median.as_nanos()).unwrap_or(u64::MAX) / u64::from(times);
        Ok(Took { nanoseconds: nanoseconds.max(1), rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX) })
    }

    fn goes_on(self, done: usize, since: Duration) -> bool {
        match self.0 {
            Some(asked) => done < asked.get() as usize,
            None => done < ROUNDS_MIN || (done < ROUNDS_MAX && since < TIME),
        }
    }
}

/// Number of calls in one round, if one call takes `once`.
fn times_in_a_round(once: Duration) -> u32 {
    let times = ROUND_TIME.as_nanos() / once.as_nanos().max(1);
    u32::try_from(times).unwrap_or(u32::MAX).clamp(1, TIMES_MAX)
}

/// Time for which a stage is measured.
const TIME: Duration = Duration::from_millis(500);
/// Minimum number of rounds: with two the median would be the slower one.
const ROUNDS_MIN: usize = 3;
/// Maximum number of rounds: more do not move the median.
const ROUNDS_MAX: usize = 31;
/// Minimum time of a round: a thousand times that of reading the clock.
const ROUND_TIME: Duration = Duration::from_micros(50);
/// Maximum number of calls in one round: a call shorter than this fraction of [`ROUND_TIME`] needs no exact time.
const TIMES_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_how_often_it_is_measured() {
        let mut calls = 0_u32;
        let slow = || {
            calls += 1;
            let start = Instant::now();
            while start.elapsed() < ROUND_TIME {}
            Ok(())
        };
        let took = Rounds::new(NonZeroU32::new(4)).measure(slow).unwrap();
        // The first call is not counted.
        assert_eq!((took.rounds, calls), (4, 5));
    }

    #[test]
    fn short_calls_are_made_several_times_in_a_round() {
        assert_eq!(times_in_a_round(Duration::from_micros(10)), 5);
        assert_eq!(times_in_a_round(Duration::ZERO), TIMES_MAX);
        assert_eq!(times_in_a_round(Duration::from_secs(1)), 1);
    }

    #[test]
    fn without_a_number_there_are_a_few_at_least() {
        let rounds = Rounds::new(None);
        assert!(rounds.goes_on(2, TIME * 9) && !rounds.goes_on(3, TIME * 9));
        assert!(rounds.goes_on(30, Duration::ZERO) && !rounds.goes_on(31, Duration::ZERO));
    }

    #[test]
    fn a_failure_ends_it() {
        let failed = Rounds::new(None).measure(|| Err(crate::failure::Failure::input("no")));
        assert_eq!(failed.map(|took| took.rounds).unwrap_err().message(), "no");
    }
}
