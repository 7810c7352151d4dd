//! The files of a directory: names, creation, locks, cuts, and the memory of sessions.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::JsonlOptions;
use super::failure::Here;
use super::known::Known;
use super::lines::Lines;
use super::options::Fsync;
use super::read;
use super::report::{CutTail, Cuts};
use crate::encryption::Vault;
use crate::files::{self, FileId};
use crate::rules::invalid;
use crate::{SessionId, StoreError, StoreErrorKind};

/// Suffix of the name of a session's file, after its stem.
pub(super) const END: &str = ".jsonl";

/// Maximum number of items in the memory of all sessions together: messages, appends and records, of some 60 bytes
/// each.
const REMEMBERED_MAX: usize = 1_000_000;

/// Maximum number of attempts to open a file that another process deletes meanwhile.
const ATTEMPTS_MAX: usize = 100;

/// The kind of access of an operation to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The directory, and the knowledge about its sessions.
#[derive(Debug)]
pub(super) struct Directory {
    folder: PathBuf,
    pub(super) options: JsonlOptions,
    pub(super) vault: Vault,
    cuts: Cuts,
    known: HashMap<SessionId, Remembered>,
    /// Number of items in the memory of all sessions together, and its maximum.
    remembered: usize,
    pub(super) remembered_max: usize,
    /// Counter of operations. The session with the oldest use is forgotten first.
    clock: u64,
}

/// The knowledge about a session while no operation uses it.
#[derive(Debug)]
struct Remembered {
    known: Known,
    /// The value of the clock at the last use.
    used: u64,
    weight: usize,
}

/// A session's file, locked until it is dropped, and the knowledge about it.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) known: Known,
}

impl Directory {
    pub(super) fn open(
        folder: &Path,
        options: JsonlOptions,
        vault: Vault,
        cuts: Cuts,
    ) -> Result<Self, StoreError> {
        if folder.as_os_str().is_empty() {
            return Err(invalid("open: a directory must be named"));
        }
        let folder =
            std::path::absolute(folder).map_err(|error| invalid("open: no path").with_source(error))?;
        let here = Here { operation: "open", path: &folder };
        if folder.exists() && !folder.is_dir() {
            return Err(invalid("open: the path is a file; name a directory"));
        }
        make(&folder, options).and_then(|()| fs::read_dir(&folder)).map_err(|error| here.failed(error))?;
        let (known, remembered_max) = (HashMap::new(), REMEMBERED_MAX);
        let directory = Self { folder, options, vault, cuts, known, remembered: 0, remembered_max, clock: 0 };
        directory.check_key()?;
        Ok(directory)
    }

    /// Checks one of the files for the expected form: plain, or encrypted with the key. Other faults of a file are
    /// reported when the file is used.
    fn check_key(&self) -> Result<(), StoreError> {
        let found = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in found.map(|found| found.path()) {
            let here = Here { operation: "open", path: &path };
            if path.to_str().is_some_and(|path| path.ends_with(END))
                && let Ok(Some(line)) = read::first_line(here)
            {
                let opened = line.open(&self.vault, here).map(drop);
                return opened.or_else(|error| match error.kind() {
                    StoreErrorKind::Invalid => Err(error),
                    _ => Ok(()),
                });
            }
        }
        Ok(())
    }

