//! Appending, committing and deleting.

use std::fs;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};

use epitome_core::{Head, Revision, Seq};
use serde_json::value::RawValue;

use super::directory::{Access, Directory, Opened};
use super::failure::Here;
use super::frame::{self, Origin, Sum};
use super::index::{Incoming, Index, Kept, Slot, Span};
use super::known::{self, Known};
use super::line::{self, AppendLine, CommitLine, Line, MessageLine, SEALED_VERSION, StateLine, VERSION};
use super::lines::Lines;
use super::options::Fsync;
use super::{read, rewrite, state};
use crate::files;
use crate::history::rules::{self, Placement, Standing};
use crate::history::{
    Append, AppendToken, Appended, CompactionRecord, Entry, NewState, OwnedState, RecordId, SessionId,
    StateOutcome, StoreError, StoreErrorKind, Timestamp,
};
use crate::wire::stored;

/// An append with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct AppendJob {
    session: SessionId,
    token: AppendToken,
    head: Head,
    entries: Vec<Entry>,
    time: Option<Timestamp>,
    bodies: Vec<Box<RawValue>>,
    /// What is to be kept in the same line as its end.
    state: Option<OwnedState>,
}

impl AppendJob {
    pub(super) fn new(session: &SessionId, append: &Append<'_>) -> Result<Self, StoreError> {
        let Append { token, head, entries, time } = *append;
        let body = |entry: &Entry| line::raw(stored::encode(&entry.message).map_err(rules::not_storable)?);
        Ok(Self {
            session: session.clone(),
            token: token.clone(),
            head,
            entries: entries.to_vec(),
            time,
            bodies: entries.iter().map(body).collect::<Result<_, _>>()?,
            state: None,
        })
    }

    /// The same with a state.
    pub(super) fn with_state(self, state: &NewState<'_>) -> Self {
        Self { state: Some(OwnedState::of(state)), ..self }
    }

    /// What was appended, and what has become of the state that came with it.
    pub(super) fn run(
        &self,
        directory: &mut Directory,
    ) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        loop {
            let opened = match self.state {
                Some(_) => state::opened(directory, "append", &self.session)?,
                None => directory.opened("append", &self.session, Access::Write)?,
            };
            let Some(mut opened) = opened else {
                // What is refused makes no file.
                self.place(&Index::default())?;
                directory.create("append", &self.session)?;
                continue;
            };
            let done = self.write(directory, &mut opened);
            return finish(directory, &self.session, opened, done);
        }
    }

    fn write(
        &self,
        directory: &Directory,
        opened: &mut Opened,
    ) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        if let Some(receipt) = opened.known.index.receipt(&self.token) {
            let appended = self.repeated(directory, opened, receipt)?;
            let keep = |state: &OwnedState| state::keep(directory, opened, &self.session, state);
            return Ok((appended, self.state.as_ref().map(keep).transpose()?));
        }
        let placement = self.place(&opened.known.index)?;
        let decided = self.state.as_ref().map(|state| state::decide(opened, state)).transpose()?;
        let index = &opened.known.index;
        let (first, moved) = (index.head(), placement.moves_revision);
        let revision = if moved { index.revision().next() } else { index.revision() };
        let time = Timestamp::after(self.time, index.last_time());
        let head = Seq(first.0.saturating_add(self.entries.len() as u64));
        let kept = decided.and_then(|(step, _)| step.written());
        let text = self.state.as_ref().map(|state| &*state.text);
        let state = kept.zip(text).map(|(revision, text)| StateLine::of(revision, head, text));
        let texts = self.texts((first, revision, time), &placement, state)?;
        let spans = write(directory, opened, &self.session, &texts, Acknowledges::Append)?;
        let incoming = self.incoming(&placement, &spans);
        let line = spans.last().copied().unwrap_or(Span { at: opened.known.end, len: 0 });
        let index = &mut opened.known.index;
        index.append(self.token.as_str(), incoming, revision, (line, time));
        if let Some(revision) = kept {
            index.keep_state(revision, line);
        }
        Ok((Appended::new(first, head, revision), decided.map(|(step, same)| step.outcome(same))))
    }

    fn place(&self, index: &Index) -> Result<Placement, StoreError> {
        if self.head != index.head() {
            return Err(rules::head_conflict(self.head, index.head()));
        }
        rules::place(index.head(), &self.entries, |seq| index.anchor(seq))
    }

    /// The answer that was given to this token, if it was for these messages.
    fn repeated(
        &self,
        directory: &Directory,
        opened: &mut Opened,
        receipt: Appended,
    ) -> Result<Appended, StoreError> {
        let mut lines = Lines::new(&opened.file, opened.size);
        let pruned = |seq| opened.known.index.slot(Seq(seq)).is_ok_and(|slot| slot.pruned > 0);
        if (receipt.first.0..receipt.head.0).any(pruned) {
            again(directory, opened, Acknowledges::Append)?;
            return Ok(receipt);
        }
        if receipt.head.0.saturating_sub(receipt.first.0) != self.entries.len() as u64 {
            return Err(rules::token_reused());
        }
        for (seq, entry) in (receipt.first.0..).map(Seq).zip(&self.entries) {
            let known = read::entry(&opened.known, &mut lines, seq, opened.here("append"))?;
            if known.message != entry.message {
                return Err(rules::token_reused());
            }
        }
        again(directory, opened, Acknowledges::Append)?;
        Ok(receipt)
    }

    fn texts(
        &self,
        (first, revision, time): (Seq, Revision, Option<Timestamp>),
        placement: &Placement,
        state: Option<StateLine>,
    ) -> Result<Vec<String>, StoreError> {
        let mut texts = Vec::with_capacity(self.entries.len().saturating_add(1));
        let entries = (first.0..).zip(&self.entries).zip(&self.bodies).zip(&placement.hidden_by);
        for (((seq, entry), body), hidden_by) in entries {
            let hidden_by = hidden_by.map(|revision| revision.0);
            let mut line = MessageLine::of(seq, entry, hidden_by, body);
            line.standing = Some(Standing::of(&entry.message).number());
            texts.push(line::encode(&Line::Message(line))?);
        }
        let (token, count) = (self.token.as_str().to_owned(), self.entries.len() as u64);
        let (first, revision, time) = (first.0, revision.0, time.map(|time| time.0));
        let end = AppendLine { token, first, count, revision, time, state };
        texts.push(line::encode(&Line::Append(end))?);
        Ok(texts)
    }

    fn incoming(&self, placement: &Placement, spans: &[Span]) -> Vec<Incoming> {
        let all = self.entries.iter().zip(&placement.hidden_by).zip(spans);
        all.map(|((entry, hidden_by), line)| Incoming {
            slot: Slot {
                line: *line,
                anchor: entry.anchor,
                turn: entry.turn,
                tokens: entry.count.tokens,
                standing: Standing::of(&entry.message),
                hidden_by: *hidden_by,
                late: entry.late,
                orphan: entry.orphan,
                pruned: 0,
            },
            answers: hidden_by.map(|_| entry.clone()),
        })
        .collect()
    }
}

