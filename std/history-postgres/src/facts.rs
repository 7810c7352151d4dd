//! Reads the facts of a session from its rows.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq, Tokens};
use epitome_history::bodies::{message, record};
use epitome_history::kernel::{
    Edited, Facts, Made, Needs, Prunable, Receipt, SaidBefore, SummaryPlace, Visible,
};
use epitome_history::rows::{self, count, covers, int};
use epitome_history::rules::{Anchor, VisibleMessage, VisibleSummary};
use epitome_history::{MessageEdit, StateRevision, UnansweredCall};
use futures::future::{try_join, try_join_all, try_join3, try_join4};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::lease::{Access, Parameters};
use super::prune::pruned;
use super::read::{projection, record_id, unanswered_call};
use super::receipts::receipt;
use super::row::{self, digest, edit, number, number32, revision, text};
use super::sql;
use super::transaction::SessionTransaction;

impl SessionTransaction<'_> {
    /// Begins the transaction, locks the session against changes, and reads the facts that are found by the session's
    /// id.
    pub(super) async fn begin(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), Failure> {
        let [lock, token, record, state] =
            self.lease.prepare([sql::LOCK_SESSION, sql::TOKEN, sql::RECORD, sql::STATE_REVISION]).await?;
        let name = digest(self.job.session.as_str());
        let key = digest(needs.receipt.map(|(token, _)| token.as_str()).unwrap_or_default());
        let (name, key) = (name.as_slice(), key.as_slice());
        let made = int(needs.record_id.unwrap_or_default().0);
        let one: Parameters<'_> = &[&name];
        let (by_token, by_record): (Parameters<'_>, Parameters<'_>) = (&[&name, &key], &[&name, &made]);
        // The statements are sent in this order, so that the later ones read the state of the locked session.
        let lease = self.lease;
        let begun = try_join(lease.begin(Access::Write), lease.row(&lock, one));
        let ((_, found), seen, known, state) = try_join4(
            begun,
            self.row_if(needs.receipt.is_some(), &token, by_token),
            self.row_if(needs.record_id.is_some(), &record, by_record),
            self.row_if(needs.state, &state, one),
        )
        .await?;
        if let Some(found) = &found {
            self.row = Some(row::session(found)?);
            self.runs = row::runs(found)?;
        }
        facts.session = self.row.map(|row| row.counters);
        facts.record_id = known.as_ref().map(|row| record_id(row, 0)).transpose()?;
        facts.state =
            StateRevision(state.as_ref().map(|row| number(row, 0)).transpose()?.unwrap_or_default());
        if let Some(seen) = &seen {
            facts.receipt = Some(self.compared(seen).await?);
        }
        Ok(())
    }

    async fn row_if(
        &self,
        wanted: bool,
        statement: &tokio_postgres::Statement,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, Failure> {
        if wanted { self.lease.row(statement, parameters).await } else { Ok(None) }
    }

    async fn compared(&self, seen: &Row) -> Result<Receipt, Failure> {
        let (digest, appended) = receipt(seen)?;
        if digest == self.job.texts.digest {
            return Ok(Receipt { appended, said: SaidBefore::Same });
        }
        // Pruned messages cannot be compared any more.
        let [pruned] = self.lease.prepare([sql::PRUNED_IN]).await?;
        let (first, head) = (int(appended.first.0), int(appended.head.0));
        let pruned = self.lease.row(&pruned, &[&self.row.map(|row| row.id), &first, &head]).await?;
        let said = if pruned.is_some() { SaidBefore::Pruned } else { SaidBefore::Other };
        Ok(Receipt { appended, said })
    }

    /// Reads the facts that are found by the row id of the session.
    pub(super) async fn read(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), Failure> {
        let Some(id) = self.row.map(|row| row.id) else { return Ok(()) };
        let (visible, edited, anchors, turns) = try_join4(
            self.visible(id, needs.visible),
            try_join_all(needs.edited.iter().map(|seq| self.edited(id, *seq))),
            try_join_all(needs.anchors.iter().map(|seq| self.place(id, *seq))),
            try_join_all(needs.turns.iter().map(|seq| self.place(id, *seq))),
        )
        .await?;
        if needs.visible {
            self.visible = visible.messages.iter().map(|message| message.seq).collect();
            facts.visible = visible;
        }
        if let (Some(extent), Some(row)) = (needs.projection, &self.row) {
            let found =
                projection(self.lease, (row, &self.runs), extent, core::future::ready(Ok(()))).await?;
            facts.projection = Some((extent, found.into_loaded()?.of(extent)));
        }
        facts.edited.extend(edited.into_iter().flatten());
        facts.anchors.extend(anchors.into_iter().flatten().map(|(seq, place)| (seq, place.anchor)));
        facts.turns.extend(turns.into_iter().flatten().map(|(seq, place)| (seq, place.turn)));
        if needs.calls {
            facts.calls = Some(self.calls(id).await?);
        }
        if needs.state_text {
            let [state] = self.lease.prepare([sql::STATE]).await?;
            let name = digest(self.job.session.as_str());
            let state = self.lease.row(&state, &[&name.as_slice()]).await?;
            facts.state_text = state.as_ref().map(|row| text(row, 2)).transpose()?.map(Into::into);
        }
        if let Some(made) = needs.made {
            self.made(id, made, facts).await?;
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            facts.earlier_edits = Some(self.edits_before(id, *before, seqs).await?);
        }
        if let Some(through) = needs.prunable {
            facts.prunable = self.prunable(id, through).await?;
        }
        Ok(())
    }

    async fn place(&self, id: i64, seq: Seq) -> Result<Option<(Seq, Place)>, Failure> {
        let [anchor] = self.lease.prepare([sql::ANCHOR]).await?;
        let row = self.lease.row(&anchor, &[&id, &int(seq.0)]).await?;
        let place = |row: &Row| {
            let anchor = Anchor { anchor: Seq(number(row, 0)?), hidden_by: revision(row, 1)? };
            Ok::<_, Failure>((seq, Place { anchor, turn: epitome_core::Turn(number32(row, 2)?) }))
        };
        row.as_ref().map(place).transpose()
    }

    async fn calls(&self, id: i64) -> Result<Vec<UnansweredCall>, Failure> {
        let [unanswered] = self.lease.prepare([sql::UNANSWERED]).await?;
        self.lease.rows(&unanswered, &[&id]).await?.iter().map(unanswered_call).collect()
    }

    /// The visible messages and summaries, ordered by key.
    async fn visible(&self, id: i64, wanted: bool) -> Result<Visible, Failure> {
        if !wanted {
            return Ok(Visible::default());
        }
        let [messages, summaries] =
            self.lease.prepare([sql::VISIBLE_MESSAGES, sql::VISIBLE_SUMMARIES]).await?;
        let (low, high) = self.runs.columns();
        let (ranges, one): ([&(dyn ToSql + Sync); 3], [&(dyn ToSql + Sync); 1]) = ([&id, low, high], [&id]);
        let found = try_join(self.lease.rows(&messages, &ranges), self.lease.rows(&summaries, &one)).await?;
        seen(&found)
    }

    async fn edited(&self, id: i64, seq: Seq) -> Result<Option<Edited>, Failure> {
        let [edited] = self.lease.prepare([sql::EDITED]).await?;
        let Some(row) = self.lease.row(&edited, &[&id, &int(seq.0)]).await? else { return Ok(None) };
        let whole = count(Tokens(number32(&row, 0)?), row.try_get(1)?, text(&row, 2)?)?;
        let shortened = match edit(&row, 4)?.zip(revision(&row, 8)?) {
            Some((shortened, by)) => Some(shortened.into_restored(by)?),
            None => None,
        };
        Ok(Some(Edited { seq, message: message(seq, row.try_get(3)?)?, whole, shortened }))
    }

    async fn made(&self, id: i64, made: Revision, facts: &mut Facts) -> Result<(), Failure> {
        let statements =
            [sql::MADE, sql::LATEST_HELD, sql::PRUNED_SINCE, sql::HIDDEN_MESSAGES, sql::HIDDEN_SUMMARIES];
        let [found, latest, since, messages, summaries] = self.lease.prepare(statements).await?;
        let at = int(made.0);
        let (one, both): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) = ([&id], [&id, &at]);
        let lease = self.lease;
        let (found, latest, since, hidden) = try_join4(
            lease.row(&found, &both),
            lease.row(&latest, &one),
            lease.row(&since, &both),
            try_join(lease.rows(&messages, &both), lease.rows(&summaries, &both)),
        )
        .await?;
        facts.latest_held = latest.map(|latest| number(&latest, 0)).transpose()?.map(Revision);
        if let Some(found) = found {
            facts.made = Some(Made {
                record: record(made, found.try_get(1)?)?,
                undone_by: revision(&found, 0)?,
                pruned_since: since.is_some(),
                hidden: seen(&hidden)?,
            });
        }
        Ok(())
    }

    async fn edits_before(
        &self,
        id: i64,
        before: Revision,
        seqs: &[Seq],
    ) -> Result<Vec<(Revision, MessageEdit)>, Failure> {
        let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
        let [held] = self.lease.prepare([sql::HELD_BEFORE]).await?;
        let mut earlier = Vec::new();
        for row in self.lease.rows(&held, &[&id, &int(before.0)]).await? {
            let revision = Revision(number(&row, 0)?);
            let edits = record(revision, row.try_get(1)?)?.edits.into_iter();
            earlier.extend(edits.filter(|edit| wanted.contains(&edit.seq)).map(|edit| (revision, edit)));
        }
        Ok(earlier)
    }

    async fn prunable(&self, id: i64, through: Revision) -> Result<Prunable, Failure> {
        let statements = [sql::PRUNABLE_MESSAGES, sql::PRUNABLE_SUMMARIES, sql::PRUNED_THROUGH];
        let [messages, summaries, before] = self.lease.prepare(statements).await?;
        let through = int(through.0);
        let due: [&(dyn ToSql + Sync); 2] = [&id, &through];
        let (messages, summaries, before) = try_join3(
            self.lease.rows(&messages, &due),
            self.lease.rows(&summaries, &due),
            self.lease.row(&before, &due),
        )
        .await?;
        let summary =
            |row: &Row| Ok(SummaryPlace { made: Revision(number(row, 0)?), key: Seq(number(row, 1)?) });
        Ok(Prunable {
            messages: messages.iter().map(|row| Ok(Seq(number(row, 0)?))).collect::<Result<_, Failure>>()?,
            summaries: summaries.iter().map(summary).collect::<Result<_, Failure>>()?,
            before: before.as_ref().map(pruned).transpose()?,
        })
    }
}

/// The stored facts about a message of the log.
struct Place {
    anchor: Anchor,
    turn: epitome_core::Turn,
}

/// Messages and summaries in the form that the checks of a commit use, ordered by key.
fn seen((messages, summaries): &(Vec<Row>, Vec<Row>)) -> Result<Visible, Failure> {
    let message = |row: &Row| {
        let (seq, anchor) = (Seq(number(row, 0)?), Seq(number(row, 1)?));
        let (tokens, standing) = (Tokens(number32(row, 2)?), rows::standing(row.try_get(3)?)?);
        Ok(VisibleMessage { seq, anchor, tokens, standing })
    };
    let summary = |row: &Row| {
        let (key, made, covers) = (Seq(number(row, 0)?), Revision(number(row, 4)?), covers(row.try_get(2)?)?);
        let (tokens, standing) = (Tokens(number32(row, 1)?), rows::standing(row.try_get(3)?)?);
        Ok(VisibleSummary { key, made, covers, tokens, standing })
    };
    let mut messages = messages.iter().map(message).collect::<Result<Vec<_>, Failure>>()?;
    messages.sort_unstable_by_key(|message| message.seq);
    Ok(Visible { messages, summaries: summaries.iter().map(summary).collect::<Result<_, Failure>>()? })
}
