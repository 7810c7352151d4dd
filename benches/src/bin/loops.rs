//! Ten thousand turns with each strategy: the cost of a long session, and whether every request of it fits and is
//! legal.
//!
//! `--smoke` runs three hundred turns with each strategy. The assertions hold for every request: it fits, it is legal,
//! and each compaction has caused at most one summary.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::fmt;
use core::future::ready;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use async_trait::async_trait;
use epitome::compaction::{AutoCompaction, CompactionOptions, RunPoints};
use epitome::compactors::{Engine, StrategySpec, Summarizer, SummaryError, SummaryRequest, Truncation};
use epitome::core::message::Role;
use epitome::core::{ClassEstimator, OpenCallTree, Profile, Trigger, Validator, measure_message};
use epitome::history::MemoryStore;
use epitome::message::{LABEL_EPHEMERAL, Message, Part, Reasoning, ToolCall};
use epitome::provider::{ClosureProvider, HistoryProvider, Hook, Providers};
use epitome::run::{ModelResponse, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

const TURNS: usize = 10_000;
const TURNS_SMOKE: usize = 300;
/// Window of the model, in tokens.
const WINDOW: u64 = 16_000;
/// Size of a request at which a compaction is due, in tokens.
const DUE: u64 = 12_000;

fn main() {
    let smoke = std::env::args().nth(1).as_deref() == Some("--smoke");
    let turns = if smoke { TURNS_SMOKE } else { TURNS };
    println!(
        "{turns} turns, every third with a tool that reads one of twenty files, each with a page that is looked up, in a window of {WINDOW} tokens; due at {DUE}."
    );
    println!();
    println!(
        "| strategy | compactions in 1,000 turns | tokens sent, millions | of that an unchanged prefix | summaries |"
    );
    println!("|---|---|---|---|---|");
    for strategy in STRATEGIES {
        let looped = run_loop(strategy, turns);
        println!(
            "| {strategy} | {:.1} | {:.1} | {:.1} % | {} |",
            looped.compactions as f64 * 1_000.0 / turns as f64,
            looped.sent as f64 / 1e6,
            looped.kept as f64 * 100.0 / looped.sent as f64,
            looped.summaries,
        );
    }
}

/// The measured strategies. Where one alone is not enough, the engine falls back to truncation.
const STRATEGIES: &[&str] = &[
    "truncate",
    "window:turns=8",
    "tool-results, truncate",
    "summarize",
    "tool-results, summarize",
    "tool-drop, truncate",
    "tool-digest",
    "supersede, truncate",
    "clamp:max=300, truncate",
    "reasoning:profile=openai-chat, truncate",
    "ephemeral, truncate",
    "context-window:window=16000:output=2000",
];

/// A summarizer that returns a text of the usual length.
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

/// Results of a loop.
#[derive(Debug, Default)]
struct Looped {
    compactions: u64,
    /// Sum of the tokens of all requests.
    sent: u64,
    /// Sum of the tokens of messages at the same position as in the request before.
    kept: u64,
    summaries: u64,
}

fn run_loop(strategy: &str, turns: usize) -> Looped {
    let summarizer = Arc::new(Canned::default());
    let spec: StrategySpec = strategy.parse().unwrap();
    let engine =
        Engine::new(spec).with_summarizer(Arc::clone(&summarizer) as _).with_fallback(Truncation::new());
    let auto = AutoCompaction::new(engine)
        .with_trigger(Trigger::tokens(DUE))
        .with_points(RunPoints::default().and_before_call())
        .with_options(CompactionOptions::default().with_window(WINDOW));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::new(MemoryStore::new()))).unwrap();
    let look_up = ClosureProvider::before_run(|hook: Hook<'_>| {
        let page = Message::user("A page of a handbook, for this question alone. ".repeat(12));
        let label = page.attribution().clone().with_label(LABEL_EPHEMERAL);
        hook.context.extend_messages("handbook", vec![page.with_attribution(label)]);
        ready(Ok(()))
    });
    providers.push_closure(look_up).unwrap();
    let settings = RunSettings::new("agent").with_providers(providers).with_compaction(auto);
    let mut session = AgentSession::with_id("s");
    let (mut looped, mut last) = (Looped::default(), Vec::new());
    for turn in 0..turns {
        block_on(one_turn(&settings, &mut session, turn, &mut looped, &mut last));
    }
    looped.summaries = summarizer.0.load(Ordering::Relaxed);
    assert!(looped.summaries <= looped.compactions, "{strategy}: {looped:?}");
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
        let path = format!(r#"{{"path":"src/part{}.rs"}}"#, turn % 20);
        let thought =
            Part::Reasoning(Reasoning::new("I have to read it again, and then to compare. ".repeat(6)));
        let call = Part::ToolCall(ToolCall::new(format!("c{turn}"), "read", path));
        let response = Message::new(Role::Assistant, vec![thought, call]);
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
            RunEvent::Failed { point, reason, .. } => unreachable!("{reason} at {point:?} in turn {turn}"),
            _ => {}
        }
    }
}

/// Checks a request, and adds it to the sums of the loop.
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
