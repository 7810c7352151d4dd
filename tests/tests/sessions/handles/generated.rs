//! In generated conversations, the number in each note and summary leads to the messages that it stands for.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome::agent::Agent;
use epitome::compaction::CompactionOptions;
use epitome::compactors::{DigestSummarizer, Engine, StrategySpec};
use epitome::core::attribution::{Authority, SourceKind};
use epitome::core::message::Role;
use epitome::core::{ClassEstimator, count_message};
use epitome::history::{AppendToken, History, HistoryStore, Live, MemoryStore, SessionId};
use epitome::message::{Attribution, Message, Part, ToolCall, ToolResult};
use epitome::provider::HistoryProvider;
use epitome::run::{ModelResponse, RunOptions, RunSettings, compact};
use epitome::session::AgentSession;
use epitome_tests::cases::{Census, check};
use epitome_tests::generate::{Scale, scaled_conversation};
use epitome_tests::message as small;
use futures::executor::block_on;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{in_full, named, recall};
use crate::sessions::support::{Scripted, texts};

const STRATEGIES: [&str; 7] = [
    "tool-results:keep=1",
    "clamp:max=60",
    "agent",
    "tool-digest",
    "summarize",
    "tool-results:keep=1 | truncate",
    "tool-results:keep=2 | clamp:max=90 | summarize",
];

/// A word that occurs in one part of one message only.
fn mark(at: usize, ordinal: usize) -> String {
    format!("mark-{at}x{ordinal}")
}

/// The generated message with texts of about its size, each with its mark at its beginning or in its middle.
fn whole(at: usize, message: &small::Message) -> Message {
    let said = |ordinal: usize| {
        let words =
            ["src/main.rs", "alpha", "[cleared; #3]\n", "\n", "PROJ-4711", "日本", "cut#1 ...]", "tide"];
        let count = message.tokens.min(3_000) as usize / 2;
        let mut all: Vec<&str> =
            (0..count).map(|nth| words[(at + ordinal + nth * 7) % words.len()]).collect();
        let mark = mark(at, ordinal);
        all.insert(if at.is_multiple_of(2) { 0 } else { count / 2 }, &mark);
        all.join(" ")
    };
    let json = |ordinal: usize| {
        let said = said(ordinal);
        json!({ "rows": said.split('\n').collect::<Vec<_>>(), "total": 1 }).to_string()
    };
    let parts = message.parts.iter().enumerate().filter_map(|(ordinal, part)| match part {
        small::Part::Text(_) => Some(Part::Text(said(ordinal).into())),
        small::Part::Call(id) => {
            Some(Part::ToolCall(ToolCall::new(id.as_str(), "look", "{\"path\":\"src\"}")))
        }
        small::Part::Result(id) => {
            let said = if at.is_multiple_of(3) { json(ordinal) } else { said(ordinal) };
            Some(Part::ToolResult(ToolResult::new(id.as_str(), [Part::Text(said.into())].into())))
        }
        _ => None,
    });
    let whole = Message::new(message.role, parts.collect());
    match message.source {
        source @ (SourceKind::Compaction | SourceKind::Context) => {
            whole.with_attribution(Attribution::new("", source, Authority::Assistant))
        }
        _ => whole,
    }
}

/// The marks in a part.
fn marks(part: &Part) -> Vec<String> {
    let text = match part {
        Part::Text(text) => text.to_string(),
        Part::ToolResult(result) => result.parts.iter().flat_map(marks).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    };
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.split(is_end).filter(|word| word.starts_with("mark-")).map(str::to_owned).collect()
}

/// Calls of the model, by the mark that one of their results must contain.
#[derive(Debug, Default)]
struct Followed(BTreeMap<String, Vec<Value>>);

impl Followed {
    /// Adds the calls for a note: with its number, and for long texts with its number and the mark as the query.
    fn note(&mut self, number: u64, mark: String) {
        let message = number.to_string();
        let asks = vec![json!({"messages": message}), json!({"messages": message, "query": mark})];
        self.0.insert(mark, asks);
    }

    fn summary(&mut self, messages: &str, mark: String) {
        let asks = vec![json!({"messages": messages, "query": mark})];
        self.0.insert(mark, asks);
    }

    /// Adds the calls for the numbers in a visible message.
    fn add(&mut self, live: &Live, log: &[Message], census: &Census) -> Result<(), TestCaseError> {
        for stand_in in &live.stand_ins {
            let original = &log[usize::try_from(live.key.0).unwrap()].parts()[stand_in.ordinal as usize];
            let text = stand_in.text.as_deref().unwrap_or_default();
            // A text that is cut may contain words that only look like a note.
            let is_named = named(text).contains(&live.key.0);
            census.count("a note with a number", is_named);
            census.count("a note without one", !is_named);
            prop_assert!(is_named || matches!(original, Part::ToolCall(_)), "{}: {:?}", live.key, text);
            let marks = if is_named { marks(original) } else { Vec::new() };
            marks.into_iter().for_each(|mark| self.note(live.key.0, mark));
        }
        let (Some(first), Some(last)) = (live.covers.first(), live.covers.last()) else { return Ok(()) };
        let said = texts([&live.entry.message]).remove(0);
        let said = said.trim_start_matches("assistant: ");
        let Some(messages) = in_full(said) else {
            census.count("a summary without numbers", true);
            return Ok(());
        };
        census.count("a summary with numbers", true);
        let (from, to) = messages.split_once('-').unwrap_or((messages, messages));
        let (from, to): (u64, u64) = (from.parse().unwrap(), to.parse().unwrap());
        prop_assert!(from <= first.first.0 && last.last.0 <= to, "{} of {:?}", messages, live.covers);
        let covered = live.covers.iter().flat_map(|range| range.first.0..=range.last.0);
        let hidden = covered.map(|at| &log[usize::try_from(at).unwrap()]);
        let shown = hidden.filter(|message| !matches!(message.role(), Role::System | Role::Developer));
        shown.flat_map(Message::parts).flat_map(marks).for_each(|mark| self.summary(messages, mark));
        Ok(())
    }
}

