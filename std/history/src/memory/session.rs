//! The facts of a session in memory, and the changes to it.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};

use super::places::reserve;
use super::{Entry, Kept, KeptSummary, Place, Session, Slot, StoreError, lost};
use crate::kernel::{
    Attempt, Changes, Edited, Facts, Insert, Made, Needs, NewRecord, Prunable, Prune, Receipt, SaidBefore,
    SummaryPlace, Transaction, Visible,
};
use crate::rules::{self, Anchor, Standing, VisibleMessage, VisibleSummary};
use crate::{AppendToken, Committed, KeptState, LoggedAppend, MessageEdit};

impl Transaction for Session {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        self.read(needs, facts).map(|()| Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        self.write(changes);
        Ok(Attempt::Done)
    }
}

impl Session {
    fn read(&self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), StoreError> {
        facts.session = (!self.appends.is_empty()).then_some(self.counters);
        if let Some((token, entries)) = needs.receipt {
            facts.receipt = self.compared(token, entries);
        }
        if needs.state {
            facts.state = self.state.as_ref().map(|kept| kept.revision).unwrap_or_default();
        }
        if needs.state_text {
            facts.state_text = Some(self.state.as_ref().map(|kept| kept.text.clone()).unwrap_or_default());
        }
        if needs.calls {
            facts.calls = Some(self.unanswered.values().cloned().collect());
        }
        if let Some(extent) = needs.projection {
            facts.projection = Some((extent, self.load(extent)?.of(extent)));
        }
        for seq in &needs.anchors {
            if let Ok(slot) = self.slot(*seq) {
                facts.anchors.push((*seq, Anchor { anchor: slot.entry.anchor, hidden_by: slot.hidden_by }));
            }
        }
        let turns = needs.turns.iter().filter_map(|seq| Some((*seq, self.slot(*seq).ok()?.entry.turn)));
        facts.turns.extend(turns);
        facts.edited.extend(needs.edited.iter().filter_map(|seq| self.edited(*seq)));
        if let Some(revision) = needs.record_id {
            facts.record_id = self.record_at(revision).map(|kept| kept.id);
        }
        if needs.visible {
            facts.visible = self.visible()?;
        }
        if let Some(made) = needs.made {
            facts.made = self.made(made)?;
            facts.latest_held = self.held().next_back().map(|kept| kept.committed.revision);
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            facts.earlier_edits = Some(self.edits_before(*before, seqs));
        }
        if let Some(through) = needs.prunable {
            facts.prunable = self.prunable(through);
        }
        Ok(())
    }

    fn compared(&self, token: &AppendToken, entries: &[Entry]) -> Option<Receipt> {
        let appended = self.receipt(token)?.appended;
        let known = self.slots(appended.first, appended.head);
        let said = if known.iter().any(|slot| slot.entry.message.is_pruned()) {
            SaidBefore::Pruned
        } else if known.iter().map(|slot| &slot.entry.message).eq(entries.iter().map(|entry| &entry.message))
        {
            SaidBefore::Same
        } else {
            SaidBefore::Other
        };
        Some(Receipt { appended, said })
    }

    fn edited(&self, seq: Seq) -> Option<Edited> {
        let slot = self.slot(seq).ok()?;
        let (message, whole) = (slot.entry.message.clone(), slot.entry.count.clone());
        Some(Edited { seq, message, whole, shortened: slot.shortened.as_deref().cloned() })
    }

    pub(super) fn visible(&self) -> Result<Visible, StoreError> {
        let mut visible = Visible::default();
        for (key, place) in self.live.iter() {
            match place {
                Place::Log => visible.messages.push(self.slot(key)?.seen(key)),
                Place::Summary { record, summary } => {
                    let record = self.records.get(record as usize).ok_or_else(lost)?;
                    let summary = record.summaries.get(summary as usize).ok_or_else(lost)?;
                    visible.summaries.push(summary.seen(record.committed.revision));
                }
            }
        }
        Ok(visible)
    }

