//! Window of a run's model: from its name, from a refusal, and less the answer that a request reserves.

use std::sync::Arc;

use epitome::compaction::RunPoints;
use epitome::core::{Seq, Trigger};
use epitome::history::{HistoryStore, MemoryStore, SessionId};
use epitome::models::Model;
use epitome::run::{RunEvent, RunOptions};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::runs::settings;
use crate::sessions::strict::{Strict, WINDOW, agent, compaction, compactions, talk};
use crate::sessions::support::log;

/// Only the figures of the model are configured: no trigger, no window, no counter.
#[test]
fn an_agent_of_a_small_model_that_is_known_is_never_refused() {
    for points in [RunPoints::default(), RunPoints::NONE.and_before_call(), RunPoints::NONE.and_after_run()] {
        let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(WINDOW));
        let settings = settings(&store)
            .with_model_row(Model::new("small", WINDOW))
            .with_compaction(compaction().with_points(points));
        let agent = agent(settings, &client);
        let events = talk(&agent, &mut agent.create_session(Some("s"), None), 200);
        assert_eq!((client.refusals(), log(&*store, "s").len()), (0, 400));
        assert!(compactions(&events) > 5, "{points:?}: {}", compactions(&events));
    }
}

/// The window of an unknown model is assumed to be 128,000 tokens. The first refusal names another window, or shows
/// only that the window is smaller.
#[test]
fn an_agent_of_an_unknown_model_learns_from_a_refusal() {
    for (tells, streams) in [(true, true), (true, false), (false, true)] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { tells, streams, ..Strict::new(WINDOW) };
        let agent = agent(settings(&store).with_model("new").with_compaction(compaction()), &client);
        let mut session = agent.create_session(Some("s"), None);
        let events = talk(&agent, &mut session, 200);
        assert_eq!(log(&*store, "s").len(), 400, "all is stored, and once");
        let refusals = client.refusals();
        let told = events.iter().filter(|event| matches!(event, RunEvent::Refused { .. })).count();
        assert_eq!(told, refusals);
        // A service that names no window refuses each time that the history has grown again.
        assert!(if tells { refusals == 1 } else { (5..20).contains(&refusals) }, "{refusals}");
    }
}

/// An impossible limit in a refusal does not shrink the window: the next refusal is handled like a refusal without a
/// limit.
#[test]
fn a_limit_that_cannot_be_is_not_kept_in_mind() {
    for limit in [0, 1, 128, 1_023, u64::MAX] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { claims: Some(limit), ..Strict::new(3_000) };
        let settings = settings(&store).with_model_row(Model::new("small", WINDOW));
        let agent = agent(settings.with_compaction(compaction()), &client);
        let mut session = agent.create_session(Some("s"), None);
        talk(&agent, &mut session, 200);
        // Without a limit the session is refused each time that it has grown to 3,000 again.
        assert!((5..20).contains(&client.refusals()), "{limit}: {}", client.refusals());
        assert_eq!(session.window_told(), None);
    }
}

/// A session moves from an endpoint with a small window to an endpoint with a larger window: the first answer to a
/// larger request removes the learned window.
#[test]
fn a_window_that_was_told_is_forgotten_when_more_is_answered() {
    let (store, small, large) = (Arc::new(MemoryStore::new()), Strict::new(2_000), Strict::new(WINDOW));
    let settings = settings(&store).with_model_row(Model::new("m", WINDOW)).with_compaction(compaction());
    let (at_small, at_large) = (agent(settings.clone(), &small), agent(settings, &large));
    let mut session = at_small.create_session(Some("s"), None);
    talk(&at_small, &mut session, 40);
    assert_eq!((small.refusals(), session.window_told()), (1, Some(2_000)));
    let long = "where is it? ".repeat(500);
    block_on(at_large.run(&mut session, long, &RunOptions::default())).unwrap();
    assert_eq!(session.window_told(), None);
    assert_eq!(large.refusals(), 0);
}

/// The service counts `max_tokens` as a part of the request. If the run's options contain this number, that part of the
/// window stays free. If only the client knows it, the run compacts after each refusal.
#[test]
fn what_a_request_keeps_for_its_answer_stays_free() {
    for (known, refusals) in [(true, 0..1), (false, 5..25)] {
        let store = Arc::new(MemoryStore::new());
        let client = Strict { answer_max: 1_600, ..Strict::new(WINDOW) };
        let settings = settings(&store).with_model_row(Model::new("m", WINDOW)).with_compaction(compaction());
        let agent = agent(settings, &client);
        let mut session = agent.create_session(Some("s"), None);
        let options = RunOptions::default();
        let options = if known { options.with_option("max_tokens", 1_600) } else { options };
        for run in 0..200 {
            let question = format!("{run}: {}", "where is it? ".repeat(15));
            block_on(agent.run(&mut session, question, &options)).unwrap();
        }
        assert!(refusals.contains(&client.refusals()), "{known}: {}", client.refusals());
        assert_eq!(session.window_told(), None, "the window is the one that was known");
    }
    // If the answer may have the whole window, no compaction helps.
    let (store, client) =
        (Arc::new(MemoryStore::new()), Strict { answer_max: WINDOW, ..Strict::new(WINDOW) });
    let agent = agent(settings(&store).with_compaction(compaction()), &client);
    let mut session = agent.create_session(Some("s"), None);
    let error = block_on(agent.run(&mut session, "Hi", &RunOptions::default())).unwrap_err();
    assert!(error.to_string().ends_with("lower the limit of the answer"), "{error}");
    assert_eq!(client.refusals(), 1);
}

/// A learned window counts with a trigger for a larger window, and in a session that is written and read between its
/// runs.
#[test]
fn a_window_that_was_told_counts_under_every_trigger_and_after_a_restart() {
    let store = Arc::new(MemoryStore::new());
    let client = Strict::new(WINDOW);
    let auto = compaction().with_trigger(Trigger::tokens(80_000));
    let agent = agent(settings(&store).with_model("new").with_compaction(auto), &client);
    let mut session = agent.create_session(Some("s"), None);
    for _ in 0..100 {
        talk(&agent, &mut session, 2);
        session = AgentSession::from_json(&session.to_json().unwrap()).unwrap();
    }
    assert_eq!((client.refusals(), session.window_told()), (1, Some(WINDOW)));
}

/// A run and its history have one counter: stored messages are counted like sent messages.
#[test]
fn a_history_counts_as_its_run_does() {
    let (store, client) = (Arc::new(MemoryStore::new()), Strict::new(u64::MAX));
    let agent = agent(settings(&store).with_model("claude-sonnet-4-5"), &client);
    let mut session = agent.create_session(Some("s"), None);
    talk(&agent, &mut session, 3);
    let name = agent.settings().counter().name().to_owned();
    assert!(name.ends_with("@claude-sonnet-4-5"), "{name}");
    let page = block_on(store.log(&SessionId::new("s"), Seq(0)..Seq(u64::MAX), u32::MAX)).unwrap();
    assert!(page.messages.iter().all(|logged| logged.entry.count.counter.as_str() == name));
}
