//! Examples 2, 4, 5 and 7 with the providers that they name: histories in Redis, memories in its search, documents of Azure AI Search.
//!
//! `EPITOME_TEST_REDIS` is the URL of a server for the histories; without it these tests print `skipped`. Azure AI
//! Search is a service on loopback with one answer. The search of Redis is the server of its own tests.

#[path = "../../../../std/redis-search/src/tests/query.rs"]
mod query;
#[expect(dead_code, reason = "it can fail, too, which other tests want")]
#[path = "../../../../std/redis-search/src/tests/server.rs"]
mod server;

use core::time::Duration;
use std::sync::{Arc, Mutex};

use axum::Router;
use epitome::agent::Agent;
use epitome::azure_search::{AzureAISearchContextProvider, Credential};
use epitome::history::{RedisOptions, RedisServer, RedisStore, SqliteStore};
use epitome::provider::{ClosureProvider, HistoryProvider, Hook, Providers, RedisHistoryProvider};
use epitome::redis_search::{RedisContextProvider, RemoteOptions, Scope};
use epitome::run::RunOptions;
use epitome::session::{AgentSession, MessageFilter};
use tokio::net::TcpListener;

use self::server::Server;
use super::agent;
use crate::sessions::support::{Scripted, log, server, texts};

/// A server with the histories of one test, which expire after ten minutes.
struct Histories {
    server: RedisServer,
    options: RedisOptions,
}

impl Histories {
    fn new() -> Option<Self> {
        let server = RedisServer::from_url(&server("redis")?).unwrap();
        let prefix = format!("epitome-test-{}", AgentSession::new().session_id().as_str());
        let options = RedisOptions::default().with_prefix(prefix).with_ttl(Duration::from_secs(600));
        Some(Self { server, options })
    }

    async fn provider(&self, source_id: &str) -> RedisHistoryProvider {
        let history = RedisHistoryProvider::in_redis(&self.server, self.options.clone()).await.unwrap();
        // One agent may have two histories on one server.
        history.with_source_id(source_id).with_session_prefix(format!("{source_id}/"))
    }

    /// Texts that a provider of this source id has stored of a session.
    fn stored(&self, source_id: &str, session: &str) -> Vec<String> {
        let store = RedisStore::open_at(&self.server, self.options.clone()).unwrap();
        texts(&log(&store, &format!("{source_id}/{session}")))
    }
}

/// Azure AI Search that finds the same document for every query.
async fn azure() -> AzureAISearchContextProvider {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let found = r#"{"value": [{"id": "7", "content": "Lisbon: 31 degrees today"}]}"#;
    tokio::spawn(async move {
        axum::serve(listener, Router::new().fallback(move || async move { found })).await.unwrap()
    });
    let key = Credential::ApiKey("a-key".into());
    AzureAISearchContextProvider::of_index(&url, "documents", key).unwrap().with_source_id("rag")
}

/// The search of Redis, with the memories of alice.
fn memories(server: &Server) -> RedisContextProvider {
    let at = RedisServer::new("127.0.0.1").with_port(server.port).with_tls(false);
    let provider = RedisContextProvider::new(&at, RemoteOptions::default()).unwrap();
    provider.with_scope(Scope::default().with_user("alice"))
}

async fn run(agent: &Agent, session: &mut AgentSession, says: &str) {
    agent.run(session, says, &RunOptions::default()).await.unwrap();
}

const DOCUMENT: &str =
    "user: Use the following context to answer the question:\n- [Source: 7] Lisbon: 31 degrees today";

#[tokio::test]
async fn example_2_over_redis_and_azure_ai_search() {
    let Some(histories) = Histories::new() else { return };
    let (client, audit) = (Scripted::says("31 degrees."), Arc::new(SqliteStore::open_in_memory().unwrap()));
    let mut providers = Providers::default();
    providers.push(histories.provider("memory").await).unwrap();
    providers.push(azure().await).unwrap();
    providers.push(HistoryProvider::new("audit", audit.clone()).load_messages(false)).unwrap();
    let agent = agent(providers, &client);
    assert_eq!(agent.warnings(), [], "one of two loads");
    let mut session = agent.create_session(Some("s-1"), None);
    run(&agent, &mut session, "Is it warm in Lisbon?").await;
    run(&agent, &mut session, "And tomorrow?").await;
    let said = ["user: Is it warm in Lisbon?", "assistant: 31 degrees."];
    assert_eq!(client.last(), [said[0], said[1], DOCUMENT, "user: And tomorrow?"]);
    let all = [said[0], said[1], "user: And tomorrow?", said[1]];
    assert_eq!(histories.stored("memory", "s-1"), all);
    assert_eq!(texts(&log(&*audit, "s-1")), all);
}

