//! Writes at the end of a file, and the deletion of a file.

use std::fs;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};

use super::directory::{Access, Directory, Opened};
use super::failure::Here;
use super::frame::{self, Origin, Sum};
use super::index::Span;
use super::known::{self, Known};
use super::options::Fsync;
use super::{rewrite, words};
use crate::files;
use crate::line::{SEALED_VERSION, VERSION};
use crate::{SessionId, StoreError, StoreErrorKind};

/// Deletes a session. A file that cannot be read counts as a session, and is deleted too.
pub(super) fn delete(directory: &mut Directory, session: &SessionId) -> Result<bool, StoreError> {
    let path = directory.path(session);
    let here = Here { operation: "delete", path: &path };
    let opened = directory.opened("delete", session, Access::Write);
    let (existed, lock) = match opened {
        // Another process may have removed the file, and ended before the removal was durable.
        Ok(None) => return sync_names(directory, here).map(|()| false),
        Ok(Some(opened)) => (opened.known.index.head().0 > 0, Some(opened)),
        Err(error) if matches!(error.kind(), StoreErrorKind::Corrupt | StoreErrorKind::Invalid) => {
            (true, None)
        }
        Err(error) => return Err(error),
    };
    let removed = rewrite::remove_rest(&path).and_then(|()| words::remove(&path));
    removed.map_err(|error| here.failed(error))?;
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

/// The kind of operation that a write acknowledges.
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

/// Makes an earlier write durable, because it is acknowledged again. Its writer may have stopped before the sync.
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

/// Lines in the form in which a file contains them.
struct Batch {
    bytes: Vec<u8>,
    file: Origin,
    /// Spans of the lines, without the first line of the file.
    spans: Vec<Span>,
    /// Offset and checksum of the last line.
    last: (u64, Sum),
}

impl Batch {
    /// The lines with these data for the end of the file. A new file gets its first line too.
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

/// Writes lines to the end of the file. Returns their spans. After a failure the lines are removed again; if the disk
/// does not allow it, a later operation cuts them off.
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
        // If this fails too, the next writer cuts the lines off.
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

/// Keeps the knowledge about the file, unless an error has made it uncertain.
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
