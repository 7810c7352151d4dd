//! Ten thousand turns under each strategy: what a long session costs, and whether every request of it fits and is legal.
//!
//! `--smoke` makes three hundred turns each. What is asserted holds for every request: it fits, it is legal, and each
//! compaction has had one summary written at most.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use async_trait::async_trait;
use epitome::compactors::{
    Engine, Pipeline, SlidingWindow, Summarization, Summarizer, SummaryError, SummaryRequest,
    ToolResultClearing, Truncation, Window,
};
use epitome::core::message::Role;
use epitome::core::{
    ClassEstimator, Draft, OpenCallTree, Profile, Protection, Strategy, Trigger, Validator, measure_message,
};
use epitome::std::compaction::{AutoCompaction, CompactionOptions, RunPoints};
use epitome::std::history::MemoryStore;
use epitome::std::message::{Message, Part, ToolCall};
use epitome::std::provider::{HistoryProvider, Providers};
use epitome::std::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings};
use epitome::std::session::AgentSession;
use futures::executor::block_on;

const TURNS: usize = 10_000;
const TURNS_SMOKE: usize = 300;
/// What the model takes, in tokens.
const WINDOW: u64 = 16_000;
/// When a compaction is due.
const DUE: u64 = 12_000;

fn main() {
    let smoke = std::env::args().nth(1).as_deref() == Some("--smoke");
    let turns = if smoke { TURNS_SMOKE } else { TURNS };
    println!("{turns} turns, every third with a tool, in a window of {WINDOW} tokens; due at {DUE}.");
    println!();
    println!(
        "| strategy | compactions in 1,000 turns | tokens sent, millions | of that an unchanged prefix | summaries |"
    );
    println!("|---|---|---|---|---|");
    for which in [
        Which::Truncate,
        Which::Window,
        Which::ClearThenTruncate,
        Which::Summarize,
        Which::ClearThenSummarize,
    ] {
        let looped = run_loop(which, turns);
        println!(
            "| {} | {:.1} | {:.1} | {:.1} % | {} |",
            which.name(),
            looped.compactions as f64 * 1_000.0 / turns as f64,
            looped.sent as f64 / 1e6,
            looped.kept as f64 * 100.0 / looped.sent as f64,
            looped.summaries,
        );
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
enum Which {
    Truncate,
    Window,
    ClearThenTruncate,
    Summarize,
    ClearThenSummarize,
}

impl Strategy for Which {
    fn name(&self) -> &'static str {
        match self {
            Self::Truncate => "truncate",
            Self::Window => "window of 8 turns",
            Self::ClearThenTruncate => "clear tool results, truncate",
            Self::Summarize => "summarize",
            Self::ClearThenSummarize => "clear tool results, summarize",
        }
    }

    fn protection(&self) -> Protection {
        Protection::default()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (clear, summarize, truncate) =
            (ToolResultClearing::new(), Summarization::new(), Truncation::new());
        match self {
            Self::Truncate => truncate.plan(draft),
            Self::Window => SlidingWindow::new(Window::Turns(8)).plan(draft),
            Self::ClearThenTruncate => Pipeline::new(&[&clear, &truncate]).unwrap().plan(draft),
            Self::Summarize => summarize.plan(draft),
            Self::ClearThenSummarize => Pipeline::new(&[&clear, &summarize]).unwrap().plan(draft),
        }
    }
}

/// Writes a summary of the usual length.
#[derive(Default)]
struct Canned(AtomicU64);

impl fmt::Debug for Canned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Canned")
    }
}

#[async_trait]
impl Summarizer for Canned {
    fn name(&self) -> &str {
        "canned"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let words = (request.allowance.0 / 4).min(300) as usize;
        Ok(format!("Goal: to build it. {}", "It went on as planned. ".repeat(words / 5)))
    }
}

/// What came of a loop.
#[derive(Debug, Default)]
struct Looped {
    compactions: u64,
    /// Tokens of all requests.
    sent: u64,
    /// Of those, in messages that stood in the same place of the request before.
    kept: u64,
    summaries: u64,
}

fn run_loop(which: Which, turns: usize) -> Looped {
    let summarizer = Arc::new(Canned::default());
    let engine = Engine::new(which).with_summarizer(Arc::clone(&summarizer) as _);
    let auto = AutoCompaction::new(Arc::new(engine))
        .with_trigger(Trigger::tokens(DUE))
        .with_points(RunPoints::default().and_before_call())
        .with_options(CompactionOptions::default().with_window(WINDOW));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::new(MemoryStore::new()))).unwrap();
    let settings = RunSettings::new("agent").with_providers(providers).with_compaction(auto);
    let mut session = AgentSession::with_id("s");
    let (mut looped, mut last) = (Looped::default(), Vec::new());
    for turn in 0..turns {
        block_on(one_turn(&settings, &mut session, turn, &mut looped, &mut last));
    }
    looped.summaries = summarizer.0.load(Ordering::Relaxed);
    assert!(looped.summaries <= looped.compactions, "{}: {looped:?}", which.name());
    looped
}

async fn one_turn(
    settings: &RunSettings,
    session: &mut AgentSession,
    turn: usize,
    looped: &mut Looped,
    last: &mut Vec<Message>,
) {
    let input = vec![Message::user(format!("Question {turn}: what has to be done in src/part{turn}.rs?"))];
    let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
    if turn.is_multiple_of(3) {
        let prompt = run.prompt().await.unwrap();
        sent(&prompt.messages, looped, last);
        let call = ToolCall::new(format!("c{turn}"), "read", format!(r#"{{"path":"src/part{turn}.rs"}}"#));
        let response = Message::new(Role::Assistant, vec![Part::ToolCall(call)]);
        run.record(prompt.handle, ModelResponse::new(vec![response])).await.unwrap();
        let lines = "let mut total = 0; // and what follows from that\n".repeat(5 + turn * 7 % 80);
        run.answer(vec![Message::tool(format!("c{turn}"), lines)]).unwrap();
    }
    let prompt = run.prompt().await.unwrap();
    sent(&prompt.messages, looped, last);
    let answer =
        Message::assistant(format!("Answer {turn}: {}", "It is done, and tested. ".repeat(1 + turn % 9)));
    run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
    let outcome = run.finish().await.unwrap();
    for event in outcome.events {
        match event {
            RunEvent::Compacted { .. } => looped.compactions += 1,
            RunEvent::Failed { point, kind } => unreachable!("{kind:?} at {point:?} in turn {turn}"),
            _ => {}
        }
    }
}

/// Checks a request, and adds it to what was sent.
fn sent(messages: &[Message], looped: &mut Looped, last: &mut Vec<Message>) {
    let counter = ClassEstimator::new();
    let size = |messages: &[Message]| {
        messages.iter().map(|message| measure_message(message, &counter).tokens.as_u64()).sum::<u64>()
    };
    let tokens = size(messages);
    assert!(tokens <= WINDOW, "a request of {tokens} tokens");
    let mut validator = Validator::<OpenCallTree>::new(Profile::OpenaiChat);
    let mut illegal = |violation| unreachable!("{violation:?}");
    messages.iter().for_each(|message| validator.push(message, &mut illegal).unwrap());
    validator.finish(&mut illegal);
    let same = messages.iter().zip(last.iter()).take_while(|(now, before)| now == before).count();
    looped.sent += tokens;
    looped.kept += size(messages.get(..same).unwrap_or_default());
    *last = messages.to_vec();
}
