//! The storage contract, and the special behaviour of this store, on the emulator of the SDK.

mod at_once;
mod faults;
mod interrupted;
mod others;
#[cfg(feature = "provider")]
mod runs;
mod service;
mod sizes;
#[cfg(feature = "provider")]
mod unbuilt;

use core::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_conformance::{OneStore, Subject, Suite};
use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, SessionId, StoreError, TokenCount,
};
use epitome_message::Message;

use self::service::Service;

#[async_trait]
impl Subject for Service {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        Ok(Arc::new(self.store(place).await))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds() {
    Suite::new().with_cases(10).run(&Service::new()).await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_holds_where_every_text_is_in_pieces() {
    let service = Service::new().with_texts_of(1);
    let with_texts = |group: &str| matches!(group, "edits" | "prune" | "states" | "undo");
    for (_, scenario) in Suite::scenarios().filter(|(group, _)| with_texts(group)) {
        Suite::new().run_one(scenario, &service).await.assert_passed();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_holds_in_one_container_beside_others() {
    let service = Service::new();
    let store = Arc::new(service.store("shared").await);
    append(&*store, &demo(), 0..3).await.unwrap();
    let before = service.items("shared").await.len();
    let one = OneStore::new(Arc::clone(&store) as _);
    // The scenarios that access more than their own session.
    let beyond = |group: &str| matches!(group, "sessions" | "handles" | "search" | "times");
    for (_, scenario) in Suite::scenarios().filter(|(group, _)| beyond(group)) {
        Suite::new().run_one(scenario, &one).await.assert_passed();
    }
    assert_eq!(service.items("shared").await.len(), before);
}

fn demo() -> SessionId {
    SessionId::new("demo")
}

fn entry(seq: u64, text: impl Into<String>) -> Entry {
    let count = TokenCount::new(Tokens(10), Basis::Estimated, "test".into());
    let turn = u32::try_from(seq / 2).unwrap_or_default();
    Entry::new(Message::user(text.into()), Seq(seq), Turn(turn), count)
}

/// Appends messages with these numbers; each text is `secret` and the number.
async fn append(store: &dyn HistoryStore, session: &SessionId, seqs: Range<u64>) -> Result<(), StoreError> {
    let (token, head) = (AppendToken::new(format!("{}-{}", seqs.start, seqs.end)), Seq(seqs.start));
    let entries: Vec<Entry> = seqs.map(|seq| entry(seq, format!("secret {seq}"))).collect();
    store.append(session, &Append::new(&token, head, &entries)).await.map(|_| ())
}

/// Hides messages, from the current state on.
async fn hide(
    store: &dyn HistoryStore,
    session: &SessionId,
    first: u64,
    last: u64,
) -> Result<(), StoreError> {
    let loaded = store.load(session).await?;
    let mut record = CompactionRecord::new(loaded.revision, loaded.head);
    record.hides = vec![SeqRange { first: Seq(first), last: Seq(last) }];
    store.commit(session, &record).await.map(|_| ())
}

async fn visible(store: &dyn HistoryStore, session: &SessionId) -> Vec<u64> {
    store.load(session).await.unwrap().live.iter().map(|live| live.key.0).collect()
}
