//! `epitome show --follow`: the messages that a session file gains.
//!
//! A session is a forest whose active branch may change with every line, and a compaction may replace all of its
//! messages. The file is therefore read again when it has grown, and messages that were not shown yet are shown. The
//! program checks the file at intervals instead of watching it: this works on every file system.

use core::hash::{Hash as _, Hasher as _};
use core::time::Duration;
use std::collections::HashMap;
use std::fs;
use std::hash::DefaultHasher;
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime};

use epitome::wire::document::{self, looks_like_jsonl};

use super::{Numbers, Screen, compaction};
use crate::amount::counted;
use crate::args::{InputArgs, ShowArgs};
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output;
use crate::output::Audience;
use crate::transcript::Input;
use crate::visible::line;

/// Time between two checks of the file: too short for people to notice.
const EVERY: Duration = Duration::from_millis(200);
/// Factor of the pause after a reading over its duration, so that a long file is not read all the time.
const REST: u32 = 4;
/// Number of lines that must show the format; sessions begin with some lines that fit several formats.
const LINES_TO_KNOW: usize = 16;

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let input = &*Input::resolve(&args.input)?;
    let path = input.path();
    if path == Path::new("-") {
        return Err(Failure::input("--follow waits for a file to grow: give it a file, not standard input"));
    }
    let about = fs::metadata(path).map_err(|error| Failure::io(path, &error))?;
    if !about.is_file() {
        let what = "--follow reads the file again when it has grown, and this is no plain file";
        return Err(Failure::input(format!("{}: {what}", path.display())));
    }
    let mut followed = Followed { path, input, screen: Screen::new(args)?, before: Shelf::default() };
    let done = followed.watch();
    match followed.screen.audience {
        Audience::Gone => Ok(ExitCode::SUCCESS),
        Audience::Listening => {
            followed.screen.tell();
            done.map(|()| ExitCode::SUCCESS)
        }
    }
}

/// A followed file, and its messages that were shown.
struct Followed<'a> {
    path: &'a Path,
    input: &'a InputArgs,
    screen: Screen<'a>,
    before: Shelf,
}

/// State of the file when it was last read.
#[derive(Debug, Default)]
struct Shelf {
    /// Number of messages of each digest.
    messages: HashMap<u64, usize>,
    compactions: usize,
    bytes: usize,
}

/// State of a file by its metadata: another state means another content.
type State = (u64, Option<SystemTime>);

impl Followed<'_> {
    /// Shows new messages until the file is gone.
    fn watch(&mut self) -> Result<()> {
        let mut last: Option<State> = None;
        loop {
            let started = Instant::now();
            let state = match fs::metadata(self.path) {
                Ok(about) => (about.len(), about.modified().ok()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return self.gone(),
                Err(error) => return Err(Failure::io(self.path, &error)),
            };
            if last != Some(state) {
                match fs::read(self.path) {
                    Ok(bytes) => self.read(bytes, last.is_none())?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return self.gone(),
                    Err(error) => return Err(Failure::io(self.path, &error)),
                }
                last = Some(state);
            }
            std::thread::park_timeout(EVERY.max(started.elapsed().saturating_mul(REST)));
        }
    }

    fn gone(&self) -> Result<()> {
        tell(&format!("{} was removed", line(&self.path.display().to_string())));
        Ok(())
    }

    /// Shows the new messages in the complete lines of `bytes`; the last line may be incomplete.
    fn read(&mut self, mut bytes: Vec<u8>, is_first: bool) -> Result<()> {
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        if bytes.len() < self.before.bytes {
            tell("the file is shorter than it was: it is read from its beginning");
            self.before = Shelf::default();
        }
        let Ok(text) = document::utf8(&bytes) else { return self.show(bytes) };
        if looks_like_jsonl(text) || document::conversation(text).is_ok_and(|found| found.len() == 1) {
            let is_young = self.before.bytes == 0 && document::lines(text).nth(LINES_TO_KNOW).is_none();
            return match self.show(bytes) {
                // The first lines of the file may not show the format.
                Err(failure) if is_young && failure.code() == code::INPUT => {
                    if is_first {
                        tell(&format!("waiting for more lines: {}", line(failure.message())));
                    }
                    Ok(())
                }
                done => done,
            };
        }
        if document::lines(text).nth(1).is_some() {
            let what = "--follow takes files of lines, and this is none: leave --follow out";
            return Err(Failure::input(format!("{}: {what}", self.path.display())));
        }
        if is_first {
            tell("waiting for more lines: there is no message yet");
        }
        Ok(())
    }

    fn show(&mut self, bytes: Vec<u8>) -> Result<()> {
        let size = bytes.len();
        let input = Input::from_bytes(self.path.to_owned(), bytes, self.input)?;
        let mut transcript = input.conversation(self.input)?;
        let found = transcript.compactions();
        let mut now = Shelf { compactions: found.len(), bytes: size, ..Shelf::default() };
        for one in found.iter().skip(self.before.compactions) {
            if self.screen.filter.is_open() {
                self.screen.say(&compaction(one))?;
            }
        }
        let mut numbers = Numbers::new()?;
        transcript.for_each(|view| {
            let digest = digest(view.text());
            let shown = numbers.shown(view)?;
            let times = now.messages.entry(digest).or_default();
            *times += 1;
            match self.before.messages.get(&digest).is_some_and(|before| before >= times) {
                true => Ok(()),
                false => self.screen.message(shown, &[]),
            }
        })?;
        let is_cut = now.compactions > self.before.compactions;
        let count = |shelf: &Shelf, digest: &u64| shelf.messages.get(digest).copied().unwrap_or(0);
        let left = self
            .before
            .messages
            .keys()
            .map(|digest| count(&self.before, digest).saturating_sub(count(&now, digest)));
        let left: usize = left.sum();
        if left > 0 && !is_cut {
            let (left, are) = (counted(left as u64, "message"), if left == 1 { "is" } else { "are" });
            tell(&format!(
                "{left} shown before {are} no longer part of the conversation, which goes on elsewhere"
            ));
        }
        self.before = now;
        Ok(())
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn tell(what: &str) {
    output::tell(format!("epitome: {what}"));
}
