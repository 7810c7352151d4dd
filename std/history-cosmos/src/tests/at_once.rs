//! Several processes at once, some of them slow.

use core::time::Duration;
use std::sync::Arc;

use azure_data_cosmos_driver::fault_injection::{
    FaultInjectionConditionBuilder, FaultInjectionResultBuilder, FaultInjectionRule,
    FaultInjectionRuleBuilder, FaultOperationType,
};
use epitome_core::{Revision, Seq};
use epitome_history::{Append, AppendToken, Entry, HistoryStore, NewState, StateRevision};
use tokio::time::sleep;

use super::service::Service;
use super::{append, demo, entry, hide, visible};

/// Delays every batch by this many milliseconds.
fn slow(millis: u64) -> Vec<Arc<FaultInjectionRule>> {
    let result = FaultInjectionResultBuilder::new().with_delay(Duration::from_millis(millis)).build();
    let batches =
        FaultInjectionConditionBuilder::new().with_operation_type(FaultOperationType::BatchItem).build();
    vec![Arc::new(FaultInjectionRuleBuilder::new("slow", result).with_condition(batches).build())]
}

async fn secrets(service: &Service) -> usize {
    service.items("a").await.iter().filter(|item| item.to_string().contains("secret")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_deletion_leaves_the_session_that_comes_after_it() {
    for millis in [0, 30, 60, 90] {
        let service = Service::new();
        let store = service.store("a").await;
        append(&store, &demo(), 0..240).await.unwrap();
        let other = service.store_with("a", slow(millis)).await;
        let deletion = tokio::spawn(async move { other.delete(&demo()).await });
        sleep(Duration::from_millis(millis + 10)).await;
        // At head 0 the append succeeds only after the first session is gone.
        let entries = [entry(0, "new"), entry(1, "new")];
        let token = AppendToken::new("new");
        while store.append(&demo(), &Append::new(&token, Seq(0), &entries)).await.is_err() {}
        assert!(deletion.await.unwrap().unwrap());
        assert_eq!(visible(&store, &demo()).await, [0, 1], "{millis}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_who_finishes_a_deletion_slowly_deletes_nothing_of_the_next_session() {
    for wait in [150, 600] {
        let service = Service::new();
        let store = service.store("a").await;
        for begin in (0..240).step_by(20) {
            append(&store, &demo(), begin..begin + 20).await.unwrap();
        }
        service.store_that_ends("a", 1).await.delete(&demo()).await.unwrap_err();
        let other = service.store_with("a", slow(100)).await;
        let reading = tokio::spawn(async move { other.load(&demo()).await });
        sleep(Duration::from_millis(wait)).await;
        append(&store, &demo(), 0..3).await.unwrap();
        let _ = reading.await.unwrap();
        assert_eq!(visible(&store, &demo()).await, [0, 1, 2], "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_comes_late_deletes_nothing_of_a_session_with_the_same_items() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..1).await.unwrap();
    service.store_that_ends("a", 1).await.delete(&demo()).await.unwrap_err();
    let other = service.store_with("a", slow(400)).await;
    let reading = tokio::spawn(async move { other.load(&demo()).await });
    sleep(Duration::from_millis(100)).await;
    // The items that the other process has found exist again.
    append(&store, &demo(), 0..1).await.unwrap();
    let _ = reading.await.unwrap();
    assert_eq!(visible(&store, &demo()).await, [0]);
    assert_eq!(service.items("a").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_whose_session_is_deleted_leaves_nothing() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..1).await.unwrap();
    let other = service.store_with("a", slow(100)).await;
    let writing = tokio::spawn(async move { append(&other, &demo(), 1..1000).await });
    sleep(Duration::from_millis(450)).await;
    assert!(store.delete(&demo()).await.unwrap());
    writing.await.unwrap().unwrap_err();
    assert_eq!(service.items("a").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prune_deletes_what_a_writer_has_left_too() {
    let service = Service::new();
    append(&service.store_that_ends("a", 3).await, &demo(), 0..240).await.unwrap_err();
    let store = service.store("a").await;
    append(&store, &demo(), 0..240).await.unwrap();
    append(&store, &demo(), 240..242).await.unwrap();
    hide(&store, &demo(), 0, 239).await.unwrap();
    assert_eq!(store.prune(&demo(), Revision(1)).await.unwrap().messages, 240);
    assert_eq!(secrets(&service).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_state_is_read_whole_while_others_replace_it() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..1).await.unwrap();
    let text = "x".repeat(2_000_000);
    store.save_state(&demo(), &NewState::new(StateRevision(0), &text)).await.unwrap();
    let (writer, long) = (service.store("a").await, text.clone());
    let writing = tokio::spawn(async move {
        for at in 1..20 {
            let state = format!("{long}{at}");
            writer.save_state(&demo(), &NewState::new(StateRevision(at), &state)).await.unwrap();
        }
    });
    while !writing.is_finished() {
        let state = store.state(&demo()).await.unwrap().unwrap();
        assert!(
            state.revision == StateRevision(1) || *state.text == format!("{text}{}", state.revision.0 - 1)
        );
    }
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_and_grows_while_it_is_pruned() {
    for _ in 0..2 {
        let service = Service::new();
        let store = service.store("a").await;
        let entries: Vec<Entry> = (0..8).map(|at| entry(at, "secret ".repeat(150_000))).collect();
        store.append(&demo(), &Append::new(&AppendToken::new("t"), Seq(0), &entries)).await.unwrap();
        append(&store, &demo(), 8..10).await.unwrap();
        hide(&store, &demo(), 0, 7).await.unwrap();
        let (pruner, writer) = (service.store("a").await, service.store("a").await);
        let pruning = tokio::spawn(async move { pruner.prune(&demo(), Revision(1)).await });
        let writing = tokio::spawn(async move {
            for at in 0..5 {
                let token = AppendToken::new(format!("writer {at}"));
                let entries = [entry(0, "new")];
                writer.append(&demo(), &Append::new(&token, Seq(0), &entries).at_end()).await.unwrap();
            }
        });
        while !pruning.is_finished() {
            let page = store.log(&demo(), Seq(0)..Seq(8), 8).await.unwrap();
            assert_eq!(page.messages.len(), 8);
        }
        assert_eq!(pruning.await.unwrap().unwrap().messages, 8);
        writing.await.unwrap();
        assert_eq!(secrets(&service).await, 2);
    }
}
