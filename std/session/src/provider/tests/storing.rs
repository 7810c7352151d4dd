//! Messages that a history provider stores.

use std::sync::Arc;

use epitome_core::attribution::Retention;
use futures::executor::block_on;

use super::support::{Journal, Noting, log, run, texts};
use crate::history::MemoryStore;
use crate::message::Message;
use crate::provider::{ContextProvider, HistoryProvider, Hook, NamedAgent, Providers};
use crate::session::{AgentResponse, AgentSession, SessionContext, State};

/// Messages of a run that a history provider stores after `change`. The run has context of `rag` and of `persona`,
/// loaded messages of `main`, input and response.
fn stored_by(change: impl FnOnce(HistoryProvider) -> HistoryProvider) -> String {
    let store = Arc::new(MemoryStore::new());
    let provider = change(HistoryProvider::new("log", Arc::<MemoryStore>::clone(&store)));
    let mut session = AgentSession::with_id("s");
    let mut context = SessionContext::new(&session, "run", vec![Message::user("input")]);
    context.extend_loaded("main", [Message::user("loaded")]);
    context.extend_messages("rag", [Message::system("document")]);
    context.extend_messages("log", [Message::user("own")]);
    context.extend_messages(
        "persona",
        [Message::user("persona"), Message::user("aside").with_label("ephemeral")],
    );
    context = context.with_response(AgentResponse::new(vec![Message::assistant("response")]));
    let (agent, mut state) = (NamedAgent::new("a"), State::new());
    block_on(provider.after_run(Hook::new(&agent, &mut session, &mut context, &mut state))).unwrap();
    texts(&log(&store, "s")).join(" ")
}

#[test]
fn flags_say_what_is_stored_and_the_order_is_fixed() {
    assert_eq!(stored_by(|it| it), "input response");
    assert_eq!(stored_by(|it| it.store_inputs(false)), "response");
    assert_eq!(stored_by(|it| it.store_responses(false)), "input");
    assert_eq!(stored_by(|it| it.store_inputs(false).store_responses(false)), "");
    assert_eq!(stored_by(|it| it.store_context_messages(true)), "document persona input response");
    assert_eq!(
        stored_by(|it| it.store_context_messages(true).store_ephemeral(true)),
        "document persona aside input response"
    );
    assert_eq!(
        stored_by(|it| it.store_context_messages(true).store_context_from(["persona"])),
        "persona input response"
    );
    assert_eq!(
        stored_by(|it| it.store_context_messages(true).store_context_from(["main", "log"])),
        "loaded own input response"
    );
    let nothing: [&str; 0] = [];
    assert_eq!(stored_by(|it| it.store_context_messages(true).store_context_from(nothing)), "input response");
    assert_eq!(
        stored_by(|it| it.store_context_messages(true).store_context_from(["unknown"])),
        "input response"
    );
    assert_eq!(stored_by(|it| it.store_context_from(["rag"])), "input response");
}

#[test]
fn labels_are_taken_off_and_what_they_say_stays() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(&store))).unwrap();
    let (agent, mut session) = (NamedAgent::new("a"), AgentSession::with_id("s"));
    let input =
        ["important", "ephemeral", "knowledge_base"].map(|label| Message::user(label).with_label(label));
    let mut context = SessionContext::new(&session, "run", input.to_vec());
    block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap();
    let stored = log(&store, "s");
    assert_eq!(texts(&stored), ["important", "knowledge_base"]);
    assert!(stored.iter().all(|message| message.attribution().label.is_none()));
    assert_eq!(stored[0].attribution().retention, Retention::Pinned);
    assert_eq!(stored[1].attribution().retention, Retention::Normal);
    // The run's own messages keep their labels.
    assert_eq!(context.input_messages()[0].attribution().label.as_deref(), Some("important"));
}

#[test]
fn a_repeated_after_run_stores_once_and_a_repeated_message_twice() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(&store))).unwrap();
    let (agent, mut session) = (NamedAgent::new("a"), AgentSession::with_id("s"));
    for token in ["run-1", "run-2"] {
        let mut context = run(&providers, &mut session, token, "yes", "done");
        for _ in 0..2 {
            block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap();
        }
        // The whole run is repeated.
        run(&providers, &mut session, token, "yes", "done");
    }
    let input = vec![Message::user("yes"), Message::user("yes")];
    let mut context = SessionContext::new(&session, "run-3", input);
    block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap();
    assert_eq!(texts(&log(&store, "s")), ["yes", "done", "yes", "done", "yes", "yes"]);
}

#[test]
fn two_providers_over_one_store_keep_two_logs_under_two_prefixes() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(&store))).unwrap();
    let audit = HistoryProvider::new("audit", Arc::<MemoryStore>::clone(&store)).load_messages(false);
    providers.push(audit.with_session_prefix("audit/").store_context_messages(true)).unwrap();
    providers.push(Noting::new("rag", &Journal::default())).unwrap();
    let mut session = AgentSession::with_id("s");
    run(&providers, &mut session, "run-1", "Hi", "Hello");
    let second = run(&providers, &mut session, "run-2", "And?", "So");
    assert_eq!(texts(second.prompt_messages()), ["Hi", "Hello", "context of rag", "And?"]);
    assert_eq!(texts(&log(&store, "s")), ["Hi", "Hello", "And?", "So"]);
    let audited = ["context of rag", "Hi", "Hello", "context of rag", "And?", "So"];
    assert_eq!(texts(&log(&store, "audit/s")), audited);
}

#[test]
fn several_runs_at_once_lose_nothing() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(&store))).unwrap();
    let agent = NamedAgent::new("a");
    // Both runs load before either of them stores.
    let mut sessions = [AgentSession::with_id("s"), AgentSession::with_id("s")];
    let mut contexts: Vec<_> = sessions
        .iter_mut()
        .enumerate()
        .map(|(at, session)| {
            let input = vec![Message::user(format!("question {at}"))];
            let mut context = SessionContext::new(session, format!("run-{at}"), input);
            block_on(providers.before_run(&agent, session, &mut context)).unwrap();
            context
        })
        .collect();
    for (session, context) in sessions.iter_mut().zip(&mut contexts) {
        block_on(providers.after_run(&agent, session, context)).unwrap();
    }
    assert_eq!(texts(&log(&store, "s")), ["question 0", "question 1"]);
}
