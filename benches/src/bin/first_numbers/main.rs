//! An overview of the costs: each step of Epitome on this machine, with its target, as a Markdown table.
//!
//! `first_numbers` takes a few minutes. `--smoke` runs the same cases at small sizes in seconds, to check their
//! assertions. `--giant` measures the memory of one compaction of a 1 GB file. Each case asserts that its results are
//! right before it is timed, and compares only times of the same run. Times are medians of several rounds.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made ends the run"
)]

mod counting;
mod grouping;
mod memory;
mod reading;
mod storing;
mod table;

use core::error::Error;
use std::process::ExitCode;

use epitome_benches::generated::{Message, Messages, Pool};

use table::Table;

/// Amounts of the measured inputs.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Number of messages of the history that most cases use.
    messages: usize,
    /// Numbers of messages of the histories whose cost for each message is compared.
    growth: &'static [usize],
    /// Number of messages whose texts are counted with a tokenizer, which is slow.
    counted: usize,
    /// Number of messages in the store with the long log.
    stored: usize,
    /// Size of the JSONL file, in bytes.
    jsonl: u64,
    rounds: usize,
}

const FULL: Sizes = Sizes {
    messages: 100_000,
    growth: &[1_000, 10_000, 100_000, 1_000_000],
    counted: 8_000,
    stored: 100_000,
    jsonl: 300 << 20,
    rounds: 9,
};

const SMOKE: Sizes = Sizes {
    messages: 2_000,
    growth: &[1_000, 2_000],
    counted: 200,
    stored: 2_000,
    jsonl: 2 << 20,
    rounds: 2,
};

/// Size of a file in bytes, so large that any second copy in memory is visible.
const GIANT_BYTES: u64 = 1 << 30;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut table = Table::default();
    match arguments.as_slice() {
        [] => all(&FULL, &mut table)?,
        ["--smoke"] => all(&SMOKE, &mut table)?,
        ["--giant"] => memory::giant(GIANT_BYTES, &mut table)?,
        // Steps for the cases above and for `instructions.sh`, each in a separate process.
        ["--peak", program, arguments @ ..] => return memory::peak(program, arguments),
        ["--once", what, messages] => {
            grouping::once(what, messages.parse()?)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            println!("usage: first_numbers [--smoke | --giant]");
            return Ok(ExitCode::from(2));
        }
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

fn all(sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let pool = Pool::new();
    let history = history(&pool, sizes.messages);
    grouping::run(&history, sizes, table);
    grouping::growth(&pool, sizes, table);
    counting::run(&history[..sizes.counted], sizes, table);
    reading::run(&history, sizes, table)?;
    storing::run(&history, sizes, table)?;
    drop(history);
    memory::run(&pool, sizes, table)
}

/// The generated history of all cases; a longer history begins with the shorter ones.
fn history(pool: &Pool, messages: usize) -> Vec<Message<'_>> {
    Messages::new(pool, SEED).take(messages).collect()
}

const SEED: u64 = 1;
