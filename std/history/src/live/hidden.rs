//! What was hidden, read again from the log.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use epitome_core::{Revision, Seq};
use epitome_message::Message;

use super::History;
use crate::ext::{CLEAR, REWIND};
use crate::{Committed, Logged, StoreError, StoreErrorKind};

/// How many messages or records are read at once.
const PAGE: u32 = 256;

impl History {
    /// The messages of the groups in `range` that certain compactions hid, group by group, as they were appended: those of the records
    /// of which `is_meant` says so and that are not undone, with the answers that came when their group was hidden already. Orphans
    /// and what was pruned are not among them. Reads all records, and the log of the range, page by page.
    ///
    /// # Errors
    /// As [`HistoryStore::records`](crate::HistoryStore::records) and
    /// [`HistoryStore::log`](crate::HistoryStore::log).
    pub async fn hidden(
        &self,
        range: Range<Seq>,
        is_meant: impl Fn(&Committed) -> bool + Send,
    ) -> Result<Vec<Vec<Message>>, StoreError> {
        let revisions = self.revisions(is_meant).await?;
        let mut groups = BTreeMap::<Seq, Vec<Message>>::new();
        let mut next = Some(range.start).filter(|_| !revisions.is_empty());
        while let Some(first) = next {
            let page = self.store.log(&self.session, first..range.end, PAGE).await?;
            for Logged { entry, hidden_by, pruned_by, .. } in page.messages {
                let was_hidden = hidden_by.is_some_and(|revision| revisions.contains(&revision));
                if !was_hidden || pruned_by.is_some() || entry.orphan || entry.anchor < range.start {
                    continue;
                }
                groups.entry(entry.anchor).or_default().push(entry.message);
            }
            next = page.next;
        }
        Ok(groups.into_values().collect())
    }

    /// The revisions of the records with which a user took something back: [`clear`](crate::HistoryStoreExt::clear) and
    /// [`rewind`](crate::HistoryStoreExt::rewind).
    #[doc(hidden)]
    pub async fn taken_back(&self) -> Result<BTreeSet<Revision>, StoreError> {
        self.revisions(|committed| [CLEAR, REWIND].contains(&committed.record.strategy.as_str())).await
    }

    /// The revisions that these records made.
    async fn revisions(
        &self,
        is_meant: impl Fn(&Committed) -> bool + Send,
    ) -> Result<BTreeSet<Revision>, StoreError> {
        let (mut revisions, mut after) = (BTreeSet::new(), None);
        loop {
            let page = match self.store.records(&self.session, after, PAGE).await {
                Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(revisions),
                page => page?,
            };
            let Some(last) = page.last() else { return Ok(revisions) };
            after = Some(last.revision);
            let meant = page.iter().filter(|committed| committed.undone_by.is_none() && is_meant(committed));
            revisions.extend(meant.map(|committed| committed.revision));
        }
    }
}
