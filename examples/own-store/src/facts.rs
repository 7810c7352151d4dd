//! The first half of an operation: it reads the facts for the decision.

use epitome_core::{Revision, Seq};
use epitome_history::kernel::{
    Facts, Made, Needs, Prunable, Receipt, SaidBefore, SummaryPlace, Visible, not_storable,
};
use epitome_history::{AppendToken, Entry, MessageEdit, StateRevision, StoreError, stored};

use crate::row::{
    CallRow, HiddenRow, LiveRow, MessageRow, PruneRow, RecordRow, SessionRow, StateRow, SummaryRow,
};
use crate::table::{KeyRange, Kind, Readable, Rows};
use crate::{append, load};

/// Reads the facts that `needs` names. The pattern names each of them: a release that adds one does not compile here.
pub(crate) fn read<T: Readable>(
    session: &SessionRow,
    rows: &Rows<'_, T>,
    needs: &Needs<'_>,
    facts: &mut Facts,
) -> Result<(), StoreError> {
    let Needs {
        receipt,
        anchors,
        projection,
        calls,
        state,
        state_text,
        record_id,
        visible,
        edited,
        turns,
        made,
        earlier_edits,
        prunable,
    } = needs;
    facts.session = Some(session.counters());
    if let Some((token, entries)) = receipt {
        facts.receipt = compared(rows, token, entries)?;
    }
    for seq in anchors {
        facts.anchors.extend(message(rows, *seq)?.map(|row| (*seq, row.anchor())));
    }
    if let Some(extent) = projection {
        facts.projection = Some((*extent, load(session, rows, *extent)?.of(*extent)));
    }
    if *calls {
        let calls = rows.range(KeyRange::all(Kind::Call))?;
        facts.calls = Some(calls.map(|row| Ok(CallRow::call(row?))).collect::<Result<_, StoreError>>()?);
    }
    if *state || *state_text {
        let kept: Option<StateRow> = rows.get(&Kind::State.key([]))?;
        facts.state = StateRevision(kept.as_ref().map_or(0, |kept| kept.revision));
        facts.state_text = Some(kept.map(|kept| kept.text.into()).unwrap_or_default());
    }
    if let Some(revision) = record_id {
        facts.record_id = record(rows, *revision)?.map(|row| row.id());
    }
    if *visible {
        facts.visible = visible_now(rows)?;
    }
    for seq in edited {
        facts.edited.extend(message(rows, *seq)?.map(|row| row.edited()).transpose()?);
    }
    for seq in turns {
        facts.turns.extend(message(rows, *seq)?.map(|row| (*seq, row.turn())));
    }
    if let Some(made) = made {
        facts.made = record(rows, *made)?.map(|row| record_made(rows, &row)).transpose()?;
        facts.latest_held = latest_held(rows)?;
    }
    if let Some((before, seqs)) = earlier_edits {
        facts.earlier_edits = Some(edits_before(rows, *before, seqs)?);
    }
    if let Some(through) = prunable {
        facts.prunable = prunable_through(rows, *through)?;
    }
    Ok(())
}

fn message<T: Readable>(rows: &Rows<'_, T>, seq: Seq) -> Result<Option<MessageRow>, StoreError> {
    rows.get(&Kind::Message.key([seq.0]))
}

fn record<T: Readable>(rows: &Rows<'_, T>, revision: Revision) -> Result<Option<RecordRow>, StoreError> {
    rows.get(&Kind::Record.key([revision.0]))
}

/// Compares `entries` with the messages of an earlier append under this token, if there is one.
fn compared<T: Readable>(
    rows: &Rows<'_, T>,
    token: &AppendToken,
    entries: &[Entry],
) -> Result<Option<Receipt>, StoreError> {
    let Some(row) = append(rows, token)? else { return Ok(None) };
    let appended = row.appended();
    let known = rows.range(KeyRange::from_to(Kind::Message, appended.first.0, appended.head.0))?;
    let known = known.collect::<Result<Vec<MessageRow>, _>>()?;
    let texts = entries.iter().map(|entry| stored::encode(&entry.message).map_err(not_storable));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let said = if known.iter().any(|row| row.pruned_by.is_some()) {
        SaidBefore::Pruned
    } else if known.iter().map(|row| &row.message).eq(&texts) {
        SaidBefore::Same
    } else {
        SaidBefore::Other
    };
    Ok(Some(Receipt { appended, said }))
}

