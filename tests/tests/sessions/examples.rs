//! The examples of the decision record that sessions follow (0 to 7), each with its stated outcome.
//!
//! | example | subject | test |
//! |---|---|---|
//! | 0 | history without any configuration | [`example_0_history_without_any_configuration`] |
//! | 1 | explicit memory | [`example_1_explicit_memory_is_what_the_default_is`] |
//! | 2 | memory, retrieval and audit: one class, three purposes | [`example_2_memory_retrieval_and_audit`] |
//! | 3 | providers of one's own | [`example_3_providers_of_ones_own`] |
//! | 4 | filters by source | [`order::example_4_filters_by_source`] |
//! | 5 | storage beside a service | [`order::example_5_storage_beside_a_service`] |
//! | 6 | two of one kind | [`order::example_6_two_of_one_kind`] |
//! | 7A, 7B | retrieval before the memory, and after it | [`order::example_7_order_decides_what_is_seen`] |
//! | 7C | the same with an audit of all context | [`order::example_7_audit_stores_context_too`] |
//!
//! Other objects replace the services: a store in memory replaces Redis, SQLite replaces Cosmos, and keywords replace
//! AI Search. Examples 2, 4, 5 and 7 are repeated in [`services`] with the providers for these services, and 2, 5 and 7
//! with Cosmos DB in `std/history-cosmos`.
//! The text also names the buffered retriever and storage for evaluation, which are in [`order`].

use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::Agent;
use epitome::history::{MemoryStore, SqliteStore};
use epitome::memory::{KeywordRetriever, RetrievalProvider};
use epitome::message::Message;
use epitome::provider::{
    ContextProvider, HistoryProvider, Hook, InMemoryHistoryProvider, Providers,
    source_id::IN_MEMORY as DEFAULT_SOURCE_ID,
};
use epitome::run::{ModelResponse, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionError};
use futures::executor::block_on;
use serde_json::json;

use crate::sessions::support::{Scripted, log, texts};

mod order;
mod services;

fn agent(providers: Providers, client: &Scripted) -> Agent {
    Agent::with_settings(RunSettings::new("assistant").with_providers(providers), client.clone())
}

fn run(agent: &Agent, session: &mut AgentSession, says: &str) {
    run_with(agent, session, says, &RunOptions::default());
}

fn run_with(agent: &Agent, session: &mut AgentSession, says: &str, options: &RunOptions) {
    block_on(agent.run(session, says, options)).expect("nothing fails here");
}

#[test]
fn example_0_history_without_any_configuration() {
    let client = Scripted::says("Hello.");
    let agent = agent(Providers::default(), &client);
    let mut session = agent.create_session(None, None);
    run(&agent, &mut session, "Hello, my name is Alice!");
    run(&agent, &mut session, "What's my name?");
    assert_eq!(
        client.last(),
        ["user: Hello, my name is Alice!", "assistant: Hello.", "user: What's my name?"]
    );
    assert!(agent.settings().providers.is_empty(), "the default is decided for each run");

    // The session carries its history.
    let mut session = AgentSession::from_dict(session.to_dict().unwrap()).unwrap();
    run(&agent, &mut session, "Still there?");
    assert_eq!(client.last().len(), 5);

    // If the service keeps the session, nothing is kept locally.
    let mut service_session = agent.create_session(None, Some("thread_abc123".into()));
    run(&agent, &mut service_session, "Hello!");
    run(&agent, &mut service_session, "Again!");
    assert_eq!(client.last(), ["user: Again!"]);

    // The same holds if the user asks the service to store, and the service does.
    let keeps = Scripted::new(|_, _| {
        Ok(ModelResponse::new(vec![Message::assistant("Hello.")]).with_service_session_id("thread_1"))
    });
    let (agent, client) = (self::agent(Providers::default(), &keeps), keeps);
    let mut session = agent.create_session(None, None);
    run_with(&agent, &mut session, "Hello!", &RunOptions::default().with_store(true));
    assert!(session.state().is_empty());
    run(&agent, &mut session, "Again!");
    assert_eq!(client.last(), ["user: Again!"]);
}

