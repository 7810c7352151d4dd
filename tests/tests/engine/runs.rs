//! The engine in runs: it compacts before a run, and in the middle of a run.

use core::future::ready;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, RunPoints};
use epitome::compactors::{Engine, PromptedSummarizer, Summarization, Truncation};
use epitome::core::message::Role;
use epitome::core::{ModelKey, Trigger};
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{ClosureProvider, HistoryProvider, Hook, Providers};
use epitome::run::{ModelResponse, Prompt, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use super::prompted::Client;
use super::support::{Answer, Meanwhile, Scripted, history, summaries, text_of};

fn settings(store: &Arc<dyn HistoryStore>, summarizer: &Arc<Scripted>) -> RunSettings {
    settings_of(store, Engine::new(Summarization::new()).with_summarizer(Arc::clone(summarizer) as _))
}

fn settings_of(store: &Arc<dyn HistoryStore>, engine: Engine) -> RunSettings {
    let auto = AutoCompaction::new(engine)
        .with_trigger(Trigger::tokens(3_000))
        .with_points(RunPoints::default().and_before_call())
        .with_options(CompactionOptions::default().with_window(4_000));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::clone(store))).unwrap();
    RunSettings::new("agent").with_providers(providers).with_compaction(auto)
}

/// A run with this number of tool calls. Returns the texts of the last request, and the number of compactions.
async fn talk(settings: &RunSettings, session: &mut AgentSession, uses: usize) -> (Vec<String>, usize) {
    let input = vec![Message::user("What is next?")];
    let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
    for at in 0..uses {
        let prompt = run.prompt().await.unwrap();
        let call = Part::ToolCall(ToolCall::new(format!("c{at}"), "read", "{}"));
        let response = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
        run.record(prompt.handle, response).await.unwrap();
        run.answer(vec![Message::tool(format!("c{at}"), "a line of what it read\n".repeat(60))]).unwrap();
    }
    let prompt = run.prompt().await.unwrap();
    let sent = prompt.messages.iter().map(text_of).collect();
    let answer = Message::assistant("So it goes on, and on.".repeat(12));
    run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
    let events = run.finish().await.unwrap().events;
    (sent, events.iter().filter(|event| matches!(event, RunEvent::Compacted { .. })).count())
}

fn summaries_in(sent: &[String]) -> usize {
    sent.iter().filter(|text| text.starts_with("[Conversation Summary]")).count()
}

/// A run of many calls exceeds its limit if it does not compact before a call, and one event reports this.
#[test]
fn a_run_tells_that_a_request_is_over_its_limit() {
    for (points, is_over) in [(RunPoints::default(), true), (RunPoints::default().and_before_call(), false)] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut settings = settings_of(&store, Engine::new(Truncation::new()));
        let auto = settings.compaction.take().unwrap();
        let settings = settings.with_compaction(auto.with_points(points));
        let mut session = AgentSession::with_id("session");
        let options = RunOptions::default();
        let mut run =
            block_on(Run::begin(&settings, &mut session, vec![Message::user("Go.")], &options)).unwrap();
        let mut sizes = Vec::new();
        for at in 0..14 {
            let prompt = block_on(run.prompt()).unwrap();
            sizes.push(prompt.size.tokens);
            let call = Part::ToolCall(ToolCall::new(format!("c{at}"), "read", "{}"));
            let response = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
            block_on(run.record(prompt.handle, response)).unwrap();
            run.answer(vec![Message::tool(format!("c{at}"), "a line of what it read\n".repeat(60))]).unwrap();
        }
        let events = block_on(run.finish()).unwrap().events;
        let told: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::OverLimit { size, limit } => Some((*size, *limit)),
                _ => None,
            })
            .collect();
        // The default reserve is an eighth of the window.
        let first = sizes.iter().find(|size| **size > 3_500).map(|size| (*size, 3_500));
        assert_eq!((told, first.is_some()), (Vec::from_iter(first), is_over), "{sizes:?}");
    }
}

/// The latest turns are protected: a goal below their size is missed.
#[test]
fn a_run_tells_that_a_goal_is_missed() {
    for (goal, is_missed) in [(2_600, false), (1_500, true)] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut settings = settings_of(&store, Engine::new(Truncation::new()));
        let options = CompactionOptions::default().with_window(4_000).with_goal(goal);
        let auto = settings.compaction.take().unwrap();
        let settings = settings.with_compaction(auto.with_options(options));
        let mut session = AgentSession::with_id("session");
        assert_eq!(block_on(talk(&settings, &mut session, 5)).1, 0);
        let input = vec![Message::user("word ".repeat(1_000))];
        let mut run = block_on(Run::begin(&settings, &mut session, input, &RunOptions::default())).unwrap();
        let handle = block_on(run.prompt()).unwrap().handle;
        block_on(run.record(handle, ModelResponse::new(vec![Message::assistant("Done.")]))).unwrap();
        let events = block_on(run.finish()).unwrap().events;
        let missed: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::Compacted { result, .. } => {
                    let own = result.goal.unwrap();
                    assert!(
                        (goal - 1_100..goal - 900).contains(&own),
                        "the request has 1,000 tokens beside the history"
                    );
                    Some(result.is_goal_missed())
                }
                _ => None,
            })
            .collect();
        assert_eq!(missed, [is_missed], "{events:?}");
    }
}

