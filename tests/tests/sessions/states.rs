//! State of a session, which is stored with its history.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use epitome::agent::Agent;
use epitome::core::Usage;
use epitome::history::{HistoryStore, MemoryStore, NewState, SessionId, SqliteStore, StateRevision};
use epitome::message::Message;
use epitome::provider::{ClosureProvider, HistoryProvider, Hook, Providers};
use epitome::run::{ModelResponse, Persistence, RunEvent, RunOptions, RunOutcome, RunSettings};
use epitome::session::{AgentSession, SessionError, SessionErrorKind};
use epitome_tests::around::{Pauses, StoreWith, pause};
use futures::executor::block_on;
use futures::task::noop_waker;

use crate::sessions::support::{Scripted, log};

/// Moment at which a provider counts a run. A provider before the history is called after the history has stored.
#[derive(Clone, Copy)]
enum Counts {
    /// Before the run, so that the state that is stored with the run includes it.
    Before,
    /// After the history has stored.
    After,
}

fn counting(counts: Counts) -> ClosureProvider {
    match counts {
        Counts::Before => ClosureProvider::before_run(count),
        Counts::After => ClosureProvider::after_run(count),
    }
}

/// Counts the runs of a session.
async fn count(hook: Hook<'_>) -> Result<(), SessionError> {
    pause().await;
    let runs = hook.state.get("runs").and_then(|runs| runs.as_u64()).unwrap_or(0);
    hook.state.insert("runs".into(), (runs + 1).into());
    pause().await;
    Ok(())
}

/// An agent with a history provider that keeps sessions in `store`, and this provider.
fn agent(store: Arc<dyn HistoryStore>, counts: Counts, persistence: Persistence) -> (Agent, HistoryProvider) {
    let history = HistoryProvider::new("memory", store).keep_state(true);
    let mut providers = Providers::default();
    providers.push_closure(counting(counts)).unwrap();
    providers.push(history.clone()).unwrap();
    let client = Scripted::new(|_, _| {
        let said = ModelResponse::new(vec![Message::assistant("Forty-two.")]);
        Ok(said.with_usage(Usage::new(30, 3)))
    });
    let settings = RunSettings::new("a").with_providers(providers).with_persistence(persistence);
    (Agent::with_settings(settings, client), history)
}

fn run(agent: &Agent, session: &mut AgentSession) -> RunOutcome {
    block_on(agent.run(session, "How many?", &RunOptions::default())).unwrap()
}

fn load(history: &HistoryProvider) -> AgentSession {
    block_on(history.load_session("s")).unwrap()
}

fn runs(session: &AgentSession) -> u64 {
    session.state().get("decorated").and_then(|state| state["runs"].as_u64()).unwrap_or(0)
}

fn state_revision(store: &dyn HistoryStore) -> u64 {
    let kept = block_on(store.state(&SessionId::new("s"))).unwrap();
    kept.map_or(StateRevision::default(), |kept| kept.revision).0
}

#[test]
fn what_a_session_remembers_is_there_in_a_fresh_process() {
    for counts in [Counts::Before, Counts::After] {
        for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
            let store = Arc::new(SqliteStore::open_in_memory().unwrap());
            for turn in 1..=3 {
                let (agent, history) = agent(store.clone(), counts, persistence);
                let mut session = load(&history);
                assert_eq!(runs(&session), turn - 1);
                let outcome = run(&agent, &mut session);
                assert!(outcome.events.is_empty(), "{:?}", outcome.events);
                let fresh = load(&history);
                assert_eq!(fresh.to_dict().unwrap(), session.to_dict().unwrap());
                assert_eq!((runs(&fresh), fresh.token_count()), (turn, 30));
            }
            block_on(store.delete(&SessionId::new("s"))).unwrap();
            assert_eq!(runs(&load(&agent(store, counts, persistence).1)), 0);
        }
    }
}

#[test]
fn what_is_not_changed_after_the_append_is_kept_in_that_one_step() {
    for (counts, steps) in [(Counts::Before, 1), (Counts::After, 2)] {
        let store = Arc::new(MemoryStore::new());
        let (agent, history) = agent(store.clone(), counts, Persistence::PerRun);
        let mut session = load(&history);
        for turn in 1..=3 {
            run(&agent, &mut session);
            assert_eq!(state_revision(&*store), turn * steps);
        }
    }
}

#[test]
fn a_session_that_is_behind_stores_what_was_said_and_says_so() {
    let store = Arc::new(MemoryStore::new());
    let (agent, history) = agent(store.clone(), Counts::Before, Persistence::PerRun);
    let (mut one, mut other) = (load(&history), load(&history));
    run(&agent, &mut one);
    run(&agent, &mut one);
    for said in [3, 4] {
        let outcome = run(&agent, &mut other);
        let stale = RunEvent::StateNotKept { source_id: "memory".into(), kind: SessionErrorKind::Conflict };
        assert_eq!(outcome.events, [stale]);
        assert_eq!(log(&*store, "s").len(), 2 * said);
        assert_eq!(runs(&load(&history)), 2);
    }
    // Loaded again, it goes on.
    let mut other = load(&history);
    assert!(run(&agent, &mut other).events.is_empty());
    assert_eq!((runs(&load(&history)), log(&*store, "s").len()), (3, 10));
}

