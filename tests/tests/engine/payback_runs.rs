//! The payback rule in runs: when a compaction waits, when it must not wait, and the effect of idle time. The tests set
//! the clock.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, Payback, PaybackRule, RunPoints};
use epitome::compactors::{Engine, ToolResultClearing, Truncation};
use epitome::core::Trigger;
use epitome::history::{HistoryStore, MemoryStore, Timestamp};
use epitome::message::Message;
use epitome::models::{Cache, Model, Models, Prices};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

const TRIGGER: u64 = 3_000;

/// A clock that a test advances by minutes.
#[derive(Clone, Default)]
struct Minutes(Arc<AtomicU64>);

impl Minutes {
    fn pass(&self, minutes: u64) {
        self.0.fetch_add(minutes, Ordering::Relaxed);
    }
}

fn prices() -> Prices {
    Models::builtin().find("claude-sonnet-4-5").unwrap().prices.unwrap()
}

fn auto(window: u64) -> AutoCompaction {
    AutoCompaction::new(Engine::new(Truncation::new()))
        .with_trigger(Trigger::tokens(TRIGGER))
        .with_options(CompactionOptions::default().with_window(window))
}

/// A model of which only the window and these prices are known.
fn model(prices: Option<Prices>) -> Model {
    let mut model = Model::new("m", 128_000);
    model.prices = prices;
    model
}

fn settings(auto: AutoCompaction, minutes: &Minutes) -> RunSettings {
    let (mut providers, minutes) = (Providers::default(), minutes.clone());
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    providers.push(HistoryProvider::new("memory", store)).unwrap();
    RunSettings::new("agent")
        .with_providers(providers)
        .with_compaction(auto)
        .with_model_row(model(Some(prices())))
        .with_clock(move || Timestamp(minutes.0.load(Ordering::Relaxed) * 60_000))
}

/// A run with one request, which makes the next request some 130 tokens larger. Returns the size of the request and the
/// events.
fn turn(settings: &RunSettings, session: &mut AgentSession) -> (u64, Vec<RunEvent>) {
    block_on(async {
        let input = vec![Message::user("What is next?")];
        let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let (size, answer) = (prompt.size.tokens, Message::assistant("So it goes on, and on.".repeat(16)));
        run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
        (size, run.finish().await.unwrap().events)
    })
}

fn compacted(events: &[RunEvent]) -> Option<Option<Payback>> {
    events.iter().find_map(|event| match event {
        RunEvent::Compacted { result, .. } => Some(result.payback),
        _ => None,
    })
}

fn waits(events: &[RunEvent]) -> Option<Payback> {
    events.iter().find_map(|event| match event {
        RunEvent::DoesNotPay { payback, .. } => Some(*payback),
        _ => None,
    })
}

/// The size of the last request before the first compaction, and the events of the run that compacts.
fn first_compaction(settings: &RunSettings, session: &mut AgentSession) -> (u64, Vec<RunEvent>) {
    let mut size = 0;
    loop {
        let (next, events) = turn(settings, session);
        if compacted(&events).is_some() {
            return (size, events);
        }
        size = next;
    }
}

#[test]
fn what_pays_is_compacted_at_the_trigger_and_tells_when_it_pays() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call()] {
        let auto = auto(40_000).with_points(points).with_payback(PaybackRule::REQUESTS);
        let mut session = AgentSession::with_id("s");
        let (size, events) = first_compaction(&settings(auto, &Minutes::default()), &mut session);
        assert!(size > TRIGGER - 200 && size < TRIGGER + 400, "{size}");
        let payback = compacted(&events).flatten().unwrap();
        assert!(payback.is_expected() && payback.after_requests > Some(0), "{payback:?}");
        assert_eq!((payback.expected_requests, payback.cache), (PaybackRule::REQUESTS, Cache::Warm));
    }
}

#[test]
fn without_a_rule_nothing_is_told_and_without_a_lifetime_nobody_looks_at_the_clock() {
    let mut unpublished = prices();
    unpublished.lifetime = None;
    let settings = settings(auto(40_000), &Minutes::default())
        .with_model_row(model(Some(unpublished)))
        .with_clock(|| panic!("nobody has to know"));
    let mut session = AgentSession::with_id("s");
    let (_, events) = first_compaction(&settings, &mut session);
    assert_eq!((compacted(&events), settings.cache_expires_at(&session)), (Some(None), None));
}

