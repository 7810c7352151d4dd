//! `epitome search`: searches the messages of all sessions, also those that no request shows any more.

mod stored;

use core::hash::BuildHasher as _;
use core::ops::ControlFlow;
use core::time::Duration;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::RandomState;
use std::time::UNIX_EPOCH;

use epitome::core::message::Role;
use epitome::core::{Basis, TokenCounter, Tokens};
use epitome::history::Timestamp;
use epitome::message::{Message, Part, Str};
use epitome::search::{MessageSearch, Record, nearest_piece, said, text_of};
use serde::Serialize;

use crate::amount::counted;
use crate::archive::{Archive, Session};
use crate::args::{Numbers, SearchArgs};
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output::{self, to_json};
use crate::progress::Progress;
use crate::redact::Redactor;
use crate::scan::{self, Counter, ESTIMATE};
use crate::visible::{line, lines};

/// The result of a search.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether a message was found.
    pub(crate) is_found: bool,
}

/// A message in the result.
#[derive(Debug, Serialize)]
struct Shown {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Its number in the log of the session, or among all messages of its file, from 0.
    message: u64,
    role: Role,
    /// Offset of the piece in the text of the message, and the length of that text, in bytes.
    from: usize,
    bytes: usize,
    text: String,
    #[serde(skip)]
    about: Option<String>,
    #[serde(skip)]
    whole: String,
    #[serde(skip)]
    piece: core::ops::Range<usize>,
}

/// The limits of a search to some messages of a session, which are read in order.
struct Limits<'a> {
    role: Option<Role>,
    tool: Option<&'a str>,
    /// The ids of the calls of the tool. A result belongs to the last call with its id.
    calls: HashSet<Str>,
}

impl<'a> Limits<'a> {
    fn new(args: &'a SearchArgs) -> Self {
        Self { role: args.role(), tool: args.tool.as_deref(), calls: HashSet::new() }
    }

    fn has(&mut self, message: &Message) -> bool {
        self.has_tool(message) && self.role.is_none_or(|role| role == message.role())
    }

    fn has_tool(&mut self, message: &Message) -> bool {
        let Some(tool) = self.tool else { return true };
        let mut has_tool = false;
        for part in message.parts() {
            has_tool |= match part {
                Part::ToolCall(call) if call.name.as_str() == tool => {
                    self.calls.insert(call.id.clone());
                    true
                }
                Part::ToolCall(call) => {
                    self.calls.remove(&call.id);
                    false
                }
                Part::ToolResult(result) => self.calls.contains(&result.call_id),
                _ => false,
            };
        }
        has_tool
    }
}

/// Counts of the searched sessions.
#[derive(Debug, Default)]
struct Looked {
    sessions: u64,
    unread_lines: u64,
    /// The first session that could not be read, and the number of such sessions.
    failed: Option<Failure>,
    failures: u64,
}

pub(crate) fn run(args: &SearchArgs) -> Result<ExitCode> {
    let answer = answer(args)?;
    output::say(&answer.text)?;
    Ok(if answer.is_found { ExitCode::SUCCESS } else { ExitCode::from(code::VIOLATIONS) })
}

/// Searches, or reads messages by their numbers.
pub(crate) fn answer(args: &SearchArgs) -> Result<Answer> {
    let archive = Archive::open(&args.scope)?;
    let mut redactor = Redactor::new(&args.redact)?;
    let (shown, about) = match args.messages {
        Some(numbers) => read(args, &archive, numbers, redactor.as_mut())?,
        None => search(args, &archive, redactor.as_mut())?,
    };
    let is_found = !shown.is_empty();
    let text = match (args.json, is_found) {
        (true, _) => to_json(&shown)?,
        (false, false) => about,
        (false, true) => {
            let counter = Visible(scan::counter(ESTIMATE)?);
            let mut record = Record::new(&counter, args.tokens);
            for (order, shown) in (0..).zip(&shown) {
                let name = shown.name(args.session.is_some());
                if !record.push(order, &name, &shown.whole, shown.piece.clone()) {
                    break;
                }
            }
            if record.is_empty() {
                let what =
                    format!("--tokens {}: no message that was found fits: give more tokens", args.tokens);
                return Err(Failure::input(what));
            }
            record.into_text(&about)
        }
    };
    // Ids, projects and paths may hold secrets too.
    let text = match &mut redactor {
        Some(redactor) if args.json => redactor.json(&text),
        Some(redactor) => redactor.value(None, &text).unwrap_or(text),
        None => text,
    };
    if let Some(redactor) = &redactor {
        redactor.found().tell();
    }
    Ok(Answer { text, is_found })
}

/// Counts the tokens of a text in its printed form.
struct Visible(Counter);

