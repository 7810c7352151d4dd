//! Speed of the estimator compared with tiktoken-rs, on one thread, over the same texts.
//!
//! Shows the ratio of throughputs on whole messages of the given folders; matters because the estimator has to be cheap
//! enough to run on every message of every turn. `estimator_speed FOLDER..`

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]

use core::error::Error;
use core::hint::black_box;
use core::time::Duration;
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use epitome_benches::corpus;
use epitome_core::{ClassEstimator, TokenCounter};

fn main() -> Result<(), Box<dyn Error>> {
    let encoding = tiktoken_rs::o200k_base_singleton();
    let none = HashSet::new();
    for folder in std::env::args().skip(1) {
        let texts: Vec<String> = corpus::read(Path::new(&folder), SOURCE_BYTES_MAX)?
            .into_iter()
            .flat_map(|file| file.texts)
            .take(TEXTS_MAX)
            .collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        let estimated = best_of(|text| u64::from(ClassEstimator::new().count(text).0), &texts);
        let counted = best_of(|text| encoding.count(text, &none).map_or(0, |count| count as u64), &texts);
        let speed = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{folder}: {} texts, {:.1} MB; tiktoken-rs {:.1} MB/s, estimate {:.0} MB/s, ratio {:.1}",
            texts.len(),
            bytes as f64 / 1e6,
            speed(counted),
            speed(estimated),
            speed(estimated) / speed(counted),
        );
    }
    Ok(())
}

/// The sum of the best times of small groups of texts: other programs seldom interrupt all passes over one group.
fn best_of(count: impl Fn(&str) -> u64, texts: &[String]) -> Duration {
    let pass = |group: &[String]| {
        let start = Instant::now();
        black_box(group.iter().map(|text| count(black_box(text))).sum::<u64>());
        start.elapsed()
    };
    let best = |group| (0..PASSES).map(|_| pass(group)).min().unwrap_or_default();
    texts.chunks(GROUP).map(best).sum()
}

const PASSES: usize = 10;
const GROUP: usize = 32;
const SOURCE_BYTES_MAX: usize = 500_000;
const TEXTS_MAX: usize = 20_000;
