//! Compactions that the model requests, and the notes about used tokens that the model gets.

use core::future::ready;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::{Agent, RunUpdate, ToolOutput};
use epitome::compaction::{AutoCompaction, CompactTool, CompactionOptions, RunPoints};
use epitome::compactors::{Engine, Summarization, Summarizer, SummaryError, SummaryRequest, Truncation};
use epitome::core::Trigger;
use epitome::core::message::Role;
use epitome::history::MemoryStore;
use epitome::message::{Message, Part, ToolCall};
use epitome::provider::{ClosureProvider, Hook};
use epitome::run::{ModelResponse, RecallTool, Run, RunEvent, RunOptions};
use epitome::session::AgentSession;
use futures::StreamExt;
use futures::executor::block_on;

use crate::sessions::hooks::Steering;
use crate::sessions::runs::settings;
use crate::sessions::strict::compactions;
use crate::sessions::support::{Failing, Scripted, log, shown, texts};

pub(crate) const LIMIT: u64 = 4_000;

pub(crate) fn auto() -> AutoCompaction {
    AutoCompaction::new(Engine::new(Truncation::new()))
        .with_trigger(Trigger::tokens(LIMIT))
        .with_points(RunPoints::default().and_before_call())
}

fn names(message: &Message, name: &str) -> bool {
    let is = |part: &Part| matches!(part, Part::ToolCall(call) if call.name.as_str() == name);
    message.parts().iter().any(is)
}

/// A model that makes `rounds` calls to read files or to compact. It requests a compaction when a note says that at
/// least `tenths` tenths of the limit are used, and goes on after any result of the compaction.
fn reader(rounds: usize, tenths: Option<u64>) -> Scripted {
    Scripted::new(move |asked, messages| {
        let told = texts(messages).last().and_then(|text| Some(text.rsplit_once("[context: ")?.1.to_owned()));
        let used = told.and_then(|told| told.split(' ').next()?.parse::<u64>().ok());
        let is_tight = used.zip(tenths).is_some_and(|(used, tenths)| used * 10 >= tenths * LIMIT);
        let was_compacted = texts(messages).last().is_some_and(|text| text.contains("ompacted"));
        let arguments = r#"{"focus": "src/lib.rs"}"#;
        let call = match is_tight && !was_compacted {
            true => ToolCall::new(format!("k{asked}"), CompactTool::NAME, arguments),
            false => ToolCall::new(format!("c{asked}"), "read", "{}"),
        };
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > rounds { Message::assistant("Done.") } else { call }]))
    })
}

fn agent(store: &Arc<MemoryStore>, client: &Scripted, auto: AutoCompaction) -> Agent {
    Agent::with_settings(settings(store).with_compaction(auto), client.clone()).with_tool_runner(|call| {
        Box::pin(async move {
            assert_eq!(call.name.as_str(), "read", "the agent's own tool is not the caller's");
            ToolOutput::new("a line of the file\n".repeat(40))
        })
    })
}

/// Checks that each request begins with the whole request before it, unless a compaction came between.
fn prefixes_are_stable(client: &Scripted, compactions: usize) {
    let sent = client.sent.lock().unwrap();
    let is_changed = |two: &&[Vec<String>]| !two[1].starts_with(&two[0]);
    assert_eq!(sent.windows(2).filter(is_changed).count(), compactions);
}