fn open(store: &Arc<dyn HistoryStore>) -> History {
    block_on(History::open(Arc::clone(store), SessionId::new("s"), Arc::new(ClassEstimator::new()))).unwrap()
}

fn check_case(
    said: &[small::Message],
    strategy: &'static str,
    percent: u64,
    census: &Census,
) -> Result<(), TestCaseError> {
    let log: Vec<Message> = said.iter().enumerate().map(|(at, message)| whole(at, message)).collect();
    if log.is_empty() {
        return Ok(());
    }
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = open(&store);
    block_on(history.append(&AppendToken::new("all"), log.clone())).unwrap();
    let provider = HistoryProvider::new("m", Arc::clone(&store));
    let settings = RunSettings::new("a").with_provider(provider).unwrap().with_recall();
    let engine =
        Engine::new(strategy.parse::<StrategySpec>().unwrap()).with_summarizer(Arc::new(DigestSummarizer));
    let mut session = AgentSession::with_id("s");
    let goal = history.index().tokens() * percent / 100;
    let mut compacts = || {
        let options = CompactionOptions::default().with_goal(goal).with_min_reclaim(0);
        block_on(compact(&settings, &mut session, &engine, options))
    };
    let Ok(result) = compacts() else { return Ok(()) };
    let history = open(&store);
    let (counter, made) = (ClassEstimator::new(), history.revision());
    census.count("compacted", made.0 > 0);
    // The reported size is the real one, and a message with stand-ins is smaller than its original.
    prop_assert_eq!(result.compacted_tokens, Some(history.index().tokens()));
    let mut followed = Followed::default();
    for live in history.live() {
        prop_assert_eq!(live.entry.count.tokens, count_message(&live.entry.message, &counter));
        if !live.stand_ins.is_empty() {
            let original = &log[usize::try_from(live.key.0).unwrap()];
            prop_assert!(live.entry.count.tokens < count_message(original, &counter));
        }
        followed.add(live, &log, census)?;
    }
    // Planning again changes nothing. A summary that is shorter than its allowance may leave room for another one, with and without
    // handles. If the room is too small for that one, the pass fails and changes nothing.
    let summarizes = strategy.ends_with("summarize");
    let has_room = match compacts() {
        Ok(_) => true,
        Err(error) => {
            let too_few = summarizes && error.to_string().contains("too few for a summary");
            prop_assert!(too_few, "a second pass: {}", error);
            false
        }
    };
    let again = open(&store).revision();
    prop_assert!(again == made || (summarizes && has_room), "a second pass toward the same goal");
    follow(settings, session, followed)
}

/// Lets a model make all the calls, and checks their results.
fn follow(settings: RunSettings, mut session: AgentSession, followed: Followed) -> Result<(), TestCaseError> {
    let asks: Vec<(String, Value)> = followed
        .0
        .iter()
        .flat_map(|(mark, asks)| asks.iter().map(|ask| (mark.clone(), ask.clone())))
        .collect();
    if asks.is_empty() {
        return Ok(());
    }
    let client = Scripted::new({
        let asks = asks.clone();
        move |asked, _| {
            let calls = asks.iter().enumerate().map(|(at, (_, ask))| recall(&format!("r{at}"), ask));
            Ok(ModelResponse::new(vec![match asked {
                1 => Message::new(Role::Assistant, calls.flat_map(Message::into_parts).collect()),
                _ => Message::assistant("These are they."),
            }]))
        }
    });
    let agent = Agent::with_settings(settings, client);
    let outcome = block_on(agent.run(&mut session, "Follow.", &RunOptions::default())).unwrap();
    let told: Vec<String> =
        texts(&outcome.response.messages).into_iter().filter(|it| it.starts_with("tool: ")).collect();
    prop_assert_eq!(told.len(), asks.len());
    for (mark, asked) in &followed.0 {
        let mut answers = told.iter().zip(&asks).filter(|(_, (its, _))| its == mark).map(|(told, _)| told);
        prop_assert!(
            answers.clone().any(|told| told.contains(mark.as_str())),
            "{} by {:?}: {:?}",
            mark,
            asked,
            answers.next()
        );
    }
    Ok(())
}

#[test]
fn what_a_note_or_a_summary_names_is_what_it_stands_for() {
    let scale = prop_oneof![1 => Just(Scale::Small), 3 => Just(Scale::Mixed)];
    let cases = (scaled_conversation(40, scale), prop::sample::select(&STRATEGIES[..]), 10_u64..80);
    let least = [("compacted", 300), ("a note with a number", 300), ("a summary with numbers", 60)];
    check("handles", cases, &least, |(said, strategy, percent), census| {
        check_case(&said, strategy, percent, census)
    });
}
