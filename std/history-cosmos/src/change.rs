//! The items of a session after a change, which one batch writes.

use std::collections::BTreeMap;

use epitome_core::Revision;
use epitome_history::StoreError;
use epitome_history::kernel::{Changes, Insert, NewRecord, Prune, SummaryPlace};
use epitome_history::rules::{Standing, invalid};

use crate::failure::lost;
use crate::ids::{SESSION_ID, STATE_ID, append_id, prune_id, record_id, row_id, stand_ins_id};
use crate::items::{
    AppendItem, Count, Found, Kind, PruneItem, RecordItem, Row, Session, StandInRow, StandInsItem, StateItem,
    SummaryRow, Text, calls_text, item, list_text,
};
use crate::members::{Members, Shortened};
use crate::read::NUMBER_MAX;
use crate::requests::{Change, Partition};
use crate::transaction::{Job, Survey};
use crate::write::{BATCH_BYTES_MAX, CHANGES_MAX, Draft};

impl Survey<'_> {
    /// Makes the draft of the items that hold the session after these changes.
    pub(crate) async fn draft(&mut self, changes: &Changes<'_>) -> Result<Draft, StoreError> {
        let job = self.job;
        let partition = &job.partition;
        let mut draft = Draft::new();
        let mut session = self.session().cloned().unwrap_or_else(|| Session::new(&partition.session));
        let mut visible = self.visible().await?;
        let by = changes.after.revision;

        let mut hidden = visible.take(&changes.hide, &changes.hide_summaries);
        if let Some(made) = changes.undone {
            let mut record =
                self.records.remove(&made).ok_or_else(|| lost(&format!("the record of {made}")))?;
            visible.merge(Members::parse(&partition.text(&record.fields.hidden).await?)?);
            session.latest_held = record.fields.held_before;
            record.fields.undone_by = Some(by.0);
            // The undoing hides the summaries of the undone record.
            set_hidden(partition, &mut draft, &mut record, by, &core::mem::take(&mut hidden)).await?;
        }
        let mut stand_ins = Vec::new();
        for (seq, restored) in &changes.edits {
            match restored {
                Some(restored) => {
                    visible.shorten(Shortened { seq: *seq, kept_by: by, by: restored.by });
                    stand_ins.push(StandInRow::of(*seq, restored)?);
                }
                None => visible.show_whole(*seq),
            }
        }
        if !stand_ins.is_empty() {
            let rows = draft.text(partition, list_text(&stand_ins)?)?;
            let fields = StandInsItem { revision: by.0, rows };
            draft.push(Change::Create(item(&partition.key, &stand_ins_id(by), Kind::StandIns, &fields)?));
        }
        if let Some(insert) = &changes.insert {
            self.insert(insert, &session.life, &mut visible, &mut draft).await?;
        }
        if let Some(new) = &changes.record {
            job.record(new, by, session.latest_held, &hidden, &mut draft)?;
            session.latest_held = by.0;
            let places =
                new.record.summaries.iter().map(|summary| SummaryPlace { made: by, key: summary.key });
            visible.merge(Members::of_summaries(places.collect()));
        }
        if let Some(state) = changes.state {
            let text = draft.text(partition, state.text.to_owned())?;
            if let Some(before) = &self.state {
                draft.drop_text(&before.fields.text);
            }
            let fields = StateItem { revision: state.revision.0, head: state.head.0, text };
            draft.push(Change::Upsert(item(&partition.key, STATE_ID, Kind::State, &fields)?));
            session.state = state.revision.0;
        }
        if let Some(Prune { pruned, .. }) = &changes.pruned {
            let fields = PruneItem::of(pruned);
            draft.push(Change::Create(item(
                &partition.key,
                &prune_id(pruned.revision),
                Kind::Prune,
                &fields,
            )?));
            session.pruning = Some(pruned.revision.0);
        }
        self.put(session, &visible, changes, &mut draft).await?;
        Ok(draft)
    }

    /// Adds the item of the session to the draft. Its etag shows whether the session has changed.
    async fn put(
        &self,
        mut session: Session,
        visible: &Members,
        changes: &Changes<'_>,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let partition = &self.job.partition;
        session.set_counters(&changes.after);
        draft.drop_text(&session.visible);
        session.visible = draft.text(partition, visible.text())?;
        if !changes.answered.is_empty() || !changes.unanswered.is_empty() {
            let mut calls = partition.unanswered(&session).await?;
            calls.retain(|call| !changes.answered.contains(&(call.anchor, call.ordinal)));
            calls.extend(changes.unanswered.iter().cloned());
            calls.sort_unstable_by_key(|call| (call.anchor, call.ordinal));
            draft.drop_text(&session.unanswered);
            session.unanswered = draft.text(partition, calls_text(&calls)?)?;
        }
        let fields = item(&partition.key, SESSION_ID, Kind::Session, &session)?;
        draft.push(match &self.opened {
            Some(opened) => Change::Replace(SESSION_ID.to_owned(), fields, opened.etag.clone()),
            None => Change::Create(fields),
        });
        Ok(())
    }

    async fn insert(
        &mut self,
        insert: &Insert<'_>,
        life: &str,
        visible: &mut Members,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let job = self.job;
        let partition = &job.partition;
        if insert.appended.head.0 > NUMBER_MAX {
            return Err(invalid("append: no session has so many messages"));
        }
        let bytes =
            job.texts.messages.iter().map(|text| text.len().min(partition.text_bytes_max).saturating_mul(2));
        let bytes = bytes
            .fold(insert.token.as_str().len(), |sum, len| sum.saturating_add(len).saturating_add(ROW_BYTES));
        let is_large = insert.entries.len() > CHANGES_MAX / 4 || bytes > BATCH_BYTES_MAX / 2;
        let stage = is_large.then(|| draft.stage().to_owned());
        for ((seq, entry, _), body) in insert.placed().zip(&job.texts.messages) {
            let fields = Row {
                life: life.to_owned(),
                seq: seq.0,
                anchor: entry.anchor.0,
                turn: entry.turn.0,
                count: Count::of(&entry.count),
                standing: Standing::of(&entry.message).number().into(),
                part_tokens: entry.part_tokens.iter().map(|size| size.0).collect(),
                late: entry.late,
                orphan: entry.orphan,
                pruned_by: None,
                stage: stage.clone(),
                text: draft.text(partition, body.clone())?,
            };
            let row = item(&partition.key, &row_id(seq, stage.as_deref()), Kind::Message, &fields)?;
            match stage {
                Some(_) => draft.ahead(row),
                None => draft.push(Change::Create(row)),
            }
        }
        visible
            .add(insert.placed().filter(|(_, entry, by)| by.is_none() && !entry.orphan).map(|(seq, ..)| seq));
        let mut hidden: BTreeMap<Revision, Members> = BTreeMap::new();
        for (seq, _, by) in insert.placed() {
            if let Some(by) = by {
                hidden.entry(by).or_default().add([seq]);
            }
        }
        for (by, more) in hidden {
            let mut record = self.records.remove(&by).ok_or_else(|| lost(&format!("the record of {by}")))?;
            let mut members = Members::parse(&partition.text(&record.fields.hidden).await?)?;
            members.merge(more);
            set_hidden(partition, draft, &mut record, by, &members).await?;
        }
        let fields = AppendItem {
            first: insert.appended.first.0,
            until: insert.appended.head.0,
            revision: insert.appended.revision.0,
            token: insert.token.as_str().to_owned(),
            digest: job.digest.clone(),
            time: insert.time.map(|time| time.0.to_string()),
            stage,
        };
        draft.push(Change::Create(item(&partition.key, &append_id(insert.token), Kind::Append, &fields)?));
        Ok(())
    }
}

