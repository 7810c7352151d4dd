//! Searches by the index of words.
//!
//! The index names the messages that have a word of the search, and how many have each word. The best of them by the rarity of their words
//! are read, and ranked as every store ranks them.

use std::collections::HashMap;

use epitome_core::Seq;
use epitome_history::rows::{StoredPage, int};
use epitome_history::{FoundMessage, LogSearch, SearchScope, SessionId};
use epitome_message::search::{MessageSearch, Postings, Term, query_terms, rarity};
use rusqlite::Connection;

use super::failure::Failure;
use super::row::{corrupt_name, find_session, logged, number, rows, time};
use super::session::Session;
use super::sql;
use super::words::{self, Block, blocks, last_text, role_mark, session_mark};

/// So many messages are read one by one, without the index.
pub(super) const READ_MAX: u64 = 1_024;

/// The sessions of a search are looked up in the index if they are no more, or if they have few of the messages of the file.
const MARKS_MAX: usize = 64;

/// Otherwise they have at least one of so many messages of the file.
const SHARE_MIN: u64 = 16;

/// The least messages that are read to be ranked, and how many for each that is wanted.
const RANKED_MIN: usize = 64;
const RANKED_PER_FOUND: usize = 4;

/// How many of the best messages are told from each other at once.
const BEST: usize = 1_024;

/// The nearest messages; `None` where they are so few that reading them all is as fast.
pub(super) fn search(
    connection: &Connection,
    search: &LogSearch,
    open: &dyn Fn(&SessionId) -> Session,
) -> Result<Option<Vec<FoundMessage>>, Failure> {
    let Some(sessions) = sessions(connection, search, open)? else { return Ok(None) };
    let index = Index::read(connection, search, &sessions)?;
    let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
    let wanted = limit.saturating_mul(RANKED_PER_FOUND).max(RANKED_MIN);
    let mut reader = Reader { connection, search, open, begins: HashMap::new() };
    let (mut best, mut asked, mut read) = (BEST, 0, Vec::new());
    loop {
        // The best of a larger number begin with the same ones.
        let (ids, is_all) = index.best(best);
        for id in ids.into_iter().skip(asked) {
            asked = asked.saturating_add(1);
            read.extend(reader.read(id)?.map(|found| (id, found)));
            if read.len() == wanted {
                break;
            }
        }
        if read.len() == wanted || is_all {
            break;
        }
        best = best.saturating_mul(16);
    }
    // Of equal ones the search prefers the later.
    read.sort_unstable_by_key(|(id, _)| *id);
    let mut nearest = MessageSearch::of_collection(&search.words, index.texts, |term| index.with(term));
    for ((_, found), number) in read.iter().zip(0..) {
        nearest.add(number, &found.logged.entry.message);
    }
    let mut found: Vec<_> = read.into_iter().map(|(_, found)| Some(found)).collect();
    let nearest = nearest.nearest(limit).into_iter();
    let take = |number| found.get_mut(usize::try_from(number).ok()?)?.take();
    Ok(Some(nearest.filter_map(take).collect()))
}

/// The sessions that are searched.
enum Sessions {
    /// These, by their ids. The index names their messages.
    Few(Vec<i64>),
    /// So many that each message that is found is asked for its session.
    Many,
}

/// The sessions that are searched. `None` if they have so few messages that all are read.
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
    // A row of the index takes about as long as a message. One is looked up in each block for each word and for each session.
    let is_worth_it = |sessions: u64, messages: u64| {
        messages > READ_MAX && terms.saturating_add(sessions).saturating_mul(blocks) <= messages
    };
    // Messages of other sessions are asked for theirs too, until enough are found.
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

/// How many messages are searched of a session with this head.
fn searched(search: &LogSearch, head: Seq) -> u64 {
    let Some(ranges) = &search.ranges else { return head.0 };
    let within = ranges.iter().map(|range| range.end.min(head).0.saturating_sub(range.start.0));
    within.fold(0, u64::saturating_add)
}

/// The part of the index that a search needs.
struct Index {
    /// The terms of the words, and how many texts have each.
    terms: Vec<(Term, u64)>,
    /// How many texts were looked at.
    texts: u64,
    blocks: Vec<Found>,
}

/// What was found in a block.
struct Found {
    block: Block,
    /// By the number of a term, the places of the texts that have it.
    places: Vec<Vec<u32>>,
    /// By place, whether the text is searched; `None` if all are.
    admitted: Option<Vec<bool>>,
}

