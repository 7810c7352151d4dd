//! A session in use equals the session that a fresh process loads: the same groups, sizes, verdicts and projection
//! after every step, in memory and in SQLite. An operation whose future is dropped has happened wholly or not at all.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test support")]

use core::future::Future;
use core::ops::Range;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};
use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use epitome::compactors::{SlidingWindow, Truncation, Window};
use epitome::core::attribution::{Authority, SeqRange, SourceKind};
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Head, Outcome, Pass, Planner, Revision, Seq};
use epitome::history::{
    AppendToken, History, HistoryError, HistoryStore, Loaded, MemoryStore, SessionId, SqliteStore,
    StoreError, StoreErrorKind,
};
use epitome::message::{Attribution, Message, Part, ToolCall};
use epitome_tests::around::{Around, Pauses, StoreWith};
use futures::executor::block_on;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append(Vec<Said>),
    /// Compact to this share of the current size, in percent, with the window or with truncation.
    Compact(u64, bool),
    Reload,
}

#[derive(Debug, Clone)]
enum Said {
    System,
    User,
    Assistant(bool),
    Calls(Vec<u8>),
    /// An answer to the call with this id. The call may be open, missing, or already answered or hidden.
    Result(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let said = prop_oneof![
        1 => Just(Said::System),
        4 => Just(Said::User),
        3 => any::<bool>().prop_map(Said::Assistant),
        4 => prop::collection::vec(0_u8..5, 1..4).prop_map(Said::Calls),
        8 => (0_u8..6).prop_map(Said::Result),
    ];
    let step = prop_oneof![
        6 => prop::collection::vec(said, 1..7).prop_map(Step::Append),
        3 => (1_u64..90, any::<bool>()).prop_map(|(percent, window)| Step::Compact(percent, window)),
        1 => Just(Step::Reload),
    ];
    prop::collection::vec(step, 1..24)
}

impl Said {
    fn message(&self, at: usize) -> Message {
        let text = format!("message {at} says: {}", "日本語 and some words ".repeat(at % 7 + 1));
        match self {
            Self::System => Message::system(text),
            Self::User => Message::user(text),
            Self::Assistant(false) => Message::assistant(text),
            Self::Assistant(true) => Message::assistant(text).with_response_id(format!("r{}", at % 3)),
            Self::Calls(ids) => {
                let call =
                    |id: &u8| Part::ToolCall(ToolCall::new(format!("c{id}"), "read", r#"{"path":"a"}"#));
                Message::new(Role::Assistant, ids.iter().map(call).collect())
            }
            Self::Result(id) => Message::tool(format!("c{id}"), text),
        }
    }
}

fn open(store: &Arc<dyn HistoryStore>) -> History {
    let session = SessionId::new("session");
    block_on(History::open(Arc::clone(store), session, Arc::new(ClassEstimator::new()))).unwrap()
}

/// Everything that a session shows.
fn shown(history: &History) -> (Head, Revision, Vec<String>, Vec<Message>, String) {
    let keys = |run: Range<u32>| run.map(|at| history.live()[at as usize].key.0).collect::<Vec<_>>();
    let groups = history.index().groups().map(|group| {
        let members: Vec<_> = group.positions().flat_map(keys).collect();
        format!("{:?} {members:?} turn {} tokens {}", group.kind(), group.turn(), group.tokens())
    });
    let budget = Budget::builder().window(10_000_000).trigger(9).goal(0).min_reclaim(0).build().unwrap();
    let mut planner = Planner::new();
    let verdicts = match planner.plan(history.index(), &budget, Pass::Manual, &Truncation::new()).unwrap() {
        Outcome::Planned(plan) => plan.verdicts().to_string(),
        Outcome::Unchanged(why) => why.as_str().to_owned(),
    };
    (history.head(), history.revision(), groups.collect(), history.projection().cloned().collect(), verdicts)
}

fn run(store: &Arc<dyn HistoryStore>, steps: &[Step]) -> Result<[usize; 3], TestCaseError> {
    let mut history = open(store);
    let (mut appended, mut seen) = (0, [0; 3]);
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Append(said) => {
                let messages: Vec<_> = said.iter().map(|said| said.message(appended)).collect();
                appended += messages.len();
                block_on(history.append(&AppendToken::new(format!("{at}")), messages)).unwrap();
            }
            Step::Compact(percent, window) => {
                let goal = history.index().tokens() * percent / 100;
                let budget =
                    Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal).min_reclaim(0);
                let budget = budget.build().unwrap();
                let done = match window {
                    true => {
                        block_on(history.compact(&budget, Pass::Manual, &SlidingWindow::new(Window::Goal)))
                    }
                    false => block_on(history.compact(&budget, Pass::Manual, &Truncation::new())),
                };
                if let Some(record) = done.unwrap() {
                    seen[0] += 1;
                    seen[1] += usize::from(!record.unanswered.is_empty());
                    prop_assert_eq!(history.index().tokens(), record.tokens_after);
                }
            }
            Step::Reload => block_on(history.reload()).unwrap(),
        }
        prop_assert_eq!(shown(&history), shown(&open(store)));
        prop_assert_eq!(history.head(), Seq(appended as u64));
    }
    let log = block_on(store.log(&SessionId::new("session"), Seq(0)..Seq(u64::MAX), u32::MAX));
    if let Ok(log) = log {
        prop_assert_eq!(log.messages.len(), appended);
        seen[2] = log.messages.iter().filter(|logged| logged.entry.late).count();
    }
    Ok(seen)
}