impl Job {
    fn record(
        &self,
        new: &NewRecord<'_>,
        by: Revision,
        held_before: u64,
        hidden: &Members,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        for ((summary, turn), text) in new.record.summaries.iter().zip(&new.turns).zip(&self.texts.summaries)
        {
            let covers = summary.message.attribution().derived_from.iter();
            rows.push(SummaryRow {
                key: summary.key.0,
                turn: turn.0,
                count: Count::of(&summary.count),
                covers: covers.map(|range| [range.first.0, range.last.0]).collect(),
                standing: Standing::of(&summary.message).number().into(),
                text: text.clone(),
            });
        }
        let summaries = if rows.is_empty() { String::new() } else { list_text(&rows)? };
        let partition = &self.partition;
        let fields = RecordItem {
            revision: by.0,
            record_id: new.id.to_string(),
            undone_by: None,
            held_before,
            edits: !new.record.edits.is_empty(),
            body: draft.text(partition, self.texts.record.clone())?,
            summaries: draft.text(partition, summaries)?,
            hidden: draft.text(partition, hidden.text())?,
            hidden_at: (!hidden.is_empty()).then_some(by.0),
            pruned: Text::Here(Members::default().text()),
            first: hidden.runs().first().map(|(first, _)| first.0),
            last: hidden.runs().last().map(|(_, last)| last.0),
        };
        draft.push(Change::Create(item(&partition.key, &record_id(by), Kind::Record, &fields)?));
        Ok(())
    }
}

/// Sets the members that a record hides. The range of the record also covers its pruned members.
async fn set_hidden(
    partition: &Partition,
    draft: &mut Draft,
    record: &mut Found<RecordItem>,
    by: Revision,
    hidden: &Members,
) -> Result<(), StoreError> {
    let mut all = hidden.clone();
    all.merge(Members::parse(&partition.text(&record.fields.pruned).await?)?);
    draft.drop_text(&record.fields.hidden);
    record.fields.hidden = draft.text(partition, hidden.text())?;
    record.fields.hidden_at = (!hidden.is_empty()).then_some(by.0);
    record.fields.first = all.runs().first().map(|(first, _)| first.0);
    record.fields.last = all.runs().last().map(|(_, last)| last.0);
    let fields = item(&partition.key, &record.id, Kind::Record, &record.fields)?;
    draft.push(Change::Replace(record.id.clone(), fields, record.etag.clone()));
    Ok(())
}

/// Maximum size of a message without its text, in bytes.
const ROW_BYTES: usize = 2048;