impl Index {
    fn read(connection: &Connection, search: &LogSearch, sessions: &Sessions) -> Result<Self, Failure> {
        let terms = query_terms(&search.words).into_iter().map(|term| (term, 0)).collect();
        let mut index = Self { terms, texts: 0, blocks: Vec::new() };
        let (blocks, behind) = blocks(last_text(connection)?);
        for block in blocks {
            index.look(search, sessions, block, |term| words::find(connection, block, term))?;
        }
        // What no block has yet is a block of this moment.
        let block = Block { first: behind.start, span: behind.end - behind.start };
        let rows = words::of_texts(connection, block, |_| false)?.into_rows();
        let find = |term: Term| {
            let at = rows.partition_point(|(first, _)| *first <= term).checked_sub(1);
            let row = at.and_then(|at| rows.get(at));
            row.map_or(Ok(Vec::new()), |(_, row)| Postings::find(row, term).map_err(words::torn))
        };
        index.look(search, sessions, block, find)?;
        Ok(index)
    }

    fn look(
        &mut self,
        search: &LogSearch,
        sessions: &Sessions,
        block: Block,
        find: impl Fn(Term) -> Result<Vec<u32>, Failure>,
    ) -> Result<(), Failure> {
        let span = usize::try_from(block.span).unwrap_or_default();
        let mut admitted = None;
        if let Sessions::Few(sessions) = sessions {
            let mut own = vec![false; span];
            for session in sessions {
                find(session_mark(*session))?.into_iter().for_each(|place| set(&mut own, place));
            }
            admitted = Some(own);
        }
        if let Some(role) = search.role {
            let mut own = vec![false; span];
            find(role_mark(role))?.into_iter().for_each(|place| set(&mut own, place));
            if let Some(others) = &admitted {
                own.iter_mut().zip(others).for_each(|(own, other)| *own &= *other);
            }
            admitted = Some(own);
        }
        // A block without a message that is searched tells nothing.
        if admitted.as_ref().is_some_and(|admitted| !admitted.contains(&true)) {
            return Ok(());
        }
        let mut places = Vec::with_capacity(self.terms.len());
        for (term, with) in &mut self.terms {
            let own = find(*term)?;
            *with = with.saturating_add(own.len() as u64);
            places.push(own);
        }
        self.texts = self.texts.saturating_add(block.span.unsigned_abs());
        self.blocks.push(Found { block, places, admitted });
        Ok(())
    }

    /// How many texts have a term.
    fn with(&self, term: Term) -> u64 {
        let at = self.terms.binary_search_by_key(&term, |(term, _)| *term).ok();
        at.and_then(|at| self.terms.get(at)).map_or(0, |(_, with)| *with)
    }

    /// The ids of the `count` texts whose words are rarest together, the best first, of equal ones the newest; and whether these are all.
    fn best(&self, count: usize) -> (Vec<i64>, bool) {
        let rarities: Vec<u64> = self.terms.iter().map(|(_, with)| rarity(self.texts, *with)).collect();
        let (mut best, mut least, mut is_all) = (Vec::<(u64, i64)>::new(), (0, 0), true);
        let mut scores = Vec::<u64>::new();
        // The newest first: of the many that are as good as each other the first are the best.
        for Found { block, places, admitted } in self.blocks.iter().rev() {
            scores.clear();
            scores.resize(usize::try_from(block.span).unwrap_or_default(), 0);
            for (own, rarity) in places.iter().zip(&rarities) {
                // One that all have still says something.
                for place in own {
                    if let Some(score) = scores.get_mut(*place as usize) {
                        *score = score.saturating_add(rarity.saturating_add(1));
                    }
                }
            }
            for (place, score) in scores.iter().enumerate().rev().filter(|(_, score)| **score > 0) {
                let is_admitted =
                    admitted.as_ref().is_none_or(|own| own.get(place).copied().unwrap_or_default());
                if !is_admitted {
                    continue;
                }
                let own = (*score, block.first.saturating_add(place as i64));
                if own < least {
                    is_all = false;
                    continue;
                }
                best.push(own);
                if best.len() >= count.saturating_mul(2) {
                    best.select_nth_unstable_by(count, |one, other| other.cmp(one));
                    best.truncate(count);
                    least = best.iter().copied().min().unwrap_or_default();
                    is_all = false;
                }
            }
        }
        best.sort_unstable_by(|one, other| other.cmp(one));
        is_all &= best.len() <= count;
        best.truncate(count);
        (best.into_iter().map(|(_, id)| id).collect(), is_all)
    }
}

fn set(own: &mut [bool], place: u32) {
    if let Some(own) = own.get_mut(place as usize) {
        *own = true;
    }
}

/// Reads messages by the ids of their texts.
struct Reader<'r> {
    connection: &'r Connection,
    search: &'r LogSearch,
    open: &'r dyn Fn(&SessionId) -> Session,
    /// By session, the first number that is searched.
    begins: HashMap<i64, Seq>,
}

impl Reader<'_> {
    /// The message of a text, if it is searched.
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

    /// The first number of a session that is searched by its time.
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
