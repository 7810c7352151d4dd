//! The order of a history and a retriever decides which messages the retriever sees. A history stores context only if
//! it is set to do so.

use core::future::ready;
use std::sync::Arc;

use super::support::{log, run, texts};
use crate::history::MemoryStore;
use crate::memory::{KeywordRetriever, RetrievalProvider};
use crate::provider::{ClosureProvider, HistoryProvider, Hook, Providers};
use crate::session::AgentSession;

fn retriever() -> RetrievalProvider {
    let texts = ["Rex is afraid of thunder.", "The weather will be fine."];
    RetrievalProvider::new("rag", Arc::new(KeywordRetriever::new(texts))).with_recent(3)
}

fn memory(store: &Arc<MemoryStore>) -> HistoryProvider {
    HistoryProvider::new("memory", Arc::<MemoryStore>::clone(store))
}

const THUNDER: &str = "Possibly relevant:\n- Rex is afraid of thunder.";
const WEATHER: &str = "Possibly relevant:\n- The weather will be fine.";

/// Makes two runs with `providers`, and returns the request of the second.
fn second_request(providers: &Providers) -> Vec<String> {
    let mut session = AgentSession::with_id("s");
    run(providers, &mut session, "run-1", "My dog is Rex.", "Hello, Rex.");
    texts(run(providers, &mut session, "run-2", "What's the weather?", "Fine.").prompt_messages())
}

#[test]
fn before_the_history_a_retriever_sees_the_input_alone() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(retriever()).unwrap();
    providers.push(memory(&store)).unwrap();
    let sent = second_request(&providers);
    assert_eq!(sent, [WEATHER, "My dog is Rex.", "Hello, Rex.", "What's the weather?"]);
    assert_eq!(texts(&log(&store, "s")), ["My dog is Rex.", "Hello, Rex.", "What's the weather?", "Fine."]);
}

#[test]
fn behind_the_history_it_sees_what_was_said() {
    let store = Arc::new(MemoryStore::new());
    let mut providers = Providers::default();
    providers.push(memory(&store)).unwrap();
    providers.push(retriever()).unwrap();
    let sent = second_request(&providers);
    assert_eq!(sent[..2], ["My dog is Rex.", "Hello, Rex."]);
    assert!(sent[2].contains("thunder") && sent[2].contains("weather"), "{}", sent[2]);
    assert_eq!(texts(&log(&store, "s")), ["My dog is Rex.", "Hello, Rex.", "What's the weather?", "Fine."]);
}

#[test]
fn an_audit_that_asks_for_context_has_it_and_the_memory_does_not() {
    let (store, audit) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let mut providers = Providers::default();
    providers.push(memory(&store)).unwrap();
    providers.push(retriever()).unwrap();
    let persona = ClosureProvider::before_run(|hook: Hook<'_>| {
        hook.context.extend_instructions("persona", ["You are a vet."]);
        ready(Ok(()))
    });
    providers.push_closure(persona.with_source_id("persona")).unwrap();
    let all = HistoryProvider::new("audit", Arc::<MemoryStore>::clone(&audit));
    providers.push(all.load_messages(false).store_context_messages(true)).unwrap();
    assert!(providers.warnings().is_empty());

    let mut session = AgentSession::with_id("s");
    let context = run(&providers, &mut session, "run-1", "Is Rex ill?", "No.");
    assert_eq!(context.instruction_text().as_deref(), Some("You are a vet."));
    assert_eq!(texts(&log(&store, "s")), ["Is Rex ill?", "No."]);
    assert_eq!(texts(&log(&audit, "s")), [THUNDER, "Is Rex ill?", "No."]);
}