/// Each turn adds some 100 tokens to 6,000: less than a twentieth, and less than 2 % of the window.
#[test]
fn short_turns_are_compacted_where_the_least_amount_is_none() {
    for (min_reclaim, expected) in [(Some(0), 20..100), (None, 1..4), (Some(500), 5..12)] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let mut settings = settings_of(&store, Engine::new(Truncation::new()));
        let mut options = CompactionOptions::default().with_window(100_000).with_goal(6_000);
        if let Some(least) = min_reclaim {
            options = options.with_min_reclaim(least);
        }
        let auto = settings.compaction.take().unwrap();
        let settings = settings.with_compaction(auto.with_trigger(Trigger::always()).with_options(options));
        let mut session = AgentSession::with_id("session");
        let compactions: usize = (0..110).map(|_| block_on(talk(&settings, &mut session, 0)).1).sum();
        assert!(expected.contains(&compactions), "{min_reclaim:?}: {compactions}");
    }
}

#[test]
fn a_summary_is_written_once_for_a_crossing_and_stays() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let settings = settings(&store, &summarizer);
    let mut session = AgentSession::with_id("session");
    let (mut compactions, mut in_a_run) = (0, 0);
    for turn in 0..60 {
        // In every fifth run the tool calls fill the window before the run ends.
        let uses = if turn % 5 == 4 { 9 } else { 0 };
        let (sent, times) = block_on(talk(&settings, &mut session, uses));
        compactions += times;
        in_a_run += usize::from(uses > 0 && times > 0);
        // One summary of the messages before the user's request, and one of the steps since: the request stays between
        // them.
        let shown = summaries_in(&sent);
        // The next compaction merges both summaries.
        let most = if uses == 0 && times > 0 { 1 } else { 2 };
        assert!((usize::from(compactions > 0)..=most).contains(&shown), "{shown} in turn {turn}");
        assert!(!sent.windows(2).any(|two| summaries_in(two) == 2));
        assert_eq!(summaries(&history(&store)), shown, "as it is stored");
        assert_eq!(summarizer.calls.load(Ordering::Relaxed), compactions);
    }
    assert!(in_a_run >= 5, "{in_a_run} of {compactions}");
    // Each summary is based on an earlier one, except the first, and except the summaries of a run's own messages.
    let previous = summarizer.previous.lock().unwrap();
    assert!(previous.len() >= 5, "{} of {compactions}", previous.len());
    assert!(previous.iter().all(|prose| prose == "It went well."));
    let ledger = session.ledger_for(
        ModelKey::new("", &**settings.counter()),
        epitome::core::Budget::builder().window(4_000).build().unwrap(),
    );
    let spent = ledger.compaction_spend();
    assert_eq!(spent.reports, u64::try_from(compactions).unwrap());
    assert_eq!(spent.input, 1_000 * spent.reports);
    assert_eq!(ledger.spend().reports, 0, "no answer came with a report");
}

#[test]
fn what_brings_no_summary_was_paid_all_the_same() {
    for answer in [Answer::Fails, Answer::Panics, Answer::Hangs, Answer::TooLong] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let summarizer = Arc::new(Scripted::new(answer, Meanwhile::Nothing, &store));
        let engine = Engine::new(Summarization::new())
            .with_summarizer(Arc::clone(&summarizer) as _)
            .with_deadline(Duration::from_millis(20))
            .with_fallback(Truncation::new());
        let settings = settings_of(&store, engine);
        let mut session = AgentSession::with_id("session");
        while summarizer.calls.load(Ordering::Relaxed) < 2 {
            block_on(talk(&settings, &mut session, 0));
        }
        assert_eq!(session.ledger().unwrap().compaction_spend().reports, 2, "{answer:?}");
    }
}

