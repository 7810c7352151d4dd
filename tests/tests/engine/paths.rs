//! Passes that end early, and passes that must not end early: the future is dropped, the provider has refused the
//! request, or the token counter is wrong.

use core::error::Error;
use core::future::{Future, poll_fn};
use core::sync::atomic::Ordering;
use core::task::Poll;
use std::sync::Arc;

use epitome::compaction::{
    AutoCompaction, CompactionCx, CompactionOptions, CompactionOutcome, Compactor as _, RunPoints,
};
use epitome::compactors::{Engine, Summarization, Truncation};
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Pass, Trigger, Usage, measure_message};
use epitome::history::{History, HistoryStore, MemoryStore};
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Prompt, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionErrorKind};
use epitome_tests::cases::{self, Census};
use futures::executor::block_on;
use proptest::prelude::*;

use super::support::{Answer, Meanwhile, Scripted, append, check, check_covered, history, said_all, shown};
use super::whole::{Case, any_stages, case, engine, summarizing};
use super::{budget, compact, store, support};

/// Course of a pass.
#[derive(Debug, Clone, Copy)]
enum Path {
    /// The future is dropped after the first number of polls. The summarizer yields the second number of times.
    Dropped(usize, usize),
    /// The provider has refused the request.
    Refused,
}

fn path() -> impl Strategy<Value = Path> {
    prop_oneof![
        (1_usize..10, 3_usize..12).prop_map(|(polls, yields)| Path::Dropped(polls, yields)),
        Just(Path::Refused)
    ]
}

#[test]
fn whatever_becomes_of_a_pass_the_session_is_whole() {
    let minimums = [
        ("dropped", 300),
        ("dropped in a summary", 150),
        ("dropped, and committed", 10),
        ("came to its end", 300),
        ("refused, and fits", 300),
        ("refused, and said by how much", 150),
        ("conflict", 50),
    ];
    let which = prop_oneof![summarizing(), any_stages()];
    let cases = (case(which), prop::collection::vec(path(), 6));
    cases::check("engine, paths", cases, &minimums, |(case, paths), census| is_whole(&case, &paths, census));
}

fn is_whole(case: &Case, paths: &[Path], census: &Census) -> Result<(), TestCaseError> {
    let store = store(case.sqlite);
    let (mut history, mut read) = (history(&store), Vec::new());
    for (round, ((said, answer, meanwhile, percent), path)) in case.rounds.iter().zip(paths).enumerate() {
        append(&mut history, said_all(said, round));
        let before = shown(&history);
        // If the other writer is dropped in the middle of its own summary, the test cannot know the messages that it
        // was shown.
        let (yields, meanwhile) = match (path, meanwhile) {
            (Path::Dropped(_, yields), Meanwhile::Summarize) => (*yields, Meanwhile::Compact),
            (Path::Dropped(_, yields), other) => (*yields, *other),
            (Path::Refused, other) => (0, *other),
        };
        let summarizer = Arc::new(Scripted::new(*answer, meanwhile, &store).yielding(yields));
        let engine = engine(&case.which, &summarizer, case.falls_back);
        match path {
            Path::Dropped(polls, _) => {
                let budget = budget(&history, *percent);
                let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
                let ended = polled(engine.compact(&mut cx), *polls);
                let calls = summarizer.calls.load(Ordering::Relaxed);
                census.count("came to its end", ended.is_some());
                census.count("dropped", ended.is_none());
                census.count("dropped in a summary", ended.is_none() && calls > 0);
                let undisturbed = calls == 0 || meanwhile == Meanwhile::Nothing;
                if ended.is_none() && undisturbed {
                    prop_assert_eq!(&shown(&history), &before, "it shows what it showed before");
                    let now = shown(&support::history(&store));
                    prop_assert!(now == before || now.0 == before.0 + 1, "it is done in one step, or not");
                    census.count("dropped, and committed", now != before);
                }
            }
            Path::Refused => {
                let limit = (history.index().tokens() * percent / 100).max(2);
                is_refused(&mut history, &engine, limit, census, || {
                    let calls = summarizer.calls.load(Ordering::Relaxed);
                    let conflict = summarizer.moved.load(Ordering::Relaxed);
                    (conflict, calls > 0 && !conflict && meanwhile != Meanwhile::Nothing)
                })?;
            }
        }
        block_on(history.reload()).unwrap();
        check(&history, &store)?;
        read.append(&mut summarizer.shown.lock().unwrap());
        if summarizer.calls.load(Ordering::Relaxed) == 0 {
            read.extend(support::covered(&history, &store));
        }
        check_covered(&history, &store, &read)?;
    }
    Ok(())
}

