//! The conversations of a file. The file is read whole. JSONL of messages is read line by line, so that memory does not
//! grow with the file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use epitome::wire::document::{self, DocumentConversation, Pointer};
use epitome::wire::{self, Format, WireError, WireErrorKind};

use crate::amount::grouped;
use crate::args::{From, InputArgs, PartArgs};
use crate::failure::{Failure, Result};
use crate::output::tell;
use crate::sessions::{self, Found};
use crate::streams;

mod beside;
mod head;
mod lines;
mod one;
mod read;
mod session;
mod tail;
mod view;

use head::without_mark;
use lines::LineFile;
use read::ReadConversation;
use session::SessionFile;

pub(crate) use beside::Other;
pub(crate) use one::Transcript;
pub(crate) use view::View;

/// An input file with conversations.
#[derive(Debug)]
pub(crate) struct Input {
    path: PathBuf,
    text: Text,
    args: InputArgs,
    /// Whether the last line was incomplete and was left out.
    is_cut: bool,
}

#[derive(Debug)]
enum Text {
    Memory(String),
    /// JSONL, one message per line, in a file that can be read twice.
    Lines(File),
    /// A format other than Chat Completions.
    Read(Box<wire::Transcript>),
    /// A session file of which one conversation is only read, not written.
    Session(File, Format),
}

/// Maximum number of messages of all conversations of one file with `--each`. Branches repeat the messages that they
/// share, so that a file of a megabyte may have tens of millions. This number takes about a gigabyte.
const EACH_MESSAGES_MAX: usize = 4 << 20;

/// Name of standard input.
pub(crate) const STDIN: &str = "standard input";

impl Input {
    /// Opens and, unless it is JSONL of messages, reads the file.
    pub(crate) fn open(args: &InputArgs) -> Result<Self> {
        Self::open_as(args, Use::Any)
    }

    /// Opens the file only for reading its messages: a session file of lines is then not held either.
    pub(crate) fn open_to_look(args: &InputArgs) -> Result<Self> {
        Self::open_as(args, Use::Look)
    }