impl TokenCounter for Visible {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn basis(&self) -> Basis {
        self.0.basis()
    }

    fn count(&self, text: &str) -> Tokens {
        self.0.count(&lines(text))
    }
}

fn search(
    args: &SearchArgs,
    archive: &Archive,
    mut redactor: Option<&mut Redactor>,
) -> Result<(Vec<Shown>, String)> {
    let query = args.words.join(" ");
    let mut search = MessageSearch::new(&query);
    if search.is_blank() {
        return Err(Failure::input("WORDS: nothing to search for: give a word or a number"));
    }
    let since = args.age.map(|age| Timestamp(Timestamp::now().0.saturating_sub(age.0)));
    if let Some(store) = archive.store() {
        return stored::search(args, archive, store, (&query, since), redactor);
    }
    let since = since.map(|time| UNIX_EPOCH + Duration::from_millis(time.0));
    let mut sessions: Vec<&Session> = match &args.session {
        Some(id) => vec![archive.named(id)?],
        None => archive.sessions.iter().collect(),
    };
    sessions.retain(|session| since.is_none_or(|since| session.is_since(since)));
    if sessions.is_empty() {
        return Err(Failure::new(code::VIOLATIONS, "--age: no session was written within this time"));
    }
    // The newest session is searched last: of equally near texts, and of copies of one text, the last is shown.
    sessions.reverse();
    let (hashes, mut known) = (RandomState::new(), HashMap::<u64, Option<u64>>::new());
    // Each message has a number of its own, and neighbours in a session have neighbouring numbers. `places` has the
    // shown place for each number.
    let (mut places, mut begin, mut end) = (HashMap::<u64, (usize, u64)>::new(), 0, 0);
    let mut looked = Looked::default();
    let bytes = |session: &&Session| session.file().map_or(0, |found| found.bytes);
    let (mut progress, mut done) = (Progress::new("searching", sessions.iter().map(bytes).sum()), 0);
    for (at, session) in sessions.iter().enumerate() {
        let mut wanted = Limits::new(args);
        looked.at(archive.for_each(session, 0, &mut |number, message| {
            let text = if wanted.has(&message) { said(&message) } else { String::new() };
            if text.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            match known.entry(hashes.hash_one(&text)) {
                Entry::Vacant(free) => {
                    let own = begin + number;
                    end = own;
                    let is_found = search.add_said(own, &text);
                    free.insert(is_found.then_some(own));
                    if is_found {
                        places.insert(own, (at, number));
                    }
                }
                Entry::Occupied(again) => {
                    if let Some(place) = again.get().and_then(|own| places.get_mut(&own)) {
                        *place = (at, number);
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        }));
        begin = end + 2;
        done += bytes(session);
        progress.reach(done);
    }
    drop(progress);
    let nearest = search.nearest(args.limit.get());
    let mut wanted = BTreeMap::<usize, Vec<(u64, usize)>>::new();
    for (rank, (session, number)) in nearest.iter().filter_map(|own| places.get(own).copied()).enumerate() {
        wanted.entry(session).or_default().push((number, rank));
    }
    let mut shown = Vec::new();
    for (at, mut numbers) in wanted {
        let Some(session) = sessions.get(at) else { continue };
        numbers.sort_unstable();
        let first = numbers.first().map_or(0, |(number, _)| *number);
        let mut numbers = numbers.into_iter().peekable();
        let read = archive.for_each(session, first, &mut |number, message| {
            if let Some((_, rank)) = numbers.next_if(|(wanted, _)| *wanted == number) {
                let (role, whole) = (message.role(), text_of(&redacted(message, redactor.as_deref_mut())));
                let piece = nearest_piece(&whole, &query);
                shown.push((rank, Shown::new(session, number, role, whole, piece)));
            }
            Ok(if numbers.peek().is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        if let Err(failure) = read {
            looked.at(Err(failure));
        }
    }
    shown.sort_unstable_by_key(|(rank, _)| *rank);
    let shown: Vec<_> = shown.into_iter().map(|(_, shown)| shown).collect();
    let about = looked.about(args, shown.len(), search.messages())?;
    Ok((shown, about))
}

fn read(
    args: &SearchArgs,
    archive: &Archive,
    Numbers { first, last }: Numbers,
    mut redactor: Option<&mut Redactor>,
) -> Result<(Vec<Shown>, String)> {
    let session = archive.named(args.session.as_deref().unwrap_or_default())?;
    let counter = Visible(scan::counter(ESTIMATE)?);
    let (mut shown, mut tokens) = (Vec::new(), 0);
    archive.for_each(session, first, &mut |number, message| {
        if number <= last {
            let (role, whole) = (message.role(), text_of(&redacted(message, redactor.as_deref_mut())));
            if number == first && args.from > 0 && args.from >= whole.len() {
                let (from, bytes) = (args.from, counted(whole.len() as u64, "byte"));
                return Err(Failure::input(format!("--from {from}: message {number} has only {bytes}")));
            }
            let from = whole.floor_char_boundary(if number == first { args.from } else { 0 });
            let piece = from..whole.len();
            if !whole.is_empty() {
                tokens += u64::from(counter.count(whole.get(piece.clone()).unwrap_or_default()).0);
                shown.push(Shown::new(session, number, role, whole, piece));
            }
        }
        // The last message then has no room, and the output reports this.
        let is_full = !args.json && tokens > u64::from(args.tokens);
        Ok(if number >= last || is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let id = quoted(&session.id);
    let about = match shown.is_empty() {
        true => format!("The session {id} has no text in the messages {first} to {last}."),
        false => format!("messages {first} to {last} of the session {id}"),
    };
    Ok((shown, about))
}

/// The message, without secrets if there is a redactor.
fn redacted(message: Message, redactor: Option<&mut Redactor>) -> Message {
    match redactor {
        Some(redactor) => redactor.message(message),
        None => message,
    }
}

/// A name from outside, quoted so that it cannot be taken for text of the program. A name of letters, digits and some
/// marks stays as it is.
fn quoted(name: &str) -> String {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '\\' | ':' | '@' | '+' | '~');
    if name.len() <= NAME_BYTES_MAX && !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let end = name.floor_char_boundary(NAME_BYTES_MAX);
    let cut = if end < name.len() { ".." } else { "" };
    format!("{:?}{cut}", name.get(..end).unwrap_or_default())
}

/// Maximum length of a shown name: longer names are cut.
const NAME_BYTES_MAX: usize = 200;

impl Shown {
    fn new(
        session: &Session,
        message: u64,
        role: Role,
        whole: String,
        piece: core::ops::Range<usize>,
    ) -> Self {
        let end = whole.floor_char_boundary(piece.end);
        Self {
            session: session.id.clone(),
            tool: session.file().map(|found| found.tool()),
            path: session.file().map(|found| found.path.to_string_lossy().into_owned()),
            message,
            role,
            from: piece.start,
            bytes: whole.len(),
            text: whole.get(piece.start..end).unwrap_or_default().to_owned(),
            about: session
                .about()
                .map(|[tool, project, date]| format!("{tool}, {}, {date}", quoted(&project))),
            whole,
            piece,
        }
    }

    /// The name of the message, in front of its text.
    fn name(&self, is_of_one: bool) -> String {
        let number = self.message;
        if is_of_one {
            return format!("#{number}");
        }
        let id = quoted(&self.session);
        match &self.about {
            Some(about) => format!("{id} #{number} ({about})"),
            None => format!("{id} #{number}"),
        }
    }
}

/// The options that limit a search, for the message of a search without results.
fn narrowed(args: &SearchArgs) -> String {
    let given =
        [("--role", args.role.is_some()), ("--tool", args.tool.is_some()), ("--age", args.age.is_some())];
    let given: Vec<_> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    if given.is_empty() { String::new() } else { format!(" within {}", given.join(", ")) }
}

impl Looked {
    /// Counts a session. A session that cannot be read does not stop the search.
    fn at(&mut self, read: Result<u64>) {
        match read {
            Ok(unread) => {
                self.sessions += 1;
                self.unread_lines += unread;
            }
            Err(failure) => {
                self.failures += 1;
                self.failed.get_or_insert(failure);
            }
        }
    }

    /// The sentence about `found` of `messages`. It mentions unreadable sessions, which standard error mentions too.
    ///
    /// # Errors
    ///
    /// The first failure, if no session can be read.
    fn about(mut self, args: &SearchArgs, found: usize, messages: u64) -> Result<String> {
        let mut missing = String::new();
        if let Some(failure) = self.failed.take() {
            if self.sessions == 0 {
                return Err(failure);
            }
            let count = counted(self.failures, "session");
            output::tell(format!(
                "epitome: {count} could not be read, the first: {}",
                line(failure.message())
            ));
            missing += &format!("; {count} could not be read");
        }
        if self.unread_lines > 0 {
            let lines = counted(self.unread_lines, "line");
            output::tell(format!("epitome: passed over {lines} that could not be read"));
            missing += &format!("; {lines} passed over that could not be read");
        }
        let (messages, sessions) = (counted(messages, "message"), counted(self.sessions, "session"));
        Ok(match found {
            0 => format!("None of {messages} in {sessions} has these words{}{missing}.", narrowed(args)),
            1 => format!("the nearest of {messages} in {sessions}{missing}"),
            found => format!("the {found} nearest of {messages} in {sessions}{missing}"),
        })
    }
}
