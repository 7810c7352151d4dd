//! The messages that a compaction has hidden.

use core::ops::Range;

use epitome_core::{Head, Revision, Seq};

use super::PAGE;
use crate::rules::invalid;
use crate::{Committed, CompactionRecord, HistoryStore, LogPage, Logged, SessionId, StoreError};

pub(super) async fn expand<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    made: Revision,
    from: Seq,
    limit: u32,
) -> Result<LogPage, StoreError> {
    let before = made.0.checked_sub(1).map(Revision);
    let found = store.records(session, before, 1).await?.pop().filter(|it| it.revision == made);
    let unknown = || {
        invalid(format!(
            "expand: revision {made} is not that of a compaction; list the records for their revisions"
        ))
    };
    let Committed { record, undone_by, .. } = found.ok_or_else(unknown)?;
    let mut page = LogPage::new(Vec::new(), None);
    if undone_by.is_some() {
        return Ok(page);
    }
    let head = store.tail(session).await?.head;
    let wanted = |logged: &Logged| {
        logged.hidden_by == Some(made) || record.edits.iter().any(|edit| edit.seq == logged.seq)
    };
    for range in ranges(&record, head) {
        let mut next = Some(range.start.max(from)).filter(|first| *first < range.end);
        while let Some(first) = next {
            let read = store.log(session, first..range.end, PAGE).await?;
            for logged in read.messages.into_iter().filter(wanted) {
                if page.messages.len() as u64 >= u64::from(limit) {
                    page.next = Some(logged.seq);
                    return Ok(page);
                }
                page.messages.push(logged);
            }
            next = read.next;
        }
    }
    Ok(page)
}

/// The ranges of messages that `record` hid and shortened, ascending. A call without an answer at that time may have
/// got a late answer, whose number is at or after the record's head.
fn ranges(record: &CompactionRecord, head: Head) -> Vec<Range<Seq>> {
    let mut ranges: Vec<_> = record.hides.iter().map(|range| range.first..range.last.next()).collect();
    ranges.extend(record.edits.iter().map(|edit| edit.seq..edit.seq.next()));
    ranges.sort_by_key(|range| range.start);
    if !record.unanswered.is_empty() {
        ranges.push(record.head..head);
    }
    ranges
}