/// A commit with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct CommitJob {
    session: SessionId,
    record: CompactionRecord,
    id: RecordId,
    body: Box<RawValue>,
}

impl CommitJob {
    pub(super) fn new(session: &SessionId, record: &CompactionRecord) -> Result<Self, StoreError> {
        let id = stored::record_id(record).map_err(rules::not_storable)?;
        let body = line::raw(stored::encode_record(record).map_err(rules::not_storable)?)?;
        Ok(Self { session: session.clone(), record: record.clone(), id, body })
    }

    pub(super) fn run(&self, directory: &mut Directory) -> Result<Revision, StoreError> {
        let opened = directory.opened("commit", &self.session, Access::Write)?;
        let opened = opened.filter(|opened| opened.known.index.head().0 > 0);
        let mut opened = opened.ok_or_else(|| rules::not_found("commit"))?;
        let done = self.write(directory, &mut opened);
        finish(directory, &self.session, opened, done)
    }

    fn write(&self, directory: &Directory, opened: &mut Opened) -> Result<Revision, StoreError> {
        if let Some(made) = self.check(opened)? {
            again(directory, opened, Acknowledges::Commit)?;
            return Ok(made);
        }
        let revision = opened.known.index.revision().next();
        let line = CommitLine { revision: revision.0, id: self.id.to_string(), record: &self.body };
        let text = line::encode(&Line::Commit(line))?;
        let spans = write(directory, opened, &self.session, &[text], Acknowledges::Commit)?;
        let line = spans.first().copied().unwrap_or(Span { at: opened.known.end, len: 0 });
        opened.known.index.commit(&self.record, Kept { revision, id: self.id, line, undone_by: None })?;
        Ok(revision)
    }

    /// Whether the record may be committed; the revision that it made if it was.
    fn check(&self, opened: &Opened) -> Result<Option<Revision>, StoreError> {
        let (record, index) = (&self.record, &opened.known.index);
        let known = index.record_at(record.parent.next()).map(|kept| (kept.revision, kept.id));
        if let Some(made) = rules::check_commit(record, self.id, known, index.revision(), index.head())? {
            return Ok(Some(made));
        }
        let (messages, summaries) = index.visible()?;
        rules::edit(record, &messages, &summaries)?;
        let mut lines = Lines::new(&opened.file, opened.size);
        for edit in &record.edits {
            let entry = read::entry(&opened.known, &mut lines, edit.seq, opened.here("commit"))?;
            let (before, shown) = match index.shortened(edit.seq) {
                Some(shortened) => (&shortened.stand_ins[..], &shortened.count),
                None => (&[][..], &entry.count),
            };
            rules::shorten(edit, &entry.message, before, shown)?;
        }
        rules::check_groups(record, &messages)?;
        Ok(None)
    }
}