#[test]
fn example_1_explicit_memory_is_what_the_default_is() {
    let talk = |providers: Providers, source_id: &str| {
        let client = Scripted::says("Hello.");
        let agent = agent(providers, &client);
        let mut session = agent.create_session(Some("s-1"), None);
        run(&agent, &mut session, "Hello!");
        run(&agent, &mut session, "What did I say before?");
        assert_eq!(agent.warnings(), []);
        let dict = session.to_dict().unwrap();
        (client.last(), dict["state"][source_id]["messages"].clone())
    };
    let mut providers = Providers::default();
    providers.push(InMemoryHistoryProvider::default().with_source_id("memory")).unwrap();
    let (sent, kept) = talk(providers, "memory");
    assert_eq!(sent, ["user: Hello!", "assistant: Hello.", "user: What did I say before?"]);
    assert_eq!(kept.as_array().unwrap().len(), 4);
    assert_eq!((sent, kept), talk(Providers::default(), DEFAULT_SOURCE_ID));
}

#[test]
fn example_2_memory_retrieval_and_audit() {
    let client = Scripted::says("31 degrees.");
    let (memory, audit) = (Arc::new(MemoryStore::new()), Arc::new(SqliteStore::open_in_memory().unwrap()));
    let documents = KeywordRetriever::new(["Lisbon: 31 degrees today", "Oslo: 8 degrees today"]);
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", memory.clone())).unwrap();
    providers.push(RetrievalProvider::new("rag", Arc::new(documents))).unwrap();
    providers.push(HistoryProvider::new("audit", audit.clone()).load_messages(false)).unwrap();
    let agent = agent(providers, &client);
    assert_eq!(agent.warnings(), [], "one of two loads");

    let mut session = agent.create_session(Some("s-1"), None);
    run(&agent, &mut session, "Is it warm in Lisbon?");
    run(&agent, &mut session, "And in Oslo?");
    // History first, then the retrieved text, then the input; the audit adds nothing.
    let sent = client.last();
    assert_eq!(sent[..2], ["user: Is it warm in Lisbon?", "assistant: 31 degrees."]);
    assert!(sent[2].contains("Oslo: 8 degrees") && !sent[2].contains("Lisbon"), "{sent:?}");
    assert_eq!(sent[3..], ["user: And in Oslo?"]);
    // Both keep the conversation; retrieved text is not stored.
    let said = [
        "user: Is it warm in Lisbon?",
        "assistant: 31 degrees.",
        "user: And in Oslo?",
        "assistant: 31 degrees.",
    ];
    assert_eq!(texts(&log(&*memory, "s-1")), said);
    assert_eq!(texts(&log(&*audit, "s-1")), said);
}

/// A provider that adds the time to the instructions.
struct Time(fn() -> &'static str);

#[async_trait]
impl ContextProvider for Time {
    fn source_id(&self) -> &str {
        "time"
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, .. } = hook;
        context.extend_instructions("time", [format!("Current date and time: {}", (self.0)())]);
        Ok(())
    }
}

/// A provider that records the preferences of the user, and adds them to the instructions.
struct Preferences;

#[async_trait]
impl ContextProvider for Preferences {
    fn source_id(&self) -> &str {
        "prefs"
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        if let Some(known) = state.get("preferences") {
            context.extend_instructions("prefs", [format!("User preferences: {known}")]);
        }
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        let response = context.response().expect("the model has answered");
        for text in texts(&response.messages) {
            if let Some((_, preference)) = text.to_lowercase().split_once("preference: ") {
                state.insert("preferences".into(), json!({"units": preference}));
            }
        }
        Ok(())
    }
}

#[test]
fn example_3_providers_of_ones_own() {
    let client = Scripted::says("Noted. Preference: metric");
    let mut providers = Providers::default();
    providers.push(InMemoryHistoryProvider::default().with_source_id("memory")).unwrap();
    providers.push(Time(|| "2026-01-01T12:00:00")).unwrap();
    providers.push(Preferences).unwrap();
    let settings = RunSettings::new("assistant").with_providers(providers).with_instructions("You help.");
    let agent = Agent::with_settings(settings, client.clone());
    let mut session = agent.create_session(None, None);
    run(&agent, &mut session, "I like metres.");
    let first = "system: You help.\n\nCurrent date and time: 2026-01-01T12:00:00";
    assert_eq!(client.last(), [first, "user: I like metres."]);
    // The state of a provider belongs to the session, and outlives the process.
    let mut session = AgentSession::from_json(&session.to_json().unwrap()).unwrap();
    run(&agent, &mut session, "How far is it?");
    let told = format!("{first}\n\nUser preferences: {{\"units\":\"metric\"}}");
    assert_eq!(client.last()[0], told);
    assert_eq!(client.last().len(), 4);
    assert_eq!(session.state()["prefs"]["preferences"]["units"], "metric");
    // Another session of the same agent has its own state.
    run(&agent, &mut agent.create_session(None, None), "How far is it?");
    assert_eq!(client.last()[0], first);
}
