//! Undoing compactions, and deleting what is hidden.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};

use super::{Kept, KeptSummary, Place, Session, Slot, lost, rules};
use crate::history::rules::Undoing;
use crate::history::{Pruned, StoreError};

impl Session {
    pub(super) fn uncompact(&mut self, made: Revision) -> Result<Revision, StoreError> {
        let undoing = Undoing {
            found: self.record_at(made).map(|kept| kept.committed.undone_by),
            latest: self.held().next_back().map(|kept| kept.committed.revision),
        };
        if let Some(undone_by) = rules::check_uncompact(made, undoing)? {
            return Ok(undone_by);
        }
        let record = self.record_at(made).map(|kept| &kept.committed.record).ok_or_else(lost)?;
        let since = self.prunes.iter().any(|pruned| pruned.revision > made && pruned.through >= made);
        rules::nothing_pruned(record, made, since)?;
        let edited: BTreeSet<Seq> = record.edits.iter().map(|edit| edit.seq).collect();
        let revision = self.revision.next();
        if let Ok(at) = self.records.binary_search_by_key(&made, |kept| kept.committed.revision)
            && let Some(kept) = self.records.get_mut(at)
        {
            kept.committed.undone_by = Some(revision);
            for summary in &mut kept.summaries {
                summary.hidden_by = Some(revision);
                self.live.remove(&summary.entry.anchor);
            }
        }
        self.restore_edits(&edited);
        self.show_again(made);
        self.revision = revision;
        self.add_up()?;
        Ok(revision)
    }

    /// How many tokens are visible, counted anew.
    pub(super) fn add_up(&mut self) -> Result<(), StoreError> {
        let (messages, summaries) = self.visible()?;
        self.live_tokens = rules::live(&messages, &summaries).1;
        Ok(())
    }

    /// The records that are not undone.
    fn held(&self) -> impl DoubleEndedIterator<Item = &Kept> {
        self.records.iter().filter(|kept| kept.committed.undone_by.is_none())
    }

    /// Puts what stood in place of parts of these messages back, from the records that hold.
    pub(super) fn restore_edits(&mut self, edited: &BTreeSet<Seq>) {
        let edits = self
            .held()
            .flat_map(|kept| kept.committed.record.edits.iter().map(|edit| (kept.committed.revision, edit)));
        let mut restored = rules::restored_edits(edited, edits);
        for seq in edited {
            let shortened = restored.remove(seq).map(Box::new);
            if let Some(slot) = self.slot_mut(*seq) {
                slot.shortened = shortened;
            }
        }
    }

    /// Shows everything that `made` has hidden.
    fn show_again(&mut self, made: Revision) {
        for (seq, slot) in (0..).map(Seq).zip(&mut self.log) {
            if slot.hidden_by == Some(made) {
                slot.hidden_by = None;
                self.live.insert(seq, Place::Log);
            }
        }
        for (record, kept) in (0..).zip(&mut self.records) {
            for (summary, it) in (0..).zip(&mut kept.summaries) {
                if it.hidden_by == Some(made) {
                    it.hidden_by = None;
                    self.live.insert(it.entry.anchor, Place::Summary { record, summary });
                }
            }
        }
        // The calls of what is shown are found there.
        let live = &self.live;
        self.unanswered.retain(|(anchor, _), _| !matches!(live.get(anchor), Some(Place::Log)));
    }

    pub(super) fn prune(&mut self, through: Revision) -> Result<Pruned, StoreError> {
        rules::check_prune(through, self.revision)?;
        let mut pruned = Pruned::new(self.revision.next(), through);
        let number = u32::try_from(self.prunes.len()).unwrap_or(u32::MAX).saturating_add(1);
        for slot in self.log.iter_mut().filter(|slot| slot.pruned == 0) {
            if slot.hidden_by.is_some_and(|by| by <= through) {
                slot.prune(number);
                pruned.messages = pruned.messages.saturating_add(1);
            }
        }
        let mut gone: Vec<BTreeSet<Seq>> = Vec::new();
        for kept in &mut self.records {
            let hidden = |it: &KeptSummary| !it.pruned && it.hidden_by.is_some_and(|by| by <= through);
            let of_record = kept.summaries.iter_mut().filter(|it| hidden(it));
            let of_record: BTreeSet<Seq> = of_record.map(KeptSummary::prune).collect();
            pruned.summaries = pruned.summaries.saturating_add(of_record.len() as u64);
            gone.push(of_record);
        }
        if pruned.messages == 0 && pruned.summaries == 0 {
            return Ok(rules::pruned_before(self.prunes.iter().copied(), through, self.revision));
        }
        let log = &self.log;
        let is_pruned = |seq: Seq| {
            let slot = usize::try_from(seq.0).ok().and_then(|at| log.get(at));
            slot.is_some_and(|slot| slot.pruned > 0)
        };
        for (kept, gone) in self.records.iter_mut().zip(gone) {
            let record = &mut kept.committed.record;
            if let Some(bare) = rules::bare_record(record, is_pruned, |key| gone.contains(&key)) {
                *record = bare;
            }
        }
        self.prunes.push(pruned);
        self.revision = pruned.revision;
        Ok(pruned)
    }

    /// The revision that deleted what a message said.
    pub(super) fn pruned_by(&self, slot: &Slot) -> Option<Revision> {
        let at = usize::try_from(slot.pruned.checked_sub(1)?).ok()?;
        self.prunes.get(at).map(|pruned| pruned.revision)
    }
}

impl Slot {
    /// Leaves no more of the message than its place, as the prune of this number does.
    pub(super) fn prune(&mut self, number: u32) {
        self.entry.message = self.entry.message.clone().into_pruned();
        self.entry.part_tokens = Vec::new();
        self.pruned = number;
        if let Some(shortened) = &mut self.shortened {
            shortened.stand_ins = Vec::new();
        }
    }
}

impl KeptSummary {
    /// Leaves no more of it than its place: its key.
    fn prune(&mut self) -> Seq {
        self.entry.message = self.entry.message.clone().into_pruned();
        self.pruned = true;
        self.entry.anchor
    }
}
