//! A history on the heap, with plans that are held across other operations. The commit of a plan from before a late
//! answer or another commit gets a conflict and changes nothing. Every other commit succeeds. The reference model knows
//! only the messages.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test support")]

use core::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome::compactors::Truncation;
use epitome::core::message::{PartView, Parts, Role};
use epitome::core::{Budget, ClassEstimator, Outcome, Pass, Planner, Revision, Seq};
use epitome::history::{
    AppendToken, CompactionRecord, History, HistoryStore, MemoryStore, Notes, SessionId, SqliteStore,
    StoreErrorKind,
};
use epitome::message::{Message, Part, ToolCall};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

/// Number of plans that are held at once.
const SLOTS: usize = 3;

/// The reference model: the messages of the session, and the calls without an answer.
#[derive(Debug, Clone, Default)]
struct Log {
    sqlite: bool,
    said: Vec<Message>,
    turn: u32,
    calls: u32,
    /// The calls without an answer, each with its turn.
    waiting: Vec<(u32, u32)>,
    answered: BTreeSet<u32>,
    /// Whether the last operation answered a call of an earlier turn.
    late: bool,
    /// Whether a plan was asked for, and not yet committed.
    held: [bool; SLOTS],
}

#[derive(Debug, Clone)]
enum Op {
    User,
    Assistant,
    Calls(u32),
    /// The answer to a call of this turn, or of an earlier one.
    Answer {
        which: usize,
        late: bool,
    },
    /// Plan down to this share of the size, in percent.
    Plan {
        slot: usize,
        percent: u64,
    },
    /// Commits the held plan. Afterwards the plan is discarded, or held for a second commit.
    Commit {
        slot: usize,
        keep: bool,
    },
    /// Another process opens the session and continues.
    Reload,
}

impl Log {
    /// The calls without an answer, of this turn or of earlier turns.
    fn candidates(&self, late: bool) -> Vec<u32> {
        let wanted = self.waiting.iter().filter(|call| (call.1 < self.turn) == late);
        wanted.map(|call| call.0).collect()
    }

    fn say(&mut self, message: Message) {
        self.said.push(message);
    }

    fn answer(&mut self, call: u32, late: bool) {
        self.waiting.retain(|other| other.0 != call);
        self.answered.insert(call);
        self.late = late;
        self.say(Message::tool(format!("c{call}"), words(self.said.len())));
    }
}

fn words(at: usize) -> String {
    format!("message {at}: {}", "and some more words ".repeat(at % 5 + 1))
}

impl ReferenceStateMachine for Log {
    type State = Self;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Self> {
        any::<bool>().prop_map(|sqlite| Self { sqlite, ..Self::default() }).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Op> {
        prop_oneof![
            4 => Just(Op::User),
            3 => Just(Op::Assistant),
            3 => (1_u32..4).prop_map(Op::Calls),
            6 => (any::<usize>(), any::<bool>()).prop_map(|(which, late)| Op::Answer { which, late }),
            4 => (0..SLOTS, 5_u64..70).prop_map(|(slot, percent)| Op::Plan { slot, percent }),
            4 => (0..SLOTS, any::<bool>()).prop_map(|(slot, keep)| Op::Commit { slot, keep }),
            1 => Just(Op::Reload),
        ]
        .boxed()
    }

    fn preconditions(state: &Self, op: &Op) -> bool {
        match op {
            Op::Answer { late, .. } => !state.candidates(*late).is_empty(),
            Op::Commit { slot, .. } => state.held[*slot],
            _ => true,
        }
    }

    fn apply(mut state: Self, op: &Op) -> Self {
        state.late = false;
        let at = state.said.len();
        match *op {
            Op::User => {
                state.turn += 1;
                state.say(Message::user(words(at)));
            }
            Op::Assistant => state.say(Message::assistant(words(at))),
            Op::Calls(count) => {
                let ids = state.calls..state.calls + count;
                state.calls = ids.end;
                state.waiting.extend(ids.clone().map(|id| (id, state.turn)));
                let call = |id: u32| Part::ToolCall(ToolCall::new(format!("c{id}"), "read", "{}"));
                state.say(Message::new(Role::Assistant, ids.map(call).collect()));
            }
            Op::Answer { which, late } => {
                let candidates = state.candidates(late);
                state.answer(candidates[which % candidates.len()], late);
            }
            Op::Plan { slot, .. } => state.held[slot] = true,
            Op::Commit { slot, keep } => state.held[slot] = keep,
            Op::Reload => {}
        }
        state
    }
}

/// Number of occurrences of each outcome.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    committed: u32,
    repeated: u32,
    conflicts_after_late_answers: u32,
    conflicts_after_commits: u32,
    answers_to_hidden_calls: u32,
}

