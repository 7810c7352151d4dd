//! Runs of an agent whose history is in Cosmos DB: examples 2, 5 and 7 of the record that sessions follow.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome_core::Seq;
use epitome_history::{HistoryStore, SessionId};
use epitome_message::Message;
use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError};
use epitome_std::memory::{KeywordRetriever, RetrievalProvider};
use epitome_std::provider::{ContextProvider, HistoryProvider, Providers};
use epitome_std::run::{ModelResponse, RunOptions, RunSettings};

use super::service::Service;

/// Always gives the same answer, and records the requests.
#[derive(Clone, Default)]
struct Client(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl ChatClient for Client {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let sent = request.messages.iter().map(|message| message.text().into_owned());
        *self.0.lock().unwrap() = sent.collect();
        Ok(ModelResponse::new(vec![Message::assistant("31 degrees.")]))
    }
}

async fn run(agent: &Agent, id: &str, says: &str) {
    let mut session = agent.create_session(Some(id), None);
    agent.run(&mut session, says, &RunOptions::default()).await.unwrap();
}

async fn said(service: &Service, container: &str) -> Vec<String> {
    let log = service.store(container).await.log(&SessionId::new("s-1"), Seq(0)..Seq(99), 99).await.unwrap();
    log.messages.iter().map(|logged| logged.entry.message.text().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_loaded_by_another_process() {
    let service = Service::new();
    for (question, sent) in [("Is it warm?", 1), ("And in Oslo?", 3)] {
        let client = Client::default();
        let mut providers = Providers::default();
        let history = service.store("memory").await.into_history_provider();
        assert_eq!(history.source_id(), "cosmos_memory");
        providers.push(history).unwrap();
        let settings = RunSettings::new("assistant").with_providers(providers);
        run(&Agent::with_settings(settings, client.clone()), "s-1", question).await;
        assert_eq!(client.0.lock().unwrap().len(), sent);
    }
    assert_eq!(said(&service, "memory").await, ["Is it warm?", "31 degrees.", "And in Oslo?", "31 degrees."]);
    let container = service.container("memory", Vec::new()).await;
    let store = crate::CosmosStore::in_container(container, Default::default()).await.unwrap();
    service.traffic().take();
    let mut providers = Providers::default();
    providers.push(store.into_history_provider()).unwrap();
    let settings = RunSettings::new("assistant").with_providers(providers);
    run(&Agent::with_settings(settings, Client::default()), "s-1", "And now?").await;
    let (requests, bytes) = service.traffic().take();
    // The limits of docs/cosmos.md.
    assert!(requests <= 9 && bytes < 6_000, "{requests} requests, {bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_stores_and_never_loads() {
    let service = Service::new();
    let client = Client::default();
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    let documents = KeywordRetriever::new(["Lisbon: 31 degrees today"]);
    providers.push(RetrievalProvider::new("rag", Arc::new(documents))).unwrap();
    let audit = HistoryProvider::new("audit", Arc::new(service.store("audit").await));
    providers.push(audit.load_messages(false).store_context_messages(true)).unwrap();
    let agent = Agent::with_settings(RunSettings::new("assistant").with_providers(providers), client.clone());
    run(&agent, "s-1", "Is it warm in Lisbon?").await;
    assert_eq!(client.0.lock().unwrap().len(), 2);
    let said = said(&service, "audit").await;
    assert!(said[0].contains("Lisbon: 31 degrees today"));
    assert_eq!(said[1..], ["Is it warm in Lisbon?", "31 degrees."]);
    run(&agent, "s-1", "And in Lisbon?").await;
    assert_eq!(client.0.lock().unwrap().len(), 2, "another session object: nothing is loaded from the audit");
}
