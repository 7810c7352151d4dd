//! Recognises, reads and writes histories.

use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, WireText};

use super::runs::{Marks, Run, Speaker, is_history, is_marked, runs};
use crate::body::Body;
use crate::expect::share;
use crate::rewrite::{form, only_text};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Insertion, SourceRecordId, Transcript};
use crate::{Format, WireError, WireErrorKind};

/// The row of aider in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Aider, &[], (sign, read), Writer::Own(write));

fn sign(body: &Body<'_>) -> Fit {
    match is_history(body.text()) {
        true => Fit::Certain("its first line begins with `# aider chat started at`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let text = body.text();
    if text.trim().is_empty() {
        return Err(WireError::new(WireErrorKind::Empty, "there is no chat history: the text is empty"));
    }
    let marks = Marks::of(text);
    let runs = runs(text, marks);
    if runs.iter().all(|run| run.speaker == Speaker::Assistant) {
        let what = "no line begins with `# aider chat started at `, `#### ` or `> `: this is no chat history of aider; leave \
            out --from, or name another format";
        return Err(WireError::shape(what).with_offset(0));
    }
    let mut conversation = Conversation::new(Format::Aider, "");
    // A new line of the user would end in spaces, which the other lines have lost.
    if marks == Marks::Bare && runs.iter().any(|run| run.speaker == Speaker::User) {
        conversation.insertion = Insertion::Nowhere;
    }
    let list = transcript.texts(text, runs.iter().map(|run| run.range.clone()), "\n\n");
    let source = Arc::clone(&transcript.source);
    let mut session = Session::default();
    for (at, Run { speaker, range }) in runs.into_iter().enumerate() {
        if speaker == Speaker::Start {
            session.begin(transcript, list, at);
        } else if let Some(message) = message(&source, speaker, text.get(range).unwrap_or_default()) {
            let record = transcript.element(list, at, 1);
            conversation.extend(record, [message]);
            session.last = Some(record);
        }
    }
    session.end(transcript, list);
    transcript.push(conversation);
    Ok(())
}

/// A run of aider while its lines are read.
#[derive(Debug, Default)]
struct Session {
    /// The line that begins the run, unless it is the first line of the file.
    start: Option<usize>,
    is_later: bool,
    /// The last message so far.
    last: Option<SourceRecordId>,
}

impl Session {
    fn begin(&mut self, transcript: &mut Transcript, list: u32, at: usize) {
        self.end(transcript, list);
        self.start = self.is_later.then_some(at);
        self.is_later = true;
    }

    /// Hides the run's first line together with its last message, or, without one, with the last message before it.
    fn end(&mut self, transcript: &mut Transcript, list: u32) {
        if let (Some(start), Some(last)) = (self.start.take(), self.last) {
            transcript.hide(list, start, last);
        }
    }
}

/// The message of a run; none if its text is empty.
pub(super) fn message(source: &Arc<str>, speaker: Speaker, run: &str) -> Option<Message> {
    let said = speaker.said(run);
    if said.trim().is_empty() {
        return None;
    }
    let name = || Format::Aider.shared_name();
    let attribution = match speaker {
        Speaker::Program => Some(Attribution::new(name(), SourceKind::Tool, Authority::Retrieved)),
        Speaker::User if is_command(&said) => {
            Some(Attribution::new(name(), SourceKind::Context, Authority::User))
        }
        _ => None,
    };
    let role = if speaker == Speaker::Assistant { Role::Assistant } else { Role::User };
    let message = Message::new(role, vec![Part::Text(share(source, &said))]);
    let message = message.with_wire(WireText::new(name(), share(source, run)));
    Some(match attribution {
        Some(attribution) => message.with_attribution(attribution),
        None => message,
    })
}

/// Whether a text of the user is a command to aider that sends no request to a model, or is empty.
fn is_command(said: &str) -> bool {
    let said = said.trim();
    if said == "<blank>" || said.starts_with('!') {
        return true;
    }
    let Some(command) = said.strip_prefix('/') else { return false };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    // aider accepts the beginning of a command's name.
    let is_asked = !rest.trim().is_empty() && REQUESTS.iter().any(|request| request.starts_with(name));
    name != "ok" && !is_asked
}

/// An empty output of the program, in aider's form. It is no message, and separates the texts before and behind it.
const APART: &str = ">  ";

/// Commands whose text goes to a model.
const REQUESTS: [&str; 5] = ["ask", "code", "architect", "context", "help"];

fn write(record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
    if now.is_empty() {
        return Ok(None);
    }
    let (message, text) = only_text(now)?;
    let speaker = match message.role() {
        Role::Assistant => Speaker::Assistant,
        Role::User if message.attribution().source == SourceKind::Tool => Speaker::Program,
        Role::User => Speaker::User,
        _ => return Err(form("a message of this role")),
    };
    if let Some(record) = record.filter(|record| speaker.said(record) == text) {
        return Ok(Some(record.to_owned()));
    }
    if text.trim().is_empty() {
        return Err(form("a message without a word"));
    }
    if speaker == Speaker::Assistant {
        // If the text that was read has a heading, the lines of the user end in spaces.
        let has_heading = record.is_some_and(|record| record.lines().any(is_marked));
        let marks = if has_heading { Marks::Spaced } else { Marks::Bare };
        if text.lines().any(|line| marks.speaker(line) != Speaker::Assistant) {
            let what = "a text of the assistant in which a line begins with `#### `, `> ` or `# aider chat started at `";
            return Err(form(what));
        }
    }
    let lines = speaker.lines(text, record);
    Ok(Some(match (speaker, record) {
        (Speaker::Assistant, None) => format!("{APART}\n\n{lines}\n\n{APART}"),
        _ => lines,
    }))
}
