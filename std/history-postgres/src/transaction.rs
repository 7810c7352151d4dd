//! An operation on a session in a transaction of the server: it writes the changes row by row.

use core::ops::Range;
use std::collections::BTreeMap;

use epitome_core::{Revision, Seq};
use epitome_history::bodies::RowTexts;
use epitome_history::kernel::{
    Attempt, Changes, Facts, Insert, Needs, NewKeptState, NewRecord, Op, OwnedOp, Reply, Transaction, run,
    runs,
};
use epitome_history::rows::{SessionRow, covers_text, int, part_tokens_text, stored_time};
use epitome_history::rules::{self, Restored, Standing, corrupt};
use epitome_history::stored;
use epitome_history::{Appended, Entry, SessionId, StoreError, UnansweredCall};
use futures::future::{try_join, try_join_all, try_join3};

use super::failure::Failure;
use super::job::Job;
use super::lease::{Lease, Parameters};
use super::prune::prune;
use super::row::{self, changed_one, digest, save_runs, save_session};
use super::runs::Runs;
use super::{sql, words};

/// An operation with the data that is prepared before its turn.
pub(super) struct OpJob {
    pub(super) session: SessionId,
    op: OwnedOp,
    pub(super) texts: RowTexts,
}

impl OpJob {
    pub(super) fn new(session: &SessionId, op: Op<'_>) -> Result<Self, StoreError> {
        Ok(Self { session: session.clone(), texts: RowTexts::of(&op)?, op: OwnedOp::of(op) })
    }
}

impl Job for OpJob {
    type Answer = Reply;

    fn name(&self) -> &'static str {
        self.op.as_op().name()
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Reply, Failure> {
        let mut session = SessionTransaction {
            lease,
            job: self,
            is_open: false,
            row: None,
            runs: Runs::all(),
            visible: Vec::new(),
        };
        run(&self.op.as_op(), &mut session).await
    }
}

/// A session in a transaction.
pub(super) struct SessionTransaction<'a> {
    pub(super) lease: &'a Lease<'a>,
    pub(super) job: &'a OpJob,
    /// Whether the transaction has begun.
    is_open: bool,
    /// The row of the session, once it was read.
    pub(super) row: Option<SessionRow>,
    /// Runs of the visible messages.
    pub(super) runs: Runs,
    /// The visible messages, ascending, once they were read.
    pub(super) visible: Vec<Seq>,
}

