//! An operation on a session within the transaction of the worker thread: it writes the changes row by row.

use epitome_core::{Revision, Seq};
use epitome_history::UnansweredCall;
use epitome_history::bodies::{RowTexts, record};
use epitome_history::encryption::Place;
use epitome_history::kernel::{
    Attempt, Changes, Facts, Insert, Needs, NewKeptState, NewRecord, Prune, Transaction, runs,
};
use epitome_history::rows::{SessionRow, covers_text, int, part_tokens_text, pruned, stored_time};
use epitome_history::rules::{self, Restored, Standing, corrupt};
use epitome_history::stored;
use rusqlite::{Connection, OptionalExtension};

use super::failure::Failure;
use super::row::{create_session, rows, save_session};
use super::session::Session;
use super::{sql, words};

/// A session in a transaction.
pub(super) struct SessionTransaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) session: &'a Session,
    /// The texts of the operation in their stored form.
    pub(super) texts: &'a RowTexts,
    /// The row of the session, once it was read.
    pub(super) row: Option<SessionRow>,
}

impl Transaction for SessionTransaction<'_> {
    type Error = Failure;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, Failure> {
        self.read(needs, facts).map(|()| Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, Failure> {
        self.write(changes).map(|()| Attempt::Done)
    }
}

impl SessionTransaction<'_> {
    fn write(&self, changes: &Changes<'_>) -> Result<(), Failure> {
        let before = match self.row {
            Some(row) => row,
            None => create_session(self.connection, self.session)?,
        };
        let (id, by) = (before.id, changes.after.revision);
        if let Some(insert) = &changes.insert {
            self.insert(id, insert)?;
        }
        self.hide(id, changes)?;
        self.show(id, changes)?;
        for (seq, restored) in &changes.edits {
            self.edit(id, *seq, restored.as_ref())?;
        }
        if let Some(new) = &changes.record {
            self.keep_record(id, by, new)?;
        }
        if let Some(made) = changes.undone {
            self.connection.prepare_cached(sql::UNDO)?.execute((id, int(made.0), int(by.0)))?;
        }
        for (anchor, ordinal) in &changes.answered {
            self.connection.prepare_cached(sql::ANSWERED)?.execute((id, int(anchor.0), *ordinal))?;
        }
        for call in changes.unanswered {
            self.keep_call(id, call)?;
        }
        if let Some(prune) = &changes.pruned {
            self.prune(id, prune)?;
        }
        if let Some(state) = changes.state {
            self.keep_state(id, state)?;
        }
        // Saved last, because the row counts the unanswered calls.
        if before.counters != changes.after {
            save_session(self.connection, &SessionRow { id, counters: changes.after })?;
        }
        Ok(())
    }

    fn insert(&self, id: i64, insert: &Insert<'_>) -> Result<(), Failure> {
        let mut message = self.connection.prepare_cached(sql::NEW_MESSAGE)?;
        let mut text = self.connection.prepare_cached(sql::NEW_BODY)?;
        let texts = self.session.texts_at(insert, self.texts)?;
        for ((seq, entry, hidden_by), body) in insert.placed().zip(&*texts) {
            message.execute((
                id,
                int(seq.0),
                int(entry.anchor.0),
                entry.turn.0,
                entry.count.tokens.0,
                entry.count.basis.as_str(),
                entry.count.counter.as_str(),
                entry.late,
                entry.orphan,
                hidden_by.map(|revision| int(revision.0)),
                Standing::of(&entry.message).number(),
            ))?;
            let written = text.insert((id, int(seq.0), body, part_tokens_text(&entry.part_tokens)))?;
            if self.session.seal.is_plain() {
                words::written(self.connection, written)?;
            }
        }
        let appended = insert.appended;
        self.connection.prepare_cached(sql::NEW_TOKEN)?.execute((
            id,
            insert.token.as_str().as_bytes(),
            self.texts.digest,
            int(appended.first.0),
            int(appended.head.0),
            int(appended.revision.0),
            stored_time(insert.time),
        ))?;
        Ok(())
    }

    fn hide(&self, id: i64, changes: &Changes<'_>) -> Result<(), Failure> {
        let by = int(changes.after.revision.0);
        let mut hidden = 0_usize;
        for (first, last) in runs(&changes.hide) {
            let mut messages = self.connection.prepare_cached(sql::HIDE_MESSAGES)?;
            hidden = hidden.saturating_add(messages.execute((id, int(first.0), int(last.0), by))?);
        }
        for place in &changes.hide_summaries {
            let mut summary = self.connection.prepare_cached(sql::HIDE_SUMMARY)?;
            hidden = hidden.saturating_add(summary.execute((id, int(place.key.0), by))?);
        }
        changed(hidden, changes.hide.len().saturating_add(changes.hide_summaries.len()))
    }

    /// Shows all messages and summaries that the undone record has hidden.
    fn show(&self, id: i64, changes: &Changes<'_>) -> Result<(), Failure> {
        let Some(made) = changes.undone else { return Ok(()) };
        let at = (id, int(made.0));
        let messages = self.connection.prepare_cached(sql::SHOW_MESSAGES)?.execute(at)?;
        let summaries = self.connection.prepare_cached(sql::SHOW_SUMMARIES)?.execute(at)?;
        changed(messages, changes.show.len())?;
        changed(summaries, changes.show_summaries.len())
    }

    fn edit(&self, id: i64, seq: Seq, restored: Option<&Restored>) -> Result<(), Failure> {
        let Some(Restored { by, stand_ins, count }) = restored else {
            self.connection.prepare_cached(sql::DROP_EDIT)?.execute((id, int(seq.0)))?;
            return Ok(());
        };
        let stand_ins = stored::encode_stand_ins(stand_ins).map_err(rules::not_storable)?;
        self.connection.prepare_cached(sql::NEW_EDIT)?.execute((
            id,
            int(seq.0),
            int(by.0),
            count.tokens.0,
            count.basis.as_str(),
            count.counter.as_str(),
            self.session.close(Place::stand_ins(seq.0), stand_ins)?,
        ))?;
        Ok(())
    }

    fn keep_record(&self, id: i64, made: Revision, new: &NewRecord<'_>) -> Result<(), Failure> {
        let mut insert = self.connection.prepare_cached(sql::NEW_SUMMARY)?;
        let summaries = new.record.summaries.iter().zip(&new.turns).zip(&self.texts.summaries);
        for ((summary, turn), body) in summaries {
            insert.execute((
                id,
                int(made.0),
                int(summary.key.0),
                turn.0,
                summary.count.tokens.0,
                summary.count.basis.as_str(),
                summary.count.counter.as_str(),
                covers_text(&summary.message.attribution().derived_from)?,
                body,
                Standing::of(&summary.message).number(),
            ))?;
        }
        let record_id = self.session.close_id(made, new.id)?;
        let mut insert = self.connection.prepare_cached(sql::NEW_RECORD)?;
        insert.execute((id, int(made.0), record_id, &self.texts.record))?;
        Ok(())
    }

    fn keep_call(&self, id: i64, call: &UnansweredCall) -> Result<(), Failure> {
        let place = Place::call(call.anchor.0, call.ordinal.into());
        let text = self.session.close(place, call.id.to_string())?.into_bytes();
        let mut insert = self.connection.prepare_cached(sql::NEW_UNANSWERED)?;
        insert.execute((id, int(call.anchor.0), call.ordinal, call.turn.0, text))?;
        Ok(())
    }

    fn keep_state(&self, id: i64, state: NewKeptState<'_>) -> Result<(), Failure> {
        let NewKeptState { revision, head, text } = state;
        let text = self.session.close(Place::state(revision.0), text.to_owned())?;
        let values = (id, int(revision.0), int(head.0), text);
        self.connection.prepare_cached(sql::KEEP_STATE)?.execute(values)?;
        Ok(())
    }

    fn prune(&self, id: i64, prune: &Prune<'_>) -> Result<(), Failure> {
        let made = prune.pruned;
        let texts = prune.messages.iter().map(|seq| self.prune_message(id, *seq, made.revision));
        words::forget(self.connection, texts.collect::<Result<_, _>>()?)?;
        let due = (id, int(made.through.0));
        let found = rows(self.connection, sql::PRUNABLE_SUMMARIES, due, |row| {
            let (revision, key) = (super::row::number(row, 0)?, super::row::number(row, 1)?);
            let place = Place::summary(revision, key);
            let left = pruned(&self.session.open(place, row.get(2)?)?)?;
            Ok((int(revision), int(key), self.session.close(place, left)?))
        })?;
        for (revision, key, left) in &found {
            let mut summary = self.connection.prepare_cached(sql::PRUNE_SUMMARY)?;
            summary.execute((id, revision, key, int(made.revision.0), left))?;
        }
        self.prune_records(id)?;
        self.connection.prepare_cached(sql::NEW_PRUNE)?.execute((
            id,
            int(made.revision.0),
            int(made.through.0),
            int(made.messages),
            int(made.summaries),
        ))?;
        Ok(())
    }

    /// Deletes the text of a message. Returns the id of the text.
    fn prune_message(&self, id: i64, seq: Seq, by: Revision) -> Result<i64, Failure> {
        let (connection, session, at) = (self.connection, self.session, int(seq.0));
        let mut body = connection.prepare_cached(sql::BODY)?;
        let found = body.query_row((id, at), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (text, written) =
            found.ok_or_else(|| corrupt(format!("the text of message {seq} is missing")))?;
        let left = pruned(&session.message(seq, text)?)?;
        let left = session.close(Place::message(seq.0), left)?;
        let none = session.close(Place::stand_ins(seq.0), "[]".to_owned())?;
        connection.prepare_cached(sql::PRUNE_BODY)?.execute((id, at, left))?;
        connection.prepare_cached(sql::PRUNE_MESSAGE)?.execute((id, at, int(by.0)))?;
        connection.prepare_cached(sql::PRUNE_EDIT)?.execute((id, at, none))?;
        Ok(written)
    }

    /// Deletes the stand-in texts of pruned messages from the records.
    fn prune_records(&self, id: i64) -> Result<(), Failure> {
        let mut records = self.connection.prepare_cached(sql::RECORDS)?;
        let mut is_pruned = self.connection.prepare_cached(sql::IS_PRUNED)?;
        let mut after = 0_i64;
        // One record after another, because each row that is read is also written.
        while let Some((revision, body)) = records
            .query_row((id, after, 1), |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
            .optional()?
        {
            after = revision;
            let made = Revision(u64::try_from(revision).unwrap_or_default());
            let record = record(made, &self.session.record(made, body)?)?;
            let mut pruned = Vec::new();
            for edit in &record.edits {
                if is_pruned.exists((id, int(edit.seq.0)))? {
                    pruned.push(edit.seq);
                }
            }
            if let Some(bare) = rules::bare_record(&record, |seq| pruned.contains(&seq), |_| false) {
                let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
                let body = self.session.close(Place::record(made.0), body)?;
                self.connection.prepare_cached(sql::BARE_RECORD)?.execute((id, revision, body))?;
            }
        }
        Ok(())
    }
}

/// Checks a number of changed rows. A difference shows that an index and its table disagree.
fn changed(found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected {
        Ok(())
    } else {
        Err(corrupt("the index of the visible messages is damaged; restore the file from a backup").into())
    }
}
