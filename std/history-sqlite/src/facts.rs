//! Reads the facts of a session from its rows.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::bodies::{message, record};
use epitome_history::kernel::{
    Edited, Extent, Facts, Made, Needs, Prunable, Receipt, SaidBefore, SummaryPlace, Visible,
};
use epitome_history::rows::{SessionRow, count, covers, int, standing};
use epitome_history::rules::{Anchor, VisibleMessage, VisibleSummary, corrupt};
use epitome_history::{AppendToken, MessageEdit, StateRevision};
use rusqlite::{OptionalExtension, Row};

use super::failure::Failure;
use super::read::{check_counts, kept_state, load, read_pruned, receipt, tail, unanswered};
use super::row::{self, find_session, number, optional, rows};
use super::sql;
use super::transaction::SessionTransaction;

impl SessionTransaction<'_> {
    pub(super) fn read(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), Failure> {
        if self.row.is_none() {
            self.row = find_session(self.connection, self.session)?;
            facts.session = self.row.map(|row| row.counters);
        }
        let Some(row) = self.row else { return Ok(()) };
        let (connection, session, id) = (self.connection, self.session, row.id);
        if let Some((token, _)) = needs.receipt {
            facts.receipt = self.compared(id, token)?;
        }
        if let Some(extent) = needs.projection {
            let load = match extent {
                Extent::All => load,
                Extent::LastTurn => tail,
            };
            let loaded = load(connection, session)?.into_loaded()?;
            facts.projection = Some((extent, loaded.of(extent)));
        }
        for seq in &needs.anchors {
            facts.anchors.extend(self.anchor(id, *seq)?.map(|anchor| (*seq, anchor)));
        }
        if needs.calls {
            facts.calls = Some(unanswered(connection, session, id)?);
        }
        if needs.state {
            let mut known = connection.prepare_cached(sql::STATE_REVISION)?;
            let known = known.query_row([id], |row| number(row, 0)).optional()?;
            facts.state = StateRevision(known.unwrap_or_default());
        }
        if needs.state_text {
            facts.state_text =
                Some(kept_state(connection, session, id)?.map(|kept| kept.text).unwrap_or_default());
        }
        self.read_for_records(row, needs, facts)
    }

    /// Reads the facts that commits, uncompacts and prunes need.
    fn read_for_records(&self, row: SessionRow, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), Failure> {
        let (connection, session, id) = (self.connection, self.session, row.id);
        if let Some(revision) = needs.record_id {
            let mut record = connection.prepare_cached(sql::RECORD)?;
            let stored = record.query_row((id, int(revision.0)), |row| row.get(0)).optional()?;
            facts.record_id = stored.map(|stored| session.open_id(revision, stored)).transpose()?;
        }
        if needs.visible {
            facts.visible = self.visible(id)?;
            let Visible { messages, summaries } = &facts.visible;
            let tokens = messages.iter().map(|it| it.tokens).chain(summaries.iter().map(|it| it.tokens));
            check_counts(&row.counters, (messages.len().saturating_add(summaries.len()), tokens))?;
        }
        for seq in &needs.edited {
            facts.edited.extend(self.edited(id, *seq)?);
        }
        for seq in &needs.turns {
            let mut turn = connection.prepare_cached(sql::TURN)?;
            let turn = turn.query_row((id, int(seq.0)), |row| row.get(0)).optional()?;
            facts.turns.extend(turn.map(|turn| (*seq, Turn(turn))));
        }
        if let Some(made) = needs.made {
            facts.made = self.made(id, made)?;
            let mut latest = connection.prepare_cached(sql::LATEST_HELD)?;
            let latest = latest.query_row([id], |row| number(row, 0)).optional()?;
            facts.latest_held = latest.map(Revision);
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            facts.earlier_edits = Some(self.edits_before(id, *before, seqs)?);
        }
        if let Some(through) = needs.prunable {
            facts.prunable = self.prunable(id, through)?;
        }
        Ok(())
    }

    fn compared(&self, id: i64, token: &AppendToken) -> Result<Option<Receipt>, Failure> {
        let Some((digest, appended)) = receipt(self.connection, id, token)? else { return Ok(None) };
        let said = if digest == self.texts.digest {
            SaidBefore::Same
        } else {
            let mut pruned = self.connection.prepare_cached(sql::PRUNED_IN)?;
            let is_pruned = pruned.exists((id, int(appended.first.0), int(appended.head.0)))?;
            if is_pruned { SaidBefore::Pruned } else { SaidBefore::Other }
        };
        Ok(Some(Receipt { appended, said }))
    }

    fn anchor(&self, id: i64, seq: Seq) -> rusqlite::Result<Option<Anchor>> {
        let mut statement = self.connection.prepare_cached(sql::ANCHOR)?;
        let anchor = statement.query_row((id, int(seq.0)), |row| {
            Ok(Anchor { anchor: Seq(number(row, 0)?), hidden_by: optional(row, 1)?.map(Revision) })
        });
        anchor.optional()
    }

    fn visible(&self, id: i64) -> Result<Visible, Failure> {
        Ok(Visible {
            messages: rows(self.connection, sql::VISIBLE_MESSAGES, [id], visible_message)?,
            summaries: rows(self.connection, sql::VISIBLE_SUMMARIES, [id], visible_summary)?,
        })
    }

    fn edited(&self, id: i64, seq: Seq) -> Result<Option<Edited>, Failure> {
        let mut statement = self.connection.prepare_cached(sql::EDITED)?;
        let mut rows = statement.query((id, int(seq.0)))?;
        let Some(found) = rows.next()? else { return Ok(None) };
        let lost = || corrupt(format!("the text of message {seq} is missing"));
        let body = self.session.message(seq, found.get::<_, Option<String>>(3)?.ok_or_else(lost)?)?;
        let basis: String = found.get(1)?;
        let whole = count(Tokens(found.get(0)?), &basis, found.get(2)?)?;
        let shortened = row::edit(found, 4, (self.session, seq))?;
        let shortened = match shortened {
            Some(shortened) => Some(shortened.into_restored(Revision(number(found, 8)?))?),
            None => None,
        };
        Ok(Some(Edited { seq, message: message(seq, &body)?, whole, shortened }))
    }

    fn made(&self, id: i64, made: Revision) -> Result<Option<Made>, Failure> {
        let at = (id, int(made.0));
        let mut found = self.connection.prepare_cached(sql::MADE)?;
        let found = found.query_row(at, |row| Ok((optional(row, 0)?, row.get(1)?))).optional()?;
        let Some((undone_by, body)) = found else { return Ok(None) };
        let record = record(made, &self.session.record(made, body)?)?;
        let pruned_since = self.connection.prepare_cached(sql::PRUNED_SINCE)?.exists(at)?;
        let hidden = Visible {
            messages: rows(self.connection, sql::HIDDEN_MESSAGES, at, visible_message)?,
            summaries: rows(self.connection, sql::HIDDEN_SUMMARIES, at, visible_summary)?,
        };
        Ok(Some(Made { record, undone_by: undone_by.map(Revision), pruned_since, hidden }))
    }

    fn edits_before(
        &self,
        id: i64,
        before: Revision,
        seqs: &[Seq],
    ) -> Result<Vec<(Revision, MessageEdit)>, Failure> {
        let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
        let mut held = Vec::new();
        let mut statement = self.connection.prepare_cached(sql::HELD_BEFORE)?;
        let mut found = statement.query((id, int(before.0)))?;
        while let Some(row) = found.next()? {
            let revision = Revision(number(row, 0)?);
            let body = self.session.record(revision, row.get(1)?)?;
            let edits = record(revision, &body)?.edits.into_iter();
            held.extend(edits.filter(|edit| wanted.contains(&edit.seq)).map(|edit| (revision, edit)));
        }
        Ok(held)
    }

    fn prunable(&self, id: i64, through: Revision) -> Result<Prunable, Failure> {
        let due = (id, int(through.0));
        let messages = rows(self.connection, sql::PRUNABLE_MESSAGES, due, |row| Ok(Seq(number(row, 0)?)))?;
        let summaries = rows(self.connection, sql::PRUNABLE_SUMMARIES, due, |row| {
            Ok(SummaryPlace { made: Revision(number(row, 0)?), key: Seq(number(row, 1)?) })
        })?;
        let mut before = self.connection.prepare_cached(sql::PRUNED_THROUGH)?;
        let before = before.query_row(due, read_pruned).optional()?;
        Ok(Prunable { messages, summaries, before })
    }
}

fn visible_message(row: &Row<'_>) -> Result<VisibleMessage, Failure> {
    let (seq, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
    Ok(VisibleMessage { seq, anchor, tokens: Tokens(row.get(2)?), standing: standing(row.get(3)?)? })
}

fn visible_summary(row: &Row<'_>) -> Result<VisibleSummary, Failure> {
    let text: String = row.get(2)?;
    let (key, made) = (Seq(number(row, 0)?), Revision(number(row, 4)?));
    let (tokens, standing) = (Tokens(row.get(1)?), standing(row.get(3)?)?);
    Ok(VisibleSummary { key, made, covers: covers(&text)?, tokens, standing })
}
