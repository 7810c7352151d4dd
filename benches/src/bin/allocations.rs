//! How often the heap is asked for memory by each step: counted, so the same on every machine.
//!
//! A program of its own, because counting makes every allocation slower.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::hint::black_box;
use std::alloc::System;
use std::time::Instant;

use epitome::compactors::Truncation;
use epitome::core::{
    Budget, Cell, IndexBuf, OpenCallTree, Outcome, Pass, Profile, Span, Trigger, TriggerView, Validator, plan,
};
use epitome_benches::generated::{Messages, Pool, sizes};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let pool = Pool::new();
    let history: Vec<_> = Messages::new(&pool, 1).take(MESSAGES).collect();
    let tokens = sizes(&history);
    println!("| step, {MESSAGES} messages | allocations | target | shows; matters because |");
    println!("|---|---|---|---|");

    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let asked = requests(|| {
        for (message, tokens) in history.iter().zip(&tokens) {
            index.push(message, *tokens).unwrap();
        }
    });
    let why =
        "shows that only the tables grow, by doubling; matters because a push must not wait for the heap";
    row("group", asked, GROWTH_MAX, why);

    let view = index.view();
    let mut cells = vec![Cell::default(); view.span_count()];
    let asked = requests(|| {
        let planned = plan(view, &Budget::default(), Pass::Manual, &Truncation::new(), &mut cells);
        assert!(matches!(planned, Ok(Outcome::Planned(_))), "there is something to drop");
    });
    row("plan", asked, 0, "shows that a plan lives in its caller's cells; matters on devices without a heap");

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
    row("untriggered check", asked, 0, &why);

    let asked = requests(|| {
        let mut validator = Validator::<OpenCallTree>::new(Profile::OpenaiChat);
        for message in &history {
            validator.push(message, &mut |_| {}).unwrap();
        }
        validator.finish(&mut |_| {});
    });
    row("validate", asked, GROWTH_MAX, "shows that no step of the history is held; matters as for a push");
}

fn requests(step: impl FnOnce()) -> usize {
    let region = Region::new(HEAP);
    step();
    let stats = region.change();
    stats.allocations + stats.reallocations
}

fn row(step: &str, asked: usize, most: usize, why: &str) {
    let outcome = if asked <= most { "met" } else { "**missed**" };
    println!("| {step} | {asked} | <= {most}: {outcome} | {why} |");
}

const MESSAGES: usize = 100_000;
/// How often it is looked whether a compaction is due.
const CHECKS: u64 = 1_000_000;
/// Two tables that double until they hold everything.
const GROWTH_MAX: usize = 40;