#[test]
fn what_a_session_shows_is_what_a_fresh_process_loads() {
    let cases = epitome_tests::cases::count();
    let mut runner =
        prop::test_runner::TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let seen = core::cell::RefCell::new([0_usize; 3]);
    runner
        .run(&steps(), |steps| {
            let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let counts = run(&memory, &steps)?;
            seen.borrow_mut().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            let sqlite: Arc<dyn HistoryStore> = Arc::new(SqliteStore::open_in_memory().unwrap());
            run(&sqlite, &steps)?;
            prop_assert_eq!(shown(&open(&memory)), shown(&open(&sqlite)));
            Ok(())
        })
        .unwrap();
    let [compactions, unanswered, late] = seen.into_inner();
    println!(
        "{cases} cases: {compactions} compactions, {unanswered} that hid unanswered calls, {late} late answers"
    );
    let least = cases as usize / 8;
    assert!(compactions > least && unanswered > least / 8 && late > least, "the nasty cases are too rare");
}

/// Leaves out the second message in each load while the flag is set.
#[derive(Debug, Default)]
struct Forgets(AtomicBool);

#[async_trait]
impl Around for Forgets {
    async fn load(&self, store: &MemoryStore, session: &SessionId) -> Result<Loaded, StoreError> {
        let mut loaded = store.load(session).await?;
        if self.0.load(Ordering::Relaxed) {
            loaded.live.remove(1);
        }
        Ok(loaded)
    }
}

/// Polls a future at most `polls` times, then drops it. Returns whether it was ready.
fn poll_and_drop<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future: Pin<&mut _> = pin!(future);
    (0..polls).any(|_| future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready())
}

#[test]
fn a_dropped_append_has_happened_wholly_or_not_at_all_and_can_be_repeated() {
    let mut seen = BTreeSet::new();
    for polls in 0..8 {
        let store: Arc<dyn HistoryStore> = Arc::new(StoreWith::<Pauses>::default());
        let mut history = open(&store);
        let token = AppendToken::new("once");
        let said = || vec![Message::user("Is it there?"), Message::assistant("It is.")];
        let before = shown(&history);
        let over = poll_and_drop(history.append(&token, said()), polls);
        seen.insert((over, open(&store).head().0));
        assert!(over || shown(&history) == before, "shows what is in doubt after {polls} polls");
        block_on(history.append(&token, said())).unwrap();
        assert_eq!((history.head(), open(&store).head()), (Seq(2), Seq(2)), "after {polls} polls");
        assert_eq!(shown(&history), shown(&open(&store)));
    }
    assert_eq!(seen, [(false, 0), (false, 2), (true, 2)].into(), "dropped before and after it happened");
}

