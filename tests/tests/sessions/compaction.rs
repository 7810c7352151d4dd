//! The points of a run where it compacts.

use core::future::ready;
use std::sync::Arc;

use async_trait::async_trait;
use epitome::compaction::{
    AutoCompaction, Compaction, CompactionCx, CompactionOptions, CompactionOutcome, CompactionResult,
    Compactor, RunPoints,
};
use epitome::compactors::Truncation;
use epitome::core::{Trigger, Usage};
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::Message;
use epitome::provider::{ClosureProvider, CompactionProvider, HistoryProvider, Hook, Providers};
use epitome::run::{
    ModelResponse, Persistence, Point, Run, RunError, RunEvent, RunOptions, RunOutcome, RunSettings, Skipped,
    compact,
};
use epitome::session::{AgentSession, SessionError, SessionErrorKind};
use epitome::wire::ContextOverflow;
use futures::executor::block_on;

use crate::sessions::runs::settings;
use crate::sessions::support::{Failing, Truncating, call, log, shown, texts};

const LONG: &str = "the quick brown fox jumps over the lazy dog and then over the next one, again and again";

pub(crate) fn auto(trigger: u64, points: RunPoints) -> AutoCompaction {
    AutoCompaction::new(Truncating(Truncation::new()))
        .with_trigger(Trigger::tokens(trigger))
        .with_points(points)
}

fn before_call() -> RunPoints {
    RunPoints::NONE.and_before_call()
}

/// One run without tools. Returns the texts of the request, and the outcome.
pub(crate) fn talk(
    settings: &RunSettings,
    session: &mut AgentSession,
    says: String,
    options: &RunOptions,
) -> (Vec<String>, RunOutcome) {
    block_on(async {
        let mut run = Run::begin(settings, session, vec![Message::user(says)], options).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let sent = texts(&prompt.messages);
        run.record(prompt.handle, ModelResponse::new(vec![Message::assistant(LONG)])).await.unwrap();
        (sent, run.finish().await.unwrap())
    })
}

pub(crate) fn fill(settings: &RunSettings, session: &mut AgentSession, runs: usize) {
    for run in 0..runs {
        talk(settings, session, format!("question {run}"), &RunOptions::default());
    }
}

pub(crate) fn compacted(events: &[RunEvent]) -> Option<(Point, CompactionResult)> {
    events.iter().find_map(|event| match event {
        RunEvent::Compacted { point, result } => Some((*point, *result)),
        _ => None,
    })
}

#[test]
fn before_a_run_what_is_stored_is_compacted() {
    let store = Arc::new(MemoryStore::new());
    let audit = Arc::new(MemoryStore::new());
    let mut settings = settings(&store);
    let audits = HistoryProvider::new("audit", audit.clone() as Arc<dyn HistoryStore>).load_messages(false);
    settings.providers.push(audits).unwrap();
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 10);
    let settings = settings.with_compaction(auto(200, RunPoints::default()));
    let (sent, outcome) = talk(&settings, &mut session, "last".into(), &RunOptions::default());
    let (point, result) = compacted(&outcome.events).expect("more than 200 tokens");
    assert_eq!(point, Point::BeforeRun);
    assert_eq!(result.original_count, 20);
    assert!(result.compacted_tokens < result.original_tokens && result.basis.is_some());
    assert_eq!(sent.len() as u64, result.compacted_count + 1);
    assert_eq!((sent[0].as_str(), sent.last().unwrap().as_str()), ("user: question 0", "user: last"));
    assert_eq!(log(&*store, "s").len(), 22, "nothing is deleted");
    assert_eq!(shown(&*audit, "s").len(), 22, "an audit log is never compacted");
    assert_eq!(shown(&*store, "s").len() as u64, result.compacted_count + 2);
}

#[test]
fn a_runs_own_word_goes_before_the_agents() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store);
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 10);
    let settings = settings.with_compaction(auto(100_000, RunPoints::default()));
    let ask = |session: &mut AgentSession, compaction| {
        let options = RunOptions::default().with_compaction(compaction);
        compacted(&talk(&settings, session, "next".into(), &options).1.events).is_some()
    };
    assert!(!ask(&mut session, Compaction::AgentDefault), "100,000 is more than there is");
    assert!(!ask(&mut session, Compaction::Off));
    assert!(ask(&mut session, Compaction::With(auto(80, RunPoints::default()))));
}

