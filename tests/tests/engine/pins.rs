//! Messages that a program pins stay visible, with the rest of their groups, on every path.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, CompactionOutcome, RunPoints};
use epitome::compactors::{Engine, Summarization, Truncation};
use epitome::core::attribution::{Authority, SourceKind};
use epitome::core::message::Role;
use epitome::core::{Budget, Pass, Seq, Trigger};
use epitome::history::{History, HistoryStore, MemoryStore, Pins};
use epitome::message::{Attribution, Message, Part, ToolCall};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings, compact as compact_stored};
use epitome::session::{AgentSession, SessionErrorKind};
use futures::executor::block_on;

use super::support::{Answer, Meanwhile, Scripted, append, check, history, text_of};
use super::{budget, compact, store, talk};

/// Two calls at once in an early turn, and their results; a page of a handbook; many turns.
fn told(store: &Arc<dyn HistoryStore>) -> History {
    let mut history = history(store);
    talk(&mut history, 5);
    let call = |id: &str| Part::ToolCall(ToolCall::new(id.to_owned(), "read", "{}"));
    let page = Attribution::new("handbook", SourceKind::Context, Authority::Retrieved);
    append(
        &mut history,
        vec![
            Message::user("Look into both."),
            Message::new(Role::Assistant, vec![call("one"), call("two")]),
            Message::tool("one", "the first"),
            Message::tool("two", "the second"),
            Message::assistant("A remark on both."),
            Message::user("Pages of a handbook.").with_attribution(page),
        ],
    );
    talk(&mut history, 25);
    history
}

/// The sequence numbers of the messages that [`told`] appends in the middle.
const CALLS: u64 = 11;
const SECOND_RESULT: u64 = 13;
const REMARK: u64 = 14;
const PAGE: u64 = 15;

fn keys(history: &History) -> Vec<u64> {
    history.live().iter().filter(|live| live.covers.is_empty()).map(|live| live.key.0).collect()
}

fn is_remark(message: &Message) -> bool {
    text_of(message) == "A remark on both."
}

#[test]
fn by_number_by_source_and_by_predicate() {
    let all = Pins::default().with_message(Seq(SECOND_RESULT)).with_source("handbook").with_where(is_remark);
    for (pins, stays) in [
        (Pins::default(), vec![]),
        (Pins::default().with_message(Seq(SECOND_RESULT)), vec![CALLS, CALLS + 1, SECOND_RESULT]),
        (Pins::default().with_source("handbook"), vec![PAGE]),
        (Pins::default().with_where(is_remark), vec![REMARK]),
        (all, vec![CALLS, CALLS + 1, SECOND_RESULT, REMARK, PAGE]),
    ] {
        for summarizes in [false, true] {
            let store = store(false);
            let mut history = told(&store);
            history.set_pins(pins.clone()).unwrap();
            let engine = match summarizes {
                false => Engine::new(Truncation::new()),
                true => Engine::new(Summarization::new())
                    .with_summarizer(Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store)))
                    .with_fallback(Truncation::new()),
            };
            // A pass for each stretch between the pins.
            for _ in 0..4 {
                let budget = budget(&history, 10);
                compact(&mut history, &engine, budget, Pass::Manual).unwrap();
            }
            let middle: Vec<_> =
                keys(&history).into_iter().filter(|key| (CALLS..=PAGE).contains(key)).collect();
            assert_eq!(middle, stays, "{pins:?}, {summarizes}");
            check(&super::support::history(&store), &store).unwrap();
        }
    }
}

#[test]
fn a_pin_outlives_a_conflict() {
    let store = store(true);
    let mut history = history(&store);
    talk(&mut history, 5);
    let call = Part::ToolCall(ToolCall::new("c3", "ask", "{}"));
    append(&mut history, vec![Message::user("Ask."), Message::new(Role::Assistant, vec![call])]);
    append(&mut history, vec![Message::user("Well?"), Message::assistant("A remark on both.")]);
    talk(&mut history, 24);
    history.set_pins(Pins::default().with_message(Seq(5))).unwrap();
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::LateAnswer, &store));
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&summarizer) as _);
    let budget = budget(&history, 40);
    let outcome = compact(&mut history, &engine, budget, Pass::Manual).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
    assert!(summarizer.moved.load(Ordering::Relaxed));
    assert_eq!(summarizer.calls.load(Ordering::Relaxed), 2, "what is summarized was changed meanwhile");
    assert!(keys(&history).contains(&5), "{:?}", keys(&history));
}