#[test]
fn a_model_compacts_when_it_is_told_that_the_room_is_short() {
    let store = Arc::new(MemoryStore::new());
    let client = reader(38, Some(8));
    let agent = agent(&store, &client, auto().with_tool());
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Read them all.", &RunOptions::default())).unwrap();
    let said = texts(&outcome.response.messages);
    let asked = outcome.response.messages.iter().filter(|message| names(message, CompactTool::NAME)).count();
    let made = said.iter().filter(|text| text.contains(": Compacted from ")).count();
    assert!(asked >= 2 && made == asked, "{asked} calls, {made} compactions: {said:?}");
    assert_eq!(compactions(&outcome.events), made, "none was due");
    prefixes_are_stable(&client, made);
    // The log has the messages of the run, and the visible messages begin with the last request.
    assert_eq!(texts(&log(&*store, "s"))[1..], said);
    assert_eq!(Vec::from(&client.last()[..]), shown(&*store, "s")[..client.last().len()]);
    let told: Vec<&String> = said.iter().filter(|text| text.contains("[context: ")).collect();
    assert!(told.len() >= 2 * made && told.len() < said.len() / 3, "{told:?}");
    assert!(told.iter().all(|text| text.contains(" of 4000 tokens are used; ")), "{told:?}");
}

#[test]
fn a_model_is_told_of_each_tenth_once_and_of_none_without_the_tool() {
    for (with_tool, expected) in [(true, 1..6), (false, 0..1)] {
        let (store, client) = (Arc::new(MemoryStore::new()), reader(14, None));
        let auto = if with_tool { auto().with_tool() } else { auto() };
        let agent = agent(&store, &client, auto.with_trigger(Trigger::tokens(LIMIT)));
        let mut session = agent.create_session(Some("s"), None);
        for _ in 0..3 {
            let options = RunOptions::default();
            block_on(agent.run(&mut session, "Read.", &options)).unwrap();
        }
        let told = texts(&log(&*store, "s")).iter().filter(|text| text.contains("[context: ")).count();
        assert!(expected.contains(&told), "{with_tool}: {told}");
    }
}

/// A model requests a compaction after each call of another tool. If the last compaction is recent, the result tells it
/// to go on, and the history is not compacted to nothing.
#[test]
fn a_model_that_compacts_again_and_again_is_told_to_wait() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        let call = match asked % 2 {
            0 => ToolCall::new(format!("k{asked}"), CompactTool::NAME, "no JSON"),
            _ => ToolCall::new(format!("c{asked}"), "read", "{}"),
        };
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > 30 { Message::assistant("Done.") } else { call }]))
    });
    let agent = agent(&store, &client, auto().with_tool().with_spacing(10));
    let mut session = agent.create_session(Some("s"), None);
    let options = RunOptions::default();
    let mut stream = agent.run_stream(&mut session, "Read.", &options);
    let heard = block_on(async {
        let mut heard = Vec::new();
        while let Some(update) = stream.next().await {
            if let RunUpdate::ToolResult(result) = update.unwrap() {
                heard.push(result);
            }
        }
        heard
    });
    let outcome = block_on(stream.finish()).unwrap();
    assert_eq!(heard.len(), 30, "its own results are heard too");
    assert!((2..=4).contains(&compactions(&outcome.events)), "{:?}", outcome.events);
    let waits = texts(&heard).iter().filter(|text| text.contains("a moment ago")).count();
    assert!(waits >= 8, "{waits}");
}

#[test]
fn a_tool_of_the_same_name_stays_the_callers() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        let call = ToolCall::new("k1", CompactTool::NAME, "{}");
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > 1 { Message::assistant("Done.") } else { call }]))
    });
    let mut settings = settings(&store).with_compaction(auto().with_tool());
    let mut own = CompactTool::definition();
    own.metadata.clear();
    settings.tools.push(own);
    let agent = Agent::with_settings(settings, client)
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("the caller's") }));
    let mut session = agent.create_session(Some("s"), None);
    block_on(agent.run(&mut session, "Go.", &RunOptions::default())).unwrap();
    assert_eq!(texts(&log(&*store, "s"))[2], "tool: result k1: the caller's");
}

/// Without a runner of the caller's the agent still answers its own tool.
#[test]
fn the_tool_needs_no_runner() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        let call = ToolCall::new("k1", CompactTool::NAME, "{}");
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > 1 { Message::assistant("Done.") } else { call }]))
    });
    let agent = Agent::with_settings(settings(&store).with_compaction(auto().with_tool()), client);
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Go.", &RunOptions::default())).unwrap();
    let said = texts(&outcome.response.messages);
    assert_eq!(said[1], "tool: result k1: Nothing was compacted: nothing to drop. Go on with the work.");
    assert_eq!(said[2], "assistant: Done.");
}