#[test]
fn a_dropped_compaction_has_happened_wholly_or_not_at_all() {
    let mut seen = BTreeSet::new();
    for polls in 0..8 {
        let store: Arc<dyn HistoryStore> = Arc::new(StoreWith::<Pauses>::default());
        let mut history = open(&store);
        for turn in 0..20 {
            let said = vec![Message::user("And now?"), Message::assistant("One step further.")];
            block_on(history.append(&AppendToken::new(format!("{turn}")), said)).unwrap();
        }
        let before = shown(&history);
        let budget = Budget::builder().window(1_000).trigger(100).goal(80).build().unwrap();
        let over = poll_and_drop(history.compact(&budget, Pass::Manual, &Truncation::new()), polls);
        let found = open(&store);
        seen.insert((over, found.revision().0));
        assert!(shown(&found) == before || found.revision() == Revision(1), "after {polls} polls");
        block_on(history.append(&AppendToken::new("more"), vec![Message::user("Still there?")])).unwrap();
        assert_eq!(shown(&history), shown(&open(&store)));
    }
    assert_eq!(seen, [(false, 0), (false, 1), (true, 1)].into(), "dropped before and after it happened");
}

#[test]
fn of_two_handles_the_one_behind_gets_a_conflict_and_loses_nothing() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let (mut first, mut second) = (open(&store), open(&store));
    block_on(first.append(&AppendToken::new("a"), vec![Message::user("First.")])).unwrap();
    let late = block_on(second.append(&AppendToken::new("b"), vec![Message::user("Second.")]));
    assert_eq!(late.unwrap_err().kind(), StoreErrorKind::Conflict);
    // The handle has caught up, and the same append goes through.
    block_on(second.append(&AppendToken::new("b"), vec![Message::user("Second.")])).unwrap();
    assert_eq!(open(&store).index().messages(), 2);
}

#[test]
fn what_is_protected_and_does_not_fit_is_an_error_and_changes_nothing() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = open(&store);
    let request = vec![Message::user("word ".repeat(1_000))];
    block_on(history.append(&AppendToken::new("a"), request)).unwrap();
    let budget = Budget::builder().window(500).build().unwrap();
    let refused = block_on(history.compact(&budget, Pass::Manual, &Truncation::new()));
    assert!(matches!(refused, Err(HistoryError::Plan(_))));
    assert_eq!(open(&store).revision(), Revision(0));
}

#[test]
fn what_cannot_be_loaded_is_not_shown_by_halves_and_the_first_error_is_told() {
    let store = Arc::new(StoreWith::<Forgets>::default());
    let both: Arc<dyn HistoryStore> = store.clone();
    let (mut first, mut second) = (open(&both), open(&both));
    let call = Said::Calls(vec![1]).message(1);
    let said = vec![Message::user("Look."), call, Message::tool("c1", "Here.")];
    block_on(first.append(&AppendToken::new("a"), said.clone())).unwrap();
    let (before, empty) = (shown(&first), shown(&second));
    store.around.0.store(true, Ordering::Relaxed);
    assert_eq!(block_on(first.reload()).unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert_eq!(shown(&first), before);
    // An append to a history that may be out of date fails.
    let more = || vec![Message::user("More?")];
    assert!(block_on(first.append(&AppendToken::new("b"), more())).is_err());
    let behind = block_on(second.append(&AppendToken::new("b"), more()));
    assert_eq!(behind.unwrap_err().kind(), StoreErrorKind::Conflict);
    assert_eq!(shown(&second), empty);
    store.around.0.store(false, Ordering::Relaxed);
    block_on(first.append(&AppendToken::new("b"), more())).unwrap();
    assert_eq!((shown(&first), first.head()), (shown(&open(&both)), Seq(4)));
}

#[test]
fn a_message_that_claims_to_be_a_summary_hides_nothing_but_itself() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = open(&store);
    let covers = vec![SeqRange { first: Seq(0), last: Seq(0) }];
    let claims = Attribution::new("elsewhere", SourceKind::Compaction, Authority::Assistant);
    let claims = Message::assistant("So far.").with_attribution(claims.with_derived_from(covers));
    let mut said = vec![Message::user("The task."), claims];
    said.extend((0..40).flat_map(|at| [Message::assistant("Done."), Said::User.message(at)]));
    block_on(history.append(&AppendToken::new("a"), said)).unwrap();
    // A summary is dropped last. With this goal only the newest messages stay.
    let budget = Budget::builder().window(10_000).trigger(300).goal(1).min_reclaim(0).build().unwrap();
    block_on(history.compact(&budget, Pass::Manual, &Truncation::new())).unwrap().unwrap();
    let log = block_on(store.log(&SessionId::new("session"), Seq(0)..Seq(2), 2)).unwrap();
    let hidden: Vec<_> = log.messages.iter().map(|logged| logged.hidden_by.is_some()).collect();
    assert_eq!(hidden, [false, true]);
}

