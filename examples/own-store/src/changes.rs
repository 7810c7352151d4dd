//! The second half of an operation: writing the changes that were decided.

use epitome_core::{Revision, Seq};
use epitome_history::kernel::{Changes, NewRecord, Prune, Restored, SummaryPlace, bare_record, not_storable};
use epitome_history::{StoreError, stored};
use redb::Table;

use crate::row::{
    AppendRow, CallRow, EditRow, HiddenRow, LiveRow, MessageRow, PruneRow, RecordRow, StateRow, SummaryRow,
};
use crate::table::{Key, KeyRange, Kind};

type Rows<'t> = crate::table::Rows<'t, Table<'t, Key, &'static [u8]>>;

/// Writes `changes`, in the order of their fields. The caller writes the counters.
pub(crate) fn write(rows: &mut Rows<'_>, changes: &Changes<'_>) -> Result<(), StoreError> {
    let Changes {
        after,
        insert,
        hide,
        hide_summaries,
        show,
        show_summaries,
        edits,
        record,
        undone,
        answered,
        unanswered,
        pruned,
        state,
    } = changes;
    let by = after.revision;
    if let Some(insert) = insert {
        for (seq, entry, hidden_by) in insert.placed() {
            let row = MessageRow::of(seq, entry, hidden_by)?;
            if row.is_visible() {
                put_live(rows, seq, None)?;
            }
            put_hidden(rows, hidden_by, HiddenRow { summary_of: None, key: seq.0 })?;
            rows.put(&Kind::Message.key([seq.0]), &row)?;
        }
        let head = insert.appended.head.0;
        rows.put(&Kind::Token.named(insert.token.as_str()), &head)?;
        rows.put(&Kind::Append.key([head]), &AppendRow::of(insert))?;
    }
    for seq in hide {
        hide_message(rows, *seq, Some(by))?;
    }
    for place in hide_summaries {
        hide_summary(rows, *place, Some(by))?;
    }
    for seq in show {
        hide_message(rows, *seq, None)?;
    }
    for place in show_summaries {
        hide_summary(rows, *place, None)?;
    }
    for (seq, restored) in edits {
        edit(rows, *seq, restored.as_ref())?;
    }
    if let Some(new) = record {
        keep_record(rows, by, new)?;
    }
    if let Some(made) = undone {
        let key = Kind::Record.key([made.0]);
        let mut row: RecordRow = rows.must(&key)?;
        row.undone_by = Some(by.0);
        rows.put(&key, &row)?;
    }
    for (anchor, ordinal) in answered {
        rows.remove(&Kind::Call.key([anchor.0, (*ordinal).into()]))?;
    }
    for call in *unanswered {
        rows.put(&Kind::Call.key([call.anchor.0, call.ordinal.into()]), &CallRow::of(call))?;
    }
    if let Some(pruned) = pruned {
        prune(rows, pruned)?;
    }
    if let Some(state) = state {
        let (revision, head, text) = (state.revision.0, state.head.0, state.text.to_owned());
        rows.put(&Kind::State.key([]), &StateRow { revision, head, text })?;
    }
    Ok(())
}

fn put_live(rows: &mut Rows<'_>, key: Seq, summary_of: Option<Revision>) -> Result<(), StoreError> {
    let row = LiveRow { key: key.0, summary_of: summary_of.map(|made| made.0) };
    rows.put(&Kind::Live.key([key.0]), &row)
}

fn hidden_key(by: u64, row: &HiddenRow) -> Vec<u8> {
    match row.summary_of {
        Some(made) => Kind::HiddenSummary.key([by, made, row.key]),
        None => Kind::Hidden.key([by, row.key]),
    }
}

fn put_hidden(rows: &mut Rows<'_>, by: Option<Revision>, row: HiddenRow) -> Result<(), StoreError> {
    by.map_or(Ok(()), |by| rows.put(&hidden_key(by.0, &row), &row))
}

