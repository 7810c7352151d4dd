//! Changes of an index by uncompacts and prunes.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq};

use super::{AppendSlot, Index, Kept, Shown, Slot, SummarySlot, lost};
use crate::kernel::{Prunable, SummaryPlace, Visible};
use crate::rules::{self, Restored, Undoing};
use crate::{CompactionRecord, Entry, Pruned, StoreError};

/// The content that becomes visible again when a record is undone.
#[derive(Debug)]
pub(in crate::jsonl) struct Undone {
    /// The revision of the undone record.
    pub(in crate::jsonl) made: Revision,
    /// The stand-ins of messages after the uncompact; `None` for a message without stand-ins.
    pub(in crate::jsonl) edits: BTreeMap<Seq, Option<Restored>>,
    /// The summaries that the record had hidden, each with the revision of its own record.
    pub(in crate::jsonl) summaries: Vec<(Revision, Entry)>,
}

impl Index {
    /// The records that are not undone, oldest first.
    pub(in crate::jsonl) fn held(&self) -> impl DoubleEndedIterator<Item = &Kept> {
        self.records.iter().filter(|kept| kept.undone_by.is_none())
    }

    /// Checks whether the record of revision `made` may be undone. Returns the revision of the uncompact if the record
    /// is already undone.
    pub(in crate::jsonl) fn check_uncompact(&self, made: Revision) -> Result<Option<Revision>, StoreError> {
        let found = self.record_at(made).map(|kept| kept.undone_by);
        let latest = self.held().next_back().map(|kept| kept.revision);
        rules::check_uncompact(made, Undoing { found, latest })
    }

    pub(in crate::jsonl) fn nothing_pruned(
        &self,
        made: Revision,
        record: &CompactionRecord,
    ) -> Result<(), StoreError> {
        rules::nothing_pruned(record, made, self.is_pruned_since(made))
    }

    /// Whether there was a prune after `made`, through `made` or a later revision.
    pub(in crate::jsonl) fn is_pruned_since(&self, made: Revision) -> bool {
        self.prunes.iter().any(|pruned| pruned.revision > made && pruned.through >= made)
    }

    /// The messages whose earlier stand-ins are needed to undo `record`: the messages that it shortened, and the
    /// shortened messages that it hid.
    pub(in crate::jsonl) fn stand_ins_wanted(
        &self,
        made: Revision,
        record: &CompactionRecord,
    ) -> BTreeSet<Seq> {
        let hidden = |seq: &&Seq| self.slot(**seq).is_ok_and(|slot| slot.hidden_by == Some(made));
        let hidden = self.shortened.keys().filter(hidden).copied();
        hidden.chain(record.edits.iter().map(|edit| edit.seq)).collect()
    }

    /// The summaries that the record of revision `by` has hidden.
    pub(in crate::jsonl) fn summaries_hidden_by(&self, by: Revision) -> impl Iterator<Item = &SummarySlot> {
        self.summaries.iter().filter(move |slot| slot.hidden_by == Some(by))
    }

    /// Applies a written uncompact to the index. The uncompact was checked before.
    pub(in crate::jsonl) fn uncompact(
        &mut self,
        undone: Undone,
        revision: Revision,
    ) -> Result<(), StoreError> {
        let Undone { made, edits, summaries } = undone;
        for own in self.summaries.iter_mut().filter(|slot| slot.made == made) {
            own.hidden_by = Some(revision);
            self.live.remove(&own.key);
        }
        for (seq, slot) in (0..).map(Seq).zip(&mut self.slots) {
            if slot.hidden_by == Some(made) {
                slot.hidden_by = None;
                self.live.insert(seq, Shown::Message);
            }
        }
        for slot in self.summaries.iter_mut().filter(|slot| slot.hidden_by == Some(made)) {
            slot.hidden_by = None;
        }
        for (made, entry) in summaries {
            self.live.insert(entry.anchor, Shown::Summary(made, Box::new(entry)));
        }
        for (seq, edit) in edits {
            match edit {
                Some(edit) => drop(self.shortened.insert(seq, edit)),
                None => drop(self.shortened.remove(&seq)),
            }
        }
        // A visible call is found through its visible message, so it leaves the list.
        let live = &self.live;
        self.unanswered.retain(|(anchor, _), _| !matches!(live.get(anchor), Some(Shown::Message)));
        let at = self.records.binary_search_by_key(&made, |kept| kept.revision).map_err(|_| lost())?;
        self.records.get_mut(at).ok_or_else(lost)?.undone_by = Some(revision);
        let Visible { messages, summaries } = self.visible()?;
        self.live_tokens = rules::live(&messages, &summaries).1;
        self.revision = revision;
        Ok(())
    }

