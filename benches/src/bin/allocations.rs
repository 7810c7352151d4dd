//! Counts of the allocations of each step and the memory of an index, which are the same on every machine.
//!
//! This is a separate program, because counting makes every allocation slower. It fails if a count exceeds its target;
//! the one time that it prints has no target.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::hint::black_box;
use std::alloc::System;
use std::process::ExitCode;
use std::time::Instant;

use epitome::compactors::Truncation;
use epitome::core::{
    Budget, Cell, IndexBuf, OpenCallTree, Outcome, PartSpan, Pass, Profile, Span, Tokens, Trigger,
    TriggerView, Validator, plan,
};
use epitome_benches::generated::{Message, Messages, Pool, sizes};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    let mut met = true;
    let pool = Pool::new();
    let history: Vec<_> = Messages::new(&pool, 1).take(MESSAGES).collect();
    let tokens = sizes(&history);
    println!("| step, {MESSAGES} messages | allocations, or bytes | target | shows; matters because |");
    println!("|---|---|---|---|");

    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let asked = requests(|| {
        for (message, tokens) in history.iter().zip(&tokens) {
            index.push(message, *tokens).unwrap();
        }
    });
    let why =
        "shows that only the tables grow, by doubling; matters because a push must not wait for the heap";
    met &= row("group", asked, GROWTH_MAX, why);

    let view = index.view();
    let mut cells = vec![Cell::default(); view.span_count()];
    let asked = requests(|| {
        let planned = plan(view, &Budget::default(), Pass::Manual, &Truncation::new(), &mut cells);
        assert!(matches!(planned, Ok(Outcome::Planned(_))), "there is something to drop");
    });
    met &= row(
        "plan",
        asked,
        0,
        "shows that a plan lives in its caller's cells; matters on devices without a heap",
    );
    met &= memory(&history, &tokens, view.span_count());

    let (trigger, budget) = (Trigger::default(), Budget::default());
    let check = |size: u64| trigger.is_due(&TriggerView::new(view, &budget, black_box(size)));
    let begun = Instant::now();
    let asked = requests(|| assert!(!(0..CHECKS).any(|size| check(size % 100_000)), "nothing is due"));
    let nanoseconds = begun.elapsed().as_nanos() / u128::from(CHECKS);
    let why = format!(
        "shows what is done before each call of a model that needs no compaction, {nanoseconds} ns each (<= 1,000: {}); \
         matters because it is done before every one",
        if nanoseconds <= 1_000 { "met" } else { "**missed**" }
    );
    met &= row("untriggered check", asked, 0, &why);

    let asked = requests(|| {
        let mut validator = Validator::<OpenCallTree>::new(Profile::OpenaiChat);
        for message in &history {
            validator.push(message, &mut |_| {}).unwrap();
        }
        validator.finish(&mut |_| {});
    });
    met &= row(
        "validate",
        asked,
        GROWTH_MAX,
        "shows that no step of the history is held; matters as for a push",
    );
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the memory of an index and of the cells of a plan, without texts. Returns whether the target is met. The
/// tables of an index grow by doubling: during a copy, the old and the new table exist.
fn memory(history: &[Message<'_>], tokens: &[Tokens], spans: usize) -> bool {
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let peak = peak(history.iter().zip(tokens), |(message, tokens)| {
        index.push(message, *tokens).unwrap();
    });
    let cells = spans * size_of::<Cell>();
    let why = "shows the tables of a history and of a plan at their largest, texts apart; matters where many sessions are \
               held at once";
    let met = row("bytes a message, index and plan", (peak + cells).div_ceil(MESSAGES), BYTES_MAX, why);
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree, Vec<PartSpan>>::default();
    let peak = self::peak(history.iter().zip(tokens), |(message, tokens)| {
        index.push_with_parts(message, *tokens, |_, _| *tokens).unwrap();
    });
    let bytes = (peak + index.view().cell_count() * size_of::<Cell>()).div_ceil(MESSAGES);
    println!(
        "| bytes a message, with parts | {bytes} | - | shows the same where plans shorten parts; matters as above |"
    );
    met
}

/// The peak of allocated bytes while `step` runs on all `items`.
fn peak<T>(items: impl Iterator<Item = T>, mut step: impl FnMut(T)) -> usize {
    let (region, mut most) = (Region::new(HEAP), 0);
    let mut grown_before = 0;
    for item in items {
        step(item);
        let stats = region.change();
        // Tables double: the growth of a table equals its former size, which was copied.
        let copied = (stats.bytes_reallocated - grown_before).unsigned_abs();
        grown_before = stats.bytes_reallocated;
        most = most.max(stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) + copied);
    }
    most
}

fn requests(step: impl FnOnce()) -> usize {
    let region = Region::new(HEAP);
    step();
    let stats = region.change();
    stats.allocations + stats.reallocations
}

/// Prints a row. Returns whether its target is met.
fn row(step: &str, asked: usize, most: usize, why: &str) -> bool {
    let outcome = if asked <= most { "met" } else { "**missed**" };
    println!("| {step} | {asked} | <= {most}: {outcome} | {why} |");
    asked <= most
}

const MESSAGES: usize = 100_000;
/// Maximum size of an index and a plan for each message, without its text, in bytes.
const BYTES_MAX: usize = 48;
/// Number of checks whether a compaction is due.
const CHECKS: u64 = 1_000_000;
/// Maximum number of allocations of two tables that double until they hold everything.
const GROWTH_MAX: usize = 40;