/// Hides a message, or shows it again.
fn hide_message(rows: &mut Rows<'_>, seq: Seq, by: Option<Revision>) -> Result<(), StoreError> {
    let key = Kind::Message.key([seq.0]);
    let mut row: MessageRow = rows.must(&key)?;
    let hidden = HiddenRow { summary_of: None, key: seq.0 };
    if let Some(before) = row.hidden_by {
        rows.remove(&hidden_key(before, &hidden))?;
    }
    row.hidden_by = by.map(|by| by.0);
    rows.put(&key, &row)?;
    match by {
        Some(_) => rows.remove(&Kind::Live.key([seq.0]))?,
        None => put_live(rows, seq, None)?,
    }
    put_hidden(rows, by, hidden)
}

/// Hides a summary, or shows it again.
fn hide_summary(rows: &mut Rows<'_>, place: SummaryPlace, by: Option<Revision>) -> Result<(), StoreError> {
    let key = Kind::Summary.key([place.made.0, place.key.0]);
    let mut row: SummaryRow = rows.must(&key)?;
    let hidden = HiddenRow { summary_of: Some(place.made.0), key: place.key.0 };
    if let Some(before) = row.hidden_by {
        rows.remove(&hidden_key(before, &hidden))?;
    }
    row.hidden_by = by.map(|by| by.0);
    rows.put(&key, &row)?;
    match by {
        Some(_) => rows.remove(&Kind::Live.key([place.key.0]))?,
        None => put_live(rows, place.key, Some(place.made))?,
    }
    put_hidden(rows, by, hidden)
}

fn edit(rows: &mut Rows<'_>, seq: Seq, restored: Option<&Restored>) -> Result<(), StoreError> {
    let key = Kind::Message.key([seq.0]);
    let mut row: MessageRow = rows.must(&key)?;
    row.edit = restored.map(EditRow::of).transpose()?;
    rows.put(&key, &row)
}

fn keep_record(rows: &mut Rows<'_>, made: Revision, new: &NewRecord<'_>) -> Result<(), StoreError> {
    for (summary, turn) in new.record.summaries.iter().zip(&new.turns) {
        let row = SummaryRow::of(made, *turn, summary)?;
        rows.put(&Kind::Summary.key([made.0, summary.key.0]), &row)?;
        put_live(rows, summary.key, Some(made))?;
    }
    let text = stored::encode_record(new.record).map_err(not_storable)?;
    rows.put(&Kind::Record.key([made.0]), &RecordRow::new(made, new.id, text))
}

/// Deletes texts, wherever they are: in the log, in summaries, and in the records that shortened messages or made summaries.
fn prune(rows: &mut Rows<'_>, prune: &Prune<'_>) -> Result<(), StoreError> {
    for seq in prune.messages {
        let key = Kind::Message.key([seq.0]);
        let mut row: MessageRow = rows.must(&key)?;
        row.prune(prune.pruned.revision)?;
        rows.put(&key, &row)?;
        if let Some(by) = row.hidden_by {
            rows.remove(&hidden_key(by, &HiddenRow { summary_of: None, key: seq.0 }))?;
        }
    }
    for place in prune.summaries {
        let key = Kind::Summary.key([place.made.0, place.key.0]);
        let mut row: SummaryRow = rows.must(&key)?;
        row.prune()?;
        rows.put(&key, &row)?;
        if let Some(by) = row.hidden_by {
            let hidden = HiddenRow { summary_of: Some(place.made.0), key: place.key.0 };
            rows.remove(&hidden_key(by, &hidden))?;
        }
    }
    let records = rows.range(KeyRange::all(Kind::Record))?.collect::<Result<Vec<RecordRow>, _>>()?;
    for mut row in records {
        let record = row.committed()?.record;
        let is_pruned = |seq: Seq| prune.messages.contains(&seq);
        let is_gone =
            |key: Seq| prune.summaries.contains(&SummaryPlace { made: Revision(row.revision), key });
        if let Some(bare) = bare_record(&record, is_pruned, is_gone) {
            row.record = stored::encode_record(&bare).map_err(not_storable)?;
            rows.put(&Kind::Record.key([row.revision]), &row)?;
        }
    }
    rows.put(&Kind::Prune.key([prune.pruned.revision.0]), &PruneRow::of(&prune.pruned))
}
