//! Branches: sessions that begin with the messages of another session.

use std::sync::Arc;

use epitome::agent::Agent;
use epitome::compaction::CompactionOptions;
use epitome::compactors::{Engine, Truncation};
use epitome::core::Seq;
use epitome::history::MemoryStore;
use epitome::provider::HistoryProvider;
use epitome::run::{RunOptions, RunSettings, branch};
use epitome::session::{AgentSession, SessionErrorKind};
use futures::executor::block_on;

use crate::sessions::runs::settings;
use crate::sessions::support::{Scripted, log, shown};

fn talk(agent: &Agent, session: &mut AgentSession, turns: usize) {
    for turn in 0..turns {
        let question = format!("{turn}: {}", "where is it? ".repeat(10));
        block_on(agent.run(session, question, &RunOptions::default())).unwrap();
    }
}

/// A branch begins with the turns before the given message, and both sessions go on independently. The history is kept
/// in a store, or in the session itself.
#[test]
fn a_branch_begins_with_the_turns_before_and_both_go_on_for_themselves() {
    for in_session in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let settings = match in_session {
            true => RunSettings::new("a").with_provider(HistoryProvider::in_memory()).unwrap(),
            false => settings(&store),
        };
        let client = Scripted::says("Behind the door.");
        let agent = Agent::with_settings(settings, client.clone());
        let mut session = agent.create_session(Some("s"), None);
        talk(&agent, &mut session, 10);
        let engine = Engine::new(Truncation::new());
        block_on(agent.compact(&mut session, &engine, CompactionOptions::default())).unwrap();
        talk(&agent, &mut session, 2);
        let sent = |session: &mut AgentSession| {
            block_on(agent.run(session, "And now?", &RunOptions::default())).unwrap();
            client.last()
        };

        // A branch after the compaction has the compaction too. A branch before it shows all messages.
        let mut late = block_on(branch(agent.settings(), &mut session, Seq(22))).unwrap();
        let mut early = block_on(branch(agent.settings(), &mut session, Seq(6))).unwrap();
        assert_ne!(late.session_id(), session.session_id());
        late = AgentSession::from_dict(late.to_dict().unwrap()).unwrap();
        let (early, late, whole) = (sent(&mut early), sent(&mut late), sent(&mut session));
        assert_eq!(
            (early.len(), &early[..1]),
            (7, &[format!("user: 0: {}", "where is it? ".repeat(10))][..])
        );
        assert_eq!(late.len() + 2, whole.len(), "the last turn is missing");
        assert_eq!(late[..late.len() - 1], whole[..late.len() - 1]);
        assert!(whole.len() < 20, "it was compacted: {whole:?}");
        if !in_session {
            assert_eq!((log(&*store, "s").len(), shown(&*store, "s").len()), (26, whole.len() + 1));
        }
    }
}

#[test]
fn a_place_where_nothing_begins_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::with_settings(settings(&store), Scripted::says("Well."));
    let mut session = agent.create_session(Some("s"), None);
    let kind = |session: &mut AgentSession, at| {
        block_on(branch(agent.settings(), session, Seq(at))).map(|_| ()).unwrap_err().kind()
    };
    assert_eq!(kind(&mut session, 1), SessionErrorKind::NotFound);
    talk(&agent, &mut session, 2);
    assert_eq!([0, 5].map(|at| kind(&mut session, at)), [SessionErrorKind::Invalid; 2]);
    let mut served = agent.get_session("thread_1", None);
    assert_eq!(kind(&mut served, 1), SessionErrorKind::Invalid);
    let bare =
        RunSettings::new("a").with_provider(HistoryProvider::in_memory().load_messages(false)).unwrap();
    assert_eq!(
        block_on(branch(&bare, &mut session, Seq(1))).map(|_| ()).unwrap_err().kind(),
        SessionErrorKind::Invalid
    );
}
