//! Promises of the documentation about runs, as a program sees them: compactions, their counter, and the texts of their
//! events.

use std::sync::Arc;

use epitome::compaction::{AutoCompaction, CompactionOptions, CompactionOutcome, FellBack};
use epitome::compactors::Truncation;
use epitome::core::{Basis, ClassEstimator, TokenCounter, Tokens, Trigger};
use epitome::history::{AppendToken, History, HistoryStore, JsonlStore, SessionId};
use epitome::message::Message;
use epitome::provider::HistoryProvider;
use epitome::run::{ModelResponse, Point, Run, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionErrorKind};
use futures::executor::block_on;

use super::support::Truncating;

/// A token counter with ten times the count of the estimator.
#[derive(Debug)]
struct Tenfold;

impl TokenCounter for Tenfold {
    fn name(&self) -> &str {
        "tenfold"
    }

    fn basis(&self) -> Basis {
        Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(ClassEstimator::new().count(text).0 * 10)
    }
}

/// Events of a run in which the user asks and the model answers with `words` words.
fn run(settings: &RunSettings, session: &mut AgentSession, words: usize) -> Vec<RunEvent> {
    block_on(async {
        let input = vec![Message::user("And then?")];
        let mut run = Run::begin(settings, session, input, &RunOptions::default()).await.unwrap();
        let prompt = run.prompt().await.unwrap();
        let answer = Message::assistant("word ".repeat(words));
        run.record(prompt.handle, ModelResponse::new(vec![answer])).await.unwrap();
        run.finish().await.unwrap().events
    })
}

fn has_compacted(events: &[RunEvent]) -> bool {
    events.iter().any(|event| matches!(event, RunEvent::Compacted { .. }))
}

/// Settings that compact the stored history when it has more than `trigger` tokens.
fn settings(trigger: u64, counter: Arc<dyn TokenCounter + Send + Sync>) -> RunSettings {
    let auto = AutoCompaction::new(Truncating(Truncation::new()))
        .with_trigger(Trigger::tokens(trigger))
        .with_options(CompactionOptions::default().with_window(10 * trigger));
    RunSettings::new("agent").with_counter(counter).with_compaction(auto)
}

#[test]
fn a_session_is_compacted_at_most_once_in_two_turns() {
    let settings = settings(1_000, Arc::new(ClassEstimator::new()));
    let mut session = AgentSession::with_id("session");
    let compacted: Vec<bool> = (0..40).map(|_| has_compacted(&run(&settings, &mut session, 700))).collect();
    assert!(compacted.windows(2).all(|two| two != [true, true]), "{compacted:?}");
    // A compaction is due in each of the later turns, and every second turn compacts.
    assert!(compacted[20..].iter().filter(|compacted| **compacted).count() == 10, "{compacted:?}");
}

#[test]
fn the_history_that_a_run_has_by_default_counts_as_the_run_does() {
    let compacts = |counter| {
        let (settings, mut session) = (settings(1_000, counter), AgentSession::with_id("session"));
        (0..6).any(|_| has_compacted(&run(&settings, &mut session, 50)))
    };
    assert!(!compacts(Arc::new(ClassEstimator::new())));
    assert!(compacts(Arc::new(Tenfold)));
}

#[test]
fn what_events_and_outcomes_say_is_in_their_debug_form() {
    let unchanged = CompactionOutcome::Unchanged("nothing to drop".into());
    let events = [
        RunEvent::Unchanged { point: Point::BeforeRun, reason: "nothing to drop".into() },
        RunEvent::StateNotKept { source_id: "memory".into(), kind: SessionErrorKind::Conflict },
        RunEvent::FellBack {
            point: Point::BeforeRun,
            fell_back: FellBack::new("summarize", SessionErrorKind::Unavailable, "truncate"),
        },
    ];
    let said = format!("{unchanged:?} {events:?}");
    for word in ["nothing to drop", "memory", "summarize", "truncate"] {
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn writers_that_meet_again_and_again_all_get_their_turn() {
    const WRITERS: usize = 4;
    const APPENDS: usize = 40;
    let folder = std::env::temp_dir().join(format!("epitome-writers-{}", std::process::id()));
    let open = || -> Arc<dyn HistoryStore> { Arc::new(JsonlStore::open(&folder).unwrap()) };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let open = &open;
            scope.spawn(move || {
                let counter = Arc::new(ClassEstimator::new());
                let mut history =
                    block_on(History::open(open(), SessionId::new("session"), counter)).unwrap();
                for at in 0..APPENDS {
                    let token = AppendToken::new(format!("{writer}-{at}"));
                    let said = vec![Message::user(format!("{writer}, {at}"))];
                    block_on(HistoryProvider::append(&mut history, &token, said)).unwrap();
                }
            });
        }
    });
    let head = block_on(open().load(&SessionId::new("session"))).unwrap().head;
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(head.0 as usize, WRITERS * APPENDS);
}
