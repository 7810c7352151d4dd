//! Uncompact, and the facts about pruned content.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};

use super::failure::Here;
use super::index::{Span, Undone};
use super::known::Known;
use super::lines::Lines;
use super::read;
use crate::{Entry, MessageEdit, StoreError, rules};

/// The content that becomes visible again when the record of revision `made` is undone. Checks that the record exists
/// and may be undone.
///
/// # Errors
/// `Pruned` if a part of the hidden content was pruned.
pub(super) fn undoing(
    known: &Known,
    lines: &mut Lines<'_>,
    made: Revision,
    here: Here<'_>,
) -> Result<Undone, StoreError> {
    let index = &known.index;
    let line = index.record_at(made).map_or(Span { at: 0, len: 0 }, |kept| kept.line);
    let record = read::record(known, lines, line, here)?;
    index.nothing_pruned(made, &record)?;
    let wanted = index.stand_ins_wanted(made, &record);
    let edits = edits_before(known, lines, (made, &wanted), here)?;
    let mut restored = rules::restored_edits(&wanted, edits.iter().map(|(by, edit)| (*by, edit)));
    Ok(Undone {
        made,
        edits: wanted.into_iter().map(|seq| (seq, restored.remove(&seq))).collect(),
        summaries: summaries_hidden_by(known, lines, made, here)?,
    })
}

/// The edits of the messages `wanted` by the records before a revision that are not undone, oldest first.
pub(super) fn edits_before(
    known: &Known,
    lines: &mut Lines<'_>,
    (before, wanted): (Revision, &BTreeSet<Seq>),
    here: Here<'_>,
) -> Result<Vec<(Revision, MessageEdit)>, StoreError> {
    let mut edits = Vec::new();
    if wanted.is_empty() {
        return Ok(edits);
    }
    for kept in known.index.held().take_while(|kept| kept.revision < before) {
        let record = read::record(known, lines, kept.line, here)?;
        let of_these = record.edits.into_iter().filter(|edit| wanted.contains(&edit.seq));
        edits.extend(of_these.map(|edit| (kept.revision, edit)));
    }
    Ok(edits)
}

/// The summaries that the record of revision `by` has hidden, each with the revision of its own record.
pub(super) fn summaries_hidden_by(
    known: &Known,
    lines: &mut Lines<'_>,
    by: Revision,
    here: Here<'_>,
) -> Result<Vec<(Revision, Entry)>, StoreError> {
    let index = &known.index;
    let mut summaries = Vec::new();
    for slot in index.summaries_hidden_by(by) {
        let line = index.record_at(slot.made).map_or(Span { at: 0, len: 0 }, |kept| kept.line);
        let record = read::record(known, lines, line, here)?;
        let summary = record.summaries.into_iter().find(|summary| summary.key == slot.key);
        let summary = summary.ok_or_else(|| here.corrupt(line.at, "a record has lost a summary"))?;
        // A summary is a group of its own, in the turn of the first message that it covers.
        let turn = index.slot(slot.key)?.turn;
        summaries.push((slot.made, Entry::new(summary.message, slot.key, turn, summary.count)));
    }
    Ok(summaries)
}

/// Whether a message is pruned, or a prune through `through` would delete its text.
pub(super) fn is_pruned(known: &Known, seq: Seq, through: Revision) -> bool {
    known.index.slot(seq).is_ok_and(|slot| slot.pruned > 0 || slot.is_prunable(through))
}
