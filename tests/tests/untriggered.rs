//! The work before each model call allocates no memory: checks of triggers that do not fire, and plans.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use core::hint::black_box;
use std::alloc::System;

use epitome_compactors::{
    ContextWindow, EphemeralFirst, OversizedClamp, Pipeline, ReasoningClearing, SlidingWindow, Summarization,
    Supersede, ToolExchangeDigest, ToolExchangeDrop, ToolResultClearing, Truncation, Window,
};
use epitome_core::{
    Budget, Cell, Index, IndexedPart, Outcome, Pass, Planner, Profile, Replacement, Strategy, Tokens,
    Trigger, TriggerView,
};
use epitome_tests::generate::{Scale, seeded};
use epitome_tests::live;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Both parts are in one test, because the allocator counts for the whole process.
#[test]
fn checks_and_plans_ask_the_heap_for_nothing() {
    let messages = seeded(0x9E37_79B9_7F4A_7C15, 5_000, Scale::Mixed);
    let (index, _) = live::index_of(&messages);
    untriggered(index.view());
    memory_of_plans(index.view());
}

fn untriggered(index: Index<'_>) {
    let budget = Budget::default();
    const EITHER: Trigger<'static> = Trigger::any(&[
        Trigger::budget(),
        Trigger::reported(90_000_000),
        Trigger::messages(1_000_000),
        Trigger::turns(1_000_000),
        Trigger::window_per_mille(1_000_000_000),
        Trigger::never(),
    ]);
    let triggers = [Trigger::tokens(u64::MAX), EITHER];
    let region = Region::new(HEAP);
    for trigger in &triggers {
        for size in 0..1_000 {
            let view = TriggerView::new(index, &budget, size).with_token_count(size);
            assert!(black_box(trigger.fired(black_box(&view))).is_none());
        }
    }
    let change = region.change();
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{change:?}");
}

/// A plan needs one cell of one byte for each span of a group and for each part that may be shortened. It allocates
/// nothing else.
fn memory_of_plans(index: Index<'_>) {
    assert_eq!((size_of::<Cell>(), index.cell_count()), (1, index.span_count() + index.part_count()));
    assert!(size_of::<Replacement>() <= 16);
    // The spans need at most two bytes for each group: a group seldom has a second span, and never without an answer.
    assert!(index.span_count() <= 2 * index.group_count() as usize, "{} spans", index.span_count());
    let tool = |part: &IndexedPart<'_>| part.tool().map(|_| 1);
    let (clearing, truncation, summarization) =
        (ToolResultClearing::new(), Truncation::new(), Summarization::new());
    let stages: [&dyn Strategy; 2] = [&clearing, &truncation];
    let strategies: [&dyn Strategy; 12] = [
        &truncation,
        &SlidingWindow::new(Window::Goal),
        &clearing,
        &ToolExchangeDrop::new(),
        &ToolExchangeDigest::new(),
        &ReasoningClearing::new(Profile::Gemini),
        &OversizedClamp::new(Tokens(300)),
        &Supersede::<_>::new(tool),
        &EphemeralFirst,
        &summarization,
        &ContextWindow::new(index.tokens(), 0),
        &Pipeline::new(&stages).unwrap(),
    ];
    let goal = index.tokens() / 2;
    let budget = Budget::builder().window(index.tokens()).reserve(0).trigger(index.tokens()).goal(goal);
    let budget = budget.min_reclaim(0).build().unwrap();
    let (mut planner, mut planned) = (Planner::new(), 0);
    // The first plan allocates the memory of the planner.
    let _ = planner.plan(index, &budget, Pass::Manual, strategies[0]);
    for strategy in strategies {
        let region = Region::new(HEAP);
        let outcome = planner.plan(index, &budget, Pass::Manual, strategy).unwrap();
        let change = region.change();
        planned += usize::from(matches!(outcome, Outcome::Planned(_)));
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{}", strategy.name());
    }
    assert!(planned >= 10, "{planned} of them had something to do");
}
