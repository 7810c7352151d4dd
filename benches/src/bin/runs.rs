//! Costs of a run without its model call, and the memory of an idle session.
//!
//! `--loop TURNS` runs only the long loop, in ten blocks of so many turns: `runs_instructions.sh` counts the
//! instructions of two of the blocks. `--smoke` uses small numbers to check the assertions; its times are not
//! significant. This program counts the heap, which makes every allocation a little slower; the times include that.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use core::hint::black_box;
use core::time::Duration;
use std::alloc::System;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use epitome::compaction::{
    AutoCompaction, CompactionCx, CompactionOutcome, Compactor, RunPoints, UnchangedReason,
};
use epitome::compactors::Truncation;
use epitome::core::message::SimpleMessage;
use epitome::core::{
    Budget, ClassEstimator, IndexBuf, ModelKey, OpenCallTree, Outcome, Pacing, Planner, Span, Stamp,
    Strategy, Tokens, Trigger, TriggerView, UsageLedger,
};
use epitome::history::{AppendToken, History, HistoryStore, MemoryStore, Notes, SessionId};
use epitome::message::Message;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{ModelResponse, Run, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionError, SessionErrorKind};
use futures::executor::block_on;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const QUESTION: &str =
    "Which of the two crates has to be built first, and why does the order matter at all here?";
const ANSWER: &str =
    "The core, because everything else depends on it; cargo sees to that by itself, so you need not.";
/// Number of visible messages before a run, in most rows.
const VISIBLE: usize = 100;
/// Number of turns in a tenth of the long loop.
const LOOP_BLOCK: usize = 1_000;

fn main() {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    if first.as_deref() == Some("--loop") {
        let block = args.next().and_then(|block| block.parse().ok());
        return long_loop(block.unwrap_or(LOOP_BLOCK));
    }
    let smoke = first.as_deref() == Some("--smoke");
    println!("| case | measured | target | shows; matters because |");
    println!("|---|---|---|---|");
    one_run(if smoke { 5 } else { 200 });
    long_loop(if smoke { 100 } else { LOOP_BLOCK });
    untriggered(if smoke { 100 } else { 10_000 });
    idle();
    many(if smoke { 50 } else { 1_000 });
}

fn row(case: &str, measured: &str, target: &str, why: &str) {
    println!("| {case} | {measured} | {target} | {why} |");
}

/// One complete run without the model call. Returns the number of sent messages.
async fn run(settings: &RunSettings, session: &mut AgentSession) -> usize {
    let input = vec![Message::user(QUESTION)];
    let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
    let prompt = run.prompt().await.unwrap();
    run.record(prompt.handle, ModelResponse::new(vec![Message::assistant(ANSWER)])).await.unwrap();
    run.finish().await.unwrap();
    prompt.messages.len()
}

fn over(store: Arc<dyn HistoryStore>) -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", store)).unwrap();
    RunSettings::new("a").with_providers(providers)
}

fn one_run(times: usize) {
    let mut taken: Vec<Duration> = (0..times)
        .map(|_| {
            let store = Arc::new(MemoryStore::new());
            let settings = over(store.clone());
            block_on(async {
                let counter = Arc::clone(settings.counter());
                let mut history = History::open(store, SessionId::new("s"), counter).await.unwrap();
                let said =
                    (0..VISIBLE / 2).flat_map(|_| [Message::user(QUESTION), Message::assistant(ANSWER)]);
                history.append(&AppendToken::new("all"), said.collect()).await.unwrap();
                let mut session = AgentSession::with_id("s");
                let before = Instant::now();
                let sent = run(&settings, &mut session).await;
                let taken = before.elapsed();
                assert_eq!(sent, VISIBLE + 1, "all of the history and the input");
                taken
            })
        })
        .collect();
    taken.sort_unstable();
    let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
    let why = "load, index, prompt, record, store; matters because it is added to every call of a model";
    row(&format!("a run over {VISIBLE} visible messages"), &format!("{median:?}"), "<= 200 us", why);
}

/// Measures the check before a model call that no compaction is due: the size of the request from the ledger, all facts
/// that a trigger may use, and whether the request may wait.
fn untriggered(messages: usize) {
    const CHECKS: u32 = 1_000;
    const EITHER: Trigger<'static> = Trigger::any(&[
        Trigger::budget(),
        Trigger::reported(90_000_000),
        Trigger::messages(1_000_000),
        Trigger::turns(1_000_000),
        Trigger::window_per_mille(1_000_000),
    ]);
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    for turn in 0..messages / 2 {
        for message in [SimpleMessage::user(QUESTION), SimpleMessage::assistant(ANSWER)] {
            index.push(&message, Tokens(u32::try_from(turn % 7).unwrap_or(1))).unwrap();
        }
    }
    let (budget, pacing) = (Budget::default(), Pacing::default());
    let ledger = UsageLedger::new(ModelKey::new("m", &ClassEstimator::new()), budget);
    let mut taken: Vec<Duration> = (0..101)
        .map(|_| {
            let region = Region::new(HEAP);
            let before = Instant::now();
            for check in 0..CHECKS {
                let view = index.view();
                let size = ledger.size(black_box(view.tokens()), Stamp::new(view.revision(), index.head()));
                let view = TriggerView::new(view, &budget, size.tokens).with_token_count(size.tokens);
                assert!(black_box(EITHER.fired(&view)).is_none());
                assert!(black_box(pacing.permits(check, &view)).is_ok());
            }
            let taken = before.elapsed() / CHECKS;
            assert_eq!(region.change().allocations, 0);
            taken
        })
        .collect();
    taken.sort_unstable();
    let median = taken.get(taken.len() / 2).copied().unwrap_or_default();
    let why = "the request's size, five triggers, the pacing; matters because it is done before every call of a model";
    row(&format!("an untriggered check over {messages} messages"), &format!("{median:?}"), "<= 1 us", why);
}

