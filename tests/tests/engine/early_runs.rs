//! Compactions that begin before they are due, in runs.

use core::future::ready;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compaction::{AutoCompaction, CompactionOptions, Discarded, RunPoints};
use epitome::compactors::{
    Background, BackgroundTask, Engine, Summarization, Summarizer, SummaryError, SummaryRequest,
};
use epitome::core::{Budget, ModelKey, Trigger};
use epitome::history::HistoryStore;
use epitome::message::Message;
use epitome::provider::{ClosureProvider, HistoryProvider, Hook, Providers};
use epitome::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use super::early::compacts;
use super::paths::polled;
use super::store;
use super::support::{self, Answer, Meanwhile, Scripted, check, check_covered, history};

/// An executor that keeps the spawned tasks until the test polls them.
#[derive(Clone, Default)]
struct Executor(Arc<Mutex<Vec<BackgroundTask>>>);

impl Executor {
    fn settings(
        &self,
        store: &Arc<dyn HistoryStore>,
        summarizer: &Arc<Scripted>,
        points: RunPoints,
    ) -> RunSettings {
        let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(summarizer) as _);
        let tasks = Arc::clone(&self.0);
        let background = Background::new(engine, move |task| tasks.lock().unwrap().push(task));
        let auto = AutoCompaction::new(background)
            .with_trigger(Trigger::tokens(3_000))
            .with_points(points)
            .with_options(CompactionOptions::default().with_window(6_000));
        let mut providers = Providers::default();
        // Some runs add a looked-up message, which changes the positions of all messages after it in that run.
        let look_up = ClosureProvider::before_run(|hook: Hook<'_>| {
            let asked =
                hook.context.input_messages().iter().any(|message| support::text_of(message).contains('5'));
            hook.context.extend_messages("handbook", vec![Message::user("A page."); usize::from(asked)]);
            ready(Ok(()))
        });
        providers.push_closure(look_up).unwrap();
        providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
        RunSettings::new("agent")
            .with_instructions("Be brief.")
            .with_providers(providers)
            .with_compaction(auto)
    }

    fn has_time(&self) {
        self.0.lock().unwrap().retain_mut(|task| polled(task, 100).is_none());
    }
}

/// Input of a run. No two inputs have the same text.
fn input() -> Vec<Message> {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    vec![Message::user(format!("What is next, after {:08}?", ASKED.fetch_add(1, Ordering::Relaxed)))]
}

/// A run with one request. Returns its events.
fn turn(settings: &RunSettings, session: &mut AgentSession) -> Vec<RunEvent> {
    block_on(async {
        let mut run = Run::begin(settings, session, input(), &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let answer = Message::assistant("So it goes on, and on.".repeat(12));
        run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
        run.finish().await.unwrap().events
    })
}

#[test]
fn in_runs_it_is_begun_once_for_a_crossing_and_ready_when_it_is_due() {
    let both = RunPoints::default().and_before_call();
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call(), both] {
        let (executor, store) = (Executor::default(), store(false));
        let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store).yielding(3));
        let settings = executor.settings(&store, &summarizer, points);
        let mut session = AgentSession::with_id("session");
        let calls = || summarizer.calls.load(Ordering::Relaxed);
        let (mut begun, mut compacted) = (0, 0);
        for at in 0..120 {
            let before = calls();
            let events = turn(&settings, &mut session);
            assert_eq!(calls(), before, "no run waits for a summary");
            for event in &events {
                match event {
                    RunEvent::Begun { .. } => begun += 1,
                    RunEvent::Compacted { .. } => compacted += 1,
                    RunEvent::NearLimit { .. } => {}
                    other => panic!("{other:?} in turn {at}, {points:?}"),
                }
            }
            assert!(begun == compacted || begun == compacted + 1, "{begun} begun, {compacted} committed");
            executor.has_time();
            assert_eq!(calls(), begun, "one summary for a crossing");
        }
        assert!(compacted >= 4, "{compacted} with {points:?}");
        let (shown, read) = (history(&store), summarizer.shown.lock().unwrap());
        check(&shown, &store).unwrap();
        check_covered(&shown, &store, &read).unwrap();
        let spent = session.ledger_for(settings_key(&settings), Budget::default()).compaction_spend();
        assert_eq!(spent.reports, calls() as u64);
    }
}

