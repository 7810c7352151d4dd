//! Prints reports, and writes files atomically: a file exists whole or not at all.

use std::env;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::InputArgs;
use crate::failure::{Failure, Result, code};
use crate::pager;
use crate::streams::{self, Err as Stderr, Out};
use crate::transcript::Input;
use crate::visible::{Printable, line};

/// The incomplete file, if there is one.
static HALF_FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Text that an interrupt writes to standard error.
static LAST_WORDS: Mutex<String> = Mutex::new(String::new());

/// The exit code of a program that was interrupted, as shells report it.
#[cfg(not(target_family = "wasm"))]
const INTERRUPTED: i32 = 130;

/// Makes an interrupt (Ctrl-C, a hang-up, a request to end) remove the incomplete file and print the last words.
pub(crate) fn end_well_on_interrupt() {
    // If no handler can be set, an interrupt leaves a file with a temporary name; the output is whole nevertheless.
    #[cfg(not(target_family = "wasm"))]
    let _ = ctrlc::set_handler(|| {
        // A running pager has the terminal, and the interrupt is for it.
        if pager::is_running() {
            return;
        }
        // The lock is held until the end: no other thread creates an incomplete file, or reports that this one is gone.
        let half = HALF_FILE.lock();
        if let Ok(Some(path)) = half.as_deref() {
            let _ = fs::remove_file(path);
        }
        if let Ok(words) = LAST_WORDS.lock() {
            let _ = io::stderr().write_all(Printable::from(&*words).as_str().as_bytes());
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Sets the text that an interrupt writes to standard error, in the place of an earlier one.
pub(crate) fn set_last_words(words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Whether the output has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Listening,
    /// The reader has closed the output, as `head` does: no more output is needed.
    Gone,
}

/// A report as JSON.
pub(crate) fn to_json(report: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string_pretty(report).map_err(|error| Failure::new(code::IO, error.to_string()))
}

/// The reports on conversations as JSON: an array, or the report alone if there is one and `each` is false.
pub(crate) fn all_to_json<R: Serialize>(reports: &[R], each: bool) -> Result<String> {
    match reports {
        [only] if !each => to_json(only),
        all => to_json(all),
    }
}

/// Prints a report, or a part of one, on standard output, and ends its line. A reader that stops early is no failure:
/// the work of the program and its exit code stay the same.
pub(crate) fn say(text: impl Into<Printable>) -> Result<Audience> {
    let mut out = Out;
    match out
        .write_all(text.into().as_str().as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
    {
        Ok(()) => Ok(Audience::Listening),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Audience::Gone),
        Err(error) => Err(Failure::stdout(&error)),
    }
}

/// Prints a text on standard error, apart from the output, and ends its line.
pub(crate) fn tell(text: impl Into<Printable>) {
    let text = text.into();
    if pager::is_running() {
        return pager::tell_later(text);
    }
    // A missing reader is no failure; the exit code has the result.
    let _ = writeln!(Stderr, "{}", text.as_str().trim_end_matches('\n'));
}

/// Writes `path`, or standard output for `-`. The content goes to a file beside `path`, which is renamed when it is
/// complete. Until then `path` keeps its content, also after any failure. A new file is for its owner only.
pub(crate) fn write_private(
    output: Output<'_>,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<()> {
    let path = output.path;
    match Target::of(output)? {
        Target::Stdout => {
            let mut out = BufWriter::new(Out);
            content(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
        }
        Target::Device => {
            let written = device(path).and_then(|file| {
                let mut out = BufWriter::new(file);
                content(&mut out).and_then(|()| out.flush())
            });
            written.map_err(|error| Failure::io(path, &error))
        }
        target => Draft::at(path, target, PRIVATE)?.silent().filled(content)?.publish(),
    }
}

/// The path of a file that a command writes; `-` is standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) path: &'a Path,
    /// Whether a file that exists may be replaced.
    pub(crate) force: bool,
}

impl Output<'_> {
    /// Refuses a file that exists and may not be replaced, before the work for it is done.
    pub(crate) fn check(self) -> Result<()> {
        Target::of(self).map(|_| ())
    }

    /// Whether it is standard output, by any of its names.
    pub(crate) fn is_stdout(self) -> bool {
        STDOUT.iter().any(|name| self.path == Path::new(name))
    }
}

/// The names of standard output: a file behind it belongs to the shell, and is not replaced.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Open files of this process: a file behind one belongs to the shell too.
const DESCRIPTORS: [&str; 3] = ["/dev/fd", "/dev/stderr", "/proc/self/fd"];

/// The mode of a new file, before the user's mask.
const MODE: u32 = 0o666;
const PRIVATE: u32 = 0o600;

/// A file with the new content of a path, which can be read before it is published.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The path as the user named it.
    path: PathBuf,
    target: Target,
    half: Half,
    mark: Mark,
    /// Whether nothing is printed when the draft is published.
    is_silent: bool,
}

/// The content of a draft until it is published.
#[derive(Debug)]
enum Half {
    File(NamedTempFile),
    /// For a caller in the same process.
    Memory(Vec<u8>),
}

/// Destination of a draft.
#[derive(Debug)]
enum Target {
    /// A file.
    File {
        place: PathBuf,
        /// Permissions of the existing file; `None` if there is no file.
        permissions: Option<Permissions>,
        /// Whether a file that appears meanwhile is replaced too.
        force: bool,
    },
    /// A device or a pipe, which cannot be replaced.
    Device,
    Stdout,
    /// No destination: the draft is discarded.
    Nowhere,
}

impl Target {
    fn of(Output { path, force }: Output<'_>) -> Result<Self> {
        if (Output { path, force }).is_stdout() {
            return Ok(Self::Stdout);
        }
        if DESCRIPTORS.iter().any(|name| path.starts_with(name)) {
            return Ok(Self::Device);
        }
        let target = match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(there) if !there.is_file() => Ok(Self::Device),
            Ok(_) if !force => return Err(exists(path)),
            Ok(there) => {
                let permissions = Some(there.permissions());
                fs::canonicalize(path).map(|place| Self::File { place, permissions, force })
            }
            // A link to a file that does not exist yet stays a link.
            Err(_) => end_of_links(path).map(|place| Self::File { place, permissions: None, force }),
        };
        target.map_err(|error| Failure::io(path, &error))
    }
}

/// The path behind links that lead to no file.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = folder(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

/// Maximum number of links that Linux follows.
const LINKS_MAX: usize = 40;

/// The failure for a file that exists and may not be replaced.
fn exists(path: &Path) -> Failure {
    Failure::input(format!("{}: this file exists: --force replaces it", path.display()))
}

impl Draft {
    /// A draft of `path`, or of standard output for `-`.
    pub(crate) fn new(output: Output<'_>) -> Result<Self> {
        Self::at(output.path, Target::of(output)?, MODE)
    }

    /// A draft of a file that is for its owner only if it is new: its contents come from a private store.
    pub(crate) fn private(output: Output<'_>) -> Result<Self> {
        Self::at(output.path, Target::of(output)?, PRIVATE)
    }

    /// A draft that is never published.
    pub(crate) fn nowhere() -> Result<Self> {
        Self::at(Path::new("-"), Target::Nowhere, PRIVATE)
    }

    fn at(path: &Path, target: Target, mode: u32) -> Result<Self> {
        let half = match &target {
            Target::File { place, .. } => create(folder(place), mode).map(Half::File),
            Target::Stdout | Target::Nowhere if streams::is_in_memory() => Ok(Half::Memory(Vec::new())),
            Target::Device | Target::Stdout | Target::Nowhere => {
                create(&env::temp_dir(), PRIVATE).map(Half::File)
            }
        };
        let half = half.map_err(|error| Failure::io(path, &error))?;
        Ok(Self { path: path.to_owned(), target, half, mark: Mark, is_silent: false })
    }

    /// The draft, without a message when it is published: standard error has a report of its own.
    pub(crate) fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }

    /// The draft, with this content.
    pub(crate) fn filled(
        mut self,
        content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<Self> {
        let filled = match &mut self.half {
            Half::File(file) => {
                let mut out = BufWriter::with_capacity(1 << 20, file.as_file_mut());
                content(&mut out).and_then(|()| out.flush())
            }
            Half::Memory(bytes) => content(bytes),
        };
        match filled {
            Ok(()) => Ok(self),
            Err(error) => Err(Failure::io(&self.path, &error)),
        }
    }

    /// Reads the content with the options `reader`.
    pub(crate) fn open(&self, reader: &InputArgs) -> Result<Input> {
        match &self.half {
            Half::File(half) => {
                Input::open(&InputArgs { file: Some(half.path().to_owned()), ..reader.clone() })
            }
            Half::Memory(bytes) => Input::from_bytes(self.path.clone(), bytes.clone(), reader),
        }
    }

    /// `message` without the name of the temporary file, which is meaningless to the user.
    pub(crate) fn without_name(&self, message: &str) -> String {
        match &self.half {
            Half::File(half) => message.replace(&*half.path().to_string_lossy(), "what was written"),
            Half::Memory(_) => message.to_owned(),
        }
    }

    /// Moves the content to the path, and reports it on standard error.
    pub(crate) fn publish(self) -> Result<()> {
        let Self { path, target, half, mark: _mark, is_silent } = self;
        let done = match (target, half) {
            (Target::File { place, permissions, force }, Half::File(half)) => {
                let written = replace(half, &place, permissions, force);
                if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
                    return Err(exists(&path));
                }
                if written.is_ok() && !is_silent {
                    tell(line(&format!("epitome: wrote {}", path.display())));
                }
                written
            }
            (Target::Nowhere, _) => Ok(()),
            (Target::Device, half) => device(&path).and_then(|mut out| half.copy(&mut out)),
            (Target::Stdout | Target::File { .. }, half) => {
                return half.copy(&mut Out).map_err(|error| Failure::stdout(&error));
            }
        };
        done.map_err(|error| Failure::io(&path, &error))
    }
}