thread_local! {
    static SEEN: Cell<Seen> = Cell::default();
}

fn count(count: impl FnOnce(&mut Seen)) {
    let mut seen = SEEN.get();
    count(&mut seen);
    SEEN.set(seen);
}

/// A session, and the records that are held.
struct Session {
    store: Arc<dyn HistoryStore>,
    history: History,
    held: [Option<CompactionRecord>; SLOTS],
    /// Expected revision, by the operations so far.
    revision: u64,
    /// The records that were committed, by the revision that each made.
    made: BTreeMap<u64, CompactionRecord>,
    /// The revisions that late answers have made.
    by_answer: BTreeSet<u64>,
}

impl Session {
    fn open(store: &Arc<dyn HistoryStore>) -> History {
        let counter = Arc::new(ClassEstimator::new());
        block_on(History::open(Arc::clone(store), SessionId::new("session"), counter)).unwrap()
    }

    fn append(&mut self, log: &Log) {
        let said = log.said.last().unwrap().clone();
        let token = AppendToken::new(format!("{}", log.said.len()));
        let hidden = log.late && !shows_call(&self.history, &said);
        block_on(self.history.append(&token, vec![said])).unwrap();
        if log.late {
            self.revision += 1;
            self.by_answer.insert(self.revision);
            count(|seen| seen.answers_to_hidden_calls += u32::from(hidden));
        }
    }

    fn plan(&self, percent: u64) -> Option<CompactionRecord> {
        let goal = self.history.index().tokens() * percent / 100;
        let budget = Budget::builder().window(10_000_000).trigger(5_000_000).goal(goal).min_reclaim(0);
        let (budget, strategy, mut planner) = (budget.build().unwrap(), Truncation::new(), Planner::new());
        match planner.plan(self.history.index(), &budget, Pass::Manual, &strategy).unwrap() {
            Outcome::Planned(plan) => self
                .history
                .fill(plan, &Notes::default(), |ready| self.history.record(&ready, "truncation"))
                .ok(),
            Outcome::Unchanged(_) => None,
        }
    }

    fn commit(&mut self, record: &CompactionRecord) {
        let before = shown(&self.history);
        let next = record.parent.0 + 1;
        let repeats = self.made.get(&next) == Some(record);
        let done = block_on(self.history.commit(record));
        if record.parent == Revision(self.revision) {
            self.revision += 1;
            assert_eq!(done.unwrap(), Revision(self.revision));
            assert_eq!(
                self.history.index().tokens(),
                record.tokens_after + appended_since(record, &self.history)
            );
            self.made.insert(self.revision, record.clone());
            count(|seen| seen.committed += 1);
        } else if repeats {
            // A repeated commit, as after a lost acknowledgement. It succeeds and changes nothing, also after later
            // operations.
            assert_eq!(done.unwrap(), Revision(next));
            assert_eq!(shown(&self.history), before);
            count(|seen| seen.repeated += 1);
        } else {
            assert_eq!(done.unwrap_err().kind(), StoreErrorKind::Conflict);
            assert_eq!(shown(&self.history), before);
            let answered = self.by_answer.contains(&next);
            count(|seen| seen.conflicts_after_late_answers += u32::from(answered));
            count(|seen| seen.conflicts_after_commits += u32::from(!answered));
        }
    }
}

