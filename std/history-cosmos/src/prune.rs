//! Deleting what was pruned. The prune itself is one batch with the session's item; then the texts go, in as many batches as they need.
//! Whoever changes the session before they are gone deletes the rest first.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use epitome_history::rules::{bare_record, not_storable};
use epitome_history::{StoreError, bodies, rows, stored};

use crate::failure::lost;
use crate::items::{
    AppendItem, Found, Kind, PruneItem, RecordItem, SESSION_ID, StandInRow, StandInsItem, Text, item,
    list_text, prune_id, read_list, stand_ins_id,
};
use crate::members::Members;
use crate::read::{NUMBER_MAX, Opened, open};
use crate::requests::{Change, Partition, Written};
use crate::write::{Draft, batches};

/// The session, if it is there, with nothing left of what was pruned.
pub(crate) async fn finished(partition: &Partition) -> Result<Option<Opened>, StoreError> {
    for _ in 0..ROUNDS_MAX {
        let Some(opened) = open(partition).await? else { return Ok(None) };
        let Some(revision) = opened.session.pruning else { return Ok(Some(opened)) };
        if finish(partition, opened, Revision(revision)).await? == Written::Done {
            continue;
        }
    }
    Err(partition.unavailable("a prune of the session is not finished; try again"))
}

/// The records up to this revision that hide what can be pruned.
pub(crate) async fn hiding(
    partition: &Partition,
    through: Revision,
) -> Result<Vec<Found<RecordItem>>, StoreError> {
    let through = through.0.min(NUMBER_MAX);
    let query = format!(
        "SELECT * FROM c WHERE c.epitome = 'record' AND c.hidden_at <= {through} ORDER BY c.revision"
    );
    partition.query(&query, usize::MAX).await
}

async fn finish(partition: &Partition, opened: Opened, revision: Revision) -> Result<Written, StoreError> {
    let prune: Option<Found<PruneItem>> = partition.item(&prune_id(revision)).await?;
    let prune = prune.ok_or_else(|| lost(&format!("the prune of {revision}")))?;
    for record in hiding(partition, Revision(prune.fields.through)).await? {
        let hidden = Members::parse(&partition.text(&record.fields.hidden).await?)?;
        empty_rows(partition, &hidden, revision).await?;
        empty_summaries(partition, &hidden).await?;
        empty_stand_ins(partition, &hidden).await?;
        empty_records(partition, &hidden).await?;
        empty_appends(partition, &hidden).await?;
        if move_hidden(partition, record.fields.revision, hidden).await? == Written::Moved {
            return Ok(Written::Moved);
        }
    }
    let mut session = opened.session;
    session.pruning = None;
    let fields = item(&partition.key, SESSION_ID, Kind::Session, &session)?;
    partition.batch(&[Change::Replace(SESSION_ID.to_owned(), fields, opened.etag)]).await
}

/// Leaves of messages no more than their places.
async fn empty_rows(partition: &Partition, hidden: &Members, revision: Revision) -> Result<(), StoreError> {
    let mut changes = Vec::new();
    for (_, mut row) in partition.rows("*", hidden.runs()).await? {
        if row.fields.pruned_by.is_some() {
            continue;
        }
        let body = rows::pruned(&partition.text(&row.fields.text).await?)?;
        let pieces = row.fields.text.pieces().into_iter().map(|id| Change::Delete(id, None));
        let mut batch: Vec<Change> = pieces.collect();
        row.fields.text = Text::Here(body);
        row.fields.part_tokens.clear();
        row.fields.pruned_by = Some(revision.0);
        let fields = item(&partition.key, &row.id, Kind::Message, &row.fields)?;
        batch.push(Change::Replace(row.id, fields, row.etag));
        if batch.len() == 1 {
            changes.append(&mut batch);
        } else {
            // The pieces go with what names them.
            let _ = partition.batch(&batch).await?;
        }
    }
    for batch in batches(changes.into_iter()) {
        // Another one that finishes the same prune may have been here.
        if partition.batch(&batch).await? == Written::Moved {
            partition.each(batch).await?;
        }
    }
    Ok(())
}

/// Leaves of hidden summaries no more than their places.
async fn empty_summaries(partition: &Partition, hidden: &Members) -> Result<(), StoreError> {
    let made: BTreeSet<Revision> = hidden.summaries.iter().map(|place| place.made).collect();
    for made in made {
        let keys: BTreeSet<u64> =
            hidden.summaries.iter().filter(|place| place.made == made).map(|place| place.key.0).collect();
        let mut record =
            partition.record(made).await?.ok_or_else(|| lost(&format!("the record of {made}")))?;
        let mut rows = partition.summary_rows(&record.fields).await?;
        for row in rows.iter_mut().filter(|row| keys.contains(&row.key)) {
            row.text = rows::pruned(&row.text)?;
        }
        let mut draft = Draft::new();
        draft.drop_text(&record.fields.summaries);
        record.fields.summaries = draft.text(partition, list_text(&rows)?)?;
        replace_record(partition, draft, record).await?;
    }
    Ok(())
}

