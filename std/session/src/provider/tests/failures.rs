//! Effects of a failure, a panic and a dropped future.

use std::sync::Arc;

use futures::FutureExt;
use futures::executor::block_on;
use serde_json::json;

use super::support::{Journal, Noting, Trouble, log, run, texts};
use crate::history::MemoryStore;
use crate::message::Message;
use crate::provider::{HistoryProvider, HookName, NamedAgent, Providers};
use crate::session::{AgentSession, SessionContext, SessionErrorKind};

fn providers(trouble: Trouble, journal: &Journal, store: &Arc<MemoryStore>) -> Providers {
    let mut providers = Providers::default();
    providers.push(Noting::new("first", journal)).unwrap();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(store))).unwrap();
    providers.push(Noting::new("broken", journal).with(trouble)).unwrap();
    providers.push(Noting::new("last", journal)).unwrap();
    providers
}

#[test]
fn a_failure_before_a_run_ends_it_and_nothing_is_stored() {
    for trouble in [Trouble::ErrorBefore, Trouble::PanicBefore] {
        let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
        let providers = providers(trouble, &journal, &store);
        let mut session = AgentSession::with_id("s");
        let mut context = SessionContext::new(&session, "run-1", vec![Message::user("a secret")]);
        let agent = NamedAgent::new("a");
        let before = providers.before_run(&agent, &mut session, &mut context);
        let error = block_on(before).unwrap_err();
        assert_eq!((&*error.source_id, error.hook), ("broken", HookName::BeforeRun));
        assert_eq!(error.kind(), SessionErrorKind::Invalid);
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(*journal.lock().unwrap(), ["before first", "before broken"]);
        assert!(log(&store, "s").is_empty());
        // The state is as the hook left it.
        assert_eq!(session.state()["broken"], json!({"before": 1}));
        assert_eq!(session.state()["first"], json!({"before": 1}));
    }
}

#[test]
fn a_failure_after_a_run_keeps_no_other_from_its_part() {
    for trouble in [Trouble::ErrorAfter, Trouble::PanicAfter] {
        let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
        let providers = providers(trouble, &journal, &store);
        let (agent, mut session) = (NamedAgent::new("a"), AgentSession::with_id("s"));
        let mut context = SessionContext::new(&session, "run-1", vec![Message::user("Hi")]);
        block_on(providers.before_run(&agent, &mut session, &mut context)).unwrap();
        for attempt in 1..=2 {
            let failures = block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap_err();
            assert_eq!(failures.iter().count(), 1);
            assert_eq!(&*failures.first().source_id, "broken");
            assert_eq!(session.state()["first"], json!({"before": 1, "after": attempt}));
            assert_eq!(session.state()["broken"], json!({"before": 1, "after": attempt}));
        }
        assert_eq!(texts(&log(&store, "s")), ["Hi"]);
    }
}

#[test]
fn a_dropped_run_leaves_a_session_that_can_go_on() {
    let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
    let hanging = providers(Trouble::HangBefore, &journal, &store);
    let mut session = AgentSession::with_id("s");
    session.state_mut().insert("broken".to_owned(), json!({"kept": true}));
    let mut context = SessionContext::new(&session, "run-1", vec![Message::user("Hi")]);
    let agent = NamedAgent::new("a");
    assert!(hanging.before_run(&agent, &mut session, &mut context).now_or_never().is_none());
    assert_eq!(session.state()["broken"], json!({"kept": true, "before": 1}));
    assert!(log(&store, "s").is_empty());

    let whole = providers(Trouble::None, &journal, &store);
    run(&whole, &mut session, "run-1", "Hi", "Hello");
    assert_eq!(texts(&log(&store, "s")), ["Hi", "Hello"]);
}

#[test]
fn state_that_is_no_object_is_an_error_that_names_it_and_stays() {
    let (journal, store) = (Journal::default(), Arc::new(MemoryStore::new()));
    let providers = providers(Trouble::None, &journal, &store);
    for wrong in [json!(7), json!(null), json!([1]), json!("text")] {
        let mut session = AgentSession::with_id("s");
        session.state_mut().insert("broken".to_owned(), wrong.clone());
        let mut context = SessionContext::new(&session, "run-1", vec![Message::user("Hi")]);
        let agent = NamedAgent::new("a");
        let before = providers.before_run(&agent, &mut session, &mut context);
        let error = block_on(before).unwrap_err();
        assert_eq!((&*error.source_id, error.kind()), ("broken", SessionErrorKind::Invalid));
        assert_eq!(session.state()["broken"], wrong);
    }
}

#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let (providers, agent, mut session) = (Providers::default(), NamedAgent::new("a"), AgentSession::new());
    let mut context = SessionContext::new(&session, "run", Vec::new());
    is_send(&providers.before_run(&agent, &mut session, &mut context));
    is_send(&providers.after_run(&agent, &mut session, &mut context));
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Providers>();
    is_shared::<AgentSession>();
    is_shared::<SessionContext>();
}
