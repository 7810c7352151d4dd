//! Deletes the texts of pruned messages and summaries. The prune itself is one batch with the session's item; then the
//! texts are deleted in as many batches as needed. An operation that finds an unfinished prune deletes the remaining
//! texts before it changes the session. Each batch replaces the session's item with the same content, so a process that
//! was overtaken by another one deletes nothing.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use epitome_history::rules::{bare_record, not_storable};
use epitome_history::{StoreError, bodies, rows, stored};

use crate::failure::lost;
use crate::ids::{SESSION_ID, prune_id};
use crate::items::{
    AppendItem, Found, Kind, PruneItem, RecordItem, Session, StandInRow, StandInsItem, Text, item, list_text,
    read_list,
};
use crate::members::Members;
use crate::read::{NUMBER_MAX, Opened, open};
use crate::requests::{Change, Guard, Partition, Written};
use crate::write::{Draft, batches, discard_all};

/// Finishes an interrupted prune and returns the session, if it exists.
pub(crate) async fn finished(partition: &Partition) -> Result<Option<Opened>, StoreError> {
    for _ in 0..ROUNDS_MAX {
        let Some(opened) = open(partition).await? else { return Ok(None) };
        let Some(revision) = opened.session.pruning else { return Ok(Some(opened)) };
        let etag = opened.etag.clone();
        if let Err(error) = finish(partition, opened, Revision(revision)).await {
            match open(partition).await? {
                Some(now) if now.etag == etag => return Err(error),
                // Another process has deleted the items that were to be read.
                _ => {}
            }
        }
    }
    Err(partition.unavailable("a prune of the session is not finished; try again"))
}

/// The records that hide messages or summaries that can be pruned, and have hidden them since this revision or earlier.
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

/// The remaining work of a prune.
struct Rest<'a> {
    partition: &'a Partition,
    guard: Guard,
    revision: Revision,
    /// The messages and summaries that are pruned.
    hidden: Members,
}

/// Finishes a prune. Returns early without an error if another process has changed the session.
async fn finish(partition: &Partition, opened: Opened, revision: Revision) -> Result<(), StoreError> {
    let prune: Option<Found<PruneItem>> = partition.item(&prune_id(revision)).await?;
    let prune = prune.ok_or_else(|| lost(&format!("the prune of {revision}")))?;
    // Interrupted writers may have left the same texts.
    discard_all(partition).await?;
    let records = hiding(partition, Revision(prune.fields.through)).await?;
    let mut hidden = Members::default();
    for record in &records {
        hidden.merge(Members::parse(&partition.text(&record.fields.hidden).await?)?);
    }
    let guard = guard(partition, &opened.session, opened.etag)?;
    let mut rest = Rest { partition, guard, revision, hidden };
    let is_done = rest.empty_rows().await?
        && rest.empty_summaries().await?
        && rest.empty_stand_ins().await?
        && rest.empty_records().await?
        && rest.empty_appends().await?
        && rest.move_hidden(&records).await?;
    if is_done {
        let session = Session { pruning: None, ..opened.session };
        let fields = item(&partition.key, SESSION_ID, Kind::Session, &session)?;
        // If this fails, the caller reads the session again.
        let _ = partition.batch(&[Change::Replace(SESSION_ID.to_owned(), fields, rest.guard.etag)]).await?;
    }
    Ok(())
}

fn guard(partition: &Partition, session: &Session, etag: String) -> Result<Guard, StoreError> {
    let item = item(&partition.key, SESSION_ID, Kind::Session, session)?;
    Ok(Guard { id: SESSION_ID.to_owned(), item, etag })
}