/// Takes away what stood in hidden messages.
async fn empty_stand_ins(partition: &Partition, hidden: &Members) -> Result<(), StoreError> {
    let all: Vec<Found<StandInsItem>> = partition.items("c.epitome = 'stand_ins'").await?;
    for mut found in all {
        let text = partition.text(&found.fields.rows).await?;
        let mut rows: Vec<StandInRow> = read_list(&text, "what stands in messages")?;
        for row in rows.iter_mut().filter(|row| hidden.contains(Seq(row.seq))) {
            row.stand_ins = stored::encode_stand_ins(&[]).map_err(not_storable)?;
        }
        if list_text(&rows)? == text {
            continue;
        }
        let mut draft = Draft::new();
        draft.drop_text(&found.fields.rows);
        found.fields.rows = draft.text(partition, list_text(&rows)?)?;
        let id = stand_ins_id(Revision(found.fields.revision));
        let fields = item(&partition.key, &id, Kind::StandIns, &found.fields)?;
        draft.push(Change::Replace(id, fields, found.etag));
        let _ = draft.write(partition).await?;
    }
    Ok(())
}

/// Takes the texts that stood in these messages out of the records.
async fn empty_records(partition: &Partition, hidden: &Members) -> Result<(), StoreError> {
    let records: Vec<Found<RecordItem>> = partition.items("c.epitome = 'record' AND c.edits = true").await?;
    for mut record in records {
        let body = partition.text(&record.fields.body).await?;
        let read = bodies::record(Revision(record.fields.revision), &body)?;
        // Its summaries are elsewhere.
        let Some(bare) = bare_record(&read, |seq| hidden.contains(seq), |_| false) else { continue };
        let mut draft = Draft::new();
        draft.drop_text(&record.fields.body);
        record.fields.body = draft.text(partition, stored::encode_record(&bare).map_err(not_storable)?)?;
        replace_record(partition, draft, record).await?;
    }
    Ok(())
}

async fn replace_record(
    partition: &Partition,
    mut draft: Draft,
    record: Found<RecordItem>,
) -> Result<(), StoreError> {
    let fields = item(&partition.key, &record.id, Kind::Record, &record.fields)?;
    draft.push(Change::Replace(record.id, fields, record.etag));
    let _ = draft.write(partition).await?;
    Ok(())
}

/// The messages of these appends cannot be compared any more.
async fn empty_appends(partition: &Partition, hidden: &Members) -> Result<(), StoreError> {
    let condition = |first, last| format!("c.epitome = 'append' AND c.first <= {last} AND c.until > {first}");
    let appends: Vec<Found<AppendItem>> = partition.in_ranges("*", hidden.runs(), condition).await?;
    let mut changes = Vec::new();
    let mut seen = BTreeSet::new();
    for mut append in appends {
        if append.fields.digest != AppendItem::PRUNED && seen.insert(append.id.clone()) {
            append.fields.digest = AppendItem::PRUNED.to_owned();
            let fields = item(&partition.key, &append.id, Kind::Append, &append.fields)?;
            changes.push(Change::Replace(append.id, fields, append.etag));
        }
    }
    for batch in batches(changes.into_iter()) {
        if partition.batch(&batch).await? == Written::Moved {
            partition.each(batch).await?;
        }
    }
    Ok(())
}

/// What a record hides was pruned.
async fn move_hidden(partition: &Partition, made: u64, hidden: Members) -> Result<Written, StoreError> {
    let made = Revision(made);
    let mut record = partition.record(made).await?.ok_or_else(|| lost(&format!("the record of {made}")))?;
    let mut pruned = Members::parse(&partition.text(&record.fields.pruned).await?)?;
    if record.fields.hidden_at.is_none() {
        return Ok(Written::Done);
    }
    pruned.merge(hidden);
    let mut draft = Draft::new();
    draft.drop_text(&record.fields.hidden);
    draft.drop_text(&record.fields.pruned);
    record.fields.hidden = Text::Here(Members::default().text());
    record.fields.hidden_at = None;
    record.fields.pruned = draft.text(partition, pruned.text())?;
    let fields = item(&partition.key, &record.id, Kind::Record, &record.fields)?;
    draft.push(Change::Replace(record.id, fields, record.etag));
    draft.write(partition).await
}

/// How often the rest of a prune is begun anew because another one deletes it too.
const ROUNDS_MAX: u32 = 16;