#[test]
fn pins_that_alone_do_not_fit_are_an_error() {
    let store = store(false);
    let mut history = told(&store);
    history.set_pins(Pins::default().with_where(|message| message.role() == Role::Assistant)).unwrap();
    let limit = history.index().tokens() / 4;
    let tight = Budget::builder().window(limit).reserve(0).trigger(limit).without_goal().build().unwrap();
    let before = keys(&history);
    let error = compact(&mut history, &Engine::new(Truncation::new()), tight, Pass::Overflow).unwrap_err();
    assert_eq!((error.kind(), keys(&history)), (SessionErrorKind::Infeasible, before));
}

fn settings(store: &Arc<dyn HistoryStore>, pins: Pins) -> RunSettings {
    let auto = AutoCompaction::new(Engine::new(Truncation::new()))
        .with_trigger(Trigger::tokens(2_000))
        .with_points(RunPoints::default().and_before_call())
        .with_options(CompactionOptions::default().with_window(4_000).with_pins(pins));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
    RunSettings::new("agent").with_instructions("Be brief.").with_providers(providers).with_compaction(auto)
}

/// A run with this number of tool calls. Returns the texts of the last request, and whether the run has compacted.
async fn run(settings: &RunSettings, session: &mut AgentSession, uses: usize) -> (Vec<String>, bool) {
    let input = vec![Message::user("Read it all.")];
    let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
    for at in 0..uses {
        let prompt = run.prompt().await.unwrap();
        let call = Part::ToolCall(ToolCall::new(format!("c{at}"), "read", "{}"));
        let response = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
        run.record(prompt.handle, response).await.unwrap();
        run.answer(vec![Message::tool(format!("c{at}"), format!("{at}: {}", "read ".repeat(200)))]).unwrap();
    }
    let prompt = run.prompt().await.unwrap();
    let sent = prompt.messages.iter().map(said).collect();
    run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Done.")])).await.unwrap();
    let events = run.finish().await.unwrap().events;
    (sent, events.iter().any(|event| matches!(event, RunEvent::Compacted { .. })))
}

fn said(message: &Message) -> String {
    let text = |part: &Part| if let Part::Text(text) = part { text.to_string() } else { String::new() };
    let results = message.parts().iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.parts.iter().map(text).collect::<String>()),
        _ => None,
    });
    results.collect::<String>() + &text_of(message)
}

#[test]
fn in_a_run_too_and_in_what_it_stores() {
    for pinned in [false, true] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        // A result of the first run is pinned by its number, which another position has in the second run. A result of
        // the second run is pinned by its text.
        let second = |message: &Message| said(message).starts_with("2: read") && message.role() == Role::Tool;
        let pins = Pins::default().with_message(Seq(4)).with_where(second);
        let settings = settings(&store, if pinned { pins } else { Pins::default() });
        let mut session = AgentSession::with_id("session");
        assert!(!block_on(run(&settings, &mut session, 2)).1);
        let (sent, compacted) = block_on(run(&settings, &mut session, 12));
        let seen = |begin: &str| sent.iter().any(|text| text.starts_with(begin));
        assert!(compacted);
        assert_eq!(seen("2: read"), pinned, "said in the run itself");
        assert_eq!(seen("1: read"), pinned, "stored, by its number");
        assert_eq!(keys(&history(&store)).contains(&4), pinned);
        check(&history(&store), &store).unwrap();
        let options = CompactionOptions::default().with_pins(Pins::default().with_message(Seq(0)));
        block_on(compact_stored(&settings, &mut session, &Engine::new(Truncation::new()), options)).unwrap();
        assert!(keys(&history(&store)).contains(&0));
    }
}
