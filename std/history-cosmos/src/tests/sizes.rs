//! Tests of data that does not fit into one batch or one item.

use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Revision, Seq, Tokens};
use epitome_history::{
    Append, AppendToken, CompactionRecord, HistoryStore, MessageEdit, NewState, PartStandIn, StateRevision,
    TokenCount,
};

use epitome_history::StoreErrorKind;

use super::service::Service;
use super::{append, demo, entry, visible};

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_megabytes_come_back() {
    let service = Service::new();
    let store = service.store("a").await;
    let long = "\"é\\ ".repeat(700_000);
    let entries = [entry(0, "short"), entry(1, long.clone()), entry(2, "short")];
    store.append(&demo(), &Append::new(&AppendToken::new("t"), Seq(0), &entries)).await.unwrap();
    let state = "é".repeat(2_000_000);
    store.save_state(&demo(), &NewState::new(StateRevision(0), &state)).await.unwrap();
    store.save_state(&demo(), &NewState::new(StateRevision(1), &format!("{state}-"))).await.unwrap();
    let other = service.store("a").await;
    let loaded = other.load(&demo()).await.unwrap();
    let texts: Vec<String> = loaded.live.iter().map(|live| live.entry.message.text().into_owned()).collect();
    assert_eq!(texts, ["short".to_owned(), long, "short".to_owned()]);
    assert_eq!(&*other.state(&demo()).await.unwrap().unwrap().text, format!("{state}-"));
    // Nothing of the earlier state is left, and no mark of a writer.
    let items = service.items("a").await;
    let kind = |kind: &str| items.iter().filter(|item| item["epitome"] == kind).count();
    assert_eq!((kind("stage"), kind("state")), (0, 1));
    let bytes = |item: &serde_json::Value| item["text"].as_str().map_or(0, str::len);
    let pieces: usize = items.iter().filter(|item| item["epitome"] == "piece").map(bytes).sum();
    assert!((8_000_000..11_000_000).contains(&pieces), "{pieces}");
    assert!(store.delete(&demo()).await.unwrap());
    assert!(service.items("a").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_control_characters_fit_and_those_that_are_too_long_are_refused() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..1).await.unwrap();
    let escapes = "\u{1b}".repeat(1_000_000);
    store.save_state(&demo(), &NewState::new(StateRevision(0), &escapes)).await.unwrap();
    assert_eq!(&*store.state(&demo()).await.unwrap().unwrap().text, escapes);
    let error = store
        .save_state(&demo(), &NewState::new(StateRevision(1), &"x".repeat(121_000_000)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().starts_with("save_state: a text of 121000000 bytes is too long"), "{error}");
    store.save_state(&demo(), &NewState::new(StateRevision(1), "{}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_messages_are_appended_edited_and_hidden_at_once() {
    let service = Service::new();
    let store = service.store("a").await;
    append(&store, &demo(), 0..3).await.unwrap();
    append(&store, &demo(), 3..1003).await.unwrap();
    append(&store, &demo(), 1003..1005).await.unwrap();
    assert_eq!(visible(&store, &demo()).await, (0..1005).collect::<Vec<_>>());

    let loaded = store.load(&demo()).await.unwrap();
    let mut record = CompactionRecord::new(loaded.revision, loaded.head);
    let short = TokenCount::new(Tokens(3), Basis::Estimated, "test".into());
    let edit =
        |seq| MessageEdit::new(Seq(seq), vec![PartStandIn::new(0, Some("[cleared]".into()))], short.clone());
    record.edits = (500..1000).map(edit).collect();
    record.hides = (0..250).map(|at| SeqRange { first: Seq(at * 2), last: Seq(at * 2) }).collect();
    store.commit(&demo(), &record).await.unwrap();
    let loaded = service.store("a").await.load(&demo()).await.unwrap();
    assert_eq!(loaded.live.len(), 755);
    let cleared = loaded.live.iter().filter(|live| live.entry.message.text() == "[cleared]").count();
    assert_eq!(cleared, 500);
    assert_eq!(store.tail(&demo()).await.unwrap().live.last().unwrap().key, Seq(1004));
    store.uncompact(&demo(), loaded.revision).await.unwrap();
    assert_eq!(visible(&store, &demo()).await.len(), 1005);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_costs_the_same_in_a_long_session() {
    let service = Service::new();
    let store = service.store("a").await;
    let mut cost = Vec::new();
    for begin in [0_u64, 1000] {
        append(&store, &demo(), begin..begin + 990).await.unwrap();
        append(&store, &demo(), begin + 990..begin + 996).await.unwrap();
        service.traffic().take();
        append(&store, &demo(), begin + 996..begin + 1000).await.unwrap();
        cost.push(service.traffic().take());
    }
    // The session, the token, and one batch.
    assert_eq!((cost[0].0, cost[1].0), (3, 3));
    assert!(cost[1].1 < cost[0].1 + 100, "{cost:?}");
}

/// The number of requests of each operation on a session of 100 messages, as in docs/cosmos.md.
#[tokio::test(flavor = "multi_thread")]
async fn operations_have_so_many_requests() {
    let service = Service::new();
    let store = service.store("a").await;
    for begin in [0, 25, 50, 75] {
        append(&store, &demo(), begin..begin + 25).await.unwrap();
    }
    store.load(&demo()).await.unwrap();
    let asked = || service.traffic().take().0;
    asked();
    append(&store, &demo(), 100..102).await.unwrap();
    assert_eq!(asked(), 3, "append");
    assert_eq!(store.load(&demo()).await.unwrap().live.len(), 102);
    assert_eq!(asked(), 2, "load");
    store.tail(&demo()).await.unwrap();
    assert_eq!(asked(), 2, "tail");
    let mut record = CompactionRecord::new(Revision(0), Seq(102));
    record.hides = vec![SeqRange { first: Seq(10), last: Seq(89) }];
    store.commit(&demo(), &record).await.unwrap();
    assert_eq!(asked(), 4, "commit");
    store.log(&demo(), Seq(0)..Seq(50), 50).await.unwrap();
    assert_eq!(asked(), 3, "log");
    store.uncompact(&demo(), Revision(1)).await.unwrap();
    assert_eq!(asked(), 6, "uncompact");
    store.list(None, 10).await.unwrap();
    assert_eq!(asked(), 4, "list");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_and_compactors_lose_nothing() {
    write_and_hide(&Arc::new(Service::new())).await;
    // Every text is in pieces: one process deletes the pieces that another one reads.
    write_and_hide(&Arc::new(Service::new().with_texts_of(1))).await;
}

async fn write_and_hide(service: &Arc<Service>) {
    append(&service.store("a").await, &demo(), 0..2).await.unwrap();
    let mut tasks = Vec::new();
    for writer in 0..6 {
        let service = Arc::clone(service);
        tasks.push(tokio::spawn(async move {
            let store = service.store("a").await;
            for at in 0..10 {
                let token = AppendToken::new(format!("writer {writer}-{at}"));
                let entries = [entry(0, format!("{writer}-{at}"))];
                store.append(&demo(), &Append::new(&token, Seq(0), &entries).at_end()).await.unwrap();
            }
        }));
    }
    for _ in 0..2 {
        let service = Arc::clone(service);
        tasks.push(tokio::spawn(async move {
            let store = service.store("a").await;
            for _ in 0..5 {
                let Some(first) = visible(&store, &demo()).await.first().copied() else { continue };
                // Another process may have been faster.
                let _ = super::hide(&store, &demo(), first, first).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let page = service.store("a").await.log(&demo(), Seq(0)..Seq(999), 999).await.unwrap();
    let mut said: Vec<String> =
        page.messages.iter().skip(2).map(|logged| logged.entry.message.text().into_owned()).collect();
    said.sort_unstable();
    let mut expected: Vec<String> =
        (0..6).flat_map(|writer| (0..10).map(move |at| format!("{writer}-{at}"))).collect();
    expected.sort_unstable();
    assert_eq!(said, expected);
    let hidden = page.messages.iter().filter(|logged| logged.hidden_by.is_some()).count();
    assert!(hidden >= 1 && hidden + visible(&service.store("a").await, &demo()).await.len() == 62);
    let stages = service.items("a").await.iter().filter(|item| item["epitome"] == "stage").count();
    assert_eq!(stages, 0, "one who has to begin anew leaves nothing");
}
