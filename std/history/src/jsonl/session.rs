//! An operation on a session under the lock of its file: it reads facts and adds lines.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use serde_json::value::RawValue;

use super::directory::{Access, Directory, Opened};
use super::failure::Here;
use super::index::{Incoming, Kept, Slot, Span};
use super::lines::Lines;
use super::write::{Acknowledges, again, finish, write};
use super::{read, rewrite, undo};
use crate::kernel::{
    Attempt, Changes, Edited, Facts, Insert, Made, Needs, NewKeptState, NewRecord, Op, Receipt, Reply,
    SaidBefore, Transaction, Visible, run_now,
};
use crate::line::{
    self, AppendLine, CommitLine, Line, MessageLine, PruneLine, STATE_VERSION, StateLine, UNDOING_VERSION,
    UncompactLine,
};
use crate::rules::{Standing, VisibleSummary, not_storable};
use crate::stored;
use crate::{Append, AppendToken, Entry, SessionId, StoreError};

/// The texts of the messages or of the record of an operation. They are made before the operation gets its turn at the
/// file.
pub(super) fn texts(op: &Op<'_>) -> Result<Vec<Box<RawValue>>, StoreError> {
    match *op {
        Op::Append(Append { entries, .. }, _) => {
            let text = |entry: &Entry| line::raw(stored::encode(&entry.message).map_err(not_storable)?);
            entries.iter().map(text).collect()
        }
        Op::Commit(record, _) => Ok(vec![line::raw(stored::encode_record(record).map_err(not_storable)?)?]),
        Op::Uncompact(_) | Op::Prune(_) | Op::SaveState(_) => Ok(Vec::new()),
    }
}

/// Executes `op` on the session.
pub(super) fn execute(
    directory: &mut Directory,
    session: &SessionId,
    op: &Op<'_>,
    texts: &[Box<RawValue>],
) -> Result<Reply, StoreError> {
    let mut file = SessionFile { opened: None, directory, session, operation: op.name(), texts };
    file.open(matches!(op, Op::Append(_, Some(_)) | Op::SaveState(_)))?;
    let done = run_now(op, &mut file);
    let SessionFile { opened, directory, .. } = file;
    match opened {
        Some(opened) => finish(directory, session, opened, done),
        None => done,
    }
}

/// A session's file, locked for writing, while an operation on it is decided.
struct SessionFile<'a> {
    /// `None` if there is no file, or if a new file has replaced the file.
    opened: Option<Opened>,
    directory: &'a mut Directory,
    session: &'a SessionId,
    operation: &'static str,
    texts: &'a [Box<RawValue>],
}

impl Transaction for SessionFile<'_> {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        if let Some(opened) = self.opened.as_ref().filter(|opened| opened.known.index.head().0 > 0) {
            opened.read(needs, facts, opened.here(self.operation))?;
        }
        Ok(Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        let Some(mut opened) = self.opened.take() else {
            // A refused operation creates no file. Another process may create the file at the same time, and append to
            // it.
            self.directory.create(self.operation, self.session)?;
            self.open(changes.state.is_some())?;
            return Ok(Attempt::Moved);
        };
        let done = self.write(&mut opened, changes);
        match done {
            Ok(Written::Added) => self.opened = Some(opened),
            Ok(Written::Anew) => {}
            Err(error) => {
                self.opened = Some(opened);
                return Err(error);
            }
        }
        Ok(Attempt::Done)
    }

    async fn confirm(&mut self) -> Result<(), StoreError> {
        let what = self.acknowledges();
        self.opened.as_mut().map_or(Ok(()), |opened| again(self.directory, opened, what))
    }
}

/// The way in which changes were written.
enum Written {
    /// After the other lines.
    Added,
    /// In a new file. The known positions are those of the old file.
    Anew,
}