/// If nothing was compacted, the result of the tool contains the reason word for word.
#[test]
fn the_tool_tells_why_nothing_was_compacted() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        let call = ToolCall::new("k1", CompactTool::NAME, "{}");
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > 1 { Message::assistant("Done.") } else { call }]))
    });
    let hook = Arc::new(Steering::vetoing());
    let options = CompactionOptions::default().with_hook(hook);
    let agent = agent(&store, &client, auto().with_options(options).with_tool());
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Go.", &RunOptions::default())).unwrap();
    let told = &texts(&outcome.response.messages)[1];
    assert!(told.contains("Nothing was compacted: in the middle of a commit. Go on"), "{told}");
}

/// The note contains the smallest of several limits. If a provider has added the tool, the run adds no second one.
#[test]
fn the_room_is_that_of_the_smallest_limit_and_no_name_stands_twice() {
    let (store, client) = (Arc::new(MemoryStore::new()), reader(14, None));
    const ALL: &[Trigger<'static>] = &[Trigger::window_per_mille(900), Trigger::tokens(LIMIT)];
    let agent = agent(&store, &client, auto().with_tool().with_trigger(Trigger::any(ALL)));
    let mut session = agent.create_session(Some("s"), None);
    block_on(agent.run(&mut session, "Read.", &RunOptions::default())).unwrap();
    let told =
        texts(&log(&*store, "s")).iter().filter(|text| text.contains(" of 4000 tokens are used;")).count();
    assert!(told > 0);

    let mut settings = settings(&store).with_compaction(auto().with_tool()).with_recall();
    let brings = ClosureProvider::before_run(|hook: Hook<'_>| {
        hook.context.extend_tools("mine", [CompactTool::definition()]);
        ready(Ok(()))
    });
    settings.providers.push_closure(brings).unwrap();
    let mut session = AgentSession::with_id("t");
    block_on(async {
        let input = vec![Message::user("Go.")];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        let tools = run.prompt().await.unwrap().tools;
        let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.context_source())).collect();
        assert_eq!(names, [(CompactTool::NAME, Some("mine")), (RecallTool::NAME, Some("run"))]);
    });
}

/// A summarizer that records the focus of each request.
#[derive(Debug, Default)]
struct Focused(Mutex<Vec<String>>);

#[async_trait]
impl Summarizer for Focused {
    fn name(&self) -> &str {
        "focused"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        self.0.lock().unwrap().push(request.focus.unwrap_or_default().to_owned());
        Ok("It goes on.".into())
    }
}

/// The focus of the model follows the focus of the caller, and is marked as the model's.
#[test]
fn the_models_subject_is_added_to_that_of_the_caller() {
    for (own, expected) in [
        (None, "src/lib.rs"),
        (Some("the rules"), "the rules\nThe model asks to keep, where there is room: src/lib.rs"),
    ] {
        let (store, summarizer) = (Arc::new(MemoryStore::new()), Arc::new(Focused::default()));
        let client = reader(30, Some(8));
        let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&summarizer) as _);
        let mut auto = auto().with_tool();
        auto.compactor = Arc::new(engine);
        if let Some(own) = own {
            auto = auto.with_options(CompactionOptions::default().with_focus(own));
        }
        let settings = settings(&store).with_compaction(auto);
        let agent = Agent::with_settings(settings, client)
            .with_tool_runner(|_| Box::pin(async { ToolOutput::new("a line of the file\n".repeat(40)) }));
        let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
        let before = Agent::with_settings(self::settings(&store), Scripted::says("It is as it should be."));
        for turn in 0..12 {
            let question = format!("{turn}: {}", "What of src/lib.rs? ".repeat(30));
            block_on(before.run(&mut session, question, &options)).unwrap();
        }
        block_on(agent.run(&mut session, "Read them all.", &options)).unwrap();
        let told = summarizer.0.lock().unwrap();
        assert!(told.iter().any(|focus| focus == expected), "{told:?}");
    }
}

