//! Tests of foreign items in the same container.

use epitome_history::{HistoryStore, SessionId, StoreErrorKind};
use serde_json::{Value, json};

use super::service::Service;
use super::{append, demo, hide};

/// Items as `CosmosHistoryProvider` of `agent-framework-azure-cosmos` 1.0.0b261015 has written them for two runs.
const THEIRS: &str = include_str!("agent_framework.json");

#[tokio::test(flavor = "multi_thread")]
async fn what_agent_framework_has_written_is_read_and_left_alone() {
    let service = Service::new();
    let container = service.container("a", Vec::new()).await;
    let theirs: Vec<Value> = serde_json::from_str(THEIRS).unwrap();
    for item in theirs.iter().rev() {
        container.create_item("demo", item["id"].as_str().unwrap(), item, None).await.unwrap();
    }
    let store = service.store("a").await;
    append(&store, &demo(), 0..4).await.unwrap();
    hide(&store, &demo(), 0, 1).await.unwrap();
    let messages = store.agent_framework_messages("demo", "azure_cosmos_history").await.unwrap();
    let read: Vec<Value> = messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(read, theirs.iter().map(|item| item["message"].clone()).collect::<Vec<_>>());
    assert!(store.agent_framework_messages("demo", "other").await.unwrap().is_empty());
    assert!(store.agent_framework_messages("o'brien", "azure' OR true").await.unwrap().is_empty());

    assert_eq!(store.list(None, 9).await.unwrap().len(), 1);
    assert!(store.delete(&demo()).await.unwrap());
    assert_eq!(service.items("a").await.len(), theirs.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_session_says_where() {
    let service = Service::new();
    let store = service.store("a").await;
    let container = service.container("a", Vec::new()).await;
    append(&store, &demo(), 0..4).await.unwrap();
    hide(&store, &demo(), 0, 1).await.unwrap();
    // A row of another life of the session, and a pruned row, do not belong to the visible session.
    let row: Value = container.read_item("demo", "message.2", None).await.unwrap().into_model().unwrap();
    for (field, value) in [("life", json!("another")), ("pruned_by", json!(7))] {
        let mut other = row.clone();
        other[field] = value;
        container.upsert_item("demo", "message.2", &other, None).await.unwrap();
        assert_eq!(store.load(&demo()).await.unwrap_err().kind(), StoreErrorKind::Corrupt, "{field}");
    }
    container.delete_item("demo", "message.2", None).await.unwrap();
    let error = store.load(&demo()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            StoreErrorKind::Corrupt,
            "message 2 is missing: an item of the session was deleted by somebody else".into()
        )
    );
    let session = json!({"id": "session", "session_id": "new", "epitome": "session", "layout": 1});
    container.create_item("new", "session", &session, None).await.unwrap();
    let error = store.load(&SessionId::new("new")).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (StoreErrorKind::Corrupt, "the session cannot be read".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_newer_version_are_not_touched() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..1).await.unwrap();
    let container = service.container("a", Vec::new()).await;
    let mut session: Value =
        container.read_item("demo", "session", None).await.unwrap().into_model().unwrap();
    session["layout"] = 2.into();
    container.upsert_item("demo", "session", &session, None).await.unwrap();
    let error = append(&store, &demo(), 1..2).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("newer version"), "{error}");
}