impl SessionFile<'_> {
    /// Opens the file if there is one. If a state is to be saved and the version of the file supports no states,
    /// rewrites the file.
    fn open(&mut self, keeps_state: bool) -> Result<(), StoreError> {
        loop {
            match self.directory.opened(self.operation, self.session, Access::Write)? {
                Some(old) if keeps_state && old.known.has_begun() && old.known.version < STATE_VERSION => {
                    rewrite::rewrite(self.directory, &old, self.session, Revision(0), None)?;
                }
                opened => {
                    self.opened = opened;
                    return Ok(());
                }
            }
        }
    }

    fn acknowledges(&self) -> Acknowledges {
        match self.operation {
            "append" | "save_state" => Acknowledges::Append,
            _ => Acknowledges::Commit,
        }
    }

    fn write(&self, opened: &mut Opened, changes: &Changes<'_>) -> Result<Written, StoreError> {
        if let Some(prune) = &changes.pruned {
            let line = Line::Prune(PruneLine::of(prune.pruned));
            rewrite::rewrite(self.directory, opened, self.session, prune.pruned.through, Some(&line))?;
            return Ok(Written::Anew);
        }
        if let Some(made) = changes.undone {
            return self.undo(opened, made, changes.after.revision);
        }
        if let Some(insert) = &changes.insert {
            self.insert(opened, insert, changes.state)?;
        } else if let Some(new) = &changes.record {
            self.commit(opened, new, changes.after.revision)?;
        } else if let Some(state) = changes.state {
            let line = Line::State(StateLine::of(state.revision, state.head, state.text));
            let span = self.add(opened, &[line::encode(&line)?])?.last().copied();
            opened.known.index.keep_state(state.revision, span.unwrap_or_else(|| opened.end()));
        }
        Ok(Written::Added)
    }

    fn add(&self, opened: &mut Opened, texts: &[String]) -> Result<Vec<Span>, StoreError> {
        write(self.directory, opened, self.session, texts, self.acknowledges())
    }

    fn insert(
        &self,
        opened: &mut Opened,
        insert: &Insert<'_>,
        state: Option<NewKeptState<'_>>,
    ) -> Result<(), StoreError> {
        let mut texts = Vec::with_capacity(insert.entries.len().saturating_add(1));
        for ((seq, entry, hidden_by), text) in insert.placed().zip(self.texts) {
            let mut line = MessageLine::of(seq.0, entry, hidden_by.map(|by| by.0), text);
            line.standing = Some(Standing::of(&entry.message).number());
            texts.push(line::encode(&Line::Message(line))?);
        }
        let (appended, time) = (insert.appended, insert.time);
        let mut append = AppendLine::of(insert.token, appended, time);
        append.state = state.map(|state| StateLine::of(state.revision, state.head, state.text));
        texts.push(line::encode(&Line::Append(append))?);
        let spans = self.add(opened, &texts)?;
        let line = spans.last().copied().unwrap_or_else(|| opened.end());
        let incoming = insert.placed().zip(spans);
        let incoming = incoming.map(|((_, entry, hidden_by), line)| Incoming {
            slot: Slot::of(entry, hidden_by, line),
            answers: hidden_by.map(|_| entry.clone()),
        });
        let index = &mut opened.known.index;
        index.append(insert.token.as_str(), incoming.collect(), appended.revision, (line, time));
        if let Some(state) = state {
            index.keep_state(state.revision, line);
        }
        Ok(())
    }

    fn commit(&self, opened: &mut Opened, new: &NewRecord<'_>, revision: Revision) -> Result<(), StoreError> {
        let lost = || opened.here(self.operation).corrupt(opened.known.end, "a record has lost its text");
        let record = self.texts.first().ok_or_else(lost)?;
        let line = CommitLine { revision: revision.0, id: new.id.to_string(), record };
        let line = self.add(opened, &[line::encode(&Line::Commit(line))?])?.last().copied();
        let line = line.unwrap_or_else(|| opened.end());
        opened.known.index.commit(new.record, Kept { revision, id: new.id, line, undone_by: None })
    }

    fn undo(&self, opened: &mut Opened, made: Revision, revision: Revision) -> Result<Written, StoreError> {
        let line = Line::Uncompact(UncompactLine { revision: revision.0, made: made.0 });
        if opened.known.version < UNDOING_VERSION {
            rewrite::rewrite(self.directory, opened, self.session, Revision(0), Some(&line))?;
            return Ok(Written::Anew);
        }
        let mut lines = Lines::new(&opened.file, opened.size);
        let undone = undo::undoing(&opened.known, &mut lines, made, opened.here(self.operation))?;
        self.add(opened, &[line::encode(&line)?])?;
        opened.known.index.uncompact(undone, revision)?;
        Ok(Written::Added)
    }
}

impl Opened {
    /// An empty span after the last line.
    fn end(&self) -> Span {
        Span { at: self.known.end, len: 0 }
    }

