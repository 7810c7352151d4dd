//! Settings of compactions, for an agent or for one run: the goal, the reserve, the least amount, and a condition of
//! the caller.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use epitome::agent::Agent;
use epitome::compaction::{AutoCompaction, Compaction, CompactionOptions, RunPoints};
use epitome::compactors::Truncation;
use epitome::core::Trigger;
use epitome::history::MemoryStore;
use epitome::run::{RunOptions, RunSettings, compact};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::compaction::{auto, compacted, fill, talk};
use crate::sessions::runs::settings;
use crate::sessions::support::{Scripted, Truncating};

/// The number of the run with the first compaction, and the sizes of all requests.
fn sizes(settings: &RunSettings, runs: usize) -> (Option<usize>, Vec<u64>) {
    let (mut session, mut first, mut sizes) = (AgentSession::with_id("s"), None, Vec::new());
    for run in 0..runs {
        let (_, outcome) = talk(settings, &mut session, format!("question {run}"), &RunOptions::default());
        let size = outcome.context_size.unwrap().tokens;
        if first.is_none() && compacted(&outcome.events).is_some() {
            first = Some(run);
        }
        sizes.push(size);
    }
    (first, sizes)
}

#[test]
fn a_goal_a_reserve_and_a_least_amount_can_be_set_for_an_agent_and_for_a_run() {
    let over = |options: CompactionOptions, trigger: Option<Trigger<'static>>| {
        let mut auto = auto(1, RunPoints::default()).with_options(options);
        auto.trigger = trigger.unwrap_or_default();
        settings(&Arc::new(MemoryStore::new())).with_compaction(auto)
    };
    let small = CompactionOptions::default().with_window(1_000);
    // By default the trigger is 78 % of the window, and the goal is half of that.
    let (first, all) = sizes(&over(small.clone(), None), 60);
    let after = all[first.unwrap()];
    assert!(all.iter().all(|size| *size <= 780) && after > 300 && after <= 390 + 30, "{all:?}");
    let (first, all) = sizes(&over(small.clone().with_goal(700), None), 60);
    assert!(all[first.unwrap()] > 650 && all.iter().all(|size| *size <= 780), "{all:?}");
    // A reserve lowers the trigger.
    let (first, all) = sizes(&over(small.clone().with_reserve(450), None), 60);
    assert!(first.is_some() && all.iter().all(|size| *size <= 550), "{all:?}");
    let (first, _) = sizes(&over(small.clone().with_reserve(u64::MAX), None), 60);
    assert!(first.is_some(), "half of the window stays");
    // With a trigger that always fires, short turns free less than the least amount, unless that amount is 0.
    let (first, _) = sizes(&over(small.clone().with_window(100_000), Some(Trigger::always())), 30);
    assert_eq!(first, None);
    let no_least = small.with_window(100_000).with_min_reclaim(0).with_goal(300);
    let (first, all) = sizes(&over(no_least.clone(), Some(Trigger::always())), 30);
    assert!(first.is_some_and(|run| run > 3) && all.iter().skip(10).all(|size| *size <= 360), "{all:?}");
    // One run has its own settings.
    let settings = over(CompactionOptions::default(), Some(Trigger::never()));
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 20);
    let own = auto(1, RunPoints::default()).with_options(no_least);
    let options = RunOptions::default().with_compaction(Compaction::With(own));
    let (_, outcome) = talk(&settings, &mut session, "And now?".into(), &options);
    assert!(outcome.context_size.unwrap().tokens <= 360 && compacted(&outcome.events).is_some());
    let (compactor, to) = (Truncating(Truncation::new()), CompactionOptions::default().with_goal(100));
    let result = block_on(compact(&settings, &mut session, &compactor, to)).unwrap();
    assert!(result.compacted_tokens.is_some_and(|tokens| tokens <= 100), "{result:?}");
}

#[test]
fn a_condition_that_panics_is_not_met() {
    let store = Arc::new(MemoryStore::new());
    let condition = AutoCompaction::new(Truncating(Truncation::new()))
        .with_trigger(Trigger::never())
        .with_condition(|_| panic!("on purpose"));
    let agent = Agent::with_settings(settings(&store).with_compaction(condition), Scripted::says("Done."));
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Work.", &RunOptions::default())).unwrap();
    assert_eq!((outcome.response.text().as_str(), outcome.events.len()), ("Done.", 0));
}

/// A condition of the caller makes a compaction due, once. Until the history has more than 20 messages, the request
/// stays open.
#[test]
fn a_condition_of_the_callers_own_makes_a_compaction_due() {
    let asked = Arc::new(AtomicBool::new(true));
    let is_asked = Arc::clone(&asked);
    let options = CompactionOptions::default().with_goal(200).with_min_reclaim(0);
    let auto = AutoCompaction::new(Truncating(Truncation::new()))
        .with_trigger(Trigger::never())
        .with_options(options)
        .with_condition(move |view| view.index().messages() > 20 && is_asked.swap(false, Relaxed));
    let settings = settings(&Arc::new(MemoryStore::new())).with_compaction(auto);
    let (first, sizes) = sizes(&settings, 40);
    // Two messages a run; before the twelfth there are 22.
    assert_eq!(first, Some(11), "{sizes:?}");
    assert!(sizes[11] <= 200 + 30 && sizes[39] > 900, "once: {sizes:?}");
    assert!(!asked.load(Relaxed));
}
