//! Operations on a session that all measurements share.

use core::cell::Cell;
use std::sync::Arc;

use epitome::core::{Revision, Seq};
use epitome::history::{
    Append, AppendToken, Entry, HistoryStore, Logged, SessionId, StoreError, StoreErrorKind, StoreKey,
    open_store, open_store_with_key,
};
use epitome_conformance::fixtures;
use futures::executor::block_on;

/// Opens the store of this URL; `encrypted:URL` is the store with encryption.
pub(crate) fn open(url: &str) -> Arc<dyn HistoryStore> {
    let opened = match url.strip_prefix("encrypted:") {
        Some(url) => open_store_with_key(url, StoreKey::new([7; 32])),
        None => open_store(url),
    };
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// A message in a turn of its own, so that the last turn is one message.
pub(crate) fn said(seq: u64) -> Entry {
    in_its_turn(fixtures::user(seq), seq)
}

pub(crate) fn in_its_turn(mut entry: Entry, seq: u64) -> Entry {
    entry.turn = epitome::core::Turn(u32::try_from(seq).unwrap_or(u32::MAX));
    entry
}

/// Appends and returns the new head.
pub(crate) fn append(
    store: &dyn HistoryStore,
    session: &SessionId,
    token: &str,
    head: u64,
    entries: &[Entry],
) -> Result<u64, StoreError> {
    let token = AppendToken::new(token);
    let append = Append::new(&token, Seq(head), entries);
    block_on(store.append(session, &append)).map(|appended| appended.head.0)
}

/// Hides messages, and returns the new revision.
pub(crate) fn hide(
    store: &dyn HistoryStore,
    session: &SessionId,
    (revision, head): (u64, u64),
    range: (u64, u64),
) -> Result<u64, StoreError> {
    let record = fixtures::record(revision, head, &[range]);
    block_on(store.commit(session, &record)).map(|Revision(made)| made)
}

/// Head and revision of a session; zero if there is no session yet.
pub(crate) fn counters(store: &dyn HistoryStore, session: &SessionId) -> (u64, u64) {
    match block_on(store.tail(session)) {
        Ok(tail) => (tail.head.0, tail.revision.0),
        Err(error) if error.kind() == StoreErrorKind::NotFound => (0, 0),
        Err(error) => panic!("{error}"),
    }
}

/// Visits the whole log, page by page.
pub(crate) fn for_each_logged(store: &dyn HistoryStore, session: &SessionId, mut visit: impl FnMut(Logged)) {
    let mut from = Some(Seq(0));
    while let Some(at) = from {
        let page = block_on(store.log(session, at..Seq(u64::MAX), 1_000)).unwrap();
        page.messages.into_iter().for_each(&mut visit);
        from = page.next;
    }
}

/// A session id that no earlier run has used.
pub(crate) fn fresh(what: &str) -> SessionId {
    let folder = tempfile::Builder::new().prefix("epitome-stores-").tempdir().unwrap();
    let unique = folder.path().file_name().unwrap().to_string_lossy().into_owned();
    SessionId::new(format!("{what}-{unique}"))
}

/// Random numbers that are the same in each run.
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Cell::new(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        // Xorshift (Marsaglia, 2003).
        let mut it = self.0.get();
        it ^= it << 13;
        it ^= it >> 7;
        it ^= it << 17;
        self.0.set(it);
        (it >> 11) % end
    }
}