#[test]
fn a_provider_may_bring_the_compaction_wherever_it_stands() {
    for first in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let mut session = AgentSession::with_id("s");
        fill(&settings(&store), &mut session, 10);
        let histories = settings(&store).providers;
        let (provider, mut providers) =
            (CompactionProvider::new(auto(200, RunPoints::default())), Providers::default());
        if first {
            providers.push(provider.clone()).unwrap();
        }
        histories.iter().for_each(|history| providers.push_shared(history.clone()).unwrap());
        if !first {
            providers.push(provider).unwrap();
        }
        let settings = RunSettings::new("agent").with_providers(providers);
        let ask = |session: &mut AgentSession, settings: &RunSettings| {
            compacted(&talk(settings, session, "next".into(), &RunOptions::default()).1.events).is_some()
        };
        let other = settings.clone().with_compaction(auto(100_000, RunPoints::default()));
        assert!(!ask(&mut session, &other), "what the settings say goes before it");
        assert!(ask(&mut session, &settings));
    }
}

#[test]
fn after_a_run_what_is_then_stored_is_compacted() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store);
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 10);
    let settings = settings.with_compaction(auto(200, RunPoints::NONE.and_after_run()));
    let (sent, outcome) = talk(&settings, &mut session, "last".into(), &RunOptions::default());
    assert_eq!(sent.len(), 21);
    let (point, result) = compacted(&outcome.events).unwrap();
    assert_eq!((point, result.original_count), (Point::AfterRun, 22));
    assert_eq!(shown(&*store, "s").len() as u64, result.compacted_count);
}

/// A run with `rounds` of tools, each with a long result. Returns the texts of the last request.
async fn work(run: &mut Run<'_>, rounds: usize) -> Vec<String> {
    for round in 0..rounds {
        let prompt = run.prompt().await.unwrap();
        let id = format!("c{round}");
        run.record(prompt.handle, ModelResponse::new(vec![call(&id, "read")])).await.unwrap();
        run.answer(vec![Message::tool(id, LONG)]).unwrap();
    }
    let prompt = run.prompt().await.unwrap();
    let sent = texts(&prompt.messages);
    run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Done.")])).await.unwrap();
    sent
}

fn instructed(store: &Arc<MemoryStore>, trigger: u64) -> RunSettings {
    settings(store).with_instructions("You help.").with_compaction(auto(trigger, before_call()))
}

#[test]
fn in_a_run_what_is_not_stored_yet_is_compacted_and_committed_at_the_end() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let store = Arc::new(MemoryStore::new());
        let settings = instructed(&store, 250).with_persistence(persistence);
        let mut session = AgentSession::with_id("s");
        let (sent, events) = block_on(async {
            let input = vec![Message::user("Work.")];
            let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
            let sent = work(&mut run, 20).await;
            (sent, run.finish().await.unwrap().events)
        });
        let (point, _) = compacted(&events).expect("twenty results are more than 250 tokens");
        assert_eq!(point, Point::BeforeCall);
        assert_eq!(sent[..2], ["system: You help.", "user: Work."]);
        assert!(sent.len() < 20, "{persistence:?}: {}", sent.len());
        // A fresh process shows the sent messages without the instructions, which are not stored, and the answer.
        let mut expected = sent[1..].to_vec();
        expected.push("assistant: Done.".into());
        assert_eq!(shown(&*store, "s"), expected, "{persistence:?}");
        assert_eq!(log(&*store, "s").len(), 42, "{persistence:?}");
    }
}