/// Forgets the incomplete file when it is dropped.
#[derive(Debug)]
struct Mark;

impl Drop for Mark {
    fn drop(&mut self) {
        *HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn device(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().append(true).open(path)
}

impl Half {
    fn copy(self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::File(half) => io::copy(&mut half.reopen()?, out).map(|_| ())?,
            Self::Memory(bytes) => out.write_all(&bytes)?,
        }
        out.flush()
    }
}

/// Moves the file to its path. Without `force`, a file that appeared there meanwhile stays.
fn replace(
    half: NamedTempFile,
    path: &Path,
    permissions: Option<Permissions>,
    force: bool,
) -> io::Result<()> {
    if let Some(permissions) = permissions {
        half.as_file().set_permissions(permissions)?;
    }
    half.as_file().sync_all()?;
    // An interrupt must not remove the file from its path.
    *HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner) = None;
    let placed = match force {
        true => half.persist(path),
        // Not every file system can do this in one step.
        false => half.persist_noclobber(path).or_else(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => Err(error),
            _ => error.file.persist(path),
        }),
    };
    placed.map(|_| ()).map_err(|error| error.error)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// A new file in `folder`, which an interrupt can remove from the start.
#[cfg_attr(not(unix), expect(unused_variables, reason = "a mode is of Unix"))]
fn create(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut half = tempfile::Builder::new();
    half.prefix(".epitome-").suffix(".half");
    #[cfg(unix)]
    half.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    let mut place = HALF_FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let half = half.tempfile_in(folder).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("there is no folder {}; create it", folder.display()))
        }
        // The message of the error contains the name of the temporary file, which is meaningless to the user.
        kind => io::Error::new(kind, format!("no file can be made in {}: {kind}", folder.display())),
    })?;
    *place = Some(half.path().to_owned());
    Ok(half)
}