fn settings_key(settings: &RunSettings) -> ModelKey {
    ModelKey::new(settings.model(), &**settings.counter())
}

#[test]
fn in_runs_it_is_told_that_it_was_begun_in_vain() {
    let (executor, store) = (Executor::default(), store(true));
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let settings = executor.settings(&store, &summarizer, RunPoints::default().and_before_call());
    let mut session = AgentSession::with_id("session");
    let begins = |events: &[RunEvent]| events.iter().any(|event| matches!(event, RunEvent::Begun { .. }));
    let discards = |events: &[RunEvent], why: Discarded| {
        events.iter().any(|event| matches!(event, RunEvent::Discarded { why: given, .. } if *given == why))
    };
    while !begins(&turn(&settings, &mut session)) {}
    executor.has_time();
    let other = settings.clone().with_model("another");
    let events = turn(&other, &mut session);
    assert!(discards(&events, Discarded::ModelChanged) && begins(&events), "{events:?}");
    // A compaction by another handle has changed the messages of the early work.
    executor.has_time();
    assert!(block_on(compacts(&store)));
    while let events = turn(&other, &mut session)
        && !discards(&events, Discarded::PrefixEdited)
    {
        assert!(!events.iter().any(|event| matches!(event, RunEvent::Compacted { .. })), "{events:?}");
    }
}

/// While the request fits, a run does not wait for a due compaction whose task is not polled. When the request no
/// longer fits, the run waits, and polls the task itself.
#[test]
fn what_nobody_polls_is_waited_for_when_the_request_no_longer_fits() {
    let (executor, store) = (Executor::default(), store(false));
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let settings = executor.settings(&store, &summarizer, RunPoints::NONE.and_before_call());
    let mut session = AgentSession::with_id("session");
    let mut under_way = 0;
    let events = loop {
        let events = turn(&settings, &mut session);
        if events.iter().any(|event| matches!(event, RunEvent::Compacted { .. })) {
            break events;
        }
        under_way += events.iter().filter(|event| matches!(event, RunEvent::UnderWay { .. })).count();
    };
    assert!(under_way > 3, "{under_way} {events:?}");
    assert_eq!(summarizer.calls.load(Ordering::Relaxed), 1);
}

/// A summary that was paid for is in the costs, even if no run waits for it any more.
#[test]
fn what_is_given_up_was_paid_for_all_the_same() {
    let store = store(false);
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let mut settings = Executor::default().settings(&store, &summarizer, RunPoints::NONE.and_before_call());
    let slow = Arc::new(Slow(Arc::clone(&summarizer)));
    let compaction = settings.compaction.as_mut().unwrap();
    compaction.compactor = Arc::new(Engine::new(Summarization::new()).with_summarizer(slow));
    let mut session = AgentSession::with_id("session");
    // The run is dropped after the summarizer has reported its costs, and before it returns.
    while summarizer.calls.load(Ordering::Relaxed) == 0 {
        let mut run = block_on(Run::begin(&settings, &mut session, input(), &RunOptions::default())).unwrap();
        let Some(prompt) = polled(run.prompt(), 5) else { continue };
        let answer = ModelResponse::new(vec![Message::assistant("So it goes on, and on.".repeat(12))]);
        block_on(run.record(prompt.unwrap().handle, answer)).unwrap();
        block_on(run.finish()).unwrap();
    }
    let spent = session.ledger_for(settings_key(&settings), Budget::default()).compaction_spend();
    assert_eq!(spent.reports, 1);
}

/// A summarizer that writes its summary at once, and returns it after 100 yields.
#[derive(Debug)]
struct Slow(Arc<Scripted>);

#[async_trait]
impl Summarizer for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        let said = self.0.summarize(request).await;
        support::yields(100).await;
        said
    }
}
