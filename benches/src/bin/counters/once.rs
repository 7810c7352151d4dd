//! Runs one step alone, for `counters_instructions.sh`: only the instructions inside [`measured`] are counted.

use core::hint::black_box;

use epitome::core::{ClassEstimator, TokenCounter, Tokens};
use epitome::tokens::{FastTiktoken, Tiktoken};
use epitome_benches::generated::Pool;
use epitome_benches::nasty::Nasty;

use crate::growing::{deltas, streamed, tokens};
use crate::{SEED, texts};

/// Runs the step `what` on `size` messages, for the second time unless its name ends in `-cold`. If `what` is a kind of
/// text, counts a text of `size` bytes of that kind.
pub(crate) fn run(what: &str, size: usize) -> Result<(), String> {
    let fast = FastTiktoken::o200k_base();
    if let Some(kind) = Nasty::LONG.into_iter().find(|kind| *kind == what) {
        let text = Nasty::new(SEED).long(kind, size);
        // Loads the tables.
        fast.count(LOADING);
        measured(&mut || fast.count(&text).as_u64());
        return Ok(());
    }
    let pool = Pool::new();
    let texts = texts(&pool, size);
    let pass =
        |counter: &dyn TokenCounter| texts.iter().map(|text| counter.count(text).as_u64()).sum::<u64>();
    let split: fn(&str) -> Vec<&str> = if what == "stream-of-tokens" { tokens } else { deltas };
    let (reference, all) = (Tiktoken::o200k_base(), texts.iter().map(|text| split(text)).collect::<Vec<_>>());
    let whole = texts.concat();
    let tenth = Tokens(fast.count(&whole).0 / 10);
    let mut step: Box<dyn FnMut() -> u64> = match what.trim_end_matches("-cold") {
        "fast" => Box::new(|| pass(&fast)),
        "reference" => Box::new(|| pass(&reference)),
        "estimate" => Box::new(|| pass(&ClassEstimator::new())),
        "whole" => Box::new(|| fast.count(&whole).as_u64()),
        "up-to-a-tenth" => Box::new(|| fast.count_up_to(&whole, tenth).map_or(0, Tokens::as_u64)),
        "stream" | "stream-of-tokens" => Box::new(|| all.iter().map(|deltas| streamed(fast, deltas)).sum()),
        _ => return Err(format!("no step is called {what:?}")),
    };
    black_box(match what.ends_with("-cold") {
        // Loads at least the tables.
        true => fast.count(LOADING).max(reference.count(LOADING)).as_u64(),
        false => step(),
    });
    measured(&mut step);
    Ok(())
}

/// Runs `work`. Only the instructions in this function are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut() -> u64) {
    black_box(work());
}

/// A text whose count loads the tables.
const LOADING: &str = "hello world";
