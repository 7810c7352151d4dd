//! Common steps of the scenarios, on the main session of each.

use epitome_core::{Revision, Seq};

pub(super) use super::fixtures::{
    answer, calls, count, edit, edited, entry, late, orphan, range, record, summarized, summary, unanswered,
    user,
};
pub(super) use super::room::Room;
use epitome_history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, Loaded, Logged, LoggedAppend, Pruned,
    SessionInfo, StoreError, StoreErrorKind,
};

pub(super) async fn append(
    room: &Room<'_>,
    token: &str,
    head: u64,
    entries: &[Entry],
) -> Result<Appended, StoreError> {
    room.append(&room.session(), &Append::new(&AppendToken::new(token), Seq(head), entries)).await
}

/// Appends user messages until the head is `head`.
pub(super) async fn fill(room: &Room<'_>, head: u64) {
    let entries: Vec<Entry> = (0..head).map(user).collect();
    append(room, "fill", 0, &entries).await.unwrap();
}

pub(super) async fn commit(room: &Room<'_>, record: &CompactionRecord) -> Result<Revision, StoreError> {
    room.commit(&room.session(), record).await
}

pub(super) async fn uncompact(room: &Room<'_>, made: u64) -> Result<Revision, StoreError> {
    room.uncompact(&room.session(), Revision(made)).await
}

pub(super) async fn prune(room: &Room<'_>, through: u64) -> Result<Pruned, StoreError> {
    room.prune(&room.session(), Revision(through)).await
}

/// All prunes that have deleted a text.
pub(super) async fn prunes(room: &Room<'_>) -> Vec<Pruned> {
    room.prunes(&room.session(), None, u32::MAX).await.unwrap()
}

pub(super) async fn appends(room: &Room<'_>) -> Vec<LoggedAppend> {
    room.appends(&room.session(), Seq(0), u32::MAX).await.unwrap()
}

pub(super) async fn load(room: &Room<'_>) -> Loaded {
    room.load(&room.session()).await.unwrap()
}

/// The keys of the visible messages and summaries.
pub(super) async fn keys(room: &Room<'_>) -> Vec<u64> {
    load(room).await.live.iter().map(|live| live.key.0).collect()
}

pub(super) async fn log(room: &Room<'_>) -> Vec<Logged> {
    room.log(&room.session(), Seq(0)..Seq(u64::MAX), u32::MAX).await.unwrap().messages
}

/// All committed records.
pub(super) async fn records(room: &Room<'_>) -> Vec<Committed> {
    room.records(&room.session(), None, u32::MAX).await.unwrap()
}

/// For each message of the log, the revision that hid it.
pub(super) async fn hidden(room: &Room<'_>) -> Vec<Option<u64>> {
    log(room).await.iter().map(|logged| logged.hidden_by.map(|revision| revision.0)).collect()
}

/// Everything that a failed operation must leave unchanged.
pub(super) async fn everything(room: &Room<'_>) -> (Loaded, Vec<Logged>, Vec<Committed>, Vec<SessionInfo>) {
    (load(room).await, log(room).await, records(room).await, room.list(None, 10).await.unwrap())
}

#[track_caller]
pub(super) fn fails<T: core::fmt::Debug>(result: Result<T, StoreError>, kind: StoreErrorKind) {
    match result {
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
        Ok(value) => panic!("{value:?} instead of {kind:?}"),
    }
}
