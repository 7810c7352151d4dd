//! Undoing a compaction, and deleting what is hidden.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq};

use super::{VisibleMessage, VisibleSummary, invalid};
use crate::edit::merged;
use crate::{CompactionRecord, MessageEdit, PartStandIn, StoreError, StoreErrorKind, TokenCount};

/// A store's facts about the undoing of the record that made a revision.
#[derive(Debug, Clone, Copy)]
pub struct Undoing {
    /// Whether a record made it, and then by which revision that is undone.
    pub found: Option<Option<Revision>>,
    /// The latest revision that was made by a record and is not undone.
    pub latest: Option<Revision>,
}

/// Decides whether the record that made `made` may be undone now. `Some` is the answer to a repetition.
pub fn check_uncompact(made: Revision, undoing: Undoing) -> Result<Option<Revision>, StoreError> {
    match undoing.found {
        None => Err(invalid(format!("uncompact: no record made revision {made}; list the records first"))),
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

/// Checks that nothing which `record` has hidden was pruned; it made the revision `made`. `pruned_since` says whether there was a prune
/// after it, through it or a later revision: that took all that the record had hidden, if it has hidden anything.
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

/// Decides whether what is hidden at `through` or before may be pruned from a session at `revision`.
pub fn check_prune(through: Revision, revision: Revision) -> Result<(), StoreError> {
    if through <= revision {
        return Ok(());
    }
    Err(invalid(format!("prune: the session is at revision {revision}, and has not come to {through} yet")))
}

/// The stand-ins of a message's parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The latest record that put something there.
    pub by: Revision,
    /// The stand-ins, by ascending ordinals.
    pub stand_ins: Vec<PartStandIn>,
    /// The size of the message with that.
    pub count: TokenCount,
}

/// The stand-ins of the parts of the messages `wanted` after `edits`: those of the records that hold, oldest first, each with the revision
/// that it made.
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

/// `record` without the texts that stood in the messages of which `is_pruned` holds, and without what the summaries said
/// of which `is_gone` holds, by their keys. `None` if it has nothing of that.
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

/// Whether a prune has taken something of `record`: a text of a summary, or one that stood in a message.
pub fn is_pruned_record(record: &CompactionRecord) -> bool {
    let stand_ins = record.edits.iter().flat_map(|edit| &edit.stand_ins);
    let mut emptied = stand_ins.filter_map(|stand_in| stand_in.text.as_ref());
    record.summaries.iter().any(|summary| summary.message.is_pruned()) || emptied.any(|text| text.is_empty())
}
