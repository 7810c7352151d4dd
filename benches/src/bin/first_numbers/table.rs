//! The printed table, and the clock for its times.

use core::fmt;
use core::time::Duration;
use std::time::Instant;

/// Rows of Markdown.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<String>);

impl Table {
    /// Adds a case: its name, its result, its target and whether the target was met, and the reason for the case.
    pub(crate) fn row(&mut self, case: &str, measured: &str, target: Option<(&str, bool)>, why: &str) {
        let target = match target {
            None => "-".to_owned(),
            Some((target, true)) => format!("{target}: met"),
            Some((target, false)) => format!("{target}: **missed**"),
        };
        self.0.push(format!("| {case} | {measured} | {target} | {why} |"));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| case | measured | target | shows; matters because |")?;
        writeln!(f, "|---|---|---|---|")?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

/// The median time of `rounds` calls.
pub(crate) fn median<T>(rounds: usize, mut call: impl FnMut() -> T) -> Duration {
    middle((0..rounds).map(|_| timed(&mut call)).collect())
}

/// The time of one call, without the drop of its result.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let made = core::hint::black_box(call());
    let time = start.elapsed();
    drop(made);
    time
}

/// The median.
pub(crate) fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A time in milliseconds, as text.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// Time for each of `count` items, in nanoseconds.
pub(crate) fn ns_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e9 / count as f64
}

/// Megabytes a second.
pub(crate) fn mb_per_second(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64() / 1e6
}

/// Quotient of `time` and `other`.
pub(crate) fn ratio(time: Duration, other: Duration) -> f64 {
    time.as_secs_f64() / other.as_secs_f64()
}