    fn open_as(args: &InputArgs, wanted: Use) -> Result<Self> {
        let args = &*Self::resolve(args)?;
        let path = args.path().to_owned();
        if path == Path::new("-") {
            return Self::from_bytes(PathBuf::from(STDIN), stdin()?, args);
        }
        let mut file = File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::io(&path, &error)
                .advise("check its name; `epitome sessions` lists the ids that may stand here"),
            _ => Failure::io(&path, &error),
        })?;
        let about = file.metadata().map_err(|error| Failure::io(&path, &error))?;
        if about.is_dir() {
            return Err(Failure::input(format!(
                "{}: this is a directory; give it a transcript",
                path.display()
            )));
        }
        if about.is_file() {
            let head = head::read(&mut file, &path)?;
            let is_whole = !args.part.each && args.part.at.is_none();
            let chat = matches!(args.part.from.0, None | Some(Format::OpenaiChat));
            if is_whole && chat && head::is_jsonl(&head) {
                return Self::chat(path, Text::Lines(file), args);
            }
            if let Some(session) = Self::unfinished(&mut file, &path, (&head, about.len()), args)? {
                return Ok(session);
            }
            let outlined = head::outlined(&head, args).filter(|_| is_whole && wanted == Use::Look);
            if let Some(format) = outlined {
                let text = Text::Session(file, format);
                return Ok(Self { path, text, args: args.clone(), is_cut: false });
            }
        }
        let bytes = head::read_whole(&mut file, about.len(), &path)?;
        Self::from_bytes(path, bytes, args)
    }

    /// A session without its last line, if that line is incomplete. An agent writes its session while it works, and
    /// skips such a line when it reads the session again. `head` is the beginning of the file, and `size` its size.
    fn unfinished(
        file: &mut File,
        path: &Path,
        (head, size): (&str, u64),
        args: &InputArgs,
    ) -> Result<Option<Self>> {
        let Some(end) = tail::whole_lines(file, (head, size), path)? else { return Ok(None) };
        let bytes = head::read_whole(&mut (&mut *file).take(end), end, path)?;
        file.rewind().map_err(|error| Failure::io(path, &error))?;
        let session = Self::from_bytes(path.to_owned(), bytes, args).ok();
        let Some(session) = session.filter(|found| matches!(found.text, Text::Read(_))) else {
            return Ok(None);
        };
        tell(format!("epitome: {}: the last line is unfinished: it was left out", path.display()));
        Ok(Some(Self { is_cut: true, ..session }))
    }

    /// The arguments with the path of a file in the place of `latest` or of the id of a session, and with the format of
    /// the agent that wrote the file.
    pub(crate) fn resolve(args: &InputArgs) -> Result<Cow<'_, InputArgs>> {
        if args.file.is_none() {
            check_piped()?;
        }
        let path = args.path();
        let found = match (path == Path::new(sessions::LATEST), &args.project) {
            (true, project) => Some(sessions::latest(project.as_deref())?),
            (false, None) => sessions::of_id(path)?,
            (false, Some(_)) => {
                let what = "--project says which session `latest` is: give `latest` as FILE";
                return Err(Failure::input(what));
            }
        };
        let Some(Found { agent, path, .. }) = found else { return Ok(Cow::Borrowed(args)) };
        let from = From(args.part.from.0.or(Some(agent.format)));
        let part = PartArgs { from, ..args.part.clone() };
        Ok(Cow::Owned(InputArgs { file: Some(path), project: None, part }))
    }

    /// The conversations in `bytes`, the contents of `path`.
    pub(crate) fn from_bytes(path: PathBuf, bytes: Vec<u8>, args: &InputArgs) -> Result<Self> {
        match String::from_utf8(bytes) {
            Ok(text) => match read::other_format(&text, args) {
                Ok(Some(transcript)) => Ok(Self {
                    path,
                    text: Text::Read(Box::new(transcript)),
                    args: args.clone(),
                    is_cut: false,
                }),
                Ok(None) => Self::chat(path, Text::Memory(text), args),
                Err(error) if error.kind() == WireErrorKind::Ambiguous => {
                    Err(Failure::wire(&path, &error).advise("give it with --from"))
                }
                Err(error) => Err(Failure::wire(&path, &error)),
            },
            Err(error) => {
                let wrong = document::utf8(error.as_bytes()).err();
                Err(wrong.map_or_else(|| Failure::input("not UTF-8"), |error| Failure::wire(&path, &error)))
            }
        }
    }

    /// A file of Chat Completions, a format without branches.
    fn chat(path: PathBuf, text: Text, args: &InputArgs) -> Result<Self> {
        match args.part.leaf {
            None => Ok(Self { path, text, args: args.clone(), is_cut: false }),
            Some(_) => Err(Failure::input(format!(
                "{}: --leaf was given, and this text of {} has no branches: read it without --leaf",
                path.display(),
                Format::OpenaiChat
            ))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The arguments with the path of the file that was read.
    pub(crate) const fn args(&self) -> &InputArgs {
        &self.args
    }

    /// Fails if `output` would replace a file whose last line was left out.
    pub(crate) fn check_replaced(&self, output: &Path) -> Result<()> {
        let is_same = || {
            fs::canonicalize(output).ok().is_some_and(|out| fs::canonicalize(&self.path).ok() == Some(out))
        };
        match self.is_cut && is_same() {
            true => Err(Failure::input(format!(
                "{}: its last line is unfinished, and would be lost: wait until the line is whole, or write to another file",
                self.path.display()
            ))),
            false => Ok(()),
        }
    }

    /// Whether the format may refuse a message. A format in which messages are separate texts accepts all.
    pub(crate) const fn may_refuse(&self) -> bool {
        matches!(self.text, Text::Read(_))
    }

    /// The name of a place in the file.
    pub(crate) fn place(&self, pointer: &str) -> String {
        let at = if pointer.is_empty() { "" } else { " at " };
        format!("{}{at}{pointer}", self.path.display())
    }

    /// The one conversation that the options select.
    pub(crate) fn conversation(&self, args: &InputArgs) -> Result<Transcript<'_>> {
        let text = match &self.text {
            Text::Lines(file) => return Ok(Transcript::Lines(LineFile::new(&self.path, file)?)),
            Text::Read(transcript) => return self.active(transcript),
            Text::Session(file, format) => return self.session(file, *format, args),
            Text::Memory(text) => without_mark(text),
        };
        let conversation = match &args.part.at {
            Some(at) => Pointer::parse(at).and_then(|at| document::at(text, &at)?.conversation()),
            None => document::conversation(text),
        };
        self.checked(conversation.map_err(|error| self.unread(text, &error))?)
    }

    fn unread(&self, text: &str, error: &WireError) -> Failure {
        let is_of_lines = self.args.part.at.is_some() && document::looks_like_jsonl(text);
        let failure = Failure::wire(&self.path, error);
        if is_of_lines { failure.advise("--each reads the same place in each line") } else { failure }
    }

    /// The conversations that the options select: all with `--each`, else one.
    pub(crate) fn transcripts(&self, args: &InputArgs) -> Result<Vec<Transcript<'_>>> {
        match args.part.each {
            true => self.each(args),
            false => Ok(vec![self.conversation(args)?]),
        }
    }

    /// All conversations, in order, with their places.
    fn each(&self, args: &InputArgs) -> Result<Vec<Transcript<'_>>> {
        let text = match &self.text {
            Text::Memory(text) => without_mark(text),
            Text::Read(transcript) => return self.all(transcript),
            Text::Lines(_) | Text::Session(..) => return Ok(vec![self.conversation(args)?]),
        };
        let wire = |error: WireError| Failure::wire(&self.path, &error);
        let at = args.part.at.as_deref().map(Pointer::parse).transpose().map_err(wire)?;
        let refused = |error: WireError| match at.is_none() && document::conversation(text).is_ok() {
            true => wire(error).advise("the file is one conversation: leave out --each"),
            false => wire(error),
        };
        let conversations = document::each(text).map_err(refused)?.map(|element| {
            let element = element?;
            at.as_ref().map_or_else(|| Ok(element.clone()), |at| element.at(at))?.conversation()
        });
        // An export also has conversations without messages.
        let found = conversations.map(|found| {
            let conversation = found.map_err(refused)?;
            Ok(Transcript::Memory { path: &self.path, conversation })
        });
        match found.collect::<Result<Vec<_>>>()? {
            none if none.is_empty() => Err(empty(&self.path, "")),
            found => Ok(found),
        }
    }

    /// Writes the file with other conversations in the places of `found`: all of [`Input::each`], or the one of
    /// [`Input::conversation`]. `write` writes the nth.
    pub(crate) fn splice(
        &self,
        found: &mut [Transcript<'_>],
        out: &mut dyn Write,
        mut write: impl FnMut(usize, &mut Transcript<'_>, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Text::Read(transcript) = &self.text {
            for (at, found) in found.iter_mut().enumerate() {
                write(at, found, out)?;
            }
            return ReadConversation::write_all(transcript, found, out);
        }
        let Text::Memory(text) = &self.text else {
            return found.iter_mut().enumerate().try_for_each(|(at, transcript)| write(at, transcript, out));
        };
        let mut written = 0;
        for (at, transcript) in found.iter_mut().enumerate() {
            let place = transcript.place_in(text);
            out.write_all(text.as_bytes().get(written..place.start).unwrap_or_default())?;
            write(at, transcript, out)?;
            written = place.end;
        }
        out.write_all(text.as_bytes().get(written..).unwrap_or_default())
    }

    fn session<'a>(&'a self, file: &'a File, format: Format, args: &InputArgs) -> Result<Transcript<'a>> {
        match SessionFile::new(&self.path, file, format, args.part.leaf.as_deref())? {
            none if none.len() == 0 => Err(empty(&self.path, "")),
            found => Ok(Transcript::Session(Box::new(found))),
        }
    }

    fn active<'a>(&'a self, transcript: &'a wire::Transcript) -> Result<Transcript<'a>> {
        match ReadConversation::active(transcript) {
            Some(found) if found.len() > 0 => Ok(Transcript::Read(found)),
            found => Err(empty(&self.path, found.as_ref().map_or("", |found| found.pointer()))),
        }
    }

    fn all<'a>(&'a self, transcript: &'a wire::Transcript) -> Result<Vec<Transcript<'a>>> {
        let counts = transcript.conversations().iter().map(|conversation| conversation.entries.len());
        let (all, most) = (counts.fold(0, usize::saturating_add), EACH_MESSAGES_MAX);
        if all > most {
            let (path, count) = (self.path.display(), transcript.conversations().len());
            let [all, most] = [all, most].map(|count| grouped(count as u64));
            return Err(Failure::input(format!(
                "{path}: its {count} conversations have {all} messages in all, of at most {most} for --each: give one of \
                 them with --leaf ID, as `epitome stats` lists them"
            )));
        }
        Ok(ReadConversation::all(transcript))
    }

    fn checked<'a>(&'a self, conversation: DocumentConversation<'a>) -> Result<Transcript<'a>> {
        if conversation.is_empty() {
            return Err(empty(&self.path, conversation.path().as_str()));
        }
        Ok(Transcript::Memory { path: &self.path, conversation })
    }
}

