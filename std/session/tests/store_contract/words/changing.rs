//! A store that changes during a search, or that refuses to write the index.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use epitome_conformance::index::{Dice, append_some};
use epitome_core::{Revision, Seq};
use epitome_history::kernel::scan;
use epitome_history::words::{Block, BlockRows, KeptWords, SessionWords, search_sessions};
use epitome_message::search::Term;
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, HistoryStore, Loaded, LogPage, LogSearch,
    MemoryStore, SessionId, SessionInfo, StoreError, StoreErrorKind,
};
use futures::executor::block_on;

use super::{WORDS, assert_kept};

/// A store in memory with the head of another time, which may refuse to write the index.
#[derive(Debug, Default)]
struct Front {
    inner: MemoryStore,
    head: Option<Seq>,
    is_read_only: bool,
    pages: AtomicUsize,
    refused: AtomicUsize,
}

#[async_trait]
impl HistoryStore for Front {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.inner.append(session, append).await
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.inner.load(session).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.inner.appended(session, token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.inner.commit(session, record).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.inner.log(session, range, limit).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.inner.records(session, after, limit).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        self.inner.list(after, limit).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.inner.delete(session).await
    }
}

impl SessionWords for Front {
    async fn head(&self, session: &SessionId) -> Result<Option<Seq>, StoreError> {
        let head = SessionWords::head(&self.inner, session).await?;
        Ok(self.head.or(head))
    }

    async fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> Result<Option<KeptWords>, StoreError> {
        self.inner.words(session, blocks, terms).await
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        if self.is_read_only {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::new(StoreErrorKind::Unavailable, "it is read-only"));
        }
        self.inner.keep_words(session, stamp, block, rows).await
    }
}

/// A session was deleted and started again between the list of a search and its read of the session: a short block is
/// not stored as a whole one.
#[test]
fn a_session_that_became_shorter_is_not_indexed_beyond_its_head() {
    block_on(async {
        let (mut store, session) =
            (Front { head: Some(Seq(5_000)), ..Front::default() }, SessionId::new("s"));
        append_some(&store, &session, 300, &mut Dice::new(3)).await;
        let search = LogSearch::new(WORDS).in_session(session.clone()).with_limit(u32::MAX);
        search_sessions(&store, &search).await.unwrap();
        store.head = None;
        append_some(&store, &session, 4_200, &mut Dice::new(4)).await;
        let found = search_sessions(&store, &search).await.unwrap();
        assert_eq!(found.len(), scan(&store, &search).await.unwrap().len());
        assert_kept(&store.inner, &session).await;
    });
}

/// If the index cannot be written, a search reads each message once, and one block before it knows this.
#[test]
fn a_store_that_cannot_be_written_is_read_once() {
    block_on(async {
        let (store, session) = (Front { is_read_only: true, ..Front::default() }, SessionId::new("s"));
        for _ in 0..3 {
            append_some(&store, &session, 4_096 * 10, &mut Dice::new(3)).await;
        }
        let search = LogSearch::new(WORDS).in_session(session.clone());
        let expected = scan(&store, &search).await.unwrap();
        let scanned = store.pages.swap(0, Ordering::Relaxed);
        assert_eq!(search_sessions(&store, &search).await.unwrap(), expected);
        assert_eq!(store.refused.load(Ordering::Relaxed), 1);
        // One wide block was read, sixteen pages of it, and the group at its beginning.
        let pages = store.pages.load(Ordering::Relaxed);
        assert!(pages > scanned && pages <= scanned + 20, "{pages} pages, {scanned} for all messages");
    });
}