/// Deletes a session. Also one that cannot be read: then there was one.
pub(super) fn delete(directory: &mut Directory, session: &SessionId) -> Result<bool, StoreError> {
    let path = directory.path(session);
    let here = Here { operation: "delete", path: &path };
    let opened = directory.opened("delete", session, Access::Write);
    let (existed, lock) = match opened {
        // The process that has removed the file may have been killed before that was durable.
        Ok(None) => return sync_names(directory, here).map(|()| false),
        Ok(Some(opened)) => (opened.known.index.head().0 > 0, Some(opened)),
        Err(error) if matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Invalid) => {
            (true, None)
        }
        Err(error) => return Err(error),
    };
    rewrite::remove_rest(&path).map_err(|error| here.failed(error))?;
    let existed = match fs::remove_file(&path) {
        Ok(()) => existed,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(here.failed(error)),
    };
    drop(lock);
    sync_names(directory, here).map(|()| existed)
}

fn sync_names(directory: &Directory, here: Here<'_>) -> Result<(), StoreError> {
    let done = match directory.options.fsync {
        Fsync::Never => Ok(()),
        Fsync::Always | Fsync::OnCommit => files::sync_folder(directory.folder()),
    };
    done.map_err(|error| here.failed(error))
}

/// What a write is that is to be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acknowledges {
    Append,
    Commit,
}

pub(super) fn lasts(directory: &Directory, what: Acknowledges) -> bool {
    match directory.options.fsync {
        Fsync::Always => true,
        Fsync::OnCommit => what == Acknowledges::Commit,
        Fsync::Never => false,
    }
}

/// Makes last what was written before and is acknowledged once more: whoever wrote it may not have come so far.
pub(super) fn again(
    directory: &Directory,
    opened: &mut Opened,
    what: Acknowledges,
) -> Result<(), StoreError> {
    let done = if lasts(directory, what) { sync(directory, opened) } else { Ok(()) };
    done.map_err(|error| opened.here("repeat").failed(error))
}

fn sync(directory: &Directory, opened: &mut Opened) -> io::Result<()> {
    opened.file.sync_data()?;
    if !opened.known.named {
        files::sync_folder(directory.folder())?;
        opened.known.named = true;
    }
    Ok(())
}

/// Lines as they will stand in a file.
struct Batch {
    bytes: Vec<u8>,
    file: Origin,
    /// Where each line is, but for the first of the file.
    spans: Vec<Span>,
    /// Where the last one begins, and its checksum.
    last: (u64, Sum),
}

impl Batch {
    /// The lines with these data for the end of the file, after the first line where there is none.
    fn new(
        directory: &Directory,
        opened: &Opened,
        session: &SessionId,
        texts: &[String],
    ) -> Result<Self, StoreError> {
        let Known { ref file, end, last, .. } = opened.known;
        let (mut bytes, spans) = (Vec::new(), Vec::with_capacity(texts.len()));
        let file = match opened.known.has_begun() {
            true => file.clone(),
            false => known::begin(&directory.vault, session, &mut bytes)?,
        };
        let mut batch = Self { bytes, file, spans, last };
        for text in texts {
            let begin = batch.bytes.len() as u64;
            let at = end.saturating_add(begin);
            batch.last = (at, frame::seal(&batch.file, at, text, &mut batch.bytes)?);
            let len = (batch.bytes.len() as u64).saturating_sub(begin);
            batch.spans.push(Span { at, len });
        }
        Ok(batch)
    }
}

/// Writes lines to the end of the file. Returns where each of them is. A failure leaves the file as it was, as far as the
/// disk allows; what it does not allow is cut off later.
pub(super) fn write(
    directory: &Directory,
    opened: &mut Opened,
    session: &SessionId,
    texts: &[String],
    what: Acknowledges,
) -> Result<Vec<Span>, StoreError> {
    let Batch { bytes, file, spans, last } = Batch::new(directory, opened, session, texts)?;
    let from = opened.known.end;
    let written = (&opened.file).seek(SeekFrom::Start(from)).and_then(|_| (&opened.file).write_all(&bytes));
    let written =
        written.and_then(|()| if lasts(directory, what) { sync(directory, opened) } else { Ok(()) });
    if let Err(error) = written {
        // If this fails too, the next one who writes cuts it off.
        let _ = opened.file.set_len(from);
        return Err(opened
            .here(if what == Acknowledges::Append { "append" } else { "commit" })
            .failed(error));
    }
    opened.size = from.saturating_add(bytes.len() as u64);
    let known = &mut opened.known;
    (known.end, known.file, known.last) = (opened.size, file, last);
    if known.version == 0 {
        known.version = if directory.vault.is_plain() { VERSION } else { SEALED_VERSION };
    }
    Ok(spans)
}

/// Remembers what is known of the file, unless it is in doubt.
pub(super) fn finish<T>(
    directory: &mut Directory,
    session: &SessionId,
    opened: Opened,
    done: Result<T, StoreError>,
) -> Result<T, StoreError> {
    let in_doubt = matches!(&done, Err(error)
        if matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Unavailable));
    if !in_doubt {
        directory.keep(session, opened);
    }
    done
}
