//! The rules of uncompacts and prunes.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq};

use super::{VisibleMessage, VisibleSummary, invalid};
use crate::edit::merged;
use crate::{CompactionRecord, MessageEdit, PartStandIn, StoreError, StoreErrorKind, TokenCount};

/// The stored facts that decide about an uncompact.
#[derive(Debug, Clone, Copy)]
pub struct Undoing {
    /// Whether the revision has a record, and then the revision of the record's uncompact, if there is one.
    pub found: Option<Option<Revision>>,
    /// The revision of the latest record that is not undone.
    pub latest: Option<Revision>,
}

/// Checks whether the record of revision `made` may be undone now. Returns `Some` with the answer if it is a
/// repetition.
pub fn check_uncompact(made: Revision, undoing: Undoing) -> Result<Option<Revision>, StoreError> {
    match undoing.found {
        None => Err(invalid(format!(
            "uncompact: revision {made} is not that of a compaction; list the records for their revisions"
        ))),
        Some(Some(undone_by)) => Ok(Some(undone_by)),
        Some(None) => match undoing.latest.filter(|latest| *latest > made) {
            Some(later) => {
                let context = format!("uncompact: the record of {later} came later; undo that one first");
                Err(StoreError::new(StoreErrorKind::Conflict, context))
            }
            None => Ok(None),
        },
    }
}

/// Checks that no message or summary that `record` has hidden was pruned. The record has the revision `made`.
/// `pruned_since` is true if there was a later prune through that or a later revision: such a prune deleted everything
/// that the record had hidden.
pub fn nothing_pruned(
    record: &CompactionRecord,
    made: Revision,
    pruned_since: bool,
) -> Result<(), StoreError> {
    if !pruned_since || record.hides.is_empty() {
        return Ok(());
    }
    let context = format!("uncompact: what the record of {made} hides has been pruned");
    Err(StoreError::new(StoreErrorKind::Pruned, context))
}

/// Number of visible messages and summaries, and number of their tokens.
pub fn live(messages: &[VisibleMessage], summaries: &[VisibleSummary]) -> (u64, u64) {
    let tokens = messages.iter().map(|it| it.tokens).chain(summaries.iter().map(|it| it.tokens));
    let total = tokens.map(|tokens| tokens.as_u64()).fold(0, u64::saturating_add);
    ((messages.len() as u64).saturating_add(summaries.len() as u64), total)
}

/// Checks whether a session at `revision` may be pruned through `through`.
pub fn check_prune(through: Revision, revision: Revision) -> Result<(), StoreError> {
    if through <= revision {
        return Ok(());
    }
    Err(invalid(format!("prune: the session is at revision {revision}, and has not come to {through} yet")))
}

/// The present stand-ins of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The revision of the latest record that set one of them.
    pub by: Revision,
    /// The stand-ins, by ascending ordinals.
    pub stand_ins: Vec<PartStandIn>,
    /// The size of the message with these stand-ins.
    pub count: TokenCount,
}

/// The stand-ins of the messages `wanted` after `edits`. The edits are those of the records that are not undone, oldest
/// first, each with the revision of its record.
pub fn restored_edits<'a>(
    wanted: &BTreeSet<Seq>,
    edits: impl Iterator<Item = (Revision, &'a MessageEdit)>,
) -> BTreeMap<Seq, Restored> {
    let mut restored: BTreeMap<Seq, Restored> = BTreeMap::new();
    for (by, edit) in edits.filter(|(_, edit)| wanted.contains(&edit.seq)) {
        let before = restored.get(&edit.seq).map_or(&[][..], |before| &before.stand_ins);
        let stand_ins = merged(before, &edit.stand_ins);
        restored.insert(edit.seq, Restored { by, stand_ins, count: edit.count.clone() });
    }
    restored
}

/// `record` without the stand-in texts of the messages for which `is_pruned` returns true, and without the texts of the
/// summaries for whose keys `is_gone` returns true. `None` if it has no such texts.
pub fn bare_record(
    record: &CompactionRecord,
    is_pruned: impl Fn(Seq) -> bool,
    is_gone: impl Fn(Seq) -> bool,
) -> Option<CompactionRecord> {
    let mut bare = record.clone();
    for edit in bare.edits.iter_mut().filter(|edit| is_pruned(edit.seq)) {
        for stand_in in &mut edit.stand_ins {
            stand_in.text = stand_in.text.take().map(|_| Default::default());
        }
    }
    for summary in bare.summaries.iter_mut().filter(|summary| is_gone(summary.key)) {
        summary.message = summary.message.clone().into_pruned();
    }
    (bare != *record).then_some(bare)
}

/// Whether a prune has deleted a text of `record`: that of a summary, or that of a stand-in.
pub fn is_pruned_record(record: &CompactionRecord) -> bool {
    let stand_ins = record.edits.iter().flat_map(|edit| &edit.stand_ins);
    let mut emptied = stand_ins.filter_map(|stand_in| stand_in.text.as_ref());
    record.summaries.iter().any(|summary| summary.message.is_pruned()) || emptied.any(|text| text.is_empty())
}