    /// The messages and summaries that a prune through `through` would delete.
    pub(in crate::jsonl) fn prunable(&self, through: Revision) -> Prunable {
        let messages = (0..).map(Seq).zip(&self.slots).filter(|(_, slot)| slot.is_prunable(through));
        let summaries = self.summaries.iter().filter(|slot| slot.is_prunable(through));
        Prunable {
            messages: messages.map(|(seq, _)| seq).collect(),
            summaries: summaries.map(|slot| SummaryPlace { made: slot.made, key: slot.key }).collect(),
            before: self.prunes.iter().rev().find(|pruned| pruned.through == through).copied(),
        }
    }

    /// Applies a written prune to the index.
    pub(in crate::jsonl) fn prune(&mut self, pruned: Pruned) {
        let number = u32::try_from(self.prunes.len()).unwrap_or(u32::MAX).saturating_add(1);
        for (seq, slot) in (0..).map(Seq).zip(&mut self.slots) {
            if slot.is_prunable(pruned.through) {
                slot.pruned = number;
                if let Some(shortened) = self.shortened.get_mut(&seq) {
                    shortened.stand_ins = Vec::new();
                }
            }
        }
        for slot in self.summaries.iter_mut().filter(|slot| slot.is_prunable(pruned.through)) {
            slot.pruned = true;
        }
        self.prunes.push(pruned);
        self.revision = pruned.revision;
    }

    /// Whether a summary is pruned, or a prune through `through` would delete it.
    pub(in crate::jsonl) fn is_gone(&self, made: Revision, key: Seq, through: Revision) -> bool {
        let mut of_record = self.summaries.iter().filter(|slot| slot.made == made);
        of_record.any(|slot| slot.key == key && (slot.pruned || slot.is_prunable(through)))
    }

    /// The prunes that made a revision after `after`.
    pub(in crate::jsonl) fn prunes(&self, after: Option<Revision>) -> &[Pruned] {
        let from = self.prunes.partition_point(|pruned| Some(pruned.revision) <= after);
        self.prunes.get(from..).unwrap_or_default()
    }

    /// The revision of the prune that deleted the text of a message.
    pub(in crate::jsonl) fn pruned_by(&self, slot: &Slot) -> Option<Revision> {
        let at = usize::try_from(slot.pruned.checked_sub(1)?).ok()?;
        self.prunes.get(at).map(|pruned| pruned.revision)
    }

    /// The appends, beginning with the one that contains the message `from`.
    pub(in crate::jsonl) fn appends(&self, from: Seq) -> &[AppendSlot] {
        let begin = self.appends.partition_point(|append| append.appended.head <= from);
        self.appends.get(begin..).unwrap_or_default()
    }
}

impl Slot {
    pub(in crate::jsonl) fn is_prunable(&self, through: Revision) -> bool {
        self.pruned == 0 && self.hidden_by.is_some_and(|by| by <= through)
    }
}

impl SummarySlot {
    fn is_prunable(&self, through: Revision) -> bool {
        !self.pruned && self.hidden_by.is_some_and(|by| by <= through)
    }
}