impl Rest<'_> {
    /// Deletes the contents of hidden messages; their items stay. Pieces of a text are deleted in the same batch as the
    /// reference to them.
    async fn empty_rows(&mut self) -> Result<bool, StoreError> {
        let partition = self.partition;
        let (mut changes, mut with_pieces) = (Vec::new(), Vec::new());
        for (_, mut row) in partition.rows("*", self.hidden.runs()).await? {
            if row.fields.pruned_by.is_some() {
                continue;
            }
            let body = rows::pruned(&partition.text(&row.fields.text).await?)?;
            let pieces = row.fields.text.pieces().into_iter().map(|id| Change::Delete(id, None));
            let mut batch: Vec<Change> = pieces.collect();
            row.fields.text = Text::Here(body);
            row.fields.part_tokens.clear();
            row.fields.pruned_by = Some(self.revision.0);
            let fields = item(&partition.key, &row.id, Kind::Message, &row.fields)?;
            batch.push(Change::Replace(row.id, fields, row.etag));
            if batch.len() == 1 { changes.append(&mut batch) } else { with_pieces.push(batch) }
        }
        let batches = batches(changes.into_iter()).into_iter().chain(with_pieces);
        self.guard.write(partition, batches).await
    }

    /// Deletes the contents of hidden summaries; their rows stay.
    async fn empty_summaries(&mut self) -> Result<bool, StoreError> {
        let partition = self.partition;
        let made: BTreeSet<Revision> = self.hidden.summaries.iter().map(|place| place.made).collect();
        for made in made {
            let places = self.hidden.summaries.iter().filter(|place| place.made == made);
            let keys: BTreeSet<u64> = places.map(|place| place.key.0).collect();
            let record = partition.record(made).await?;
            let mut record = record.ok_or_else(|| lost(&format!("the record of {made}")))?;
            let mut rows = partition.summary_rows(&record.fields).await?;
            for row in rows.iter_mut().filter(|row| keys.contains(&row.key)) {
                row.text = rows::pruned(&row.text)?;
            }
            let mut draft = Draft::new();
            draft.drop_text(&record.fields.summaries);
            record.fields.summaries = draft.text(partition, list_text(&rows)?)?;
            if !self.replace(draft, Kind::Record, record).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes the stand-ins of hidden messages.
    async fn empty_stand_ins(&mut self) -> Result<bool, StoreError> {
        let partition = self.partition;
        if self.hidden.edited.is_empty() {
            return Ok(true);
        }
        let all: Vec<Found<StandInsItem>> = partition.items("c.epitome = 'stand_ins'").await?;
        for mut found in all {
            let text = partition.text(&found.fields.rows).await?;
            let mut rows: Vec<StandInRow> = read_list(&text, "what stands in messages")?;
            for row in rows.iter_mut().filter(|row| self.hidden.contains(Seq(row.seq))) {
                row.stand_ins = stored::encode_stand_ins(&[]).map_err(not_storable)?;
            }
            if list_text(&rows)? == text {
                continue;
            }
            let mut draft = Draft::new();
            draft.drop_text(&found.fields.rows);
            found.fields.rows = draft.text(partition, list_text(&rows)?)?;
            if !self.replace(draft, Kind::StandIns, found).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes the stand-ins of hidden messages from the bodies of the records.
    async fn empty_records(&mut self) -> Result<bool, StoreError> {
        let partition = self.partition;
        let records: Vec<Found<RecordItem>> =
            partition.items("c.epitome = 'record' AND c.edits = true").await?;
        for mut record in records {
            let body = partition.text(&record.fields.body).await?;
            let read = bodies::record(Revision(record.fields.revision), &body)?;
            // The body has no summaries: they are stored separately.
            let bare = bare_record(&read, |seq| self.hidden.contains(seq), |_| false);
            let Some(bare) = bare else { continue };
            let mut draft = Draft::new();
            draft.drop_text(&record.fields.body);
            record.fields.body =
                draft.text(partition, stored::encode_record(&bare).map_err(not_storable)?)?;
            if !self.replace(draft, Kind::Record, record).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Marks the digests of these appends as pruned: their messages cannot be compared any more.
    async fn empty_appends(&mut self) -> Result<bool, StoreError> {
        let partition = self.partition;
        let condition =
            |first, last| format!("c.epitome = 'append' AND c.first_seq <= {last} AND c.until > {first}");
        let appends: Vec<Found<AppendItem>> = partition.in_ranges("*", self.hidden.runs(), condition).await?;
        let (mut changes, mut seen) = (Vec::new(), BTreeSet::new());
        for mut append in appends {
            if append.fields.digest != AppendItem::PRUNED && seen.insert(append.id.clone()) {
                append.fields.digest = AppendItem::PRUNED.to_owned();
                let fields = item(&partition.key, &append.id, Kind::Append, &append.fields)?;
                changes.push(Change::Replace(append.id, fields, append.etag));
            }
        }
        self.guard.write(partition, batches(changes.into_iter())).await
    }

    /// Moves the hidden members of these records to their pruned members.
    async fn move_hidden(&mut self, records: &[Found<RecordItem>]) -> Result<bool, StoreError> {
        let partition = self.partition;
        for made in records.iter().map(|record| Revision(record.fields.revision)) {
            let record = partition.record(made).await?;
            let mut record = record.ok_or_else(|| lost(&format!("the record of {made}")))?;
            let mut pruned = Members::parse(&partition.text(&record.fields.pruned).await?)?;
            pruned.merge(Members::parse(&partition.text(&record.fields.hidden).await?)?);
            let mut draft = Draft::new();
            draft.drop_text(&record.fields.hidden);
            draft.drop_text(&record.fields.pruned);
            record.fields.hidden = Text::Here(Members::default().text());
            record.fields.hidden_at = None;
            record.fields.pruned = draft.text(partition, pruned.text())?;
            if !self.replace(draft, Kind::Record, record).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn replace<T: serde::Serialize>(
        &mut self,
        mut draft: Draft,
        kind: Kind,
        found: Found<T>,
    ) -> Result<bool, StoreError> {
        let fields = item(&self.partition.key, &found.id, kind, &found.fields)?;
        draft.push(Change::Replace(found.id, fields, found.etag));
        draft.guard(&self.guard);
        Ok(match draft.write(self.partition).await? {
            Written::Done(etag) => {
                self.guard.etag = etag;
                true
            }
            Written::Moved => false,
        })
    }
}

/// Maximum number of restarts of a prune that another operation finishes too.
const ROUNDS_MAX: u32 = 64;
