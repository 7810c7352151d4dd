//! Rewriting of a session's file, without deleted texts.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use epitome_core::{Revision, Seq};

use super::directory::{Directory, Opened};
use super::failure::Here;
use super::frame::{self, Origin};
use super::known::{self, Known};
use super::lines::{Lines, Next};
use super::options::Fsync;
use super::undo::is_pruned;
use super::words;
use crate::files;
use crate::line::{self, AppendLine, CommitLine, Line, MessageLine, StateLine};
use crate::stored;
use crate::{SessionId, StoreError, rules};

/// Number of bytes per write.
const WRITE_BYTES: usize = 64 * 1024;

/// Replaces the file that is `opened` for writing with a new file. The new file has the same lines, without the texts
/// that a prune through `through` deletes, and with the line `last` at the end, if there is one. A reader sees the old
/// file or the new one, also after a crash. The knowledge about the old file is then invalid.
pub(super) fn rewrite(
    directory: &Directory,
    opened: &Opened,
    session: &SessionId,
    through: Revision,
    last: Option<&Line<'_>>,
) -> Result<(), StoreError> {
    let here = opened.here("rewrite");
    let beside = beside(&opened.path);
    let durable = directory.options.fsync != Fsync::Never;
    let written = write(directory, &beside, opened, session, through, last).and_then(|file| {
        let done = if durable { file.sync_all() } else { Ok(()) };
        // The index contains words of the deleted texts, so it is removed too.
        let done = done.and_then(|()| words::remove(&opened.path));
        let done = done.and_then(|()| fs::rename(&beside, &opened.path));
        let done = done.and_then(|()| if durable { files::sync_folder(directory.folder()) } else { Ok(()) });
        done.map_err(|error| here.failed(error))
    });
    if written.is_err() {
        // If this fails, the next rewrite or the deletion of the session removes the file.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Removes the file that an interrupted [`rewrite`] left beside the file at `path`.
pub(super) fn remove_rest(path: &Path) -> io::Result<()> {
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The path of the new file. One name for each session suffices: the file is written under the lock of the session's
/// file.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".new");
    PathBuf::from(name)
}

fn write(
    directory: &Directory,
    beside: &Path,
    opened: &Opened,
    session: &SessionId,
    through: Revision,
    last: Option<&Line<'_>>,
) -> Result<File, StoreError> {
    let here = opened.here("rewrite");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(beside).map_err(|error| here.failed(error))?;
    let mut bytes = Vec::new();
    let origin = known::begin(&directory.vault, session, &mut bytes)?;
    let mut out = Out { file, origin, at: bytes.len() as u64, bytes };
    let mut lines = Lines::new(&opened.file, opened.size);
    let mut at = match lines.next(&Origin::default(), 0).map_err(|error| here.failed(error))? {
        Next::Line { len, .. } => len,
        _ => return Err(here.corrupt(0, "its first line is not that of a session")),
    };
    while at < opened.known.end {
        let found = lines.next(&opened.known.file, at).map_err(|error| here.failed(error))?;
        let Next::Line { len, data, .. } = found else {
            return Err(here.corrupt(at, "a line is not as it was written"));
        };
        let unread = || here.corrupt(at, "a line of an unknown kind");
        let text = core::str::from_utf8(data).map_err(|_| unread())?;
        let line = serde_json::from_str(text).map_err(|_| unread())?;
        match without(opened, &line, at, through)? {
            Some(bare) => out.line(&bare, here),
            None => out.line(text, here),
        }?;
        at = at.saturating_add(len);
    }
    if let Some(last) = last {
        out.line(&line::encode(last)?, here)?;
    }
    out.flush().map_err(|error| here.failed(error))?;
    Ok(out.file)
}

/// The text of `line` without the content that a prune through `through` deletes; `None` if the line loses nothing.
fn without(
    opened: &Opened,
    line: &Line<'_>,
    at: u64,
    through: Revision,
) -> Result<Option<String>, StoreError> {
    let (known, here) = (&opened.known, opened.here("rewrite"));
    match line {
        Line::Message(line) if is_pruned(known, Seq(line.seq), through) => {
            let unread = |error| here.corrupt(at, "a message cannot be read").with_source(error);
            let entry = line.entry().map_err(unread)?;
            if entry.message.is_pruned() {
                return Ok(None);
            }
            let left = stored::encode(&entry.message.clone().into_pruned()).map_err(rules::not_storable)?;
            let mut bare = MessageLine::of(line.seq, &entry, line.hidden_by, line.message);
            let left = line::raw(left)?;
            (bare.message, bare.part_tokens, bare.standing) = (&left, Vec::new(), line.standing);
            line::encode(&Line::Message(bare)).map(Some)
        }
        Line::Commit(line) => {
            let (made, record) = (Revision(line.revision), known::record(line, at, here)?);
            let is_pruned = |seq| is_pruned(known, seq, through);
            let bare = rules::bare_record(&record, is_pruned, |key| known.index.is_gone(made, key, through));
            let Some(bare) = bare else { return Ok(None) };
            let bare = line::raw(stored::encode_record(&bare).map_err(rules::not_storable)?)?;
            let (revision, id) = (line.revision, line.id.clone());
            line::encode(&Line::Commit(CommitLine { revision, id, record: &bare })).map(Some)
        }
        Line::Append(line) => {
            let state = line.state.as_ref().and_then(|state| replaced(known, state));
            let bare = state.map(|state| AppendLine { state: Some(state), ..line.clone() });
            bare.map(|bare| line::encode(&Line::Append(bare))).transpose()
        }
        Line::State(state) => replaced(known, state).map(|bare| line::encode(&Line::State(bare))).transpose(),
        _ => Ok(None),
    }
}

/// The line of a state that a newer state has replaced, without its text. `None` if the line keeps its text.
fn replaced(known: &Known, state: &StateLine) -> Option<StateLine> {
    let is_replaced = state.revision < known.index.state_revision().0 && !state.text.is_empty();
    is_replaced.then(|| StateLine { text: Box::default(), ..state.clone() })
}

/// Writer of a new file, line by line.
struct Out {
    file: File,
    origin: Origin,
    /// Offset of the next line, in bytes.
    at: u64,
    bytes: Vec<u8>,
}

impl Out {
    fn line(&mut self, text: &str, here: Here<'_>) -> Result<(), StoreError> {
        let before = self.bytes.len();
        frame::seal(&self.origin, self.at, text, &mut self.bytes)?;
        self.at = self.at.saturating_add(self.bytes.len().saturating_sub(before) as u64);
        if self.bytes.len() < WRITE_BYTES { Ok(()) } else { self.flush().map_err(|error| here.failed(error)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}
