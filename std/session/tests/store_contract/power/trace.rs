//! The system calls of a process, in the notation of `strace`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// All calls that change files or names, make them durable, or write output. A `?` marks a call that not every
/// processor has.
pub(super) const CALLS: &str = "trace=?open,?creat,openat,lseek,write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,\
    ftruncate,?truncate,fallocate,?rename,renameat,renameat2,?unlink,unlinkat,?link,linkat,?mkdir,mkdirat,?rmdir";

/// A change that a process has requested from the system. Paths are relative to the traced folder.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The file at the path was opened, and created if it did not exist.
    Create(PathBuf),
    MakeFolder(PathBuf),
    Write {
        path: PathBuf,
        at: usize,
        data: Vec<u8>,
    },
    Resize(PathBuf, usize),
    /// A file, or the names in a folder, were made durable.
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// A line on standard output.
    Said(String),
}

/// The successful calls in `log` that concern files below `folder`, in order.
///
/// # Panics
/// If a call changes one of these files in a way that [`Event`] cannot represent.
pub(super) fn events(log: &str, folder: &Path) -> Vec<Event> {
    let mut reader = Reader { folder, places: BTreeMap::new(), said: Vec::new(), events: Vec::new() };
    let mut unfinished = BTreeMap::new();
    for line in log.lines() {
        // strace pads the number of the thread.
        let (thread, call) = line.trim_start().split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, begun);
        } else if let Some((_, rest)) = call.split_once(" resumed>").filter(|_| call.starts_with("<... ")) {
            let begun = unfinished.remove(thread).unwrap();
            reader.call(&format!("{begun}{rest}"));
        } else if !call.starts_with("+++") && !call.starts_with("---") {
            reader.call(call);
        }
    }
    reader.events
}

struct Reader<'a> {
    folder: &'a Path,
    /// Offset of the next write of a descriptor. No traced process writes at the place of its last read.
    places: BTreeMap<u32, usize>,
    said: Vec<u8>,
    events: Vec<Event>,
}

impl Reader<'_> {
    fn call(&mut self, call: &str) {
        let (name, rest) = call.split_once('(').unwrap();
        let (arguments, result) = rest.rsplit_once(" = ").unwrap();
        let result = result.trim_start();
        if result.starts_with('-') || result.starts_with('?') {
            return;
        }
        let arguments = arguments.trim_end().strip_suffix(')').unwrap();
        match name {
            "open" | "creat" | "openat" => self.open(name, arguments, result),
            "mkdir" | "mkdirat" => self.named(arguments, Event::MakeFolder),
            "unlink" | "unlinkat" | "rmdir" => self.named(arguments, Event::Remove),
            "rename" | "renameat" | "renameat2" => {
                let mut paths = strings(arguments).map(|path| self.relative(&path));
                if let (Some(from), Some(to)) = (paths.next().unwrap(), paths.next().unwrap()) {
                    self.events.push(Event::Rename(from, to));
                }
            }
            _ => self.on_descriptor(name, arguments, result),
        }
    }

    fn open(&mut self, name: &str, arguments: &str, result: &str) {
        let (number, path) = descriptor(result);
        self.places.insert(number, 0);
        let Some(path) = path.and_then(|path| self.relative(&path)) else { return };
        assert!(!arguments.contains("O_APPEND"), "{name} for appending");
        if name == "creat" || arguments.contains("O_CREAT") {
            self.events.push(Event::Create(path.clone()));
        }
        if name == "creat" || arguments.contains("O_TRUNC") {
            self.events.push(Event::Resize(path, 0));
        }
    }

    fn named(&mut self, arguments: &str, event: impl Fn(PathBuf) -> Event) {
        let path = strings(arguments).next().unwrap();
        self.events.extend(self.relative(&path).map(event));
    }

    fn on_descriptor(&mut self, name: &str, arguments: &str, result: &str) {
        let (number, path) = descriptor(arguments);
        let returned = |text: &str| text.split(' ').next().unwrap().parse::<usize>().unwrap();
        let last = arguments.rsplit(", ").next().unwrap();
        if name == "write" && number == 1 {
            return self.say(&strings(arguments).next().unwrap());
        }
        // A file without a name does not exist after a loss of power.
        let relative = path.and_then(|path| self.relative(&path));
        match (name, relative) {
            ("lseek", _) => drop(self.places.insert(number, returned(result))),
            (_, None) => {}
            ("write", Some(path)) => {
                let mut data = strings(arguments).next().unwrap();
                data.truncate(returned(result));
                let place = self.places.get_mut(&number).unwrap();
                let at = *place;
                *place += data.len();
                self.events.push(Event::Write { path, at, data });
            }
            ("pwrite64", Some(path)) => {
                let mut data = strings(arguments).next().unwrap();
                data.truncate(returned(result));
                self.events.push(Event::Write { path, at: last.parse().unwrap(), data });
            }
            ("ftruncate", Some(path)) => self.events.push(Event::Resize(path, last.parse().unwrap())),
            ("fsync" | "fdatasync", Some(path)) => self.events.push(Event::Sync(path)),
            (name, Some(path)) => panic!("{name} of {}", path.display()),
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.said.extend(bytes);
        while let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=end).collect();
            self.events.push(Event::Said(String::from_utf8(line).unwrap().trim_end().to_owned()));
        }
    }

    /// `path` in the folder; `None` if it is outside, or one of SQLite's files in shared memory, which no crash leaves
    /// valid.
    fn relative(&self, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(OsStr::from_bytes(path)).strip_prefix(self.folder).ok()?;
        (!path.as_os_str().as_bytes().ends_with(b"-shm")).then(|| path.to_owned())
    }
}

/// The number at the beginning of `text`, and the path after it, unless the file has lost its name.
fn descriptor(text: &str) -> (u32, Option<Vec<u8>>) {
    let (number, rest) = text.split_once('<').unwrap_or((text, ""));
    let number = number.split([',', ' ']).next().unwrap().parse().unwrap();
    let path = rest.split_once('>').filter(|(_, rest)| !rest.starts_with("(deleted)"));
    (number, path.map(|(path, _)| bytes(path)))
}

/// The texts in quotes.
fn strings(arguments: &str) -> impl Iterator<Item = Vec<u8>> {
    assert!(!arguments.contains("\"..."), "strace has cut a text");
    arguments.split('"').skip(1).step_by(2).map(bytes)
}

/// `\x2f\x74` as bytes.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}
