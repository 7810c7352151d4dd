//! Short names for frequent operations in tests of single stores.

pub(crate) use epitome_conformance::fixtures::*;
use epitome_core::{Revision, Seq};
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, Loaded, Logged, Pruned,
    SessionId, StoreError, StoreErrorKind,
};
use futures::executor::block_on;

pub(crate) fn session() -> SessionId {
    SessionId::new("s")
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

pub(crate) fn prune(store: &dyn HistoryStore, through: u64) -> Result<Pruned, StoreError> {
    block_on(store.prune(&session(), Revision(through)))
}

pub(crate) fn uncompact(store: &dyn HistoryStore, made: u64) -> Result<Revision, StoreError> {
    block_on(store.uncompact(&session(), Revision(made)))
}

pub(crate) fn load(store: &dyn HistoryStore) -> Loaded {
    block_on(store.load(&session())).unwrap()
}

/// The keys of the visible messages.
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

/// Content of a store that a failure must not change.
pub(crate) fn everything(store: &dyn HistoryStore) -> impl PartialEq + core::fmt::Debug + use<> {
    let prunes = block_on(store.prunes(&session(), None, u32::MAX)).unwrap();
    let appends = block_on(store.appends(&session(), Seq(0), u32::MAX)).unwrap();
    (load(store), log(store), records(store), prunes, appends, block_on(store.list(None, 10)).unwrap())
}

#[track_caller]
pub(crate) fn fails<T: core::fmt::Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) {
    match result {
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
        Ok(value) => panic!("{value:?} instead of {kind:?}"),
    }
}
