//! Processes that end between two batches.

use epitome_core::{Revision, Seq};
use epitome_history::{Append, AppendToken, HistoryStore, StoreErrorKind};

use super::service::Service;
use super::{append, demo, entry, hide, visible};

/// More batches than any of these operations has.
const BATCHES: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_long_append_is_seen_whole_or_not_at_all() {
    let mut seen = [false; 2];
    for after in 0..BATCHES {
        let service = Service::new();
        append(&service.store("a").await, &demo(), 0..2).await.unwrap();
        let ends = service.store_that_ends("a", after).await;
        let done = append(&ends, &demo(), 2..602).await.is_ok();
        let store = service.store("a").await;
        let len = visible(&store, &demo()).await.len();
        assert!(len == 602 || len == 2 && !done, "{after}: {len}");
        seen[usize::from(len == 602)] = true;
        // The remains of an interrupted append do not hinder another append.
        append(&store, &demo(), if len == 2 { 2..602 } else { 602..604 }).await.unwrap();
        assert_eq!(store.log(&demo(), Seq(0)..Seq(9999), 9999).await.unwrap().next, None);
        assert!(store.delete(&demo()).await.unwrap());
        assert!(service.items("a").await.is_empty(), "{after}");
        if done {
            assert!(seen == [true; 2] && after > 5);
            return;
        }
    }
    panic!("it never comes to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_first_append_has_left_is_deleted() {
    let service = Service::new();
    let ends = service.store_that_ends("a", 3).await;
    append(&ends, &demo(), 0..600).await.unwrap_err();
    assert!(service.items("a").await.len() > 100);
    let store = service.store("a").await;
    assert_eq!(store.load(&demo()).await.unwrap_err().kind(), StoreErrorKind::NotFound);
    assert!(!store.delete(&demo()).await.unwrap());
    assert!(service.items("a").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_prune_is_finished_by_the_next_change() {
    for after in 0..BATCHES {
        let service = Service::new();
        let store = service.store("a").await;
        append(&store, &demo(), 0..240).await.unwrap();
        for first in [0, 60, 120] {
            hide(&store, &demo(), first, first + 59).await.unwrap();
        }
        let ends = service.store_that_ends("a", after).await;
        let done = ends.prune(&demo(), Revision(2)).await.is_ok();
        assert_eq!(visible(&store, &demo()).await.len(), 60, "{after}");
        match after % 2 {
            0 => append(&store, &demo(), 240..241).await.unwrap(),
            _ => assert_eq!(store.prune(&demo(), Revision(2)).await.unwrap().messages, 120),
        }
        let texts =
            service.items("a").await.iter().filter(|item| item.to_string().contains("secret")).count();
        let messages = if after % 2 == 0 { 121 } else { 120 };
        // Before the prune itself is written, an append deletes nothing.
        let is_begun = !store.prunes(&demo(), None, 9).await.unwrap().is_empty();
        assert_eq!(texts, if is_begun { messages } else { 241 }, "{after}");
        let revision = store.load(&demo()).await.unwrap().revision;
        assert_eq!(revision, Revision(if is_begun { 4 } else { 3 }));
        assert!(store.uncompact(&demo(), Revision(3)).await.is_ok());
        if done {
            assert!(after > 5);
            return;
        }
    }
    panic!("it never comes to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_go_with_the_message_that_they_are_of() {
    for after in 0..BATCHES {
        let service = Service::new();
        let store = service.store("a").await;
        let entries = [entry(0, "secret ".repeat(400_000)), entry(1, "secret")];
        store.append(&demo(), &Append::new(&AppendToken::new("t"), Seq(0), &entries)).await.unwrap();
        hide(&store, &demo(), 0, 1).await.unwrap();
        let done = service.store_that_ends("a", after).await.prune(&demo(), Revision(1)).await.is_ok();
        store.prune(&demo(), Revision(1)).await.unwrap();
        let items = service.items("a").await;
        assert!(!items.iter().any(|item| item.to_string().contains("secret")), "{after}");
        if done {
            assert!(after > 3);
            return;
        }
    }
    panic!("it never comes to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_deletion_is_finished_by_whoever_comes() {
    for after in 0..BATCHES {
        let service = Service::new();
        let store = service.store("a").await;
        append(&store, &demo(), 0..240).await.unwrap();
        let ends = service.store_that_ends("a", after).await;
        let done = ends.delete(&demo()).await.is_ok();
        if after == 0 {
            assert_eq!(visible(&store, &demo()).await.len(), 240);
            continue;
        }
        assert_eq!(store.list(None, 9).await.unwrap().len(), 0);
        if after % 2 == 0 {
            // A new session has nothing of the old one.
            append(&store, &demo(), 0..1).await.unwrap();
            assert_eq!(service.items("a").await.len(), 3);
        } else {
            assert_eq!(store.load(&demo()).await.unwrap_err().kind(), StoreErrorKind::NotFound);
            assert!(service.items("a").await.is_empty());
        }
        if done {
            assert!(after > 2);
            return;
        }
    }
    panic!("it never comes to its end");
}
