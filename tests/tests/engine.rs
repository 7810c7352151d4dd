//! The engine on stored sessions, with summarizers that fail in every way, and with changes of the session while a
//! summary is written. No message is lost, the projection is whole, and no summary is paid for twice.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test support")]

mod conflicts;
mod digest;
mod early;
mod early_runs;
mod ledger;
mod messages;
mod outage;
mod paths;
mod payback;
mod payback_runs;
mod pins;
mod prompted;
mod quotes;
mod runs;
mod support;
mod undone;
mod undone_runs;
mod whole;

use core::sync::atomic::Ordering;
use std::sync::Arc;

use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor as _, UnchangedReason};
use epitome::compactors::{Engine, Summarization, Truncation};
use epitome::core::message::Role;
use epitome::core::{
    Budget, ClassEstimator, Draft, Pass, Strategy as Rule, TokenCounter as _, Tokens, Unchanged,
};
use epitome::history::{History, HistoryStore, MemoryStore, SqliteStore};
use epitome::message::{Message, Part, ToolCall};
use epitome::session::{SessionError, SessionErrorKind};
use futures::executor::block_on;

use support::{Answer, Meanwhile, Scripted, append, check, history, shown};

/// Runs one compaction with the engine.
fn compact(
    history: &mut History,
    engine: &Engine,
    budget: Budget,
    pass: Pass,
) -> Result<CompactionOutcome, SessionError> {
    block_on(engine.compact(&mut CompactionCx::new(history, budget, pass)))
}

fn budget(history: &History, percent: u64) -> Budget {
    let goal = history.index().tokens() * percent / 100;
    Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal).min_reclaim(0).build().unwrap()
}

fn store(sqlite: bool) -> Arc<dyn HistoryStore> {
    match sqlite {
        true => Arc::new(SqliteStore::open_in_memory().unwrap()),
        false => Arc::new(MemoryStore::new()),
    }
}

fn talk(history: &mut History, turns: usize) {
    for turn in 0..turns {
        let question = Message::user(format!("Question {turn}: what of src/part{turn}.rs?"));
        let answer = Message::assistant(format!("Answer {turn}: {}", "it is as it should be, ".repeat(40)));
        append(history, vec![question, answer]);
    }
}

#[test]
fn a_proactive_pass_over_a_small_gain_is_not_made() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&summarizer) as _);
    let tokens = history.index().tokens();
    let budget = Budget::builder().window(1_000_000).trigger(500_000).goal(tokens - 10).min_reclaim(0);
    let outcome = compact(&mut history, &engine, budget.build().unwrap(), Pass::Proactive).unwrap();
    let CompactionOutcome::Unchanged(reason) = outcome else { panic!("{outcome:?}") };
    assert_eq!(reason.as_str(), "too_little");
    assert!(matches!(reason, UnchangedReason::Plan(Unchanged::TooLittle { freed }) if freed * 20 < tokens));
    assert_eq!(summarizer.calls.load(Ordering::Relaxed), 0);
}

#[test]
fn what_a_provider_has_refused_fits_or_there_is_an_error_with_the_numbers() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let tokens = history.index().tokens();
    let before = shown(&history);
    // The newest steps alone are larger than this window.
    let small = Budget::builder().window(tokens / 40).reserve(0).trigger(tokens / 40).without_goal();
    let engine = Engine::new(Summarization::new().summary_tokens_max(Tokens(200)))
        .with_summarizer(Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store)));
    let error = compact(&mut history, &engine, small.build().unwrap(), Pass::Overflow).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Infeasible);
    let said = error.to_string();
    assert!(said.contains("tokens"), "{said}");
    assert_eq!(shown(&history), before);

    let fits = Budget::builder().window(tokens / 12).reserve(0).trigger(tokens / 12).without_goal();
    let engine = engine_with_truncation(&store);
    let outcome = compact(&mut history, &engine, fits.build().unwrap(), Pass::Overflow).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
    assert!(history.index().tokens() <= tokens / 12);
}

fn engine_with_truncation(store: &Arc<dyn HistoryStore>) -> Engine {
    Engine::new(Summarization::new())
        .with_summarizer(Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, store)))
        .with_fallback(Truncation::new())
}

#[test]
fn identifiers_outlive_many_summaries_that_do_not_name_them() {
    let store = store(false);
    let mut history = history(&store);
    append(&mut history, vec![Message::user("Begin."), Message::assistant("Yes.")]);
    append(&mut history, vec![Message::user("The ticket is PROJ-4711, the file src/lib.rs.")]);
    let engine = Engine::new(Summarization::new().preserve_recent(1))
        .with_summarizer(Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store)));
    for _ in 0..5 {
        talk(&mut history, 12);
        let budget = budget(&history, 30);
        let outcome = compact(&mut history, &engine, budget, Pass::Manual).unwrap();
        assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
        let texts = support::summary_texts(&history);
        let [summary] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(summary.starts_with("[Conversation Summary]\n"));
        assert!(summary.contains("\n[Identifiers]\n"), "{summary}");
        assert!(summary.contains(" src/lib.rs") && summary.contains("\nids: PROJ-4711"), "{summary}");
        assert_eq!(summary.matches("[Conversation Summary]").count(), 1);
        assert!(summary.contains("The last request in this part of the conversation was answered."));
    }
}