impl Transaction for SessionTransaction<'_> {
    type Error = Failure;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, Failure> {
        if !core::mem::replace(&mut self.is_open, true) {
            self.begin(needs, facts).await?;
        }
        // A known token needs no further facts, because its append is refused or repeated.
        let is_refused = facts.receipt.is_some() && needs.receipt.is_some();
        if !is_refused {
            self.read(needs, facts).await?;
        }
        Ok(Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, Failure> {
        let before = match self.row {
            Some(row) => row,
            None => match self.create().await? {
                Some(row) => row,
                // Another transaction has created the session meanwhile, and appended.
                None => {
                    self.lease.commit().await?;
                    self.is_open = false;
                    return Ok(Attempt::Moved);
                }
            },
        };
        self.write(before, changes).await?;
        self.lease.commit().await?;
        Ok(Attempt::Done)
    }
}

impl SessionTransaction<'_> {
    async fn create(&self) -> Result<Option<SessionRow>, Failure> {
        let [create] = self.lease.prepare([sql::NEW_SESSION]).await?;
        let name = self.job.session.as_str();
        let row = self.lease.row(&create, &[&digest(name).as_slice(), &name.as_bytes()]).await?;
        row.as_ref().map(row::session).transpose()
    }

    /// Writes the changes. Hidden messages free their keys before others become visible at them. The other statements
    /// run concurrently.
    async fn write(&self, before: SessionRow, changes: &Changes<'_>) -> Result<(), Failure> {
        let id = before.id;
        self.hide(id, changes).await?;
        if let Some(made) = changes.undone {
            self.show(id, made, changes).await?;
        }
        let by = changes.after.revision;
        let rows = try_join3(
            self.insert(id, changes.insert.as_ref()),
            try_join_all(changes.edits.iter().map(|(seq, restored)| self.edit(id, *seq, restored.as_ref()))),
            self.keep_record(id, by, changes.record.as_ref()),
        );
        let calls = try_join(self.answer(id, &changes.answered), self.keep_calls(id, changes.unanswered));
        let rest = try_join(self.keep_state(id, changes.state), self.save(before, changes));
        try_join3(rows, calls, rest).await?;
        if let Some(insert) = &changes.insert {
            let Appended { first, head, .. } = insert.appended;
            words::written(self.lease, id, first, head).await?;
        }
        if let Some(pruned) = &changes.pruned {
            prune(self.lease, before, pruned).await?;
        }
        Ok(())
    }

    /// Writes the counters, and after them the runs of visible messages.
    async fn save(&self, before: SessionRow, changes: &Changes<'_>) -> Result<(), Failure> {
        let row = SessionRow { id: before.id, counters: changes.after };
        if row.counters == before.counters {
            return Ok(());
        }
        if changes.record.is_none() && changes.undone.is_none() {
            return save_session(self.lease, &row).await;
        }
        let is_hidden = |seq: &Seq| changes.hide.binary_search(seq).is_ok();
        let mut left: Vec<Seq> = self.visible.iter().filter(|seq| !is_hidden(seq)).copied().collect();
        left.extend(&changes.show);
        left.sort_unstable();
        let runs = Runs::around(left, row.counters.head);
        try_join(save_session(self.lease, &row), save_runs(self.lease, &row, &runs)).await?;
        Ok(())
    }

    async fn hide(&self, id: i64, changes: &Changes<'_>) -> Result<(), Failure> {
        if changes.hide.is_empty() && changes.hide_summaries.is_empty() {
            return Ok(());
        }
        let [messages, summary] = self.lease.prepare([sql::HIDE_MESSAGES, sql::HIDE_SUMMARY]).await?;
        let (messages, summary, by) = (&messages, &summary, int(changes.after.revision.0));
        let hides = runs(&changes.hide).map(|(first, last)| async move {
            self.lease.execute(messages, &[&id, &int(first.0), &int(last.0), &by]).await
        });
        let summaries = changes
            .hide_summaries
            .iter()
            .map(|place| async move { self.lease.execute(summary, &[&id, &int(place.key.0), &by]).await });
        let (messages, summaries) = try_join(try_join_all(hides), try_join_all(summaries)).await?;
        let hidden: u64 = messages.iter().chain(&summaries).sum();
        changed(hidden, changes.hide.len().saturating_add(changes.hide_summaries.len()))
    }

    /// Shows all messages and summaries that the record has hidden.
    async fn show(&self, id: i64, made: Revision, changes: &Changes<'_>) -> Result<(), Failure> {
        let [messages, summaries, undo] =
            self.lease.prepare([sql::SHOW_MESSAGES, sql::SHOW_SUMMARIES, sql::UNDO]).await?;
        let (made, by) = (int(made.0), int(changes.after.revision.0));
        let (at, undone): (Parameters<'_>, Parameters<'_>) = (&[&id, &made], &[&id, &made, &by]);
        let (messages, summaries, undone) = try_join3(
            self.lease.execute(&messages, at),
            self.lease.execute(&summaries, at),
            self.lease.execute(&undo, undone),
        )
        .await?;
        changed(messages, changes.show.len())?;
        changed(summaries, changes.show_summaries.len())?;
        changed_one(undone)
    }

    /// Sets the stand-ins of a message, with the revision that set them and the size after it. `None` removes them.
    async fn edit(&self, id: i64, seq: Seq, restored: Option<&Restored>) -> Result<(), Failure> {
        let [write, drop] = self.lease.prepare([sql::EDIT, sql::DROP_EDIT]).await?;
        let seq = int(seq.0);
        let Some(Restored { by, stand_ins, count }) = restored else {
            return changed_one(self.lease.execute(&drop, &[&id, &seq]).await?);
        };
        let stand_ins = stored::encode_stand_ins(stand_ins).map_err(rules::not_storable)?;
        let (by, tokens) = (int(by.0), int(count.tokens.as_u64()));
        let (basis, counter) = (count.basis.as_str(), count.counter.as_bytes());
        let columns: Parameters<'_> = &[&id, &seq, &by, &tokens, &basis, &counter, &stand_ins];
        changed_one(self.lease.execute(&write, columns).await?)
    }

    async fn insert(&self, id: i64, insert: Option<&Insert<'_>>) -> Result<(), Failure> {
        let Some(insert) = insert else { return Ok(()) };
        let messages = async {
            for piece in pieces(&self.job.texts.messages) {
                self.insert_piece(id, insert, piece).await?;
            }
            Ok(())
        };
        try_join(messages, self.keep_receipt(id, insert)).await?;
        Ok(())
    }

    async fn insert_piece(&self, id: i64, insert: &Insert<'_>, piece: Range<usize>) -> Result<(), Failure> {
        let entries = insert.entries.get(piece.clone()).unwrap_or_default();
        let texts = self.job.texts.messages.get(piece.clone()).unwrap_or_default();
        let hidden_by = insert.hidden_by.get(piece.clone()).unwrap_or_default();
        let first = insert.appended.first.0.saturating_add(piece.start as u64);
        let seqs: Vec<i64> = (first..).map(int).take(entries.len()).collect();
        let numbers =
            |of: fn(&Entry) -> u64| entries.iter().map(|entry| int(of(entry))).collect::<Vec<i64>>();
        let (anchors, turns) = (numbers(|entry| entry.anchor.0), numbers(|entry| u64::from(entry.turn.0)));
        let tokens = numbers(|entry| entry.count.tokens.as_u64());
        let standing = numbers(|entry| Standing::of(&entry.message).number().into());
        let basis: Vec<&str> = entries.iter().map(|entry| entry.count.basis.as_str()).collect();
        let counters: Vec<&[u8]> = entries.iter().map(|entry| entry.count.counter.as_bytes()).collect();
        let late: Vec<bool> = entries.iter().map(|entry| entry.late).collect();
        let orphan: Vec<bool> = entries.iter().map(|entry| entry.orphan).collect();
        let hidden: Vec<Option<i64>> = hidden_by.iter().map(|by| by.map(|by| int(by.0))).collect();
        let parts: Vec<Option<String>> =
            entries.iter().map(|entry| part_tokens_text(&entry.part_tokens)).collect();
        let [insert] = self.lease.prepare([sql::NEW_MESSAGES]).await?;
        let columns: Parameters<'_> = &[
            &id, &seqs, &anchors, &turns, &tokens, &basis, &counters, &late, &orphan, &hidden, &texts,
            &parts, &standing,
        ];
        self.lease.execute(&insert, columns).await?;
        Ok(())
    }

    async fn keep_receipt(&self, id: i64, insert: &Insert<'_>) -> Result<(), Failure> {
        let [new] = self.lease.prepare([sql::NEW_TOKEN]).await?;
        let (token, appended) = (insert.token.as_str(), insert.appended);
        let (first, head, revision) = (int(appended.first.0), int(appended.head.0), int(appended.revision.0));
        let (key, bytes, digest) = (digest(token), token.as_bytes(), self.job.texts.digest.as_slice());
        let (key, time) = (key.as_slice(), stored_time(insert.time));
        let columns: Parameters<'_> = &[&id, &key, &bytes, &digest, &first, &head, &revision, &time];
        self.lease.execute(&new, columns).await?;
        Ok(())
    }

    /// Inserts a record and its summaries.
    async fn keep_record(&self, id: i64, made: Revision, new: Option<&NewRecord<'_>>) -> Result<(), Failure> {
        let Some(new) = new else { return Ok(()) };
        let made = int(made.0);
        for (summary, body) in new.record.summaries.iter().zip(&self.job.texts.summaries) {
            let [insert] = self.lease.prepare([sql::NEW_SUMMARY]).await?;
            let (key, tokens) = (int(summary.key.0), int(summary.count.tokens.as_u64()));
            let (basis, counter) = (summary.count.basis.as_str(), summary.count.counter.as_bytes());
            let covers = covers_text(&summary.message.attribution().derived_from)?;
            let standing = i64::from(Standing::of(&summary.message).number());
            let columns: Parameters<'_> =
                &[&id, &made, &key, &tokens, &basis, &counter, &covers, body, &standing];
            changed_one(self.lease.execute(&insert, columns).await?)?;
        }
        let [insert] = self.lease.prepare([sql::NEW_RECORD]).await?;
        let record_id = new.id.as_bytes().as_slice();
        self.lease.execute(&insert, &[&id, &made, &record_id, &self.job.texts.record]).await?;
        Ok(())
    }

    /// Removes calls from the unanswered ones.
    async fn answer(&self, id: i64, answered: &[(Seq, u32)]) -> Result<(), Failure> {
        for (anchor, ordinal) in answered {
            let [answer] = self.lease.prepare([sql::ANSWERED]).await?;
            self.lease.execute(&answer, &[&id, &int(anchor.0), &i64::from(*ordinal)]).await?;
        }
        Ok(())
    }

    async fn keep_calls(&self, id: i64, calls: &[UnansweredCall]) -> Result<(), Failure> {
        if calls.is_empty() {
            return Ok(());
        }
        // Of several entries for one call the last one counts, because one statement may change a row only once.
        let calls: BTreeMap<_, _> = calls.iter().map(|call| ((call.anchor, call.ordinal), call)).collect();
        let [insert] = self.lease.prepare([sql::NEW_UNANSWERED]).await?;
        let anchors: Vec<i64> = calls.values().map(|call| int(call.anchor.0)).collect();
        let ordinals: Vec<i64> = calls.values().map(|call| i64::from(call.ordinal)).collect();
        let turns: Vec<i64> = calls.values().map(|call| i64::from(call.turn.0)).collect();
        let ids: Vec<&[u8]> = calls.values().map(|call| call.id.as_bytes()).collect();
        self.lease.execute(&insert, &[&id, &anchors, &ordinals, &turns, &ids]).await?;
        Ok(())
    }

    async fn keep_state(&self, id: i64, state: Option<NewKeptState<'_>>) -> Result<(), Failure> {
        let Some(NewKeptState { revision, head, text }) = state else { return Ok(()) };
        let [keep] = self.lease.prepare([sql::KEEP_STATE]).await?;
        let (revision, head) = (int(revision.0), int(head.0));
        changed_one(self.lease.execute(&keep, &[&id, &revision, &head, &text.as_bytes()]).await?)
    }
}

/// Checks a number of changed rows. A difference shows that an index and its table disagree.
fn changed(found: u64, expected: usize) -> Result<(), Failure> {
    if found == expected as u64 {
        Ok(())
    } else {
        Err(corrupt("the index of the visible messages is damaged").into())
    }
}

/// Splits a long append into pieces, one per statement, so that the buffer of a statement does not grow with the
/// append.
fn pieces(texts: &[String]) -> Vec<Range<usize>> {
    let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0_usize);
    for (at, text) in texts.iter().enumerate() {
        bytes = bytes.saturating_add(text.len());
        let end = at.saturating_add(1);
        if bytes >= PIECE_BYTES_MAX || end.saturating_sub(start) >= PIECE_MESSAGES_MAX || end == texts.len() {
            pieces.push(start..end);
            (start, bytes) = (end, 0);
        }
    }
    pieces
}

/// Maximum number of messages in one statement. More messages save no measurable time.
const PIECE_MESSAGES_MAX: usize = 1_000;

/// Maximum size of the texts in one statement, which may have at most 1 GiB. A single text may be larger than this.
const PIECE_BYTES_MAX: usize = 8 << 20;