/// Checks a pass after a refusal. A committed compaction fits, except for messages that other writers have added
/// meanwhile. An `Infeasible` error contains numbers, and a failed pass changes nothing.
///
/// `others` returns whether other writers have changed the visible messages, and whether they have added messages.
fn is_refused(
    history: &mut History,
    engine: &Engine,
    limit: u64,
    census: &Census,
    others: impl Fn() -> (bool, bool),
) -> Result<(), TestCaseError> {
    let before = shown(history);
    let tight = Budget::builder().window(limit).reserve(0).trigger(limit).goal(limit / 2).min_reclaim(0);
    let outcome = compact(history, engine, tight.build().unwrap(), Pass::Overflow);
    let (conflict, said) = others();
    census.count("conflict", conflict);
    match outcome {
        Ok(CompactionOutcome::Compacted(_)) => {
            census.count("refused, and fits", !said);
            let tokens = history.index().tokens();
            prop_assert!(said || tokens <= limit, "{tokens} of {limit}");
        }
        Ok(_) => census.count("refused, and nothing to gain", true),
        Err(error) => {
            if error.kind() == SessionErrorKind::Infeasible {
                let why = told(&error);
                prop_assert!(why.contains("tokens") && why.contains(char::is_numeric), "{why}");
                census.count("refused, and said by how much", true);
            }
            prop_assert!(conflict || shown(history) == before, "a pass that failed has changed something");
        }
    }
    Ok(())
}

/// The texts of an error and of all its sources.
fn told(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        told = format!("{told}: {error}");
        source = error.source();
    }
    told
}

/// Output of a future that is polled at most `polls` times, and then dropped.
pub(super) fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let (mut future, mut left) = (Box::pin(future), polls);
    block_on(poll_fn(|cx| {
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }))
}

/// Window of a provider's model and trigger of compactions, in tokens of the provider.
const WINDOW: u64 = 3_000;
const DUE: u64 = 2_000;

/// Each request fits even if the token counter is wrong: the provider counts between half and twice as many tokens.
#[test]
fn a_loop_with_a_wrong_counter_holds_its_budget() {
    let turns = prop::collection::vec((0_usize..4, 1_usize..20), 14..28);
    let minimums = [("compacted", 900), ("counts too little", 200), ("counts too much", 100)];
    let cases = (50_u64..=200, any::<bool>(), turns);
    cases::check("engine, a wrong counter", cases, &minimums, |(percent, summarizes, turns), census| {
        let compactions = block_on(wrongly_counted(percent, summarizes, &turns))?;
        census.count("compacted", compactions > 0);
        census.count("counts too little", percent > 150);
        census.count("counts too much", percent < 75);
        Ok(())
    });
}

async fn wrongly_counted(
    percent: u64,
    summarizes: bool,
    turns: &[(usize, usize)],
) -> Result<usize, TestCaseError> {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let engine = match summarizes {
        true => Engine::new(Summarization::new())
            .with_summarizer(Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store)))
            .with_fallback(Truncation::new()),
        false => Engine::new(Truncation::new()),
    };
    let auto = AutoCompaction::new(engine)
        .with_trigger(Trigger::tokens(DUE))
        .with_points(RunPoints::default().and_before_call())
        .with_options(CompactionOptions::default().with_window(WINDOW));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(&store))).unwrap();
    let settings = RunSettings::new("agent").with_providers(providers).with_compaction(auto);
    let (mut session, mut compactions) = (AgentSession::with_id("session"), 0);
    for (turn, (uses, lines)) in turns.iter().enumerate() {
        let input = vec![Message::user(format!("What of part {turn}? {}", "And why? ".repeat(*lines)))];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        for at in 0..*uses {
            let prompt = run.prompt().await.unwrap();
            let usage = reported(&prompt, percent)?;
            let call = Part::ToolCall(ToolCall::new(format!("c{at}"), "read", "{}"));
            let called = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
            run.record(prompt.handle, called.with_usage(usage)).await.unwrap();
            let result = Message::tool(format!("c{at}"), "a line of what it read\n".repeat(*lines));
            run.answer(vec![result]).unwrap();
        }
        let prompt = run.prompt().await.unwrap();
        let usage = reported(&prompt, percent)?;
        let answer = Message::assistant("So it goes on, and on. ".repeat(*lines));
        run.record(prompt.handle, ModelResponse::new(vec![answer]).with_usage(usage)).await.unwrap();
        let events = run.finish().await.unwrap().events;
        compactions += events.iter().filter(|event| matches!(event, RunEvent::Compacted { .. })).count();
    }
    Ok(compactions)
}

/// Usage that the provider reports for a request. Checks that the request fits.
fn reported(prompt: &Prompt, percent: u64) -> Result<Usage, TestCaseError> {
    let counter = ClassEstimator::new();
    let sizes = prompt.messages.iter().map(|message| measure_message(message, &counter).tokens.as_u64());
    let tokens = sizes.sum::<u64>() * percent / 100;
    prop_assert!(tokens <= WINDOW, "a request of {tokens} tokens");
    Ok(Usage::new(tokens, 50))
}
