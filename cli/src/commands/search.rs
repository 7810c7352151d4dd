//! `epitome search`: what was said in any session, also where no request shows it any more.

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::collections::{BTreeMap, HashSet};
use std::hash::RandomState;
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use epitome::core::message::Role;
use epitome::std::history::Timestamp;
use epitome::std::message::Message;
use epitome::std::search::{Hit, Record, Search, nearest_piece, said};
use serde::Serialize;

use crate::amount::counted;
use crate::archive::{Archive, More, Session};
use crate::args::{Numbers, SearchArgs};
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::progress::Progress;
use crate::redact::Redactor;
use crate::scan::{self, ESTIMATE};
use crate::visible::line;

/// What a search says.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether a message was found.
    pub(crate) is_found: bool,
}

/// A message that is shown.
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
    /// Where the piece begins in the text of the message, and how long that is, in bytes.
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

/// The messages that were looked at.
#[derive(Debug, Default)]
struct Looked {
    sessions: u64,
    unread_lines: u64,
    /// The first session that could not be read, and how many could not.
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
    if args.age.is_some() && args.scope.store().is_some() {
        return Err(Failure::input(
            "--age is of sessions of agents: the sessions of a store are not told by their times",
        ));
    }
    let archive = Archive::open(&args.scope)?;
    let mut redactor = Redactor::new(&args.redact)?;
    let (shown, about) = match args.messages {
        Some(numbers) => read(args, &archive, numbers, redactor.as_mut())?,
        None => search(args, &archive, redactor.as_mut())?,
    };
    if let Some(redactor) = &redactor {
        redactor.found().tell();
    }
    let is_found = !shown.is_empty();
    let text = match (args.json, is_found) {
        (true, _) => {
            serde_json::to_string_pretty(&shown).map_err(|error| Failure::new(code::IO, error.to_string()))?
        }
        (false, false) => about,
        (false, true) => {
            let counter = scan::counter(ESTIMATE)?;
            let mut record = Record::new(&*counter, args.tokens);
            for (order, shown) in (0..).zip(&shown) {
                if !record.push(order, &shown.name(args.session.is_some()), &shown.whole, shown.piece.clone())
                {
                    break;
                }
            }
            record.into_text(&about)
        }
    };
    Ok(Answer { text, is_found })
}

fn search(
    args: &SearchArgs,
    archive: &Archive,
    mut redactor: Option<&mut Redactor>,
) -> Result<(Vec<Shown>, String)> {
    let query = args.words.join(" ");
    let mut search = Search::new(&query);
    if search.is_blank() {
        return Err(Failure::input("WORDS: nothing to search for: give a word or a number"));
    }
    let since = args.age.map(|age| Timestamp::now().0.saturating_sub(age.0));
    let since = since.map(|millis| UNIX_EPOCH + Duration::from_millis(millis));
    let sessions: Vec<&Session> = match &args.session {
        Some(id) => vec![archive.named(id)?],
        None => {
            let all = archive.sessions.iter();
            all.filter(|session| since.is_none_or(|since| session.is_since(since))).collect()
        }
    };
    // A session that was continued in another file is there twice.
    let (hashes, mut known) = (RandomState::new(), HashSet::new());
    let (mut places, mut looked) = (Vec::new(), Looked::default());
    let bytes = |session: &&Session| session.file().map_or(0, |found| found.bytes);
    let (mut progress, mut done) = (Progress::new("searching", sessions.iter().map(bytes).sum()), 0);
    for (at, session) in sessions.iter().enumerate() {
        looked.at(archive.for_each(session, &mut |number, message| {
            if args.role().is_none_or(|role| role == message.role()) {
                let text = said(&message);
                if !text.is_empty() && known.insert(hashes.hash_one(&text)) && search.add(&text) {
                    places.push((search.len() - 1, at, number));
                }
            }
            Ok(More::Wanted)
        }));
        done += bytes(session);
        progress.reach(done);
    }
    drop(progress);
    let sessions_read = looked.end()?;
    let hits = search.nearest(args.limit.get());
    let place = |hit: &Hit| {
        let at = places.binary_search_by_key(&hit.text, |(text, ..)| *text).ok()?;
        places.get(at).map(|(_, session, number)| (*session, *number))
    };
    let mut wanted = BTreeMap::<usize, Vec<(u64, usize)>>::new();
    for (rank, (session, number)) in hits.iter().filter_map(place).enumerate() {
        wanted.entry(session).or_default().push((number, rank));
    }
    let mut shown = Vec::new();
    for (at, mut numbers) in wanted {
        let Some(session) = sessions.get(at) else { continue };
        numbers.sort_unstable();
        let mut numbers = numbers.into_iter().peekable();
        archive.for_each(session, &mut |number, message| {
            if let Some((_, rank)) = numbers.next_if(|(wanted, _)| *wanted == number) {
                let whole = text_of(message.clone(), redactor.as_deref_mut());
                let piece = nearest_piece(&whole, &query);
                shown.push((rank, Shown::new(session, number, message.role(), whole, piece)));
            }
            Ok(if numbers.peek().is_some() { More::Wanted } else { More::Enough })
        })?;
    }
    shown.sort_unstable_by_key(|(rank, _)| *rank);
    let shown: Vec<_> = shown.into_iter().map(|(_, shown)| shown).collect();
    let (messages, sessions) = (counted(search.len(), "message"), counted(sessions_read, "session"));
    let about = match shown.len() {
        0 => format!("None of {messages} in {sessions} has these words."),
        count => format!("the {count} nearest of {messages} in {sessions}"),
    };
    Ok((shown, about))
}

