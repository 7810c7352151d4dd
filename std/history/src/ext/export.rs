//! A session as JSON lines.

#[cfg(test)]
mod tests;

use std::io::{BufRead, Read as _, Write};

use epitome_wire::document::LINE_BYTES_MAX;

use epitome_core::{Head, Revision, Seq};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::events::{Event, Events, Replay};
use crate::files::hex;
use crate::line::{self, AppendLine, CommitLine, Line, MessageLine, PruneLine, StateLine, UncompactLine};
use crate::rules::{self, invalid};
use crate::stored;
use crate::{
    Entry, HistoryStore, LoggedAppend, RecordId, SessionId, StateRevision, StoreError, StoreErrorKind,
};

/// The format version of a session without a state. A new field that readers may ignore does not raise it.
const VERSION: u64 = 1;

/// The format version of a session with a state. It is the highest version that this release reads.
const STATE_VERSION: u64 = 2;

/// The contents of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The id of the exported session.
    pub session: SessionId,
    /// The head of the session: the number of its messages.
    pub head: Head,
    /// The revision of the session.
    pub revision: Revision,
    /// Number of appends.
    pub appends: u64,
    /// Number of compactions, including the undone ones.
    pub records: u64,
}

impl Exported {
    pub(super) const fn new(session: SessionId, head: Head, revision: Revision) -> Self {
        Self { session, head, revision, appends: 0, records: 0 }
    }

    pub(super) fn count(&mut self, event: &Event) {
        match event {
            Event::Append { .. } => self.appends = self.appends.saturating_add(1),
            Event::Commit { .. } => self.records = self.records.saturating_add(1),
            Event::Uncompact { .. } | Event::Prune(_) | Event::State(_) => {}
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct First {
    epitome_session: Header,
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    v: u64,
    id: String,
    head: u64,
    revision: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Last {
    end: End,
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    /// Number of lines before this one.
    lines: u64,
    /// The SHA-256 of these lines with their line feeds, in hexadecimal.
    sha256: String,
}

/// Beginning of the last line.
const END: &str = r#"{"end":"#;

pub(super) async fn export<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    out: &mut (dyn Write + Send),
) -> Result<Exported, StoreError> {
    let mut events = Events::of("export", store, session).await?;
    let mut exported = Exported::new(session.clone(), events.head, events.revision);
    let mut out = Out { out, hash: Sha256::new(), lines: 0 };
    let (id, head, revision) = (session.as_str().to_owned(), events.head.0, events.revision.0);
    let v = if events.state.is_some() { STATE_VERSION } else { VERSION };
    out.line(&text(&First { epitome_session: Header { v, id, head, revision } })?)?;
    while let Some(event) = events.next().await? {
        write(&mut out, &event, exported.head)?;
        exported.count(&event);
    }
    let (lines, sha256) = (out.lines, hex(&out.hash.clone().finalize()));
    out.line(&text(&Last { end: End { lines, sha256 } })?)?;
    out.out.flush().map_err(unwritten)?;
    Ok(exported)
}

fn write(out: &mut Out<'_>, event: &Event, head: Head) -> Result<(), StoreError> {
    let line = match event {
        Event::Append { token, appended, time, entries } => {
            for (seq, entry) in (appended.first.0..).zip(entries) {
                let message = line::raw(stored::encode(&entry.message).map_err(rules::not_storable)?)?;
                out.line(&line::encode(&Line::Message(MessageLine::of(seq, entry, None, &message)))?)?;
            }
            Line::Append(AppendLine::of(token, *appended, *time))
        }
        Event::Commit { revision, record } => {
            let id = stored::record_id(record).map_err(rules::not_storable)?.to_string();
            let record = line::raw(stored::encode_record(record).map_err(rules::not_storable)?)?;
            let line = Line::Commit(CommitLine { revision: revision.0, id, record: &record });
            return out.line(&line::encode(&line)?);
        }
        Event::Uncompact { revision, made } => {
            Line::Uncompact(UncompactLine { revision: revision.0, made: made.0 })
        }
        Event::Prune(pruned) => Line::Prune(PruneLine::of(*pruned)),
        Event::State(text) => Line::State(StateLine::of(StateRevision(1), head, text)),
    };
    out.line(&line::encode(&line)?)
}

/// The writer of the lines.
struct Out<'a> {
    out: &'a mut (dyn Write + Send),
    hash: Sha256,
    lines: u64,
}

impl Out<'_> {
    fn line(&mut self, text: &str) -> Result<(), StoreError> {
        for bytes in [text.as_bytes(), b"\n"] {
            self.hash.update(bytes);
            self.out.write_all(bytes).map_err(unwritten)?;
        }
        self.lines = self.lines.saturating_add(1);
        Ok(())
    }
}

fn unwritten(error: std::io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "export: it cannot be written").with_source(error)
}

fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| invalid("export: what is to be written has no text"))
}

pub(super) async fn import<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    input: &mut (dyn BufRead + Send),
) -> Result<Exported, StoreError> {
    let mut read = Reader::begin(input, LINE_BYTES_MAX)?;
    let mut replay = Replay::of("import", store, session, read.state == Due::Comes).await?;
    match import_all(&mut read, &mut replay).await {
        Ok(()) => Ok(read.exported),
        Err(error) => Err(replay.taken_back(error).await),
    }
}

async fn import_all<S: HistoryStore + ?Sized>(
    read: &mut Reader<'_>,
    replay: &mut Replay<'_, S>,
) -> Result<(), StoreError> {
    while let Some(event) = read.next()? {
        replay.step(&event).await.map_err(|error| match error.kind() {
            StoreErrorKind::Invalid => read.wrong("is not believed").with_source(error),
            _ => error,
        })?;
    }
    replay.end()
}

/// Reads an export from its first line to its last, and returns a description of its contents. Nothing is stored.
///
/// ```
/// use epitome_history::check_export;
///
/// let error = check_export(&mut &b"{}"[..]).unwrap_err();
/// assert!(error.to_string().starts_with("import: line 1"));
/// ```
///
/// # Errors
/// `Invalid` names the line that was changed, or reports that the end is missing; `Unavailable` if the input cannot be
/// read.
pub fn check_export(input: &mut (dyn BufRead + Send)) -> Result<Exported, StoreError> {
    let mut read = Reader::begin(input, LINE_BYTES_MAX)?;
    while read.next()?.is_some() {}
    Ok(read.exported)
}

/// The reader of an export.
struct Reader<'a> {
    input: &'a mut (dyn BufRead + Send),
    exported: Exported,
    hash: Sha256,
    /// Number of lines read.
    lines: u64,
    /// The head after the lines read.
    head: Head,
    state: Due,
    /// The line that was read last, with its line break.
    text: String,
    /// Maximum length of a line with its line break, in bytes.
    line_bytes_max: usize,
}

/// Whether a state comes last, as the first line declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Never,
    Comes,
    HasCome,
}

impl<'a> Reader<'a> {
    fn begin(input: &'a mut (dyn BufRead + Send), line_bytes_max: usize) -> Result<Self, StoreError> {
        let mut read = Self {
            input,
            exported: Exported::new(SessionId::new(""), Seq(0), Revision(0)),
            hash: Sha256::new(),
            lines: 0,
            head: Seq(0),
            state: Due::Never,
            text: String::new(),
            line_bytes_max,
        };
        read.line()?;
        let first: First =
            serde_json::from_str(&read.text).map_err(|_| read.wrong("is not the first of an export"))?;
        let Header { v, id, head, revision } = first.epitome_session;
        if v == 0 || v > STATE_VERSION {
            return Err(invalid(format!(
                "import: written by a newer version: form {v}, this one reads up to {STATE_VERSION}"
            )));
        }
        if v == STATE_VERSION {
            read.state = Due::Comes;
        }
        read.exported = Exported::new(SessionId::new(id), Seq(head), Revision(revision));
        Ok(read)
    }

    /// The next operation; `None` at a correct end.
    fn next(&mut self) -> Result<Option<Event>, StoreError> {
        let mut entries = Vec::new();
        loop {
            let before = self.hash.clone();
            self.line()?;
            if self.text.starts_with(END) {
                return self.end(before, &entries).map(|()| None);
            }
            let Some(event) = self.event(&mut entries)? else { continue };
            self.exported.count(&event);
            return Ok(Some(event));
        }
    }

