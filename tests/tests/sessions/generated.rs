//! Generated runs with compactions in the middle: the stored messages are those that were sent.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, Compactor, Held, MessagesCompactor, RunPoints};
use epitome::compactors::{Pipeline, ToolResultClearing, Truncation};
use epitome::core::message::Role;
use epitome::core::{Draft, Strategy as Rule, Trigger};
use epitome::history::{HistoryStore, MemoryStore, SqliteStore};
use epitome::message::Message;
use epitome::run::{ModelResponse, Persistence, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use epitome_tests::cases::{Census, check};
use futures::executor::block_on;
use proptest::prelude::*;

use crate::sessions::runs::settings_over;
use crate::sessions::support::{Truncating, call, log, shown, texts};

/// Keeps instructions, the first and the last request, and all from the model's last message on. The rest becomes one
/// message. `calls` counts its calls.
fn summarizing(calls: &Arc<AtomicUsize>) -> MessagesCompactor {
    let calls = Arc::clone(calls);
    MessagesCompactor::new("summarize", move |messages: Vec<Held>, _: CompactionOptions| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            let positions =
                |role| messages.iter().enumerate().filter(move |(_, it)| it.role() == role).map(|(at, _)| at);
            let first = positions(Role::User).next();
            let last = positions(Role::User).next_back();
            let tail = positions(Role::Assistant).next_back().unwrap_or(messages.len());
            // The newest step stays, and with it the user message that it answers.
            let asked = positions(Role::User).take_while(|at| *at < tail).last();
            let stays = |at: usize, held: &Held| {
                let named = [first, asked, last].contains(&Some(at));
                held.role() == Role::System || named || at >= tail
            };
            let kept: Vec<Held> = messages
                .iter()
                .enumerate()
                .filter(|(at, held)| stays(*at, held))
                .map(|(_, held)| held.clone())
                .collect();
            let mut returned = kept;
            if returned.len() < messages.len() {
                returned.push(Message::assistant(format!("Summary {call}.")).into());
            }
            Ok(returned)
        }
    })
}

/// Leaves out two groups of three, of any kind except the last request: instructions, first requests, the newest step,
/// and requests with answers that stay.
fn leaving_out() -> MessagesCompactor {
    MessagesCompactor::new("leave out", |messages: Vec<Held>, _: CompactionOptions| async move {
        let last = messages.iter().rposition(|held| held.role() == Role::User);
        let mut group = 0;
        let stays = messages.into_iter().enumerate().filter(|(at, held)| {
            group += usize::from(held.role() != Role::Tool);
            group % 3 == 0 || last == Some(*at)
        });
        Ok(stays.map(|(_, held)| held).collect())
    })
}

/// Kind of the compactor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Hides groups.
    Drops,
    /// Hides groups, and shows a message in their place.
    Summarizes,
    /// Shortens parts.
    Clears,
    /// Shortens parts, and hides groups if that was not enough.
    Both,
    /// Hides groups of any kind that may be hidden, also many groups that strategies keep.
    LeavesOut,
}

const CLEARING: ToolResultClearing<'static> = ToolResultClearing::new().keep(1).clear_inputs(true);
/// Clears results first, and truncates after that.
#[derive(Debug)]
struct Both;

impl Rule for Both {
    fn name(&self) -> &'static str {
        "both"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        Pipeline::new(&[&CLEARING, &Truncation::new()]).unwrap().plan(draft);
    }
}

impl Kind {
    fn compactor(self, calls: &Arc<AtomicUsize>) -> Arc<dyn Compactor> {
        match self {
            Self::Drops => Arc::new(Truncating(Truncation::new())),
            Self::Summarizes => Arc::new(summarizing(calls)),
            Self::Clears => Arc::new(Truncating(CLEARING)),
            Self::Both => Arc::new(Truncating(Both)),
            Self::LeavesOut => Arc::new(leaving_out()),
        }
    }
}

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Finished,
    Aborted,
    /// Ended in the middle: calls of the model have no result.
    Crashed,
}

/// One generated run.
#[derive(Debug, Clone)]
struct Plan {
    /// Number of rounds of tools.
    rounds: usize,
    /// Number of calls in each round.
    width: usize,
    /// Number of lines of each result.
    lines: usize,
    end: End,
}

#[derive(Debug, Clone)]
struct Case {
    plans: Vec<Plan>,
    kind: Kind,
    persistence: Persistence,
    /// Whether the store is SQLite, opened in memory.
    in_sqlite: bool,
}

impl Case {
    fn settings(&self, store: &Arc<dyn HistoryStore>, calls: &Arc<AtomicUsize>) -> RunSettings {
        let auto = AutoCompaction::new(self.kind.compactor(calls)).with_trigger(Trigger::tokens(220));
        settings_over(store)
            .with_instructions("You help.")
            .with_compaction(auto.with_points(RunPoints::NONE.and_before_call()))
            .with_persistence(self.persistence)
    }

    fn store(&self) -> Arc<dyn HistoryStore> {
        match self.in_sqlite {
            true => Arc::new(SqliteStore::open_in_memory().unwrap()),
            false => Arc::new(MemoryStore::new()),
        }
    }
}

/// Texts of the next request without the instructions, which are never stored.
fn projected(run: &Run<'_>) -> Vec<String> {
    texts(run.projection().into_iter().skip(1))
}

