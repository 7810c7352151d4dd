//! Sums of reports: the spend, and the plain rule that keeps the latest input.

use super::Usage;
use super::report::or_zero;

/// The tokens that were paid for: sums over reports, never a size. Sums stop at `u64::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Spend {
    /// The number of reports.
    pub reports: u64,
    /// The input of these reports, including the tokens from a cache.
    pub input: u64,
    /// The output of these reports, including reasoning.
    pub output: u64,
    /// The tokens of the input that were read from a cache.
    pub cache_read: u64,
    /// The tokens of the input that were written to a cache.
    pub cache_creation: u64,
    /// The tokens of the output that were reasoning.
    pub reasoning: u64,
}

impl Spend {
    /// Adds one report; a missing field adds nothing.
    pub const fn add(&mut self, usage: &Usage) {
        *self = self.plus(Self {
            reports: 1,
            input: or_zero(usage.input_total),
            output: or_zero(usage.output_total),
            cache_read: or_zero(usage.cache_read),
            cache_creation: or_zero(usage.cache_creation),
            reasoning: or_zero(usage.reasoning),
        });
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            reports: self.reports.saturating_add(other.reports),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// The input of the latest report, with its figures: the plain rule of tracked usage.
///
/// It ignores messages that came after the report; [`UsageLedger::size`](super::UsageLedger::size) counts them. In a
/// stream the last usage wins: record one usage for each response, the last one.
///
/// ```
/// use epitome_core::{Tally, Usage};
///
/// let mut tally = Tally::default();
/// assert_eq!((tally.token_count(), tally.usage()), (0, None));
/// tally.record(Some(&Usage::new(1_000, 20)));
/// let stream = [None, Some(Usage::new(0, 5)), Some(Usage::new(1_100, 30)), None];
/// tally.record(stream.iter().flatten().last());
/// assert_eq!(tally.token_count(), 1_100);
/// // Input and total are the latest, output is the sum.
/// let usage = tally.usage().unwrap_or_default();
/// assert_eq!((usage.input_total, usage.output_total, usage.total), (Some(1_100), Some(50), Some(1_130)));
///
/// tally.compacted();
/// assert_eq!(tally.token_count(), 0);
/// assert_eq!(tally.usage(), Some(usage));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    token_count: u64,
    usage: Option<Usage>,
}

impl Tally {
    /// Records a response's usage. `None` is ignored; a missing field counts as zero.
    pub const fn record(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        let output = match &self.usage {
            Some(sum) => or_zero(sum.output_total),
            None => 0,
        };
        self.token_count = or_zero(usage.input_total);
        self.usage = Some(Usage {
            input_total: Some(self.token_count),
            output_total: Some(output.saturating_add(or_zero(usage.output_total))),
            total: Some(or_zero(usage.total)),
            ..Usage::NONE
        });
    }

    /// Records a compaction: the latest input is not the size of the remaining messages. The usage stays.
    pub const fn compacted(&mut self) {
        self.token_count = 0;
    }

    /// The input tokens of the latest report: 0 before any, and after a compaction.
    #[must_use]
    pub const fn token_count(&self) -> u64 {
        self.token_count
    }

    /// Input and total of the latest report, and the sum of all outputs; `None` before any report.
    #[must_use]
    pub const fn usage(&self) -> Option<Usage> {
        self.usage
    }
}