    /// The operation that this line completes; `None` after a message line, because the append line follows it.
    fn event(&mut self, entries: &mut Vec<Entry>) -> Result<Option<Event>, StoreError> {
        let line = serde_json::from_str(&self.text).map_err(|_| self.wrong("is of an unknown kind"))?;
        if self.state == Due::HasCome {
            return Err(self.wrong("stands behind the state, which comes last"));
        }
        let event = match line {
            Line::Message(line) => {
                let seq = self.head.0.saturating_add(entries.len() as u64);
                if line.seq != seq {
                    return Err(self.wrong("does not follow the message before it"));
                }
                let unread = |error| self.wrong("has a message that cannot be read").with_source(error);
                entries.push(line.entry().map_err(unread)?);
                return Ok(None);
            }
            Line::Append(line) if line.first == self.head.0 && line.count == entries.len() as u64 => {
                let LoggedAppend { token, appended, time } = line.into_logged();
                self.head = appended.head;
                return Ok(Some(Event::Append { token, appended, time, entries: core::mem::take(entries) }));
            }
            Line::Commit(line) => {
                let unread = |error| self.wrong("has a record that cannot be read").with_source(error);
                let record = stored::decode_record(line.record.get()).map_err(unread)?;
                let id = stored::record_id(&record).map_err(rules::not_storable)?;
                if RecordId::parse(&line.id) != Some(id) {
                    return Err(self.wrong("has a record that is not the one that its id names"));
                }
                Event::Commit { revision: Revision(line.revision), record }
            }
            Line::Uncompact(line) => {
                Event::Uncompact { revision: Revision(line.revision), made: Revision(line.made) }
            }
            Line::Prune(line) => Event::Prune(line.pruned()),
            Line::State(line) if self.state == Due::Comes && self.head > Seq(0) => {
                self.state = Due::HasCome;
                Event::State(line.text)
            }
            Line::State(_) => return Err(self.wrong("has a state where none comes")),
            Line::Append(_) | Line::Session(_) => return Err(self.wrong("does not fit those before it")),
        };
        match entries.is_empty() {
            true => Ok(Some(event)),
            false => Err(self.wrong("stands between messages and their append")),
        }
    }

    fn end(&mut self, before: Sha256, entries: &[Entry]) -> Result<(), StoreError> {
        let last: Last = serde_json::from_str(&self.text).map_err(|_| self.wrong("is of an unknown kind"))?;
        let whole = last.end.lines == self.lines.saturating_sub(1)
            && last.end.sha256 == hex(&before.finalize())
            && entries.is_empty()
            && self.state != Due::Comes
            && self.head == self.exported.head;
        if !whole {
            return Err(self.wrong("is the end of other lines than those before it"));
        }
        let more = self.input.fill_buf().map_err(|error| unread(self.lines, error))?;
        if more.is_empty() { Ok(()) } else { Err(self.wrong("is the end, and more follows")) }
    }

    fn line(&mut self) -> Result<(), StoreError> {
        let mut bytes = core::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        let most = u64::try_from(self.line_bytes_max).unwrap_or(u64::MAX);
        let read = (&mut self.input).take(most).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| unread(self.lines, error))?;
        if read >= self.line_bytes_max && !bytes.ends_with(b"\n") {
            self.lines = self.lines.saturating_add(1);
            let most = self.line_bytes_max;
            return Err(self.wrong(&format!("is longer than the {most} bytes that a line may have")));
        }
        self.text = String::from_utf8(bytes).map_err(|error| {
            // The error omits the bytes, because they are text of a message.
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error.utf8_error());
            unread(self.lines, error)
        })?;
        self.lines = self.lines.saturating_add(1);
        if read == 0 {
            return Err(self.wrong("is missing: the export ends too early; export the session again"));
        }
        self.hash.update(&self.text);
        Ok(())
    }

    fn wrong(&self, what: &str) -> StoreError {
        invalid(format!("import: line {} {what}", self.lines))
    }
}

/// The error for the line after `lines` lines, which cannot be read.
fn unread(lines: u64, error: std::io::Error) -> StoreError {
    let kind = match error.kind() {
        std::io::ErrorKind::InvalidData => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    };
    let context = format!("import: line {} cannot be read", lines.saturating_add(1));
    StoreError::new(kind, context).with_source(error)
}