/// Makes the next request, and records its answer. If messages are stored before each call, a fresh process shows
/// exactly the sent messages.
async fn ask(run: &mut Run<'_>, store: &dyn HistoryStore, answer: Message, is_stored: bool) {
    let prompt = run.prompt().await.unwrap();
    if is_stored {
        assert_eq!(shown(store, "s"), projected(run), "a fresh process shows what is sent");
    }
    run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
}

/// One run. Returns the texts of its next request, its events, and the number of its messages.
fn one(
    (settings, session, store): (&RunSettings, &mut AgentSession, &dyn HistoryStore),
    (at, plan): (usize, &Plan),
) -> (Vec<String>, Vec<RunEvent>, usize) {
    let per_call = settings.persistence == Persistence::PerModelCall;
    block_on(async {
        let input = vec![Message::user(format!("Question {at}, with some words around it."))];
        let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
        let mut said = 1;
        for round in 0..plan.rounds {
            let ids: Vec<String> = (0..plan.width).map(|each| format!("{at}-{round}-{each}")).collect();
            let asked = ids.iter().flat_map(|id| call(id, "read").parts().to_vec()).collect();
            ask(&mut run, store, Message::new(Role::Assistant, asked), per_call).await;
            said += 1;
            if plan.end == End::Crashed && round + 1 == plan.rounds {
                return (projected(&run), run.events().to_vec(), said);
            }
            let result = "what was read, line by line, as it is\n".repeat(plan.lines);
            run.answer(ids.iter().map(|id| Message::tool(id.clone(), result.clone())).collect()).unwrap();
            said += plan.width;
        }
        ask(&mut run, store, Message::assistant("Done."), per_call).await;
        let (sent, events) = (projected(&run), run.events().to_vec());
        if plan.end == End::Finished {
            drop(run.finish().await.unwrap());
        } else {
            run.abort();
        }
        (sent, events, said + 1)
    })
}

fn check_case(case: &Case, census: &Census) -> Result<(), TestCaseError> {
    let (store, calls) = (case.store(), Arc::new(AtomicUsize::new(0)));
    let settings = case.settings(&store, &calls);
    let mut session = AgentSession::with_id("s");
    let (mut compacted, mut logged) = (0, 0);
    for (at, plan) in case.plans.iter().enumerate() {
        let before = shown(&*store, "s");
        let (sent, events, said) = one((&settings, &mut session, &*store), (at, plan));
        let failed = events.iter().find(|event| matches!(event, RunEvent::Failed { .. }));
        prop_assert!(failed.is_none(), "{failed:?}");
        let passes = events.iter().filter(|event| matches!(event, RunEvent::Compacted { .. })).count();
        compacted += passes;
        census.count("compacted twice in a run", passes > 1);
        census.count("shortened", sent.iter().any(|text| text.contains("[cleared]")));
        let is_stored = plan.end == End::Finished || case.persistence == Persistence::PerModelCall;
        census.count("compacted in a run that leaves nothing", passes > 0 && !is_stored);
        census.count("compacted in a run that crashed", passes > 0 && plan.end == End::Crashed);
        if !is_stored {
            prop_assert_eq!(shown(&*store, "s"), before, "it leaves nothing");
            continue;
        }
        logged += said;
        let log = texts(&log(&*store, "s"));
        prop_assert_eq!(log.len(), logged, "everything is in the log");
        prop_assert!(!log.iter().any(|text| text.contains("[cleared]")), "as it was said");
        prop_assert_eq!(shown(&*store, "s"), sent, "a fresh process shows what was sent, and the answer");
    }
    if case.kind == Kind::Summarizes {
        prop_assert_eq!(calls.load(Ordering::Relaxed), compacted, "a summary is made once for each crossing");
    }
    census.count(["drops", "summarizes", "clears", "both", "leaves out"][case.kind as usize], compacted > 0);
    Ok(())
}

#[test]
fn what_is_stored_after_compactions_in_runs_is_what_was_sent() {
    let end = prop_oneof![7 => Just(End::Finished), 2 => Just(End::Aborted), 2 => Just(End::Crashed)];
    let plan = (0_usize..7, 1_usize..3, 1_usize..6, end);
    let plan = plan.prop_map(|(rounds, width, lines, end)| Plan { rounds, width, lines, end });
    let persistence = prop_oneof![Just(Persistence::PerRun), Just(Persistence::PerModelCall)];
    let kind =
        prop::sample::select(vec![Kind::Drops, Kind::Summarizes, Kind::Clears, Kind::Both, Kind::LeavesOut]);
    let cases = (prop::collection::vec(plan, 2..6), kind, persistence, prop::bool::weighted(0.2));
    let cases = cases.prop_map(|(mut plans, kind, persistence, in_sqlite)| {
        if kind == Kind::Summarizes {
            // With long results, this compactor would keep nearly all tokens, and would gain nothing.
            plans.iter_mut().for_each(|plan| plan.lines = 1);
        }
        Case { plans, kind, persistence, in_sqlite }
    });
    // At most a third of the measured counts.
    let least = [
        ("drops", 78),
        ("summarizes", 78),
        ("clears", 60),
        ("both", 60),
        ("leaves out", 30),
        ("shortened", 300),
        ("compacted twice in a run", 100),
        ("compacted in a run that leaves nothing", 60),
        ("compacted in a run that crashed", 60),
    ];
    check("compactions in runs", cases, &least, |case, census| check_case(&case, census));
}
