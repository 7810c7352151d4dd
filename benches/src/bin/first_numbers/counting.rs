//! Compares the estimator with a tokenizer.

use std::collections::HashSet;

use epitome::core::{ClassEstimator, TokenCounter};
use epitome_benches::generated::Message;

use crate::Sizes;
use crate::table::{Table, mb_per_second, median};

pub(crate) fn run(history: &[Message<'_>], sizes: &Sizes, table: &mut Table) {
    let texts: Vec<_> = history.iter().map(Message::text).filter(|text| !text.is_empty()).collect();
    let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
    let (encoding, none) = (tiktoken_rs::o200k_base_singleton(), HashSet::new());
    let estimate = || texts.iter().map(|text| u64::from(ClassEstimator::new().count(text).0)).sum::<u64>();
    let count = || texts.iter().map(|text| encoding.count(text, &none).unwrap() as u64).sum::<u64>();
    let error = estimate() as f64 / count() as f64 - 1.0;
    assert!(error.abs() < 0.25, "the estimate is {error:+.2} off the count");
    let estimating = median(sizes.rounds, estimate);
    let counting = median(sizes.rounds.min(3), count);
    let (fast, slow) = (mb_per_second(bytes, estimating), mb_per_second(bytes, counting));
    table.row(
        &format!("estimate {:.1} MB of text, one thread", bytes as f64 / 1e6),
        &format!(
            "{fast:.0} MB/s; tiktoken-rs, o200k_base: {slow:.1} MB/s; {:.0}x; total {:+.1} % off",
            fast / slow,
            error * 100.0
        ),
        Some((">= 25x", fast / slow >= 25.0)),
        "shows the estimator and an exact count of the same texts; matters because every message is sized on entry",
    );
}
