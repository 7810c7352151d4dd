//! Costs of counting, with their targets, as a Markdown table.
//!
//! `counters` takes a few minutes; `--smoke` runs the same cases on small inputs. Every case asserts that its results
//! are right before it is timed. Compared calls alternate, so that other programs disturb both equally, and the median
//! of the rounds is taken. `benches/counters_instructions.sh` has the same ratios in instructions, which other programs
//! do not disturb. Cases that need a new process (loading a vocabulary, the first pass) are measured in child processes
//! of this program.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made ends the run"
)]

mod clock;
mod fresh;
mod growing;
mod lazy;
mod once;
#[path = "../first_numbers/table.rs"]
#[expect(dead_code, reason = "its other clocks and units are for the program that it belongs to")]
mod table;

use core::error::Error;

use epitome::core::{ClassEstimator, TokenCounter};
use epitome::tokens::{FastTiktoken, Tiktoken};
use epitome_benches::generated::{Message, Messages, Pool};
use epitome_benches::nasty::Nasty;

use clock::Rounds;
use table::{Table, mb_per_second};

/// Amounts of the measured inputs.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Number of messages whose texts are counted by both counters.
    counted: usize,
    /// Number of messages of the history that is planned.
    planned: usize,
    /// Size of the largest of the long texts, in bytes.
    long: usize,
    rounds: usize,
}

const FULL: Sizes = Sizes { counted: 8_000, planned: 100_000, long: 1 << 20, rounds: 7 };
const SMOKE: Sizes = Sizes { counted: 300, planned: 3_000, long: 64 << 10, rounds: 1 };

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let sizes = match arguments.as_slice() {
        [] => FULL,
        ["--smoke"] => SMOKE,
        ["--fresh", name, messages] => return fresh::child(name, messages.parse()?),
        ["--once", what, size] => return Ok(once::run(what, size.parse()?)?),
        _ => return Err("usage: counters [--smoke]".into()),
    };
    let (mut table, pool) = (Table::default(), Pool::new());
    let texts = texts(&pool, sizes.counted);
    fresh::run(&sizes, &mut table)?;
    warm(&texts, &sizes, &mut table);
    growing::run(&texts, &sizes, &mut table);
    lazy::run(&pool, &sizes, &mut table);
    worst(&sizes, &mut table);
    println!("{table}");
    Ok(())
}

/// The texts of a generated history, one for each message.
fn texts(pool: &Pool, messages: usize) -> Vec<&str> {
    Messages::new(pool, SEED).take(messages).map(|message: Message<'_>| message.text()).collect()
}

/// Measures all counters over the same texts.
fn warm(texts: &[&str], sizes: &Sizes, table: &mut Table) {
    let bytes = texts.iter().map(|text| text.len()).sum();
    for (fast, reference, encoding) in [
        (FastTiktoken::o200k_base(), Tiktoken::o200k_base(), tiktoken_rs::o200k_base_singleton()),
        (FastTiktoken::cl100k_base(), Tiktoken::cl100k_base(), tiktoken_rs::cl100k_base_singleton()),
    ] {
        let bare = tiktoken::get_encoding(fast.name()).unwrap();
        let sum = |count: &dyn Fn(&str) -> usize| texts.iter().map(|text| count(text) as u64).sum::<u64>();
        let pass =
            |counter: &dyn TokenCounter| texts.iter().map(|text| counter.count(text).as_u64()).sum::<u64>();
        assert_eq!(pass(&fast), pass(&reference));
        let rounds = Rounds::of(
            sizes.rounds,
            [
                &mut || pass(&fast),
                &mut || pass(&reference),
                // One pass is so short that it is repeated.
                &mut || (0..ESTIMATES).map(|_| pass(&ClassEstimator::new())).sum(),
                &mut || sum(&|text| bare.count(text)),
                &mut || sum(&|text| encoding.encode_ordinary(text).len()),
            ],
        );
        let speed = |call| mb_per_second(bytes, rounds.median(call));
        let (times, estimate_times) = (rounds.ratio(1, 0), rounds.ratio(1, 2) * ESTIMATES as f64);
        table.row(
            &format!("{} warm, {:.1} MB in {} texts", fast.name(), bytes as f64 / 1e6, texts.len()),
            &format!("{:.0} MB/s; tiktoken-rs {:.1} MB/s; {times:.1}x", speed(0), speed(1)),
            Some((">= 4x", times >= 4.0)),
            "shows the fast counter and the reference on one thread; matters because every message is counted once",
        );
        table.row(
            &format!("estimator against {}", fast.name()),
            &format!("{:.0} MB/s; {estimate_times:.0}x", speed(2) * ESTIMATES as f64),
            Some((">= 25x", estimate_times >= 25.0)),
            "shows the estimator and the reference on one thread; matters where nothing exact is needed",
        );
        let (of_fast, of_reference) = (rounds.ratio(3, 0), rounds.ratio(4, 1));
        table.row(
            &format!("{} through the counters, and the tokenizers alone", fast.name()),
            &format!("the fast one {of_fast:.2}x, tiktoken-rs {of_reference:.2}x the speed of its tokenizer"),
            Some((">= 0.95x", of_fast.min(of_reference) >= 0.95)),
            "shows what the counters add to the tokenizers that they call; matters because it should be nothing",
        );
    }
}

/// Measures long texts, most of them without a place to split them: the time of each kind at one size and at twice that
/// size.
fn worst(sizes: &Sizes, table: &mut Table) {
    let counter = FastTiktoken::o200k_base();
    let (mut slowest, mut steepest) = ((0.0, ""), (0.0, ""));
    for kind in Nasty::LONG {
        let text = Nasty::new(SEED).long(kind, sizes.long);
        let half = &text[..text.floor_char_boundary(text.len() / 2)];
        let rounds = Rounds::of(
            sizes.rounds,
            [&mut || counter.count(&text).as_u64(), &mut || counter.count(half).as_u64()],
        );
        let time = rounds.median(0).as_secs_f64() / text.len() as f64 * 1e6;
        slowest = if time > slowest.0 { (time, kind) } else { slowest };
        let growth = rounds.ratio(0, 1);
        steepest = if growth > steepest.0 { (growth, kind) } else { steepest };
    }
    table.row(
        &format!("worst of {} kinds of text of {:.1} MB", Nasty::LONG.len(), sizes.long as f64 / 1e6),
        &format!(
            "{:.2} s/MB ({}); twice the text takes at most {:.2}x the time ({})",
            slowest.0, slowest.1, steepest.0, steepest.1
        ),
        Some(("linear: <= 2.6x", steepest.0 <= 2.6)),
        "shows text that is one endless piece; matters because one paste must not stop an agent",
    );
}

/// Number of passes of the estimator in one timed call.
const ESTIMATES: usize = 8;
const SEED: u64 = 1;
