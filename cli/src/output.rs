//! Saying a report, and writing a file so that it is there whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};

/// The half-written file, if there is one.
static HALF_FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// What an interrupt says on standard error.
static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// The exit code of a program that was interrupted, as shells report it.
const INTERRUPTED: i32 = 130;

/// Makes an interrupt (Ctrl-C, a hang-up, a request to end) remove the half-written file, and say what is to be said.
pub(crate) fn end_well_on_interrupt() {
    // Where no handler can be set, an interrupt leaves a file with a temporary name; the output is whole all the same.
    let _ = ctrlc::set_handler(|| {
        // Held until the end: nobody makes another half file, or reports that this one is gone.
        let half = HALF_FILE.lock();
        if let Ok(Some(path)) = half.as_deref() {
            let _ = fs::remove_file(path);
        }
        if let Ok(words) = LAST_WORDS.lock() {
            let _ = io::stderr().write_all(words.as_bytes());
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Lets an interrupt say this on standard error, and nothing else that was to be said before.
pub(crate) fn set_last_words(words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Whether anybody reads what is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Listening,
    /// The reader has seen enough, as `head` does: there is no need to say more.
    Gone,
}

/// Says a report, or a part of one, on standard output, and ends its line. That nobody reads all of it is no failure:
/// what the program did, and its exit code, are the same.
pub(crate) fn say(text: &str) -> Result<Audience> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Ok(()) => Ok(Audience::Listening),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Audience::Gone),
        Err(error) => Err(Failure::stdout(&error)),
    }
}

/// Writes `path`, or standard output for `-`: beside it first, renamed when it is complete. Until then, whatever goes
/// wrong, `path` holds what it held.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout());
        return content(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error));
    }
    let written = match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        // A device or a pipe cannot be replaced.
        Ok(there) if !there.is_file() => fs::OpenOptions::new().write(true).open(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            content(&mut out).and_then(|()| out.flush())
        }),
        Ok(there) => {
            fs::canonicalize(path).and_then(|path| replace(&path, Some(there.permissions()), content))
        }
        Err(_) => match fs::read_link(path) {
            // A link to a file that does not exist yet stays a link.
            Ok(target) => replace(&folder(path).join(target), None, content),
            Err(_) => replace(path, None, content),
        },
    };
    written.map_err(|error| Failure::io(path, &error))
}

fn replace(
    path: &Path,
    permissions: Option<Permissions>,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<()> {
    let half = create(folder(path))?;
    let done = fill(half, permissions, content).and_then(|half| {
        let mut place = HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner);
        *place = None;
        half.persist(path).map_err(|error| error.error)
    });
    *HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    done.map(|_| ())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// A new file in `folder`, remembered for an interrupt before there can be one.
fn create(folder: &Path) -> io::Result<NamedTempFile> {
    let mut half = tempfile::Builder::new();
    half.prefix(".epitome-").suffix(".half");
    #[cfg(unix)]
    half.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut place = HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let half = half.tempfile_in(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("there is no folder {}; create it", folder.display()))
        }
        // Its own words name the half file, which means nothing to anybody.
        kind => io::Error::new(kind, format!("no file can be made in {}: {kind}", folder.display())),
    })?;
    *place = Some(half.path().to_owned());
    Ok(half)
}

fn fill(
    half: NamedTempFile,
    permissions: Option<Permissions>,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let mut out = BufWriter::with_capacity(1 << 20, half);
    content(&mut out)?;
    let half = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(permissions) = permissions {
        half.as_file().set_permissions(permissions)?;
    }
    half.as_file().sync_all()?;
    Ok(half)
}