#[test]
fn an_abort_undoes_the_compactions_of_a_run() {
    let store = Arc::new(MemoryStore::new());
    let mut session = AgentSession::with_id("s");
    fill(&settings(&store), &mut session, 3);
    let before = shown(&*store, "s");
    let settings = instructed(&store, 250);
    block_on(async {
        let input = vec![Message::user("Work.")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        work(&mut run, 20).await;
        assert!(compacted(run.events()).is_some());
        run.abort();
    });
    assert_eq!(shown(&*store, "s"), before);
}

#[test]
fn in_a_run_stored_and_new_messages_are_compacted_together() {
    let store = Arc::new(MemoryStore::new());
    let mut session = AgentSession::with_id("s");
    fill(&settings(&store), &mut session, 10);
    let settings = instructed(&store, 200);
    let (first, sent) = block_on(async {
        let input = vec![Message::user("Work.")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        let first = texts(&run.prompt().await.unwrap().messages);
        let sent = work(&mut run, 20).await;
        run.finish().await.unwrap();
        (first, sent)
    });
    assert!(first.len() < 22, "the history is too large from the start: {}", first.len());
    let mut expected = sent[1..].to_vec();
    expected.push("assistant: Done.".into());
    assert_eq!(shown(&*store, "s"), expected);
    assert_eq!(log(&*store, "s").len(), 62);
}

#[test]
fn near_the_limit_is_told_once() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store);
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 4);
    let points = RunPoints::default().and_before_call().and_after_run();
    let near = |session: &mut AgentSession, trigger| {
        let options = RunOptions::default().with_compaction(Compaction::With(auto(trigger, points)));
        let events = talk(&settings, session, "next".into(), &options).1.events;
        events.iter().filter(|event| matches!(event, RunEvent::NearLimit { .. })).count()
    };
    assert_eq!(near(&mut session, 1_000_000), 0);
    let size = session.context_size().unwrap().tokens;
    assert_eq!(near(&mut session, size + size / 4), 1);
}

#[test]
fn sessions_that_a_service_keeps_are_not_compacted() {
    let store = Arc::new(MemoryStore::new());
    let points = RunPoints::default().and_before_call().and_after_run();
    let settings = settings(&store).with_compaction(auto(1, points));
    let mut session = AgentSession::with_id("s").with_service_session_id("thread");
    let (_, outcome) = talk(&settings, &mut session, "Hi".into(), &RunOptions::default());
    assert_eq!(outcome.events, [RunEvent::Skipped(Skipped::ServiceManaged)]);
    let compactor = Truncating(Truncation::new());
    let options = CompactionOptions::default();
    let error = block_on(compact(&settings, &mut session, &compactor, options)).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
    let words =
        "Cannot compact service-managed sessions. Compaction is only supported for client-managed sessions.";
    assert_eq!(error.to_string(), words);
}

#[test]
fn with_no_loader_or_several_nothing_is_compacted() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    for (loads, reason) in [(true, Skipped::SeveralLoaders), (false, Skipped::NoLoader)] {
        let mut providers = Providers::default();
        for id in ["a", "b"] {
            let history = HistoryProvider::new(id, Arc::clone(&store)).with_session_prefix(id);
            providers.push(history.load_messages(loads)).unwrap();
        }
        let settings = RunSettings::new("a").with_providers(providers);
        let settings = settings.with_compaction(auto(1, RunPoints::default().and_before_call()));
        let mut session = AgentSession::with_id("s");
        let (_, outcome) = talk(&settings, &mut session, "Hi".into(), &RunOptions::default());
        assert_eq!(outcome.events, [RunEvent::Skipped(reason)]);
        let compactor = Truncating(Truncation::new());
        let error = block_on(compact(&settings, &mut session, &compactor, CompactionOptions::default()));
        assert_eq!(error.unwrap_err().kind(), SessionErrorKind::Invalid);
    }
}

#[test]
fn a_failed_compaction_is_an_event_and_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let points = RunPoints::default().and_before_call().and_after_run();
    let failing = AutoCompaction::new(Failing).with_trigger(Trigger::always()).with_points(points);
    let settings = settings(&store).with_compaction(failing);
    let mut session = AgentSession::with_id("s");
    let (_, outcome) = talk(&settings, &mut session, "Hi".into(), &RunOptions::default());
    let failed =
        |point| RunEvent::Failed { point, kind: SessionErrorKind::Unavailable, reason: "on purpose".into() };
    let expected = [Point::BeforeRun, Point::BeforeCall, Point::AfterRun].map(failed);
    assert_eq!(outcome.events, expected);
    assert_eq!(shown(&*store, "s").len(), 2);
}

#[test]
fn on_demand_the_strength_decides() {
    let store = Arc::new(MemoryStore::new());
    let settings = settings(&store);
    let mut session = AgentSession::with_id("s");
    fill(&settings, &mut session, 10);
    session.record_usage(Some(&Usage::new(5_000, 10)));
    let (compactor, options) = (Truncating(Truncation::new()), CompactionOptions::default());
    let result = block_on(compact(&settings, &mut session, &compactor, options)).unwrap();
    assert_eq!(result.original_count, 20);
    assert!(result.compacted_count < 20 && result.compacted_tokens < result.original_tokens);
    assert_eq!(shown(&*store, "s").len() as u64, result.compacted_count);
    assert_eq!(session.token_count(), 0, "the report says nothing of what is left");
    assert_eq!(session.usage().unwrap().output_total, Some(10), "what was spent is spent");
}