/// A stored session is deleted while a process uses it: it begins again, with the state of the process.
#[test]
fn a_session_that_was_deleted_keeps_its_state_again() {
    let stores: [Arc<dyn HistoryStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(SqliteStore::open_in_memory().unwrap())];
    for store in stores {
        let (agent, history) = agent(Arc::clone(&store), Counts::After, Persistence::PerRun);
        let mut session = agent.create_session(Some("s"), None);
        run(&agent, &mut session);
        run(&agent, &mut session);
        assert!(block_on(store.delete(&SessionId::new("s"))).unwrap());
        for runs_now in [3, 4] {
            let events = run(&agent, &mut session).events;
            assert!(!events.iter().any(|event| matches!(event, RunEvent::StateNotKept { .. })), "{events:?}");
            assert_eq!(runs(&load(&history)), runs_now);
        }
        assert_eq!(log(&*store, "s").len(), 4, "what was said before is gone");
    }
}

#[test]
fn another_sessions_state_is_not_taken_for_this_ones() {
    let store = Arc::new(MemoryStore::new());
    let (agent, history) = agent(store.clone(), Counts::Before, Persistence::PerRun);
    run(&agent, &mut load(&history));
    let text = AgentSession::with_id("another").to_json().unwrap();
    let state = NewState::new(StateRevision(1), &text);
    block_on(store.save_state(&SessionId::new("s"), &state)).unwrap();
    let error = block_on(history.load_session("s")).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Corrupt);
    let in_session = block_on(HistoryProvider::in_memory().keep_state(true).load_session("s"));
    assert_eq!(in_session.unwrap_err().kind(), SessionErrorKind::Invalid);
}

/// Polls a future at most `polls` times.
fn drive<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let (mut future, waker) = (pin!(future), noop_waker());
    let mut cx = Context::from_waker(&waker);
    (0..polls).find_map(|_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    })
}

/// Every reader finds a state that includes all runs of the log and no other. The session of the dropped run goes on:
/// the messages that it has sent are its own, even if the answer of the store never came.
#[test]
fn a_run_that_is_dropped_leaves_its_state_with_its_messages_or_neither() {
    let (mut dropped, mut found_out) = (0, 0);
    for polls in 0.. {
        let store = Arc::new(StoreWith::<Pauses>::default());
        let (agent, history) = agent(store.clone(), Counts::Before, Persistence::PerRun);
        let mut session = load(&history);
        run(&agent, &mut session);
        let options = RunOptions::default();
        let is_done = drive(agent.run(&mut session, "And now?", &options), polls).is_some();
        let said = log(&store.store, "s").len() as u64;
        let fresh = load(&history);
        assert_eq!(runs(&fresh) * 2, said, "after {polls} polls");
        // The session has counted this run before it was dropped; a fresh session may not have counted it.
        let known = runs(&session);
        found_out += usize::from(!is_done && runs(&fresh) == 2);
        let outcome = run(&agent, &mut session);
        assert!(outcome.events.is_empty(), "after {polls} polls: {:?}", outcome.events);
        assert_eq!(log(&store.store, "s").len() as u64, said + 2);
        assert_eq!((runs(&session), runs(&load(&history))), (known + 1, known + 1), "after {polls} polls");
        if is_done {
            break;
        }
        dropped += 1;
    }
    assert_eq!((dropped, found_out), (7, 1), "at each pause, one of them after the append");
}

/// Messages that this session has sent are its own, even if several answers are lost.
#[test]
fn two_runs_that_are_dropped_leave_the_state_this_sessions() {
    let dropped = |store: &Arc<StoreWith<Pauses>>, polls: [usize; 2]| {
        let (agent, history) = agent(store.clone(), Counts::Before, Persistence::PerRun);
        let mut session = load(&history);
        run(&agent, &mut session);
        let options = RunOptions::default();
        let is_done =
            polls.map(|polls| drive(agent.run(&mut session, "And now?", &options), polls).is_some());
        let outcome = run(&agent, &mut session);
        assert!(outcome.events.is_empty(), "after {polls:?} polls: {:?}", outcome.events);
        assert_eq!(runs(&load(&history)), runs(&session), "after {polls:?} polls");
        is_done
    };
    let (mut first, mut second, mut lost_twice) = (0, 0, 0);
    loop {
        let store = Arc::new(StoreWith::<Pauses>::default());
        match dropped(&store, [first, second]) {
            [true, _] => break,
            [false, true] => (first, second) = (first + 1, 0),
            [false, false] => {
                (second, lost_twice) = (second + 1, lost_twice + usize::from(state_revision(&*store) == 4))
            }
        }
    }
    assert!(lost_twice > 0, "the answers to two states were lost");
}

#[test]
fn what_cannot_be_written_as_a_state_costs_no_message() {
    let store = Arc::new(MemoryStore::new());
    let (agent, history) = agent(store.clone(), Counts::Before, Persistence::PerRun);
    let mut session = load(&history);
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    let other = Agent::with_settings(RunSettings::new("b").with_providers(providers), Scripted::says("Hm."));
    run(&other, &mut session);
    // Under this key the session keeps a history, which is written as an object.
    session.state_mut().insert("in_memory".into(), 1.into());
    let outcome = run(&agent, &mut session);
    let not_kept = RunEvent::StateNotKept { source_id: "memory".into(), kind: SessionErrorKind::Invalid };
    assert_eq!((outcome.events, log(&*store, "s").len()), (vec![not_kept], 2));
}
