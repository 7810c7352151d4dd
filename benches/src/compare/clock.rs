//! Times of repeated rounds: processor time of the whole process, which other programs disturb less than wall time. The
//! measured code never waits.

use core::fmt;
use core::hint::black_box;
use core::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time that this process has used up to a moment.
#[derive(Debug, Clone, Copy)]
pub struct Instant(Duration);

impl Instant {
    /// The processor time that this process has used so far.
    #[must_use]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        Self(Duration::from_secs(part(now.tv_sec)) + Duration::from_nanos(part(now.tv_nsec)))
    }

    /// Processor time used since this moment.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// The times of one measured call in all rounds, sorted.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds a round.
    pub fn push(&mut self, time: Duration) {
        let at = self.0.partition_point(|there| *there <= time);
        self.0.insert(at, time);
    }

    /// Number of rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.0.len()
    }

    /// The median; of an even number of times, the later of the two in the middle. `None` if the first quartile is
    /// zero: such times are differences of two times, and are smaller than the spread of these.
    #[must_use]
    pub fn median(&self) -> Option<Duration> {
        self.quarter(2).filter(|_| self.quarter(1) != Some(Duration::ZERO))
    }

    /// The time after so many quarters of all times.
    fn quarter(&self, quarters: usize) -> Option<Duration> {
        self.0.get((self.0.len() * quarters / 4).min(self.0.len().saturating_sub(1))).copied()
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut all = Self::default();
        times.into_iter().for_each(|time| all.push(time));
        all
    }
}

/// Shows the median, and the first and the last quartile in brackets.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.quarter(1), self.median(), self.quarter(3)) {
            (Some(low), Some(median), Some(high)) if self.0.len() >= 4 => {
                write!(f, "{} ({}..{})", shown(median), shown(low), shown(high))
            }
            (_, Some(median), _) => f.write_str(&shown(median)),
            (_, None, Some(high)) => write!(f, "hidden by its spread, up to {}", shown(high)),
            _ => f.write_str("-"),
        }
    }
}

/// Time of `call`, including the drop of its result.
pub fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    drop(black_box(call()));
    start.elapsed()
}

/// Time of a call that is too short for a clock: the mean of as many calls as take a fifth of a millisecond.
pub fn timed_short<T>(mut call: impl FnMut() -> T) -> Duration {
    let (start, mut calls) = (Instant::now(), 0);
    loop {
        drop(black_box(call()));
        calls += 1;
        let elapsed = start.elapsed();
        if elapsed >= SHORTEST {
            return elapsed / calls;
        }
    }
}

const SHORTEST: Duration = Duration::from_micros(200);

/// Formats a time with three digits and a unit.
#[must_use]
pub fn shown(time: Duration) -> String {
    let nanos = time.as_secs_f64() * 1e9;
    let (number, unit) = match nanos {
        ..1e3 => (nanos, "ns"),
        ..1e6 => (nanos / 1e3, "us"),
        ..1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    let decimals = match number {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$} {unit}")
}

/// Quotient of `time` and `other`, as text.
#[must_use]
pub fn ratio(time: Duration, other: Duration) -> String {
    let ratio = time.as_secs_f64() / other.as_secs_f64().max(1e-12);
    match ratio {
        ..0.01 => format!("{ratio:.4}x"),
        ..10.0 => format!("{ratio:.2}x"),
        _ => format!("{}x", grouped(ratio.round() as u64)),
    }
}

/// Formats a number with separators, for example "100,000".
#[must_use]
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(millis: &[u64]) -> Times {
        millis.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_difference_that_its_own_spread_hides_has_no_median() {
        assert_eq!(times(&[4, 1, 3, 2]).median(), Some(Duration::from_millis(3)));
        assert_eq!(times(&[4, 1, 3, 2]).to_string(), "3.00 ms (2.00 ms..4.00 ms)");

        assert_eq!(times(&[0, 0, 3, 4]).median(), None);
        assert_eq!(times(&[0, 0, 3, 4]).to_string(), "hidden by its spread, up to 4.00 ms");
        assert_eq!(times(&[0, 1, 3, 4]).median(), Some(Duration::from_millis(3)));

        assert_eq!((times(&[]).median(), times(&[]).to_string()), (None, "-".to_owned()));
    }
}