/// The tokens of the messages that were appended after a plan was made.
fn appended_since(record: &CompactionRecord, history: &History) -> u64 {
    let after = history.live().iter().filter(|live| live.key >= record.head);
    after.map(|live| live.entry.count.tokens.as_u64()).sum()
}

fn shown(history: &History) -> (Seq, Revision, Vec<Message>) {
    (history.head(), history.revision(), history.projection().cloned().collect())
}

fn calls(message: &Message) -> Vec<String> {
    let mut ids = Vec::new();
    message.for_each_part(&mut |part| {
        if let PartView::ToolCall(call) = part {
            ids.push(call.id.to_owned());
        }
    });
    ids
}

fn answer(message: &Message) -> Option<String> {
    let mut id = None;
    message.for_each_part(&mut |part| {
        if let PartView::ToolResult(result) = part {
            id = Some(result.call_id.to_owned());
        }
    });
    id
}

/// Whether the call that a message answers is visible.
fn shows_call(history: &History, said: &Message) -> bool {
    let id = answer(said).unwrap();
    history.projection().any(|message| calls(message).contains(&id))
}

impl StateMachineTest for Session {
    type SystemUnderTest = Self;
    type Reference = Log;

    fn init_test(log: &Log) -> Self {
        let store: Arc<dyn HistoryStore> = match log.sqlite {
            true => Arc::new(SqliteStore::open_in_memory().unwrap()),
            false => Arc::new(MemoryStore::new()),
        };
        let history = Self::open(&store);
        let held = [None, None, None];
        Self { store, history, held, revision: 0, made: BTreeMap::new(), by_answer: BTreeSet::new() }
    }

    fn apply(mut session: Self, log: &Log, op: Op) -> Self {
        match op {
            Op::User | Op::Assistant | Op::Calls(_) | Op::Answer { .. } => session.append(log),
            Op::Plan { slot, percent } => session.held[slot] = session.plan(percent),
            Op::Commit { slot, keep } => {
                if let Some(record) = session.held[slot].take() {
                    session.commit(&record);
                    session.held[slot] = keep.then_some(record);
                }
            }
            Op::Reload => session.history = Self::open(&session.store),
        }
        session
    }

    /// No message is lost, the projection is the one that a fresh process loads, and answered calls stand with their
    /// answers.
    fn check_invariants(session: &Self, log: &Log) {
        assert_eq!(session.history.revision(), Revision(session.revision));
        assert_eq!(shown(&session.history), shown(&Self::open(&session.store)));
        if !log.said.is_empty() {
            let whole = Seq(0)..Seq(u64::MAX);
            let page = block_on(session.store.log(&SessionId::new("session"), whole, u32::MAX)).unwrap();
            assert!(page.messages.iter().map(|logged| &logged.entry.message).eq(&log.said));
        }
        let (mut open, mut done) = (BTreeSet::new(), BTreeSet::new());
        for message in session.history.projection() {
            open.extend(calls(message));
            if let Some(id) = answer(message) {
                assert!(open.remove(&id), "an answer without its call, or a second one");
                done.insert(id);
            }
        }
        for call in &log.answered {
            assert!(!open.contains(&format!("c{call}")), "a call without its answer");
        }
    }
}

#[test]
fn a_plan_from_before_a_late_answer_or_a_commit_gets_a_conflict() {
    let cases = epitome_tests::cases::count();
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        // Operations that are not possible at their place in a series are rejected. The limit is for all cases
        // together.
        max_local_rejects: u32::MAX,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new(config.clone());
    let done = runner.run(&Log::sequential_strategy(1..60), |(log, operations, counter)| {
        Session::test_sequential(config.clone(), log, operations, counter);
        Ok(())
    });
    assert!(done.is_ok(), "{}", done.unwrap_err());
    let seen = SEEN.get();
    println!("{cases} cases: {seen:?}");
    let outcomes = [
        seen.committed,
        seen.repeated,
        seen.conflicts_after_late_answers,
        seen.conflicts_after_commits,
        seen.answers_to_hidden_calls,
    ];
    assert!(outcomes.iter().all(|times| *times > cases / 10), "{seen:?}: an outcome is too rare");
}
