//! Short names for what the scenarios say again and again.

use epitome_core::attribution::{Authority, SeqRange, SourceKind};
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, Loaded, Logged,
    SessionId, StoreError, StoreErrorKind, Summary, TokenCount, UnansweredCall,
};
use epitome_std::message::{Attribution, Message, Part, ToolCall};
use futures::executor::block_on;

pub(crate) fn session() -> SessionId {
    SessionId::new("s")
}

pub(crate) fn count(tokens: u32) -> TokenCount {
    TokenCount::new(Tokens(tokens), Basis::Estimated, "test".into())
}

pub(crate) fn entry(message: Message, anchor: u64, turn: u32) -> Entry {
    Entry::new(message, Seq(anchor), Turn(turn), count(10))
}

/// A user message that is a group of its own.
pub(crate) fn user(seq: u64) -> Entry {
    entry(Message::user(format!("question {seq}")), seq, 1)
}

/// An assistant message with these calls, the first of its group.
pub(crate) fn calls(seq: u64, ids: &[&str]) -> Entry {
    let parts = ids.iter().map(|id| Part::ToolCall(ToolCall::new(*id, "read", "{}"))).collect();
    entry(Message::new(epitome_core::message::Role::Assistant, parts), seq, 1)
}

/// The answer to a call of the group at `anchor`.
pub(crate) fn answer(anchor: u64, id: &str) -> Entry {
    entry(Message::tool(id, format!("answer to {id}")), anchor, 1)
}

pub(crate) fn late(mut entry: Entry) -> Entry {
    entry.late = true;
    entry
}

pub(crate) fn orphan(mut entry: Entry) -> Entry {
    entry.orphan = true;
    entry
}

pub(crate) fn range(first: u64, last: u64) -> SeqRange {
    SeqRange { first: Seq(first), last: Seq(last) }
}

pub(crate) fn record(parent: u64, head: u64, hides: &[(u64, u64)]) -> CompactionRecord {
    let mut record = CompactionRecord::new(Revision(parent), Seq(head));
    record.hides = hides.iter().map(|(first, last)| range(*first, *last)).collect();
    record
}

/// A summary of `covers`.
pub(crate) fn summary(covers: &[(u64, u64)]) -> Summary {
    let ranges: Vec<SeqRange> = covers.iter().map(|(first, last)| range(*first, *last)).collect();
    let key = ranges[0].first;
    let attribution = Attribution::new("summarizer", SourceKind::Compaction, Authority::Retrieved);
    let message = Message::assistant(format!("summary of {covers:?}"));
    Summary::new(key, message.with_attribution(attribution.with_derived_from(ranges)), count(3))
}

pub(crate) fn summarized(mut record: CompactionRecord, summaries: &[&[(u64, u64)]]) -> CompactionRecord {
    record.summaries = summaries.iter().map(|covers| summary(covers)).collect();
    record
}

pub(crate) fn unanswered(id: &str, anchor: u64, ordinal: u32) -> UnansweredCall {
    UnansweredCall::new(id.into(), Seq(anchor), Turn(1), ordinal)
}

pub(crate) fn append(
    store: &dyn HistoryStore,
    token: &str,
    head: u64,
    entries: &[Entry],
) -> Result<Appended, StoreError> {
    block_on(store.append(&session(), &Append::new(&AppendToken::new(token), Seq(head), entries)))
}

/// Appends user messages until the head is `head`.
pub(crate) fn fill(store: &dyn HistoryStore, head: u64) {
    let entries: Vec<Entry> = (0..head).map(user).collect();
    append(store, "fill", 0, &entries).unwrap();
}

pub(crate) fn commit(store: &dyn HistoryStore, record: &CompactionRecord) -> Result<Revision, StoreError> {
    block_on(store.commit(&session(), record))
}

pub(crate) fn load(store: &dyn HistoryStore) -> Loaded {
    block_on(store.load(&session())).unwrap()
}

/// The keys of what is visible.
pub(crate) fn keys(store: &dyn HistoryStore) -> Vec<u64> {
    load(store).live.iter().map(|live| live.key.0).collect()
}

pub(crate) fn log(store: &dyn HistoryStore) -> Vec<Logged> {
    block_on(store.log(&session(), Seq(0)..Seq(u64::MAX), u32::MAX)).unwrap().messages
}

/// All committed records.
pub(crate) fn records(store: &dyn HistoryStore) -> Vec<Committed> {
    block_on(store.records(&session(), None, u32::MAX)).unwrap()
}

/// For each message of the log the revision that hid it.
pub(crate) fn hidden(store: &dyn HistoryStore) -> Vec<Option<u64>> {
    log(store).iter().map(|logged| logged.hidden_by.map(|revision| revision.0)).collect()
}

/// What must not have changed after a failure.
pub(crate) fn everything(store: &dyn HistoryStore) -> impl PartialEq + core::fmt::Debug + use<> {
    (load(store), log(store), records(store), block_on(store.list(None, 10)).unwrap())
}

#[track_caller]
pub(crate) fn fails<T: core::fmt::Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) {
    match result {
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
        Ok(value) => panic!("{value:?} instead of {kind:?}"),
    }
}