fn visible_now<T: Readable>(rows: &Rows<'_, T>) -> Result<Visible, StoreError> {
    let mut visible = Visible::default();
    for place in rows.range(KeyRange::all(Kind::Live))? {
        let LiveRow { key, summary_of } = place?;
        see(rows, &mut visible, HiddenRow { summary_of, key })?;
    }
    Ok(visible)
}

fn see<T: Readable>(rows: &Rows<'_, T>, seen: &mut Visible, row: HiddenRow) -> Result<(), StoreError> {
    match row.summary_of {
        Some(made) => {
            let summary: SummaryRow = rows.must(&Kind::Summary.key([made, row.key]))?;
            seen.summaries.push(summary.visible()?);
        }
        None => {
            let message: MessageRow = rows.must(&Kind::Message.key([row.key]))?;
            seen.messages.push(message.visible()?);
        }
    }
    Ok(())
}

/// A record, with the messages that it has hidden.
fn record_made<T: Readable>(rows: &Rows<'_, T>, row: &RecordRow) -> Result<Made, StoreError> {
    let committed = row.committed()?;
    let mut pruned_since = false;
    for prune in rows.range(KeyRange::behind(Kind::Prune, Some(row.revision)))? {
        pruned_since |= PruneRow::pruned(&prune?).through >= committed.revision;
    }
    let mut hidden = Visible::default();
    for kind in [Kind::Hidden, Kind::HiddenSummary] {
        let by = KeyRange::from_to(kind, row.revision, row.revision.saturating_add(1));
        for found in rows.range(by)? {
            see(rows, &mut hidden, found?)?;
        }
    }
    Ok(Made { record: committed.record, undone_by: committed.undone_by, pruned_since, hidden })
}

fn latest_held<T: Readable>(rows: &Rows<'_, T>) -> Result<Option<Revision>, StoreError> {
    for row in rows.range::<RecordRow>(KeyRange::all(Kind::Record))?.rev() {
        let row = row?;
        if row.undone_by.is_none() {
            return Ok(Some(Revision(row.revision)));
        }
    }
    Ok(None)
}

/// The edits of these messages by the valid records before a revision, the oldest record first.
fn edits_before<T: Readable>(
    rows: &Rows<'_, T>,
    before: Revision,
    seqs: &[Seq],
) -> Result<Vec<(Revision, MessageEdit)>, StoreError> {
    let mut edits = Vec::new();
    for row in rows.range::<RecordRow>(KeyRange::from_to(Kind::Record, 0, before.0))? {
        let committed = row?.committed()?;
        if committed.undone_by.is_none() {
            let of_these = committed.record.edits.into_iter().filter(|edit| seqs.contains(&edit.seq));
            edits.extend(of_these.map(|edit| (committed.revision, edit)));
        }
    }
    Ok(edits)
}

fn prunable_through<T: Readable>(rows: &Rows<'_, T>, through: Revision) -> Result<Prunable, StoreError> {
    let mut prunable = Prunable::default();
    for kind in [Kind::Hidden, Kind::HiddenSummary] {
        for row in rows.range(KeyRange::from_to(kind, 0, through.0.saturating_add(1)))? {
            let HiddenRow { summary_of, key } = row?;
            match summary_of {
                Some(made) => prunable.summaries.push(SummaryPlace { made: Revision(made), key: Seq(key) }),
                None => prunable.messages.push(Seq(key)),
            }
        }
    }
    for row in rows.range::<PruneRow>(KeyRange::all(Kind::Prune))? {
        let pruned = row?.pruned();
        prunable.before = Some(pruned).filter(|pruned| pruned.through == through).or(prunable.before);
    }
    Ok(prunable)
}
