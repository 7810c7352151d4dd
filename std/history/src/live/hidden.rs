//! Hidden and shortened messages, which are read again from the log.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use epitome_core::{Revision, Seq};
use epitome_message::Message;

use super::History;
use crate::ext::{PAGE, taken_back};
use crate::{Committed, LogSearch, Logged, StoreError, StoreErrorKind};

/// The hidden or shortened messages of a log. Pruned messages are not among them, and neither are messages that a user
/// took back with [`clear`](crate::HistoryStoreExt::clear) or [`rewind`](crate::HistoryStoreExt::rewind).
#[derive(Debug)]
pub struct Unseen<'h> {
    history: &'h History,
    seen: HashSet<Seq>,
    /// The groups that a user took back, by their first messages.
    taken_back: Vec<Range<Seq>>,
}

impl Unseen<'_> {
    /// Visits the unseen messages in `range`, in order and in their appended form. Stops and returns `false` as soon as `visit` returns `false`; returns `true` otherwise.
    /// Reads the log of the range, page by page.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::log`](crate::HistoryStore::log).
    pub async fn for_each(
        &self,
        range: Range<Seq>,
        mut visit: impl FnMut(Seq, &Message) -> bool + Send,
    ) -> Result<bool, StoreError> {
        let mut next = Some(range.start).filter(|first| *first < range.end);
        while let Some(first) = next {
            let page = self.history.log(first..range.end, PAGE).await?;
            for logged in &page.messages {
                let is_unseen = !self.seen.contains(&logged.seq) && logged.pruned_by.is_none();
                if is_unseen && !self.is_taken_back(logged) && !visit(logged.seq, &logged.entry.message) {
                    return Ok(false);
                }
            }
            next = page.next;
        }
        Ok(true)
    }

    /// Finds the unseen messages in `range` that are nearest to some words: at most `limit`, the nearest first. See
    /// [`HistoryStore::search`](crate::HistoryStore::search).
    ///
    /// # Errors
    /// The errors of [`HistoryStore::search`](crate::HistoryStore::search).
    pub async fn nearest(
        &self,
        words: &str,
        range: Range<Seq>,
        limit: u32,
    ) -> Result<Vec<Logged>, StoreError> {
        let search = LogSearch::new(words).in_session(&self.history.session).in_ranges(self.ranges(range));
        let mut asked = limit;
        loop {
            let found = self.history.store.search(&search.clone().with_limit(asked)).await?;
            let is_all = found.len() < asked as usize;
            let mut nearest: Vec<_> = found.into_iter().map(|found| found.logged).collect();
            nearest.retain(|logged| !self.is_taken_back(logged));
            // Messages that were taken back fill places of the result. Search again with twice the limit.
            if is_all || nearest.len() >= limit as usize || asked == u32::MAX {
                nearest.truncate(limit as usize);
                return Ok(nearest);
            }
            asked = asked.saturating_mul(2);
        }
    }

    /// Whether a user took the message back: its group begins in a range that was taken back.
    fn is_taken_back(&self, logged: &Logged) -> bool {
        self.taken_back.iter().any(|range| range.contains(&logged.entry.anchor))
    }

    /// The ranges of unseen messages in `range`.
    fn ranges(&self, range: Range<Seq>) -> Vec<Range<Seq>> {
        let mut seen: Vec<Seq> = self.seen.iter().copied().filter(|seq| range.contains(seq)).collect();
        seen.sort_unstable();
        let (mut ranges, mut from) = (Vec::new(), range.start);
        for seq in seen.into_iter().chain([range.end]) {
            if from < seq {
                ranges.push(from..seq);
            }
            from = Seq(seq.0.saturating_add(1));
        }
        ranges
    }
}

impl History {
    /// The messages of the groups in `range` that certain compactions hid, group by group, in their appended form. The
    /// compactions are the records that are not undone and for which `is_meant` returns `true`. Answers that came after
    /// their group was hidden are included; orphans and pruned messages are not. Reads all records, and the log of the
    /// range, page by page.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::records`](crate::HistoryStore::records) and
    /// [`HistoryStore::log`](crate::HistoryStore::log).
    pub async fn hidden(
        &self,
        range: Range<Seq>,
        is_meant: impl Fn(&Committed) -> bool + Send,
    ) -> Result<Vec<Vec<Message>>, StoreError> {
        let revisions = self.records_that_hold(move |it| is_meant(it).then_some(it.revision)).await?;
        let revisions: BTreeSet<Revision> = revisions.into_iter().collect();
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

    /// The messages of the log that this history hides or shows shortened. Reads all records.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::records`](crate::HistoryStore::records).
    pub async fn unseen(&self) -> Result<Unseen<'_>, StoreError> {
        let whole = self.live().iter().filter(|live| live.is_whole());
        self.unseen_beside(whole.map(|live| live.key).collect()).await
    }

    /// The messages of the log that are not in `seen`, the set of messages that are shown whole.
    #[doc(hidden)]
    pub async fn unseen_beside(&self, seen: HashSet<Seq>) -> Result<Unseen<'_>, StoreError> {
        let taken_back = self.records_that_hold(|it| taken_back(&it.record)).await?;
        Ok(Unseen { history: self, seen, taken_back })
    }

    /// Maps the records that are not undone with `of`, in order, and collects the values.
    async fn records_that_hold<T: Send>(
        &self,
        mut of: impl FnMut(&Committed) -> Option<T> + Send,
    ) -> Result<Vec<T>, StoreError> {
        let (mut given, mut after) = (Vec::new(), None);
        loop {
            let page = match self.store.records(&self.session, after, PAGE).await {
                Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(given),
                page => page?,
            };
            let Some(last) = page.last() else { return Ok(given) };
            after = Some(last.revision);
            given.extend(page.iter().filter(|committed| committed.undone_by.is_none()).filter_map(&mut of));
        }
    }
}