/// A compactor that drops the oldest groups.
#[derive(Debug)]
struct Oldest;

#[async_trait]
impl Compactor for Oldest {
    fn name(&self) -> &str {
        "truncate"
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let (budget, pass, before, mut planner) = (*cx.budget(), cx.pass(), cx.measure(), Planner::new());
        let (history, strategy) = (cx.history(), Truncation::new());
        let planned = planner.plan(history.index(), &budget, pass, &strategy);
        let planned = planned.map_err(|error| {
            SessionError::new(SessionErrorKind::Infeasible, "truncate").with_source(error)
        })?;
        let record = match planned {
            Outcome::Unchanged(reason) => {
                return Ok(CompactionOutcome::Unchanged(UnchangedReason::Plan(reason)));
            }
            Outcome::Planned(plan) => {
                let filled =
                    history.fill(plan, &Notes::default(), |ready| history.record(&ready, strategy.name()));
                filled.map_err(|error| {
                    SessionError::new(SessionErrorKind::Infeasible, "truncate").with_source(error)
                })?
            }
        };
        history.commit(&record).await?;
        Ok(CompactionOutcome::Compacted(cx.result_since(before)))
    }
}

/// Makes `count` runs. Returns the number of sent messages.
fn turns(settings: &RunSettings, session: &mut AgentSession, count: usize) -> usize {
    (0..count).map(|_| block_on(run(settings, session))).sum()
}

/// Early turns, in a function of their own: its name selects the counted instructions.
#[inline(never)]
fn early_turns(settings: &RunSettings, session: &mut AgentSession, count: usize) -> usize {
    turns(settings, session, black_box(count))
}

/// Late turns, in a function of their own: its name selects the counted instructions.
#[inline(never)]
fn late_turns(settings: &RunSettings, session: &mut AgentSession, count: usize) -> usize {
    black_box(turns(settings, session, count))
}

fn long_loop(block: usize) {
    let store = Arc::new(MemoryStore::new());
    let compaction =
        AutoCompaction::new(Oldest).with_trigger(Trigger::tokens(2_000)).with_points(RunPoints::default());
    let mut settings = over(store.clone()).with_compaction(compaction);
    // A complete log that no run loads or compacts.
    let audit = HistoryProvider::new("audit", Arc::new(MemoryStore::new())).load_messages(false);
    settings.providers.push(audit).unwrap();
    let mut session = AgentSession::with_id("s");
    let mut blocks = Vec::new();
    for at in 0..10 {
        let before = Instant::now();
        let sent = match at {
            2 => early_turns(&settings, &mut session, block),
            9 => late_turns(&settings, &mut session, block),
            _ => turns(&settings, &mut session, block),
        };
        blocks.push((before.elapsed(), sent));
    }
    let info = block_on(store.list(None, 1)).unwrap().remove(0);
    assert_eq!(info.head.0, 20 * block as u64, "everything is in the log");
    assert!(info.live_messages < 200, "and little of it is visible");
    let (Some(early), Some(late)) = (blocks.get(2), blocks.get(9)) else { return };
    assert!(
        late.1.abs_diff(early.1) <= early.1 / 10,
        "both blocks send about as much: {} {}",
        early.1,
        late.1
    );
    let ratio = late.0.as_secs_f64() / early.0.as_secs_f64();
    let case =
        format!("turns {} to {} against {} to {}", 9 * block + 1, 10 * block, 2 * block + 1, 3 * block);
    let why = "time, for information; matters because a long session must not become a slow one";
    row(&case, &format!("{ratio:.2} x"), "<= 1.02 x in instructions", why);
}

fn idle() {
    let store = Arc::new(MemoryStore::new());
    let settings = over(store);
    // Memory that the store and the counter keep does not belong to the session.
    let mut warm = AgentSession::with_id("0");
    block_on(run(&settings, &mut warm));
    let region = Region::new(HEAP);
    let mut session = AgentSession::new();
    session.record_usage(None);
    let made = held(&region);
    block_on(async {
        let input = vec![Message::user(QUESTION)];
        let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        run.record(prompt.handle, ModelResponse::new(vec![Message::assistant(ANSWER)])).await.unwrap();
        run.abort();
    });
    let after = held(&region).max(made);
    let bytes = size_of::<AgentSession>() + after;
    assert!(bytes <= 4_096, "an idle session holds {bytes} bytes");
    let why = "after a run; matters because a server keeps many that nobody talks to";
    row("an idle session", &format!("{bytes} bytes"), "<= 4 KiB", why);
}

fn many(count: usize) {
    let runs = 10;
    let settings = RunSettings::new("a");
    let region = Region::new(HEAP);
    let sessions: Vec<AgentSession> = (0..count)
        .map(|_| {
            let mut session = AgentSession::new();
            for _ in 0..runs {
                block_on(run(&settings, &mut session));
            }
            session
        })
        .collect();
    let content = count * runs * (QUESTION.len() + ANSWER.len());
    let above = held(&region).saturating_sub(content);
    let limit = 16 * 1_024 * 1_024 / 1_000 * count;
    let measured = format!("{:.1} MiB", above as f64 / 1_048_576.0);
    assert_eq!(sessions.len(), count);
    assert!(above <= limit, "{count} sessions hold {above} bytes above their content");
    let why = "each with its history of ten runs in memory, without the texts; matters as the row above";
    row(&format!("{count} sessions, above their content"), &measured, &format!("<= {limit} bytes"), why);
}

/// Bytes that were allocated on the heap and not freed.
fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}
