//! Times on a machine that runs other programs too: calls alternate, and the median of their times is taken.

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

/// The times of several calls, by round.
pub(crate) struct Rounds<const CALLS: usize>(Vec<[Duration; CALLS]>);

impl<const CALLS: usize> Rounds<CALLS> {
    /// Makes all `calls` in turn, `rounds` times.
    pub(crate) fn of(rounds: usize, mut calls: [&mut dyn FnMut() -> u64; CALLS]) -> Self {
        Self((0..rounds).map(|_| core::array::from_fn(|at| timed(&mut *calls[at]))).collect())
    }

    /// The median time of a call.
    pub(crate) fn median(&self, call: usize) -> Duration {
        let mut times: Vec<_> = self.0.iter().map(|times| times[call]).collect();
        times.sort();
        times[times.len() / 2]
    }

    /// Ratio of the times of `call` and `other`: the median over the rounds, each of which has both times.
    pub(crate) fn ratio(&self, call: usize, other: usize) -> f64 {
        let mut ratios: Vec<_> =
            self.0.iter().map(|times| times[call].as_secs_f64() / times[other].as_secs_f64()).collect();
        median(&mut ratios)
    }
}

/// The median of `values`.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Time of a call on this thread. It is processor time if the system reports that, so that other programs disturb it
/// less.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let (start, on_processor) = (Instant::now(), on_processor());
    black_box(call());
    let spent = on_processor.and_then(|before| self::on_processor()?.checked_sub(before));
    // The scheduler updates its count in steps of a few milliseconds.
    spent.filter(|spent| *spent >= PROCESSOR_TIME_MIN).unwrap_or_else(|| start.elapsed())
}

/// Processor time of this thread so far.
fn on_processor() -> Option<Duration> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    times.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Minimum processor time of a measurement; shorter calls are measured by wall time.
const PROCESSOR_TIME_MIN: Duration = Duration::from_millis(40);