/// The number of bytes of the complete lines of a session file, which an agent may be writing.
pub(crate) fn whole_bytes(file: &mut File, path: &Path) -> Result<u64> {
    let size = file.metadata().map_err(|error| Failure::io(path, &error))?.len();
    let head = head::read(file, path)?;
    Ok(tail::whole_lines(file, (&head, size), path)?.unwrap_or(size))
}

/// The given files; standard input if there are none.
pub(crate) fn files(given: &[PathBuf]) -> Result<Cow<'_, [PathBuf]>> {
    if !given.is_empty() {
        return Ok(Cow::Borrowed(given));
    }
    check_piped()?;
    Ok(Cow::Owned(vec![PathBuf::from("-")]))
}

/// Fails if standard input is a terminal.
fn check_piped() -> Result<()> {
    match streams::is_in_terminal() {
        true => Err(Failure::input(
            "no FILE is given, and standard input is a terminal: give a FILE, pipe a transcript in, or give `latest`",
        )),
        false => Ok(()),
    }
}

/// All of standard input, which can be read only once.
pub(crate) fn stdin() -> Result<Vec<u8>> {
    head::fill(&mut *streams::input(), Vec::new(), Path::new(STDIN))
}

fn empty(path: &Path, place: &str) -> Failure {
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    Failure::input(format!("{}: the conversation{at} is empty: it has no messages", path.display()))
}

/// Purpose of an opened input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Any,
    Look,
}