/// A compaction that fails for the model is tried again when it is due.
#[test]
fn a_compaction_that_fails_for_the_model_does_not_keep_others_from_being_made() {
    let store = Arc::new(MemoryStore::new());
    let client = Scripted::new(|asked, _| {
        let call = match asked {
            1..=4 => ToolCall::new(format!("k{asked}"), CompactTool::NAME, "{}"),
            _ => ToolCall::new(format!("c{asked}"), "read", "{}"),
        };
        let call = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        Ok(ModelResponse::new(vec![if asked > 34 { Message::assistant("Done.") } else { call }]))
    });
    let mut auto = auto().with_tool();
    auto.compactor = Arc::new(Failing);
    let agent = agent(&store, &client, auto);
    let mut session = agent.create_session(Some("s"), None);
    let outcome = block_on(agent.run(&mut session, "Go.", &RunOptions::default())).unwrap();
    let told = texts(&outcome.response.messages);
    assert_eq!(told.iter().filter(|text| text.contains("the compaction has failed")).count(), 4);
    let failed = |event: &&RunEvent| matches!(event, RunEvent::Failed { .. });
    assert!(outcome.events.iter().filter(failed).count() >= 4 + 3, "{:?}", outcome.events);
}

/// A shared client streams like a client that is not shared.
#[test]
fn a_shared_client_streams() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Arc::new(Scripted::says("Hello.").streaming()));
    let (mut session, options) = (agent.create_session(Some("s"), None), RunOptions::default());
    let mut stream = agent.run_stream(&mut session, "Hi", &options);
    let pieces = block_on(async {
        let mut pieces = 0;
        while let Some(update) = stream.next().await {
            pieces += usize::from(matches!(update.unwrap(), RunUpdate::Delta(_)));
        }
        pieces
    });
    assert_eq!(pieces, "Hello.".len());
}

/// All calls in one answer make one compaction, even with a spacing of 0. This compaction reaches the goal of the
/// caller.
#[test]
fn two_calls_in_one_answer_compact_once_to_the_goal() {
    for (goal, expected) in [(None, 1_400..2_200), (Some(900), 300..1_000)] {
        let store = Arc::new(MemoryStore::new());
        let client = Scripted::new(|asked, _| {
            let call = |id: &str, name: &str| Part::ToolCall(ToolCall::new(id, name, "{}"));
            let parts = match asked {
                1..=16 => vec![call(&format!("c{asked}"), "read")],
                17 => vec![call("k1", CompactTool::NAME), call("k2", CompactTool::NAME)],
                _ => return Ok(ModelResponse::new(vec![Message::assistant("Done.")])),
            };
            Ok(ModelResponse::new(vec![Message::new(Role::Assistant, parts)]))
        });
        let options =
            goal.map_or_else(CompactionOptions::default, |goal| CompactionOptions::default().with_goal(goal));
        let agent = agent(&store, &client, auto().with_options(options).with_tool().with_spacing(0));
        let mut session = agent.create_session(Some("s"), None);
        let outcome = block_on(agent.run(&mut session, "Go.", &RunOptions::default())).unwrap();
        assert_eq!(compactions(&outcome.events), 1, "{:?}", outcome.events);
        let told = texts(&outcome.response.messages);
        let left =
            told.iter().find_map(|text| text.split_once("Compacted from ")?.1.split_once("[context: "));
        let left: u64 = left.unwrap().1.split(' ').next().unwrap().parse().unwrap();
        assert!(expected.contains(&left), "{goal:?}: {left}");
        assert_eq!(told.iter().filter(|text| text.contains("a moment ago")).count(), 1);
    }
}