/// A session knows when its cache expires, also after the session was written and read again.
#[test]
fn a_session_knows_when_its_cache_is_lost() {
    let minutes = Minutes::default();
    let settings = settings(auto(40_000), &minutes);
    let mut session = AgentSession::with_id("s");
    turn(&settings, &mut session);
    minutes.pass(3);
    turn(&settings, &mut session);
    session = AgentSession::from_dict(session.to_dict().unwrap()).unwrap();
    assert_eq!(settings.cache_expires_at(&session), Some(Timestamp((3 + 5) * 60_000)));
}

#[test]
fn without_prices_nothing_has_to_pay_and_that_is_told_once() {
    let auto = auto(40_000).with_payback(0).with_points(RunPoints::default().and_before_call());
    let settings = settings(auto, &Minutes::default()).with_model_row(model(None));
    let (_, events) = first_compaction(&settings, &mut AgentSession::with_id("s"));
    assert_eq!(compacted(&events), Some(None));
    assert_eq!(events.iter().filter(|event| **event == RunEvent::NoPrices).count(), 1, "{events:?}");
}

/// A compaction that does not pay waits until the request would exceed the limit. Until then one event of each run
/// gives the reason.
#[test]
fn what_does_not_pay_waits_until_the_request_would_not_fit() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call()] {
        let auto = auto(6_000).with_points(points).with_payback(1);
        let settings = settings(auto, &Minutes::default());
        let mut session = AgentSession::with_id("s");
        let (mut size, mut waited) = (0, 0);
        let events = loop {
            let (next, events) = turn(&settings, &mut session);
            if compacted(&events).is_some() {
                break events;
            }
            let payback = waits(&events);
            assert_eq!(payback.is_some(), next > TRIGGER, "{next} {events:?}");
            assert!(payback.is_none_or(|payback| !payback.is_expected() && payback.expected_requests == 1));
            (size, waited) = (next, waited + usize::from(payback.is_some()));
        };
        // 6,000 less the reserve of an eighth.
        assert!(waited > 5 && size <= 5_250 && size > 4_900, "{waited} {size}");
        assert!(!compacted(&events).flatten().unwrap().is_expected());
    }
}

/// With a cold cache a compaction without a model call pays at once. It is then due from the early trigger on, by
/// default from four fifths of the trigger.
#[test]
fn after_a_pause_it_is_due_earlier() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call()] {
        for (minutes_idle, early) in [(5, None), (6, None), (6, Some(2_000)), (5, Some(2_000))] {
            let minutes = Minutes::default();
            // With a warm cache the compaction would not pay.
            let mut auto = auto(40_000).with_points(points).with_payback(0);
            if let Some(line) = early {
                auto = auto.with_early(Trigger::tokens(line));
            }
            let settings = settings(auto, &minutes);
            let mut session = AgentSession::with_id("s");
            let line = early.unwrap_or(TRIGGER * 4 / 5);
            let (mut sizes, mut events) = (Vec::new(), Vec::new());
            for _ in 0..60 {
                minutes.pass(minutes_idle);
                let (size, happened) = turn(&settings, &mut session);
                sizes.push(size);
                events = happened;
                if compacted(&events).is_some() {
                    break;
                }
            }
            // The lifetime of five minutes is over after more than five minutes.
            let Some(payback) = compacted(&events) else {
                assert!(minutes_idle == 5, "never after {minutes_idle} minutes: {sizes:?}");
                continue;
            };
            assert_eq!(minutes_idle, 6, "{events:?}");
            let payback = payback.unwrap();
            assert_eq!((payback.after_requests, payback.cache), (Some(0), Cache::Cold));
            let [.., before, after] = sizes[..] else { panic!("{sizes:?}") };
            assert!(before > line - 300 && before < line + 300, "{before} for {line}");
            // The goal is half of the trigger, not of the early trigger.
            assert!(after > TRIGGER / 2 - 300 && after < TRIGGER / 2 + 300, "{after}");
        }
    }
}

