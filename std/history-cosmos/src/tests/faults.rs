//! A service that throttles or refuses, or whose answers are lost.

use core::time::Duration;
use std::sync::Arc;

use azure_data_cosmos_driver::fault_injection::{
    CustomResponseBuilder, FaultInjectionErrorType, FaultInjectionResultBuilder, FaultInjectionRuleBuilder,
};
use epitome_core::{Revision, Seq};
use epitome_history::{HistoryStore, NewState, RemoteOptions, StateRevision, StoreErrorKind};

use super::service::{Service, failing};
use super::{append, demo, hide, visible};
use crate::CosmosStore;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_throttled_is_done_later() {
    let service = Service::new();
    let rule = failing(FaultInjectionErrorType::TooManyRequests, 3);
    let store = service.store_with("a", vec![Arc::clone(&rule)]).await;
    append(&store, &demo(), 0..3).await.unwrap();
    assert_eq!((rule.hit_count(), visible(&store, &demo()).await), (3, vec![0, 1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_done_once_when_its_answer_is_lost() {
    use FaultInjectionErrorType::{
        InternalServerError, ResponseTimeout, ResponseTimeoutAfterService, ServiceUnavailable,
    };
    for error in [ResponseTimeoutAfterService, ResponseTimeout, InternalServerError, ServiceUnavailable] {
        let service = Service::new();
        let rule = failing(error, 1);
        let store = service.store_with("a", vec![Arc::clone(&rule)]).await;
        append(&store, &demo(), 0..4).await.unwrap();
        assert_eq!(rule.hit_count(), 1);
        let again = |name: &'static str| {
            let service = &service;
            async move {
                let rule = failing(error, 1);
                (service.store_with("a", vec![Arc::clone(&rule)]).await, rule, name)
            }
        };
        let (store, rule, _) = again("commit").await;
        hide(&store, &demo(), 0, 1).await.unwrap();
        assert_eq!((rule.hit_count(), visible(&store, &demo()).await), (1, vec![2, 3]));
        let (store, ..) = again("save_state").await;
        let state = NewState::new(StateRevision(0), "{}");
        assert_eq!(store.save_state(&demo(), &state).await.unwrap(), StateRevision(1));
        let (store, ..) = again("uncompact").await;
        assert_eq!(store.uncompact(&demo(), Revision(1)).await.unwrap(), Revision(2));
        hide(&store, &demo(), 0, 1).await.unwrap();
        let (store, ..) = again("prune").await;
        let pruned = store.prune(&demo(), Revision(3)).await.unwrap();
        assert_eq!((pruned.revision, pruned.messages), (Revision(4), 2));
        assert_eq!(store.log(&demo(), Seq(0)..Seq(9), 9).await.unwrap().messages.len(), 4);
        let (store, ..) = again("delete").await;
        // After a lost answer, the store cannot know whether the session existed.
        let _ = store.delete(&demo()).await.unwrap();
        assert_eq!(service.items("a").await, Vec::<serde_json::Value>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_has_a_remedy_and_no_text() {
    let refusals = [
        (401, StoreErrorKind::Invalid, "credential"),
        (403, StoreErrorKind::Invalid, "Cosmos DB Built-in Data Contributor"),
        (404, StoreErrorKind::Invalid, "no such database or container"),
        (413, StoreErrorKind::Invalid, "larger"),
        (400, StoreErrorKind::Invalid, "/session_id"),
    ];
    for (status, kind, words) in refusals {
        let service = Service::new();
        append(&service.store("a").await, &demo(), 0..1).await.unwrap();
        let answer = CustomResponseBuilder::new(status.into())
            .with_body(r#"{"message":"secret 0"}"#.as_bytes())
            .build();
        let result = FaultInjectionResultBuilder::new().with_custom_response(answer).build();
        let rule = Arc::new(FaultInjectionRuleBuilder::new("refuses", result).build());
        rule.disable();
        let store = service.store_with("a", vec![Arc::clone(&rule)]).await;
        rule.enable();
        let errors = match status {
            // A missing item is an ordinary answer.
            404 => vec![
                service
                    .opened("b", Vec::new())
                    .await
                    .map(|_| ())
                    .map_err(|error| crate::failure::of_cosmos("open", &error))
                    .unwrap_err(),
            ],
            _ => {
                vec![store.load(&demo()).await.unwrap_err(), append(&store, &demo(), 1..2).await.unwrap_err()]
            }
        };
        for error in errors {
            assert_eq!(error.kind(), kind, "{status}: {error}");
            let text = format!("{error} {error:?}");
            assert!(text.contains(words) && !text.contains("secret"), "{status}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_slow_is_unavailable() {
    let service = Service::new();
    let result = FaultInjectionResultBuilder::new().with_delay(Duration::from_secs(60)).build();
    let rule = Arc::new(FaultInjectionRuleBuilder::new("slow", result).build());
    rule.disable();
    let options = RemoteOptions::default().with_retries(0).with_timeout(Duration::from_millis(300));
    let container = service.container("a", vec![Arc::clone(&rule)]).await;
    let store = CosmosStore::in_container(container, options).await.unwrap();
    rule.enable();
    let error = append(&store, &demo(), 0..1).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (StoreErrorKind::Unavailable, "append: no answer within 300ms".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_of_another_key_is_refused() {
    let service = Service::new();
    service.make("other", "/tenant");
    let container = service.opened("other", Vec::new()).await.unwrap();
    let error = CosmosStore::in_container(container, RemoteOptions::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "open: the partition key of the container is /tenant; the store needs one with /session_id"
    );
}