/// A call in turn `at` of thirty is answered while a summary is written. Returns the number of summarizer calls, and
/// whether the answer is visible.
fn answered_late(at: usize) -> (usize, bool) {
    let store = store(true);
    let mut history = history(&store);
    talk(&mut history, at);
    let call = Part::ToolCall(ToolCall::new("c3", "ask", "{}"));
    append(&mut history, vec![Message::user("Ask."), Message::new(Role::Assistant, vec![call])]);
    talk(&mut history, 29 - at);
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::LateAnswer, &store));
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&summarizer) as _);
    // A fifth of the history must be summarized, and more after the answer.
    let budget = budget(&history, 90);
    let outcome = compact(&mut history, &engine, budget, Pass::Manual).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
    assert!(summarizer.moved.load(Ordering::Relaxed));
    check(&history, &store).unwrap();
    let seen = history.projection().any(|message| message.role() == Role::Tool);
    (summarizer.calls.load(Ordering::Relaxed), seen)
}

#[test]
fn only_an_answer_to_what_is_summarized_has_it_summarized_again() {
    assert_eq!(answered_late(28), (1, true));
    assert_eq!(answered_late(5), (2, false));
}

#[test]
fn a_summary_does_not_lose_half_of_itself_with_each_pass() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 60);
    let engine = Engine::new(Summarization::new().summary_tokens_max(Tokens(1_000)))
        .with_summarizer(Arc::new(Scripted::new(Answer::Full, Meanwhile::Nothing, &store)));
    let without_goal =
        || Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    for _ in 0..6 {
        talk(&mut history, 4);
        compact(&mut history, &engine, without_goal(), Pass::Manual).unwrap();
        let sizes: Vec<_> = history.live().iter().filter(|live| !live.covers.is_empty()).collect();
        let [summary] = sizes.as_slice() else { panic!("one summary") };
        assert!(summary.entry.count.tokens >= Tokens(950), "{:?}", summary.entry.count);
    }
}

#[test]
fn what_was_not_answered_is_said_so() {
    let store = store(false);
    let mut history = history(&store);
    let engine = || {
        let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
        Engine::new(Summarization::new().preserve_recent(1)).with_summarizer(summarizer)
    };
    let long = |at: usize| "and what was found there, ".repeat(40 + at);
    append(&mut history, vec![Message::user("Begin."), Message::assistant("Yes.")]);
    // A question without an answer: the model looks into it, and its last message is a call.
    let call = Part::ToolCall(ToolCall::new("c1", "read", "{}"));
    append(
        &mut history,
        vec![
            Message::user("Why does it fail?"),
            Message::assistant(format!("Let me look: {}", long(0))),
            Message::new(Role::Assistant, vec![call]),
            Message::tool("c1", long(1)),
        ],
    );
    // The answer to another question is no answer to this one.
    let rest = ["Gladly.", "Thus.", "And so."].map(Message::assistant);
    append(&mut history, [Message::user("Something else.")].into_iter().chain(rest).collect());
    let without_goal = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    compact(&mut history, &engine(), without_goal, Pass::Manual).unwrap();
    let [summary] = support::summary_texts(&history).try_into().unwrap();
    assert!(summary.contains("was not answered in it."), "{summary}");
}

#[test]
fn what_no_longer_fits_after_a_conflict_is_planned_anew() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 28);
    let call = Part::ToolCall(ToolCall::new("c3", "ask", "{}"));
    append(&mut history, vec![Message::user("Ask."), Message::new(Role::Assistant, vec![call])]);
    talk(&mut history, 1);
    let limit = history.index().tokens() * 7 / 10;
    let budget = Budget::builder().window(limit).reserve(0).trigger(limit).goal(limit - 50).min_reclaim(0);
    let summarizer = Arc::new(Scripted::new(Answer::Full, Meanwhile::LateAnswer, &store));
    let engine = Engine::new(Summarization::new())
        .with_summarizer(Arc::clone(&summarizer) as _)
        .with_fallback(Truncation::new());
    let outcome = compact(&mut history, &engine, budget.build().unwrap(), Pass::Overflow).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
    assert!(summarizer.moved.load(Ordering::Relaxed));
    assert!(history.index().tokens() <= limit, "{} of {limit}", history.index().tokens());
}

/// Drops huge groups, and replaces two later groups by a summary.
#[derive(Debug)]
struct Huge;

impl Rule for Huge {
    fn name(&self) -> &'static str {
        "huge"
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let huge = draft.index().groups().filter(|group| group.tokens() > Tokens(300));
        for group in huge {
            let _ = draft.drop_group(group.leader());
        }
        let pairs = 6..draft.index().groups().count() as u32;
        let _ = pairs.into_iter().find(|at| draft.replace(*at, at + 1, Tokens(60)).is_ok());
    }
}

#[test]
fn the_summary_of_another_is_not_taken_for_what_it_stands_for() {
    let store = store(false);
    let mut history = history(&store);
    append(
        &mut history,
        vec![
            Message::user("Begin."),
            Message::assistant("far too long ".repeat(200)),
            Message::user("And?"),
            Message::assistant("So be it."),
        ],
    );
    talk(&mut history, 10);
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Summarize, &store));
    let engine = Engine::new(Huge).with_summarizer(Arc::clone(&summarizer) as _);
    let budget = Budget::builder().window(1_000_000).trigger(500_000).without_goal().build().unwrap();
    compact(&mut history, &engine, budget, Pass::Manual).unwrap();
    assert!(summarizer.moved.load(Ordering::Relaxed));
    let first = history.live().iter().find(|live| !live.covers.is_empty()).unwrap();
    assert_eq!((first.covers[0].first.0, first.covers[0].last.0), (1, 3), "the other's summary is gone");
}