/// A pause within one run counts too: a tool may take longer than the lifetime of the cache.
#[test]
fn a_pause_in_a_run_counts_too_and_the_last_request_ends_it() {
    let minutes = Minutes::default();
    let auto = auto(40_000).with_points(RunPoints::NONE.and_before_call()).with_payback(0);
    let settings = settings(auto, &minutes);
    let mut session = AgentSession::with_id("s");
    while turn(&settings, &mut session).0 < TRIGGER * 9 / 10 {}
    block_on(async {
        let input = vec![Message::user("And then?")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        assert_eq!(compacted(run.events()), None, "the cache is warm");
        run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Wait.")])).await.unwrap();
        minutes.pass(10);
        let _ = run.prompt().await.unwrap();
        assert!(compacted(run.events()).is_some(), "{:?}", run.events());
    });
}

#[test]
fn a_session_that_is_written_and_read_knows_when_it_made_its_last_request() {
    let minutes = Minutes::default();
    let settings = settings(auto(40_000).with_payback(0), &minutes);
    let mut session = AgentSession::with_id("s");
    while turn(&settings, &mut session).0 < TRIGGER * 9 / 10 {}
    let written = session.to_json().unwrap();
    let mut read = AgentSession::from_json(&written).unwrap();
    assert_eq!(read.to_json().unwrap(), written);
    // A new session with the same id does not know the time of its last request.
    minutes.pass(10);
    assert_eq!(compacted(&turn(&settings, &mut AgentSession::with_id("s")).1), None);
    minutes.pass(10);
    assert!(compacted(&turn(&settings, &mut read).1).is_some());
}

/// The idle time is unknown if the clock was set back. Without a published lifetime a cache never counts as cold.
#[test]
fn an_idle_time_that_nobody_knows_is_none() {
    for (idle, lifetime, cold) in [(6, true, true), (600, false, false)] {
        let minutes = Minutes::default();
        let mut prices = prices();
        prices.lifetime = prices.lifetime.filter(|_| lifetime);
        let settings = settings(auto(40_000).with_payback(0), &minutes).with_model_row(model(Some(prices)));
        let mut session = AgentSession::with_id("s");
        minutes.pass(1_000);
        while turn(&settings, &mut session).0 < TRIGGER * 9 / 10 {}
        minutes.0.store(10, Ordering::Relaxed);
        assert_eq!(compacted(&turn(&settings, &mut session).1), None, "set back");
        minutes.pass(idle);
        assert_eq!(compacted(&turn(&settings, &mut session).1).is_some(), cold, "{idle}");
    }
}

/// A clearing waits by the same rule if it frees too little for the messages that are then written again. The caller
/// need not choose a least amount.
#[test]
fn the_rule_is_the_least_amount_of_a_clearing() {
    use epitome::core::message::Role;
    use epitome::message::{Part, ToolCall};
    let engine = Engine::new(ToolResultClearing::new().keep(1));
    let mut auto = auto(9_000).with_points(RunPoints::NONE.and_before_call());
    auto.compactor = Arc::new(engine);
    let settings = settings(auto.with_payback(PaybackRule::REQUESTS), &Minutes::default());
    let mut session = AgentSession::with_id("s");
    let events = block_on(async {
        let input = vec![Message::user("Go on.")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        // Early results that are small, and much text after them.
        for at in 0..40 {
            let prompt = run.prompt().await.unwrap();
            let said = Part::Text("So it goes on, and on.".repeat(16).into());
            let call = Part::ToolCall(ToolCall::new(format!("c{at}"), "read", "{}"));
            let answer = Message::new(Role::Assistant, vec![said, call]);
            run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
            let lines = if at < 3 { 12 } else { 1 };
            run.answer(vec![Message::tool(format!("c{at}"), "a line of what it read\n".repeat(lines))])
                .unwrap();
        }
        run.events().to_vec()
    });
    let payback = waits(&events).unwrap();
    assert!(payback.after_requests > Some(PaybackRule::REQUESTS), "{payback:?}");
    let told = events.iter().filter(|event| matches!(event, RunEvent::DoesNotPay { .. }));
    assert_eq!(told.count(), 1, "once in a run");
    assert_eq!(compacted(&events), None);
}
