//! The index of words of a session in memory.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;

use epitome_core::{Head, Seq};
use epitome_message::search::Term;

use super::{MemoryStore, Session};
use crate::words::{Block, BlockRows, KeptWords, SessionWords, blocks_of, rows_with};
use crate::{SessionId, StoreError};

/// The blocks of a session that searches have indexed.
pub(super) struct Words {
    blocks: BTreeMap<Block, BlockRows>,
    /// A number that differs for each session of the process.
    born: u64,
}

impl Default for Words {
    fn default() -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        Self { blocks: BTreeMap::new(), born: SESSIONS.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Words {
    /// Removes the blocks that contain these messages.
    pub(super) fn forget(&mut self, seqs: &[Seq]) {
        for block in blocks_of(seqs) {
            self.blocks.remove(&block);
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.blocks.clear();
    }
}

impl Session {
    fn stamp(&self) -> String {
        format!("{} {}", self.words.born, self.prunes.len())
    }
}

impl SessionWords for MemoryStore {
    async fn head(&self, session: &SessionId) -> Result<Option<Head>, StoreError> {
        Ok(self.sessions().get(session).map(Session::head))
    }

    async fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> Result<Option<KeptWords>, StoreError> {
        let sessions = self.sessions();
        let Some(session) = sessions.get(session) else { return Ok(None) };
        let rows = |block| {
            let rows = session.words.blocks.get(block)?;
            Some(rows_with(rows, |row| row.0, terms).into_iter().cloned().collect())
        };
        Ok(Some(KeptWords { stamp: session.stamp(), rows: blocks.iter().map(rows).collect() }))
    }

    async fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> Result<(), StoreError> {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(session).filter(|session| session.stamp() == stamp) {
            let blocks = &mut session.words.blocks;
            blocks.retain(|other, _| !block.holds(*other));
            blocks.insert(block, rows);
        }
        Ok(())
    }
}