#[tokio::test]
async fn example_4_over_azure_ai_search_and_the_search_of_redis() {
    let (client, server, seen) =
        (Scripted::says("Warm."), Server::new().await, Arc::new(Mutex::new(Vec::new())));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory().with_source_id("memory")).unwrap();
    providers.push(azure().await).unwrap();
    providers.push(memories(&server)).unwrap();
    let journal = Arc::clone(&seen);
    let selective = ClosureProvider::before_run(move |hook: Hook<'_>| {
        let sources: Vec<_> =
            hook.context.context_messages().iter().map(|it| it.source_id.to_string()).collect();
        let without =
            texts(hook.context.get_messages(&MessageFilter::new().exclude_sources(["rag", "redis"])));
        let only = hook.context.get_messages(&MessageFilter::new().sources(["memory"])).len();
        journal.lock().unwrap().push((sources, without, only));
        core::future::ready(Ok(()))
    });
    providers.push_closure(selective).unwrap();
    let agent = agent(providers, &client);
    let mut session = agent.create_session(None, None);
    run(&agent, &mut session, "How warm is Lisbon?").await;
    run(&agent, &mut session, "How warm is it now?").await;
    let (sources, without, only) = seen.lock().unwrap()[1].clone();
    assert_eq!(sources, ["memory", "rag", "redis"]);
    assert_eq!(
        (without, only),
        (vec!["user: How warm is Lisbon?".to_owned(), "assistant: Warm.".to_owned()], 2)
    );
}

#[tokio::test]
async fn example_5_over_redis() {
    let Some(histories) = Histories::new() else { return };
    let client = Scripted::says("Hello.");
    let mut providers = Providers::default();
    providers.push(histories.provider("memory").await).unwrap();
    let here = agent(providers, &client);
    let mut session = here.create_session(Some("s-1"), None);
    run(&here, &mut session, "Hello!").await;
    run(&here, &mut session, "Again!").await;
    assert_eq!(client.last().len(), 3);

    let mut providers = Providers::default();
    providers.push(histories.provider("audit").await.load_messages(false)).unwrap();
    let with_service = agent(providers, &client);
    let mut session = with_service.create_session(Some("s-1"), Some("thread_abc123".into()));
    run(&with_service, &mut session, "Hello!").await;
    run(&with_service, &mut session, "And again!").await;
    assert_eq!(client.last(), ["user: And again!"], "the service has the rest");
    let said = ["user: Hello!", "assistant: Hello.", "user: And again!", "assistant: Hello."];
    assert_eq!(histories.stored("audit", "s-1"), said, "stored for audits");
    assert_eq!(histories.stored("memory", "s-1").len(), 4);
}

#[tokio::test]
async fn example_7_with_the_search_of_redis_before_and_after_the_memory() {
    let server = Server::new().await;
    let earlier = "Lisbon is warm, alice said.";
    for is_first in [true, false] {
        let client = Scripted::says("Fine.");
        let history = HistoryProvider::in_memory().with_source_id("memory");
        let rag = memories(&server).with_source_id("rag").with_prompt("Said earlier:");
        let mut providers = Providers::default();
        if is_first {
            providers.push(rag.clone()).unwrap();
        }
        providers.push(history).unwrap();
        if !is_first {
            providers.push(rag).unwrap();
        }
        let agent = agent(providers, &client);
        let mut session = agent.create_session(None, None);
        run(&agent, &mut session, earlier).await;
        run(&agent, &mut session, "Warm?").await;
        // The earlier message is in the history, and the search finds it again by its word.
        let sent = client.last();
        let (at, found) =
            sent.iter().enumerate().find(|(_, text)| text.starts_with("user: Said earlier:")).unwrap();
        assert_eq!(at, if is_first { 0 } else { 2 }, "{sent:?}");
        assert!(found.contains(&format!("- {earlier}")), "{sent:?}");
        assert_eq!(sent.last().unwrap(), "user: Warm?");
    }
}

#[tokio::test]
async fn example_7_with_an_audit_in_redis_of_all_context() {
    let Some(histories) = Histories::new() else { return };
    let client = Scripted::says("Fine.");
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory().with_source_id("memory")).unwrap();
    providers.push(azure().await).unwrap();
    providers
        .push(histories.provider("audit").await.load_messages(false).store_context_messages(true))
        .unwrap();
    let agent = agent(providers, &client);
    let mut session = agent.create_session(Some("s-1"), None);
    run(&agent, &mut session, "Hello!").await;
    run(&agent, &mut session, "And now?").await;
    let said = |question| [DOCUMENT, question, "assistant: Fine."];
    let expected = [said("user: Hello!"), said("user: And now?")].concat();
    assert_eq!(histories.stored("audit", "s-1"), expected, "not what the memory has loaded");
}