#[test]
fn on_demand_without_a_history_there_is_nothing() {
    let mut providers = Providers::default();
    let nothing = ClosureProvider::before_run(|_: Hook<'_>| ready(Ok(())));
    providers.push_closure(nothing).unwrap();
    let settings = RunSettings::new("a").with_providers(providers);
    let (compactor, options) = (Truncating(Truncation::new()), CompactionOptions::default());
    let result = block_on(compact(&settings, &mut AgentSession::with_id("s"), &compactor, options)).unwrap();
    assert_eq!(result, CompactionResult::new(0, 0));
}

/// A compactor that panics.
#[derive(Debug)]
struct Panicking;

#[async_trait]
impl Compactor for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    async fn compact(&self, _: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        panic!("on purpose")
    }
}

#[test]
fn a_compactor_that_panics_has_failed() {
    let store = Arc::new(MemoryStore::new());
    let points = RunPoints::default().and_before_call();
    let auto = AutoCompaction::new(Panicking).with_trigger(Trigger::always()).with_points(points);
    let settings = settings(&store).with_compaction(auto);
    let mut session = AgentSession::with_id("s");
    let (_, outcome) = talk(&settings, &mut session, "Hi".into(), &RunOptions::default());
    let failed = |point| RunEvent::Failed {
        point,
        kind: SessionErrorKind::Invalid,
        reason: "the compactor panicked".into(),
    };
    assert_eq!(outcome.events, [Point::BeforeRun, Point::BeforeCall].map(failed));
    assert_eq!(shown(&*store, "s").len(), 2);
}

#[test]
fn after_three_failures_a_compactor_rests_for_ten_requests() {
    let store = Arc::new(MemoryStore::new());
    let failing = AutoCompaction::new(Failing).with_trigger(Trigger::always());
    let settings = settings(&store).with_compaction(failing);
    let mut session = AgentSession::with_id("s");
    let outcomes: String = (0..24)
        .map(|_| match talk(&settings, &mut session, "Hi".into(), &RunOptions::default()).1.events[..] {
            [RunEvent::Failed { .. }] => 'F',
            [RunEvent::Resting { point: Point::BeforeRun, .. }] => '.',
            ref other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(outcomes, "FFF.........F.........F.");
}

#[test]
fn a_request_that_the_provider_refuses_is_compacted_at_once() {
    let store = Arc::new(MemoryStore::new());
    let mut session = AgentSession::with_id("s");
    fill(&settings(&store), &mut session, 20);
    fn begin<'a>(settings: &'a RunSettings, session: &'a mut AgentSession) -> Run<'a> {
        let input = vec![Message::user("Go on.")];
        block_on(Run::begin(settings, session, input, &RunOptions::default())).unwrap()
    }
    let bare = settings(&store);
    let mut run = begin(&bare, &mut session);
    let prompt = block_on(run.prompt()).unwrap();
    assert!(matches!(
        block_on(run.refused(prompt.handle, ContextOverflow::default())),
        Err(RunError::Misuse(_))
    ));
    drop(run);
    // The size is far below the trigger, but the refusal of the provider decides.
    let settings = settings(&store).with_compaction(auto(100_000, RunPoints::default()));
    let mut run = begin(&settings, &mut session);
    let prompt = block_on(run.prompt()).unwrap();
    let (before, sent) = (prompt.size.tokens, prompt.messages.len());
    block_on(run.refused(prompt.handle, ContextOverflow::default())).unwrap();
    assert!(compacted(run.events()).is_some());
    let prompt = block_on(run.prompt()).unwrap();
    assert!(
        prompt.messages.len() < sent && prompt.size.tokens <= before / 2 + 1,
        "{before} {:?}",
        prompt.size
    );
    block_on(run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Done.")]))).unwrap();
    block_on(run.finish()).unwrap();
    assert_eq!(log(&*store, "s").len(), 42);
    assert!(shown(&*store, "s").len() < 42);
}