#[test]
fn what_is_looked_up_for_each_run_is_not_summarized_in_each() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let mut settings = settings(&store, &summarizer);
    let look_up = ClosureProvider::before_run(|hook: Hook<'_>| {
        let text = "a page of a handbook, which comes with each question, ".repeat(250);
        hook.context.extend_messages("handbook", vec![Message::user(text)]);
        ready(Ok(()))
    });
    settings.providers.push_closure(look_up).unwrap();
    let mut session = AgentSession::with_id("session");
    for _ in 0..12 {
        block_on(talk(&settings, &mut session, 0));
    }
    let calls = summarizer.calls.load(Ordering::Relaxed);
    assert!((1..=6).contains(&calls), "{calls} calls");
    assert!(!summarizer.wrong.load(Ordering::Relaxed), "the handbook itself was summarized");
}

/// A run in which the model calls a tool. The answer of the tool comes later, after the conversation has gone on.
async fn ask_and_leave(settings: &RunSettings, session: &mut AgentSession) {
    let input = vec![Message::user("Ask the colleague.")];
    let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
    let prompt = run.prompt().await.unwrap();
    let call = Part::ToolCall(ToolCall::new("colleague", "ask", r#"{"about":"PROJ-4711"}"#));
    let response = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
    run.record(prompt.handle, response).await.unwrap();
    run.finish().await.unwrap();
}

/// The model calls a tool, so that the run has another request. The late answer comes together with the tool result.
async fn answered_late(run: &mut Run<'_>, prompt: Prompt, answer: Message) -> Prompt {
    let call = Part::ToolCall(ToolCall::new("c", "read", "{}"));
    let response = ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])]);
    run.record(prompt.handle, response).await.unwrap();
    run.answer(vec![answer, Message::tool("c", "a line of what it read\n".repeat(120))]).unwrap();
    run.prompt().await.unwrap()
}

#[test]
fn an_answer_to_what_is_summarized_is_told_to_the_next_summary() {
    for (point, stored) in [(RunPoints::default(), true), (RunPoints::NONE.and_before_call(), false)] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
        let mut settings = settings(&store, &summarizer);
        let auto = settings.compaction.take().unwrap().with_points(point);
        settings.compaction = Some(auto);
        let mut session = AgentSession::with_id("session");
        block_on(talk(&settings, &mut session, 0));
        block_on(ask_and_leave(&settings, &mut session));
        let calls = || summarizer.calls.load(Ordering::Relaxed);
        while calls() < 1 {
            block_on(talk(&settings, &mut session, 0));
        }
        let answer = Message::tool("colleague", "It was closed in May.");
        let told = || summarizer.shown.lock().unwrap().iter().filter(|shown| **shown == answer).count();
        // The answer comes in a run that stores it, or in the run that compacts before it stores any message.
        let mut late = Some(answer.clone());
        while calls() < 2 {
            let input = vec![Message::user("What is next?")];
            let mut run =
                block_on(Run::begin(&settings, &mut session, input, &RunOptions::default())).unwrap();
            let mut prompt = block_on(run.prompt()).unwrap();
            let comes = calls() < 2 && (stored || run.session().context_size().unwrap().tokens > 2_600);
            if let Some(answer) = late.take_if(|_| comes) {
                prompt = block_on(answered_late(&mut run, prompt, answer));
            }
            assert!(!prompt.messages.contains(&answer), "it is never sent");
            let said = ModelResponse::new(vec![Message::assistant("So it goes on, and on.".repeat(12))]);
            block_on(run.record(prompt.handle, said)).unwrap();
            block_on(run.finish()).unwrap();
        }
        assert!(late.is_none());
        assert_eq!(told(), 1, "{point:?}");
        while calls() < 6 {
            block_on(talk(&settings, &mut session, 0));
        }
        // An answer that was not stored when its summary was made is given to the next summarizer once more.
        let again = usize::from(!stored);
        assert_eq!(told(), 1 + again, "{point:?}");
    }
}

/// An engine that summarizes with the agent's client asks for the agent's model.
#[test]
fn a_clients_own_engine_asks_for_the_agents_model() {
    let client = Client::new(&["Goal: to read on."]);
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let settings = settings_of(&store, Engine::summarizing(client.clone()));
    let mut session = AgentSession::with_id("s");
    let (sent, compacted) = block_on(async {
        let named = settings.clone().with_model("claude-sonnet-4-5");
        for _ in 0..4 {
            drop(talk(&named, &mut session, 2).await);
        }
        talk(&named, &mut session, 12).await
    });
    assert!(compacted > 0 && summaries_in(&sent) > 0, "{compacted}: {sent:#?}");
    let asked = client.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(model, ..)| model == "claude-sonnet-4-5"), "{asked:?}");
    // A summarizer with a model of its own asks for that model.
    let own = PromptedSummarizer::new(client.clone()).with_model("small");
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::new(own));
    let settings = settings_of(&store, engine).with_model("claude-sonnet-4-5");
    drop(block_on(talk(&settings, &mut session, 12)));
    assert_eq!(client.asked().last().unwrap().0, "small");
}