/// Repeats a step while it gets a conflict, at most three times in all.
fn retried<T>(mut step: impl FnMut() -> Result<T, HistoryError>) -> T {
    for _ in 0..3 {
        match step() {
            Err(HistoryError::Store(error)) if error.kind() == StoreErrorKind::Conflict => {}
            done => return done.unwrap(),
        }
    }
    unreachable!("a conflict with nobody")
}

fn run_two(store: &Arc<dyn HistoryStore>, steps: &[(bool, Step)]) -> Result<[usize; 2], TestCaseError> {
    let mut handles = [open(store), open(store)];
    let (mut appended, mut seen) = (0, [0; 2]);
    for (at, (second, step)) in steps.iter().enumerate() {
        let history = &mut handles[usize::from(*second)];
        let behind = shown(history) != shown(&open(store));
        let reached = match step {
            Step::Append(said) => {
                let messages: Vec<_> = said.iter().map(|said| said.message(appended)).collect();
                appended += messages.len();
                let token = AppendToken::new(format!("{at}"));
                retried(|| Ok(block_on(history.append(&token, messages.clone()))?));
                true
            }
            Step::Compact(percent, _) => {
                let goal = history.index().tokens() * percent / 100;
                let budget = Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal);
                let budget = budget.min_reclaim(0).build().unwrap();
                let made = retried(|| block_on(history.compact(&budget, Pass::Manual, &Truncation::new())));
                seen[1] += usize::from(made.is_some());
                made.is_some()
            }
            Step::Reload => block_on(history.reload()).is_ok(),
        };
        seen[0] += usize::from(behind && reached);
        prop_assert!(!reached || shown(history) == shown(&open(store)), "step {at} left the handle behind");
    }
    let log = block_on(store.log(&SessionId::new("session"), Seq(0)..Seq(u64::MAX), u32::MAX));
    prop_assert_eq!(log.map_or(0, |log| log.messages.len()), appended);
    Ok(seen)
}

#[test]
fn of_two_handles_the_one_that_acts_shows_what_a_fresh_one_loads() {
    let cases = epitome_tests::cases::count();
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let seen = core::cell::RefCell::new([0_usize; 2]);
    let whose =
        steps().prop_flat_map(|steps| (prop::collection::vec(any::<bool>(), steps.len()), Just(steps)));
    prop::test_runner::TestRunner::new(config)
        .run(&whose, |(whose, steps)| {
            let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
            let counts = run_two(&store, &whose.into_iter().zip(steps).collect::<Vec<_>>())?;
            seen.borrow_mut().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            Ok(())
        })
        .unwrap();
    let [behind, compactions] = seen.into_inner();
    println!("{cases} cases: {behind} steps of a handle that was behind, {compactions} compactions");
    assert!(behind > cases as usize && compactions > cases as usize / 8, "the nasty cases are too rare");
}
