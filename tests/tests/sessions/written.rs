//! Sessions that are written and read between runs, and in the middle of one.

use std::sync::Arc;

use epitome::core::{Basis, Usage};
use epitome::history::{HistoryStore, MemoryStore};
use epitome::message::Message;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{Delta, ModelResponse, Persistence, Run, RunOptions, RunSettings};
use epitome::session::AgentSession;
use futures::executor::block_on;

use crate::sessions::runs::settings_over;
use crate::sessions::support::{log, texts};

fn options(token: &str) -> RunOptions {
    RunOptions::default().with_run_token(token)
}

fn in_session() -> RunSettings {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    RunSettings::new("assistant").with_providers(providers)
}

/// The session as another process reads it.
fn reread(session: &AgentSession) -> AgentSession {
    let written = session.to_json().unwrap();
    let read = AgentSession::from_json(&written).unwrap();
    assert_eq!(read.to_json().unwrap(), written);
    read
}

async fn talk(settings: &RunSettings, session: &mut AgentSession, token: &str) {
    let input = vec![Message::user(format!("Question {token}?"))];
    let mut run = Run::begin(settings, session, input, &options(token)).await.unwrap();
    let prompt = run.prompt().await.unwrap();
    let usage = Usage::new(prompt.size.tokens * 2, 12);
    let answer = ModelResponse::new(vec![Message::assistant("An answer of some words.")]);
    run.record(prompt.handle, answer.with_usage(usage)).await.unwrap();
    run.finish().await.unwrap();
}

/// Messages that the next run would send.
fn next(settings: &RunSettings, session: &mut AgentSession) -> Vec<Message> {
    block_on(async {
        let mut run = Run::begin(settings, session, Vec::new(), &options("next")).await.unwrap();
        run.prompt().await.unwrap().messages
    })
}

/// A run with an answer that stops arriving.
async fn begin_to_answer<'a>(settings: &'a RunSettings, session: &'a mut AgentSession) -> Run<'a> {
    let input = vec![Message::user("Tell me.")];
    let mut run = Run::begin(settings, session, input, &options("left")).await.unwrap();
    let prompt = run.prompt().await.unwrap();
    run.begin_response(prompt.handle).unwrap();
    run.extend_response(&Delta::text("Once upon ")).unwrap();
    run
}

#[test]
fn half_an_answer_outlives_the_process() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    for settings in [in_session(), settings_over(&store)] {
        for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
            let settings = settings.clone().with_persistence(persistence);
            let mut session = AgentSession::with_id(format!("{persistence:?}"));
            block_on(talk(&settings, &mut session, "1"));
            drop(block_on(begin_to_answer(&settings, &mut session)));
            let mut session = reread(&session);
            let sent = next(&settings, &mut session);
            let expected = [
                "user: Question 1?",
                "assistant: An answer of some words.",
                "user: Tell me.",
                "assistant: Once upon ",
            ];
            assert_eq!(texts(&sent), expected, "{persistence:?}");
            assert!(sent[3].is_incomplete());
            // The half answer is stored now, and is not stored again.
            assert_eq!(texts(&next(&settings, &mut reread(&session))), expected);
        }
    }
}

#[test]
fn what_went_on_after_its_session_was_written_is_not_stored_twice() {
    for persistence in [Persistence::PerRun, Persistence::PerModelCall] {
        let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        let settings = settings_over(&store).with_persistence(persistence);
        let mut session = AgentSession::with_id("s");
        let mut written = block_on(async {
            let mut run = begin_to_answer(&settings, &mut session).await;
            let written = reread(run.session());
            run.extend_response(&Delta::text("a time.")).unwrap();
            run.finish_response().await.unwrap();
            run.finish().await.unwrap();
            written
        });
        let expected = ["user: Tell me.", "assistant: Once upon a time."];
        assert_eq!(texts(&next(&settings, &mut written)), expected, "{persistence:?}");
        assert_eq!(texts(&log(&*store, "s")), expected, "{persistence:?}");
    }
}

#[test]
fn what_reports_have_taught_is_known_after_a_reload() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    for settings in [in_session(), settings_over(&store)] {
        let mut session = AgentSession::with_id("s");
        for token in ["1", "2", "3"] {
            block_on(talk(&settings, &mut session, token));
        }
        let mut again = reread(&session);
        assert_eq!((again.usage(), again.token_count()), (session.usage(), session.token_count()));
        let size = |session: &mut AgentSession| {
            let input = vec![Message::user("And what does that come to?")];
            let options = RunOptions::default();
            let mut run = block_on(Run::begin(&settings, session, input, &options)).unwrap();
            block_on(run.prompt()).unwrap().size
        };
        let (here, there) = (size(&mut session), size(&mut again));
        assert_eq!(here, there);
        // Without the learned reports, the size would be only the count of the counter.
        let bare = size(&mut AgentSession::with_id("s"));
        assert!(here.basis == Basis::Reported || here.tokens > bare.tokens, "{here:?} {bare:?}");
        let spend = |session: &AgentSession| session.ledger().map(epitome::core::UsageLedger::spend);
        assert_eq!(spend(&session), spend(&again));
        assert!(spend(&again).is_some_and(|spend| spend.input > 0));
    }
}

#[test]
fn of_another_model_only_what_was_spent_is_known_after_a_reload() {
    let settings = in_session().with_model("one");
    let mut session = AgentSession::with_id("s");
    block_on(talk(&settings, &mut session, "1"));
    let mut again = reread(&session);
    let other = in_session().with_model("other");
    next(&other, &mut again);
    let spend = session.ledger().unwrap().spend().input;
    assert_eq!(again.ledger().unwrap().spend().input, spend);
    assert_eq!(again.context_size().unwrap().basis, Basis::Estimated);
}
