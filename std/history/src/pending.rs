//! Compactions that were decided on a copy of a history and are not yet committed to the stored one.

use epitome_core::attribution::SeqRange;
use epitome_core::{Group, Seq};
use epitome_message::Str;

use super::visible::VisibleIndex;
use super::{CompactionRecord, MessageEdit, PartStandIn, Summary, TokenCount};

/// A compaction that was decided and not committed yet, in sequence numbers of the log. The session may have changed
/// since; such changes are kept.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a run fills it")]
pub struct PendingRecord {
    /// The messages to hide.
    pub hides: Vec<SeqRange>,
    /// The summaries in the place of the hidden messages. A summary is shown only if all messages that it covers are
    /// hidden.
    pub summaries: Vec<Summary>,
    /// The messages to shorten, in the order of their numbers.
    pub edits: Vec<PendingEdit>,
    /// The strategy that made the decision.
    pub strategy: Str,
}

/// The planned stand-ins of one message.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a run fills it")]
pub struct PendingEdit {
    /// The sequence number of the message.
    pub seq: Seq,
    /// The stand-ins of its parts at the time of the decision. If the message has others now, it is not changed.
    pub seen: Vec<PartStandIn>,
    /// The new stand-ins.
    pub stand_ins: Vec<PartStandIn>,
    /// The size of the message with the new stand-ins.
    pub count: TokenCount,
}

impl VisibleIndex {
    /// The record of `pending`, as far as its messages are visible here; `None` if no change is left.
    pub(super) fn record_pending(&self, pending: &PendingRecord) -> Option<CompactionRecord> {
        let mut record = CompactionRecord::new(self.index().revision(), self.head());
        record.tokens_before = self.index().tokens();
        record.tokens_after = record.tokens_before;
        record.strategy = pending.strategy.clone();
        self.hide(pending, &mut record);
        for edit in &pending.edits {
            self.shorten(edit, &mut record);
        }
        (!record.hides.is_empty() || !record.edits.is_empty()).then_some(record)
    }

    /// Hides whole groups only. Hides nothing if a summary would then cover messages that are not hidden.
    fn hide(&self, pending: &PendingRecord, record: &mut CompactionRecord) {
        let hides = |group: &Group<'_>| self.covered_by(group).iter().all(|it| within(&pending.hides, it));
        let hidden = self.covered_where(hides);
        let mut covers = pending.summaries.iter().flat_map(|it| &it.message.attribution().derived_from);
        if hidden.is_empty() || !covers.all(|range| within(&hidden, range)) {
            return;
        }
        let freed = self.index().groups().filter(hides).map(|group| group.tokens().as_u64()).sum::<u64>();
        let shown = pending.summaries.iter().map(|it| it.count.tokens.as_u64()).sum::<u64>();
        record.tokens_after = record.tokens_after.saturating_sub(freed).saturating_add(shown);
        record.unanswered = self.unanswered_where(hides);
        (record.hides, record.summaries) = (hidden, pending.summaries.clone());
    }

    fn shorten(&self, edit: &PendingEdit, record: &mut CompactionRecord) {
        let at = self.live().binary_search_by_key(&edit.seq, |live| live.key).ok();
        let Some(live) = at.and_then(|at| self.live().get(at)) else { return };
        let is_hidden = within(&record.hides, &SeqRange { first: edit.seq, last: edit.seq });
        if is_hidden || !live.covers.is_empty() || live.stand_ins != edit.seen {
            return;
        }
        let (before, after) = (live.entry.count.tokens.as_u64(), edit.count.tokens.as_u64());
        record.tokens_after = record.tokens_after.saturating_sub(before).saturating_add(after);
        record.edits.push(MessageEdit::new(edit.seq, edit.stand_ins.clone(), edit.count.clone()));
    }
}

fn within(ranges: &[SeqRange], range: &SeqRange) -> bool {
    ranges.iter().any(|hidden| hidden.contains(range.first) && hidden.contains(range.last))
}
