//! Searches by the index of words.

use std::collections::HashMap;

use epitome_core::Seq;
use epitome_history::rows::{StoredPage, int};
use epitome_history::words::{Block, Candidates, Queue, READ_MAX, blocks, marked, places_in_rows, searched};
use epitome_history::{FoundMessage, LogSearch, SearchScope, SessionId};
use epitome_message::search::{Term, query_terms};
use rusqlite::Connection;

use super::failure::Failure;
use super::row::{corrupt_name, find_session, logged, number, rows, time};
use super::session::Session;
use super::sql;
use super::words::{self, last_text, session_mark};

/// Maximum number of sessions whose marks a search looks up in the index, unless the sessions have few of the file's
/// messages.
const MARKS_MAX: usize = 64;

/// A search of more sessions ignores their marks if they have at least one of this number of messages of the file.
const SHARE_MIN: u64 = 16;

/// Finds the nearest messages; `None` if there are so few messages that reading them all is as fast.
pub(super) fn search(
    connection: &Connection,
    search: &LogSearch,
    open: &dyn Fn(&SessionId) -> Session,
) -> Result<Option<Vec<FoundMessage>>, Failure> {
    let Some(sessions) = sessions(connection, search, open)? else { return Ok(None) };
    let candidates = candidates(connection, search, &sessions)?;
    let mut reader = Reader { connection, search, open, begins: HashMap::new() };
    let mut queue = Queue::new(&candidates, search);
    loop {
        let next = queue.to_read();
        if next.is_empty() {
            return Ok(Some(queue.nearest()));
        }
        for candidate in next {
            let (block, place) = candidate;
            if let Some(found) = reader.read(block.first + i64::from(place))? {
                queue.push(candidate, found);
            }
        }
    }
}

/// The sessions in the scope of a search.
enum Sessions {
    /// The sessions with these ids. The index has the places of their messages.
    Few(Vec<i64>),
    /// Too many sessions for a list. The search reads the session of each message that it finds.
    Many,
}

/// The sessions in the scope of a search. `None` if they have so few messages that all are read.
fn sessions(
    connection: &Connection,
    search: &LogSearch,
    open: &dyn Fn(&SessionId) -> Session,
) -> Result<Option<Sessions>, Failure> {
    let (terms, last) = (query_terms(&search.words).len() as u64, last_text(connection)?);
    if terms == 0 || search.limit == 0 {
        return Ok(None);
    }
    let blocks = blocks(last).0.count() as u64;
    // A row of the index takes about as long to read as a message. Each block needs one row for each word and for each
    // session.
    let is_worth_it = |sessions: u64, messages: u64| {
        messages > READ_MAX && terms.saturating_add(sessions).saturating_mul(blocks) <= messages
    };
    // Messages of other sessions are read too, until there are enough results.
    let is_most = |messages: u64| messages.saturating_mul(SHARE_MIN) >= last.unsigned_abs();
    let prefix = match &search.scope {
        SearchScope::Session(id) => {
            let found = find_session(connection, &open(id))?;
            let found = found.filter(|found| is_worth_it(1, searched(search, found.counters.head)));
            return Ok(found.map(|found| Sessions::Few(vec![found.id])));
        }
        SearchScope::Prefix(prefix) => prefix.as_bytes(),
        _ => &[],
    };
    let (mut sessions, mut messages) = (Vec::new(), 0_u64);
    let mut statement = connection.prepare_cached(sql::SESSIONS)?;
    let mut found = statement.query([prefix])?;
    while let Some(row) = found.next()? {
        if !row.get_ref(1)?.as_blob().is_ok_and(|name| name.starts_with(prefix)) {
            break;
        }
        let is_old = |since| time(row, 3).map(|appended| appended.is_some_and(|appended| appended < since));
        if search.since.map_or(Ok(false), is_old)? {
            continue;
        }
        sessions.push(row.get(0)?);
        messages = messages.saturating_add(searched(search, Seq(number(row, 2)?)));
        if is_most(messages) && is_worth_it(0, messages) && sessions.len() > MARKS_MAX {
            return Ok(Some(Sessions::Many));
        }
    }
    Ok(is_worth_it(sessions.len() as u64, messages).then_some(Sessions::Few(sessions)))
}

/// The candidates: the messages that have a word of the search.
fn candidates(
    connection: &Connection,
    search: &LogSearch,
    sessions: &Sessions,
) -> Result<Candidates<Block>, Failure> {
    let mut candidates = Candidates::new(search);
    let (blocks, behind) = blocks(last_text(connection)?);
    for block in blocks {
        let find = |term| words::find(connection, block, term);
        candidates.add(block, block.span, admitted(sessions, block, find)?, find)?;
    }
    // The messages after the last block are indexed in memory.
    let block = Block { first: behind.start, span: behind.end - behind.start };
    let rows = words::of_texts(connection, block, |_| false)?.into_rows();
    let find = |term| places_in_rows(&rows, term).map_err(Failure::from);
    candidates.add(block, block.span, admitted(sessions, block, find)?, find)?;
    Ok(candidates)
}

/// For each place in a block, whether the message belongs to a session in the scope; `None` if all do.
fn admitted(
    sessions: &Sessions,
    block: Block,
    find: impl Fn(Term) -> Result<Vec<u32>, Failure>,
) -> Result<Option<Vec<bool>>, Failure> {
    let Sessions::Few(sessions) = sessions else { return Ok(None) };
    let mut own = Vec::new();
    for session in sessions {
        own.append(&mut find(session_mark(*session))?);
    }
    Ok(Some(marked(block.span, own)))
}

/// Reads messages by the ids of their texts.
struct Reader<'r> {
    connection: &'r Connection,
    search: &'r LogSearch,
    open: &'r dyn Fn(&SessionId) -> Session,
    /// For each session, the first number in the scope.
    begins: HashMap<i64, Seq>,
}

impl Reader<'_> {
    /// The message of a text, if it is in the scope of the search.
    fn read(&mut self, text: i64) -> Result<Option<FoundMessage>, Failure> {
        let place = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, number(row, 1)?, row.get(2)?));
        let Some((id, seq, name)) = rows(self.connection, sql::PLACE, [text], place)?.pop() else {
            return Ok(None);
        };
        let name = SessionId::new(String::from_utf8(name).map_err(|_| corrupt_name("search"))?);
        let seq = Seq(seq);
        if !self.search.has_session(&name) || !self.search.has_number(seq) || seq < self.begin(id)? {
            return Ok(None);
        }
        let session = (self.open)(&name);
        let bounds = (id, int(seq.0), int(seq.0.saturating_add(1)));
        let rows = rows(self.connection, sql::LOG, bounds, |row| logged(row, &session))?;
        let page = StoredPage { rows, next: None }.into_page()?;
        let found = page.messages.into_iter().next().filter(|logged| self.search.has_message(logged));
        Ok(found.map(|logged| FoundMessage::new(name, logged)))
    }

    /// The first number of a session in the searched period.
    fn begin(&mut self, session: i64) -> Result<Seq, Failure> {
        let Some(since) = self.search.since else { return Ok(Seq(0)) };
        if let Some(begin) = self.begins.get(&session) {
            return Ok(*begin);
        }
        let before = (session, int(since.0));
        let ends = rows(self.connection, sql::APPENDED_BEFORE, before, |row| Ok(number(row, 0)?))?;
        let begin = Seq(ends.first().copied().unwrap_or_default());
        self.begins.insert(session, begin);
        Ok(begin)
    }
}