    fn read(&self, needs: &Needs<'_>, facts: &mut Facts, here: Here<'_>) -> Result<(), StoreError> {
        let (known, index) = (&self.known, &self.known.index);
        let mut lines = Lines::new(&self.file, self.size);
        facts.session = Some(index.counters());
        if let Some((token, entries)) = needs.receipt {
            facts.receipt = self.compared(token, entries, &mut lines, here)?;
        }
        if let Some(extent) = needs.projection {
            facts.projection =
                Some((extent, read::projection_of(known, &mut lines, extent, here)?.of(extent)));
        }
        let anchors = needs.anchors.iter().filter_map(|seq| Some((*seq, index.anchor(*seq).ok()?)));
        facts.anchors.extend(anchors);
        if needs.calls {
            facts.calls = Some(index.unanswered());
        }
        if needs.state {
            facts.state = index.state_revision();
        }
        if needs.state_text {
            let kept = read::kept_state(known, &mut lines, here)?;
            facts.state_text = Some(kept.map(|kept| kept.text).unwrap_or_default());
        }
        self.read_for_records(needs, facts, (&mut lines, here))
    }

    /// Reads the facts that commits, uncompacts and prunes need.
    fn read_for_records(
        &self,
        needs: &Needs<'_>,
        facts: &mut Facts,
        (lines, here): (&mut Lines<'_>, Here<'_>),
    ) -> Result<(), StoreError> {
        let (known, index) = (&self.known, &self.known.index);
        if let Some(revision) = needs.record_id {
            facts.record_id = index.record_at(revision).map(|kept| kept.id);
        }
        if needs.visible {
            facts.visible = index.visible()?;
        }
        for seq in needs.edited.iter().filter(|seq| **seq < index.head()) {
            let Entry { message, count: whole, .. } = read::entry(known, lines, *seq, here)?;
            facts.edited.push(Edited {
                seq: *seq,
                message,
                whole,
                shortened: index.shortened(*seq).cloned(),
            });
        }
        let turns = needs.turns.iter().filter_map(|seq| Some((*seq, index.slot(*seq).ok()?.turn)));
        facts.turns.extend(turns);
        if let Some(made) = needs.made {
            facts.made = self.made(made, lines, here)?;
            facts.latest_held = index.held().next_back().map(|kept| kept.revision);
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
            facts.earlier_edits = Some(undo::edits_before(known, lines, (*before, &wanted), here)?);
        }
        if let Some(through) = needs.prunable {
            facts.prunable = index.prunable(through);
        }
        Ok(())
    }

    fn compared(
        &self,
        token: &AppendToken,
        entries: &[Entry],
        lines: &mut Lines<'_>,
        here: Here<'_>,
    ) -> Result<Option<Receipt>, StoreError> {
        let index = &self.known.index;
        let Some(appended) = index.receipt(token) else { return Ok(None) };
        let is_pruned = |seq| index.slot(Seq(seq)).is_ok_and(|slot| slot.pruned > 0);
        if (appended.first.0..appended.head.0).any(is_pruned) {
            return Ok(Some(Receipt { appended, said: SaidBefore::Pruned }));
        }
        let mut is_same = appended.head.0.saturating_sub(appended.first.0) == entries.len() as u64;
        for (seq, entry) in (appended.first.0..).map(Seq).zip(entries) {
            is_same = is_same && read::entry(&self.known, lines, seq, here)?.message == entry.message;
        }
        let said = if is_same { SaidBefore::Same } else { SaidBefore::Other };
        Ok(Some(Receipt { appended, said }))
    }

    fn made(
        &self,
        made: Revision,
        lines: &mut Lines<'_>,
        here: Here<'_>,
    ) -> Result<Option<Made>, StoreError> {
        let (known, index) = (&self.known, &self.known.index);
        let Some(kept) = index.record_at(made) else { return Ok(None) };
        let record = read::record(known, lines, kept.line, here)?;
        let mut hidden = Visible { messages: index.hidden_by(made)?, summaries: Vec::new() };
        for (made, entry) in undo::summaries_hidden_by(known, lines, made, here)? {
            let Entry { message, anchor: key, count, .. } = entry;
            let (covers, standing) = (message.attribution().derived_from.clone(), Standing::of(&message));
            hidden.summaries.push(VisibleSummary { key, made, covers, tokens: count.tokens, standing });
        }
        let pruned_since = index.is_pruned_since(made);
        Ok(Some(Made { record, undone_by: kept.undone_by, pruned_since, hidden }))
    }
}