    /// The sessions that are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.known.keys().map(SessionId::as_str).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{}{END}", files::file_stem(session.as_str())))
    }

    /// Creates an empty file that only its owner may access, if there is none.
    pub(super) fn create(&self, operation: &'static str, session: &SessionId) -> Result<(), StoreError> {
        let path = self.path(session);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(Here { operation, path: &path }.failed(error)),
        }
    }

    /// Opens a session's file, waits for its lock, and reads the lines that were added since the last operation. `None`
    /// if there is no file. A file that is opened for writing ends with a whole append or commit.
    pub(super) fn opened(
        &mut self,
        operation: &'static str,
        session: &SessionId,
        access: Access,
    ) -> Result<Option<Opened>, StoreError> {
        let path = self.path(session);
        let here = Here { operation, path: &path };
        let known = self.take(session);
        let Some(file) = locked(&path, access).map_err(|error| here.failed(error))? else { return Ok(None) };
        let size = file.metadata().map_err(|error| here.failed(error))?.len();
        let mut lines = Lines::new(&file, size);
        let mut known = match known.filter(|known| known.is_of(&lines)) {
            Some(known) => known,
            None => Known::read(&mut lines, session, &self.vault, here)?,
        };
        known.catch_up(&mut lines, here)?;
        let mut opened = Opened { file, path, size, known };
        if access == Access::Write && opened.is_torn() {
            self.cut(operation, session, &mut opened)?;
        }
        Ok(Some(opened))
    }

    /// Opens a session that has messages, for reading, as [`Directory::opened`] does. An incomplete end is cut off if
    /// the file can be written, and ignored otherwise.
    pub(super) fn readable(
        &mut self,
        operation: &'static str,
        session: &SessionId,
    ) -> Result<Option<Opened>, StoreError> {
        let Some(mut opened) = self.opened(operation, session, Access::Read)? else { return Ok(None) };
        if opened.is_torn() {
            // A writer waits until there is no reader.
            drop(opened);
            opened = match self.opened(operation, session, Access::Write) {
                Ok(Some(opened)) => opened,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                    match self.opened(operation, session, Access::Read)? {
                        Some(opened) => opened,
                        None => return Ok(None),
                    }
                }
                Err(error) => return Err(error),
            };
        }
        Ok(Some(opened).filter(|opened| opened.known.index.head().0 > 0))
    }

    /// Remembers the knowledge about a session. If the memory is full, forgets the sessions that were used longest ago.
    pub(super) fn keep(&mut self, session: &SessionId, opened: Opened) {
        let known = opened.known;
        // One for the session itself: sessions may be short and many.
        let weight = known.index.weight().saturating_add(1);
        self.clock = self.clock.saturating_add(1);
        self.remembered = self.remembered.saturating_add(weight);
        self.known.insert(session.clone(), Remembered { known, used: self.clock, weight });
        while self.known.len() > 1 && self.remembered > self.remembered_max {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(id, _)| id.clone());
            oldest.and_then(|id| self.take(&id));
        }
    }

    fn take(&mut self, session: &SessionId) -> Option<Known> {
        let Remembered { known, weight, .. } = self.known.remove(session)?;
        self.remembered = self.remembered.saturating_sub(weight);
        Some(known)
    }

    fn cut(
        &self,
        operation: &'static str,
        session: &SessionId,
        opened: &mut Opened,
    ) -> Result<(), StoreError> {
        let (at, bytes) = (opened.known.end, opened.size.saturating_sub(opened.known.end));
        let here = Here { operation, path: &opened.path };
        let durable = self.options.fsync != Fsync::Never;
        let cut =
            opened.file.set_len(at).and_then(|()| if durable { opened.file.sync_all() } else { Ok(()) });
        cut.map_err(|error| here.failed(error))?;
        opened.size = at;
        self.cuts.push(CutTail { session: session.clone(), at, bytes });
        Ok(())
    }
}

impl Opened {
    pub(super) fn here(&self, operation: &'static str) -> Here<'_> {
        Here { operation, path: &self.path }
    }

    fn is_torn(&self) -> bool {
        self.size > self.known.end
    }
}

/// Creates a directory that only its owner may access, and its missing parents. Names become durable from the top down.
/// A directory with content therefore has a durable name, even if the process that created it was killed meanwhile.
fn make(folder: &Path, options: JsonlOptions) -> io::Result<()> {
    let above = folder.parent();
    let is_there = folder.exists();
    if !is_there {
        above.map_or(Ok(()), |above| make(above, options))?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    } else if fs::read_dir(folder)?.next().is_some() {
        return Ok(());
    }
    match above {
        Some(above) if options.fsync != Fsync::Never => match files::sync_folder(above) {
            // A process without permission to open the parent directory has not created the name.
            Err(error) if is_there && error.kind() == ErrorKind::PermissionDenied => Ok(()),
            synced => synced,
        },
        _ => Ok(()),
    }
}

/// Opens a file and locks it; `None` if there is none.
fn locked(path: &Path, access: Access) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS_MAX {
        let opened = OpenOptions::new().read(true).write(access == Access::Write).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        wait_for(&file, access)?;
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
    Err(io::Error::other("the file is deleted again and again"))
}

/// Locks a file. Signals do not end the wait.
pub(super) fn wait_for(file: &File, access: Access) -> io::Result<()> {
    loop {
        let locked = match access {
            Access::Read => file.lock_shared(),
            Access::Write => file.lock(),
        };
        match locked {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            locked => return locked,
        }
    }
}

/// Whether `path` still leads to `file`. An earlier holder of the lock may have deleted the file, and a write to a
/// deleted file is lost.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    Ok(FileId::at(path)? == Some(FileId::of(&file.metadata()?)))
}