    fn made(&self, made: Revision) -> Result<Option<Made>, StoreError> {
        let Some(kept) = self.record_at(made) else { return Ok(None) };
        let Committed { ref record, undone_by, .. } = kept.committed;
        let pruned_since = self.prunes.iter().any(|pruned| pruned.revision > made && pruned.through >= made);
        let mut hidden = Visible::default();
        let slots = (0..).map(Seq).zip(&self.log).filter(|(_, slot)| slot.hidden_by == Some(made));
        hidden.messages.extend(slots.map(|(seq, slot)| slot.seen(seq)));
        for it in &self.records {
            let summaries = it.summaries.iter().filter(|summary| summary.hidden_by == Some(made));
            hidden.summaries.extend(summaries.map(|summary| summary.seen(it.committed.revision)));
        }
        Ok(Some(Made { record: record.clone(), undone_by, pruned_since, hidden }))
    }

    /// The records that are not undone.
    pub(super) fn held(&self) -> impl DoubleEndedIterator<Item = &Kept> {
        self.records.iter().filter(|kept| kept.committed.undone_by.is_none())
    }

    fn edits_before(&self, before: Revision, seqs: &[Seq]) -> Vec<(Revision, MessageEdit)> {
        let records = self.held().map(|kept| &kept.committed).take_while(|it| it.revision < before);
        let edits = records.flat_map(|it| it.record.edits.iter().map(|edit| (it.revision, edit)));
        let wanted = edits.filter(|(_, edit)| seqs.binary_search(&edit.seq).is_ok());
        wanted.map(|(revision, edit)| (revision, edit.clone())).collect()
    }

    fn prunable(&self, through: Revision) -> Prunable {
        let is_due = |hidden_by: Option<Revision>| hidden_by.is_some_and(|by| by <= through);
        let slots = (0..).map(Seq).zip(&self.log);
        let messages = slots.filter(|(_, slot)| slot.pruned == 0 && is_due(slot.hidden_by));
        let summaries = self.records.iter().flat_map(|kept| {
            let due = kept.summaries.iter().filter(|it| !it.pruned && is_due(it.hidden_by));
            due.map(|it| SummaryPlace { made: kept.committed.revision, key: it.entry.anchor })
        });
        Prunable {
            messages: messages.map(|(seq, _)| seq).collect(),
            summaries: summaries.collect(),
            before: self.prunes.iter().rev().find(|pruned| pruned.through == through).copied(),
        }
    }

    fn write(&mut self, changes: &Changes<'_>) {
        let by = changes.after.revision;
        let new = changes.record.as_ref().map(|new| Kept::of(new, by));
        if let Some(insert) = &changes.insert {
            self.insert(insert);
        }
        self.live.hide(&changes.hide);
        for seq in &changes.hide {
            self.change(*seq, |slot| slot.hidden_by = Some(by));
        }
        for place in &changes.hide_summaries {
            self.live.hide(&[place.key]);
            self.change_summary(*place, |summary| summary.hidden_by = Some(by));
        }
        self.live.show(&changes.show);
        for seq in &changes.show {
            self.change(*seq, |slot| slot.hidden_by = None);
        }
        for place in &changes.show_summaries {
            if let Some(shown) = self.change_summary(*place, |summary| summary.hidden_by = None) {
                self.live.insert(place.key, shown);
            }
        }
        for (seq, restored) in &changes.edits {
            self.change(*seq, |slot| slot.shortened = restored.clone().map(Box::new));
        }
        if let Some(new) = new {
            self.show(new);
        }
        if let Some(kept) = changes.undone.and_then(|made| self.record_mut(made)) {
            kept.committed.undone_by = Some(by);
        }
        for place in &changes.answered {
            self.unanswered.remove(place);
        }
        for call in changes.unanswered {
            self.unanswered.insert((call.anchor, call.ordinal), call.clone());
        }
        if let Some(prune) = &changes.pruned {
            self.prune(prune);
        }
        if let Some(new) = changes.state {
            self.state = Some(KeptState::new(new.revision, new.head, new.text.into()));
        }
        self.counters = changes.after;
    }

    fn insert(&mut self, insert: &Insert<'_>) {
        let count = insert.entries.len();
        reserve(&mut self.log, count);
        self.live.reserve(count);
        for (seq, entry, hidden_by) in insert.placed() {
            if hidden_by.is_none() && !entry.orphan {
                self.live.insert(seq, Place::Log);
            }
            self.log.push(Slot { entry: entry.clone(), hidden_by, shortened: None, pruned: 0 });
        }
        reserve(&mut self.appends, 1);
        let number = u32::try_from(self.appends.len()).unwrap_or(u32::MAX);
        self.receipts.insert(insert.token.clone(), number);
        self.appends.push(LoggedAppend::new(insert.token.clone(), insert.appended, insert.time));
    }