fn read(
    args: &SearchArgs,
    archive: &Archive,
    Numbers { first, last }: Numbers,
    mut redactor: Option<&mut Redactor>,
) -> Result<(Vec<Shown>, String)> {
    let session = archive.named(args.session.as_deref().unwrap_or_default())?;
    let (mut shown, mut bytes) = (Vec::new(), 0);
    // What has more bytes a token than this is cut, so that it is known to be.
    let bytes_max = args.tokens as usize * 16;
    archive.for_each(session, &mut |number, message| {
        if (first..=last).contains(&number) {
            let (role, whole) = (message.role(), text_of(message, redactor.as_deref_mut()));
            let from = whole.floor_char_boundary(if number == first { args.from } else { 0 });
            let piece = from..whole.len();
            bytes += piece.len();
            if !whole.is_empty() {
                shown.push(Shown::new(session, number, role, whole, piece));
            }
        }
        Ok(if number >= last || bytes > bytes_max { More::Enough } else { More::Wanted })
    })?;
    let about = match shown.is_empty() {
        true => format!("The session {:?} has no text in the messages {first} to {last}.", session.id),
        false => format!("messages {first} to {last} of the session {}", line(&session.id)),
    };
    Ok((shown, about))
}

/// The text of a message, without secrets if that is asked for.
fn text_of(message: Message, redactor: Option<&mut Redactor>) -> String {
    said(&match redactor {
        Some(redactor) => redactor.message(message),
        None => message,
    })
}

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
            tool: session.file().map(|found| found.tool.as_str()),
            path: session.file().map(|found| found.path.to_string_lossy().into_owned()),
            message,
            role,
            from: piece.start,
            bytes: whole.len(),
            text: whole.get(piece.start..end).unwrap_or_default().to_owned(),
            about: session.about(),
            whole,
            piece,
        }
    }

    /// What stands before it. A name of a file may hold anything.
    fn name(&self, is_of_one: bool) -> String {
        let (number, id) = (self.message, line(&self.session));
        match (is_of_one, &self.about) {
            (true, _) => format!("#{number}"),
            (false, Some(about)) => format!("{id} #{number} ({})", line(about)),
            (false, None) => format!("{id} #{number}"),
        }
    }
}

impl Looked {
    /// Takes note of a session. One that cannot be read does not keep the others from being searched.
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

    /// Says what could not be read; where that is everything, there is no answer.
    fn end(mut self) -> Result<u64> {
        if let Some(failure) = self.failed.take() {
            if self.sessions == 0 {
                return Err(failure);
            }
            let (count, message) = (counted(self.failures, "session"), line(failure.message()));
            output::tell(format!("epitome: {count} could not be read, the first: {message}"));
        }
        if self.unread_lines > 0 {
            let lines = counted(self.unread_lines, "line");
            output::tell(format!("epitome: {lines} could not be read and were passed over"));
        }
        Ok(self.sessions)
    }
}