    fn show(&mut self, new: Kept) {
        let record = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        for (summary, it) in (0..).zip(&new.summaries) {
            self.live.insert(it.entry.anchor, Place::Summary { record, summary });
        }
        self.records.push(new);
    }

    fn change(&mut self, seq: Seq, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slot_mut(seq) {
            change(slot);
        }
    }

    fn record_mut(&mut self, made: Revision) -> Option<&mut Kept> {
        let at = self.record_number(made)?;
        self.records.get_mut(at)
    }

    /// Changes a summary. Returns its place.
    fn change_summary(&mut self, of: SummaryPlace, change: impl FnOnce(&mut KeptSummary)) -> Option<Place> {
        let record = self.record_number(of.made)?;
        let summaries = &mut self.records.get_mut(record)?.summaries;
        let summary = summaries.iter().position(|summary| summary.entry.anchor == of.key)?;
        summaries.get_mut(summary).map(change);
        Some(Place::Summary { record: u32::try_from(record).ok()?, summary: u32::try_from(summary).ok()? })
    }

    fn prune(&mut self, prune: &Prune<'_>) {
        let number = u32::try_from(self.prunes.len()).unwrap_or(u32::MAX).saturating_add(1);
        for seq in prune.messages {
            self.change(*seq, |slot| slot.prune(number));
        }
        self.words.forget(prune.messages);
        for place in prune.summaries {
            self.change_summary(*place, KeptSummary::prune);
        }
        let log = &self.log;
        let is_pruned = |seq: Seq| {
            let slot = usize::try_from(seq.0).ok().and_then(|at| log.get(at));
            slot.is_some_and(|slot| slot.pruned > 0)
        };
        for kept in &mut self.records {
            let gone = kept.summaries.iter().filter(|summary| summary.pruned);
            let gone: BTreeSet<Seq> = gone.map(|summary| summary.entry.anchor).collect();
            let record = &mut kept.committed.record;
            if let Some(bare) = rules::bare_record(record, is_pruned, |key| gone.contains(&key)) {
                *record = bare;
            }
        }
        self.prunes.push(prune.pruned);
    }

    /// The revision of the prune that deleted the text of a message.
    pub(super) fn pruned_by(&self, slot: &Slot) -> Option<Revision> {
        let at = usize::try_from(slot.pruned.checked_sub(1)?).ok()?;
        self.prunes.get(at).map(|pruned| pruned.revision)
    }
}

impl Slot {
    /// The message in the form that the checks of a commit use.
    fn seen(&self, seq: Seq) -> VisibleMessage {
        let (anchor, standing) = (self.entry.anchor, Standing::of(&self.entry.message));
        VisibleMessage { seq, anchor, tokens: self.shown().tokens, standing }
    }

    /// Deletes the text of the message, for the prune with this number. Its place stays.
    pub(super) fn prune(&mut self, number: u32) {
        self.entry.message = self.entry.message.clone().into_pruned();
        self.entry.part_tokens = Vec::new();
        self.pruned = number;
        if let Some(shortened) = &mut self.shortened {
            shortened.stand_ins = Vec::new();
        }
    }
}

impl Kept {
    /// A new record with its summaries: each is a group of its own.
    fn of(new: &NewRecord<'_>, made: Revision) -> Self {
        let summaries = new.record.summaries.iter().zip(&new.turns).map(|(summary, turn)| {
            let entry = Entry::new(summary.message.clone(), summary.key, *turn, summary.count.clone());
            KeptSummary { entry, hidden_by: None, pruned: false }
        });
        let summaries = summaries.collect();
        Self { committed: Committed::new(made, new.record.clone()), id: new.id, summaries }
    }
}

impl KeptSummary {
    /// The summary in the form that the checks of a commit use.
    fn seen(&self, made: Revision) -> VisibleSummary {
        let Entry { ref message, anchor: key, ref count, .. } = self.entry;
        let (covers, standing) = (message.attribution().derived_from.clone(), Standing::of(message));
        VisibleSummary { key, made, covers, tokens: count.tokens, standing }
    }

    /// Deletes the text of the summary. Its place stays.
    fn prune(&mut self) {
        self.entry.message = self.entry.message.clone().into_pruned();
        self.pruned = true;
    }
}
