//! The index of words of a store in tables: which messages have which terms.
//!
//! Messages are numbered, and indexed in blocks: 256 at once, when the last message of a block is written, within the same
//! transaction. Sixteen such blocks become one of 4,096 messages. The messages behind the last block are read by each search. So an append
//! pays for the index once in 256 messages, and a search reads few rows. A block is written as the rows of its [`Postings`].
//!
//! The index names the messages that have a word of a search, and how many have each word. The best of these [`Candidates`] by the rarity
//! of their words are read, and ranked as every store ranks them.

mod indexed;
mod sessions;

use core::cell::Cell;
use core::ops::Range;
use std::collections::{BTreeSet, HashMap};

use epitome_core::Seq;
use epitome_core::message::Role;
use epitome_message::search::{MessageSearch, Postings, Term, TornRow, beside, query_terms, rarity};

use super::rows::int;
use sha2::{Digest, Sha256};

use super::rules::corrupt;
use super::{FoundMessage, LogSearch, StoreError};

pub use indexed::Indexed;
pub use sessions::{BlockRows, KeptWords, SessionWords, search_sessions};

/// Number of messages of a new block.
pub const SPAN: i64 = 256;

/// Number of messages of a block that is made of others.
pub const WIDE_SPAN: i64 = 4_096;

/// Maximum number of messages that are read one by one, without the index.
pub const READ_MAX: u64 = 1_024;

/// The least messages that are read to be ranked, and how many for each that is wanted.
const RANKED_MIN: usize = 64;
const RANKED_PER_FOUND: usize = 4;

/// Number of the best messages that are distinguished at once.
const BEST: usize = 1_024;

/// Some messages, by their numbers, that are indexed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub first: i64,
    pub span: i64,
}

impl Block {
    /// The block that is complete with the message `number`, if one is.
    pub const fn ended_by(number: i64) -> Option<Self> {
        Self::of_span_ended_by(number, SPAN)
    }

    /// The wide block that is complete with the message `number`, if one is.
    pub const fn wide_ended_by(number: i64) -> Option<Self> {
        Self::of_span_ended_by(number, WIDE_SPAN)
    }

    const fn of_span_ended_by(number: i64, span: i64) -> Option<Self> {
        match (number + 1) % span {
            0 => Some(Self { first: number + 1 - span, span }),
            _ => None,
        }
    }

    /// The block of a message, if `last` is the last one; `None` behind the last block.
    pub fn of(number: i64, last: i64) -> Option<Self> {
        let span = if number < ends(last, WIDE_SPAN) { WIDE_SPAN } else { SPAN };
        (number < ends(last, span)).then_some(Self { first: number - number % span, span })
    }

    /// The number behind its last message.
    pub const fn end(self) -> i64 {
        self.first + self.span
    }

    /// Whether it has all messages of another one.
    pub const fn holds(self, other: Self) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }

    /// The place of a message in it.
    ///
    /// # Errors
    /// `Corrupt` if it is in another block.
    pub fn place(self, number: i64) -> Result<u32, StoreError> {
        u32::try_from(number - self.first).map_err(|_| damaged())
    }
}

/// The end of the complete blocks, if `last` is the last message.
const fn ends(last: i64, span: i64) -> i64 {
    (last + 1) / span * span
}

/// All blocks, and the numbers of the messages behind them.
pub fn blocks(last: i64) -> (impl Iterator<Item = Block> + Clone, Range<i64>) {
    let (wide, all) = (ends(last, WIDE_SPAN), ends(last, SPAN));
    let of = |from: i64, to: i64, span: i64| {
        (0..(to - from) / span).map(move |at| Block { first: from + at * span, span })
    };
    (of(0, wide, WIDE_SPAN).chain(of(wide, all, SPAN)), all..last.saturating_add(1))
}

/// How many blocks there are, and how many messages behind them.
pub fn count(last: i64) -> (u64, u64) {
    let (wide, all) = (ends(last, WIDE_SPAN), ends(last, SPAN));
    let blocks = wide / WIDE_SPAN + (all - wide) / SPAN;
    (blocks.unsigned_abs(), last.saturating_add(1).abs_diff(all))
}

impl LogSearch {
    /// By place in a block, whether the message is searched by its number, from the number `begin` on: `Some(None)` if all are, `None` if
    /// none is.
    pub fn admitted(&self, block: Block, begin: Seq) -> Option<Option<Vec<bool>>> {
        if self.ranges.is_none() && int(begin.0) <= block.first {
            return Some(None);
        }
        let seqs = (block.first..block.end()).map(|number| Seq(number.unsigned_abs()));
        let admitted: Vec<bool> = seqs.map(|seq| seq >= begin && self.has_number(seq)).collect();
        admitted.contains(&true).then_some(Some(admitted))
    }
}

/// The mark of the messages of a role.
fn role_mark(role: Role) -> Term {
    Term::mark("role", role.as_str())
}

/// The mark of the calls and results of a tool.
fn tool_mark(name: &str) -> Term {
    Term::mark("tool", name)
}

/// A row without the messages of which `is_gone` says so; `None` if it has none of them. Its terms lie behind its key as before.
///
/// # Errors
/// `Corrupt` if the bytes are no row.
pub fn left_of_row(row: &[u8], is_gone: impl Fn(u32) -> bool) -> Result<Option<Vec<u8>>, StoreError> {
    let (mut postings, has_changed) = (Postings::new(), Cell::new(false));
    let is_gone = |place| {
        let is_gone = is_gone(place);
        has_changed.set(has_changed.get() || is_gone);
        is_gone
    };
    postings.add_row(row, 0, is_gone).map_err(torn)?;
    let left = postings.into_rows().into_iter().next().map(|(_, left)| left);
    Ok(has_changed.get().then(|| left.unwrap_or_default()))
}

/// The places in a block that have a term, in the row that may have the term.
///
/// # Errors
/// `Corrupt` if the bytes are no row.
pub fn places_in_row(row: &[u8], term: Term) -> Result<Vec<u32>, StoreError> {
    Postings::find(row, term).map_err(torn)
}

/// The places in a block that have a term, in the rows of a block that is not written.
///
/// # Errors
/// `Corrupt` if a row is torn.
pub fn places_in_rows(rows: &[(Term, Vec<u8>)], term: Term) -> Result<Vec<u32>, StoreError> {
    row_with(rows, |row| row.0, term).map_or(Ok(Vec::new()), |(_, row)| places_in_row(row, term))
}

/// The row that can have a term, of rows in the order of their first terms.
fn row_with<R>(rows: &[R], first: impl Fn(&R) -> Term, term: Term) -> Option<&R> {
    rows.get(rows.partition_point(|row| first(row) <= term).checked_sub(1)?)
}

/// The rows that can have one of these terms, both in their order.
pub(crate) fn rows_with<'r, R>(rows: &'r [R], first: impl Fn(&R) -> Term, terms: &[Term]) -> Vec<&'r R> {
    let mut found: Vec<&R> = terms.iter().filter_map(|term| row_with(rows, &first, *term)).collect();
    found.dedup_by_key(|row| first(row));
    found
}

/// The blocks of both sizes that can have one of these messages.
pub fn blocks_of(seqs: &[Seq]) -> BTreeSet<Block> {
    let numbers = seqs.iter().map(|seq| int(seq.0));
    numbers
        .flat_map(|number| [SPAN, WIDE_SPAN].map(|span| Block { first: number - number % span, span }))
        .collect()
}

/// Length of the checksum of a row, for media that have none of their own.
pub const SUM_BYTES: usize = 8;

/// The first bytes of the SHA-256 of all this together.
pub fn checksum(data: &[&[u8]]) -> [u8; SUM_BYTES] {
    let mut hash = Sha256::new();
    data.iter().for_each(|data| hash.update(data));
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// By place in a block of so many messages, whether it is one of these.
pub fn marked(span: i64, places: Vec<u32>) -> Vec<bool> {
    let mut marked = vec![false; length(span)];
    for place in places {
        if let Some(own) = marked.get_mut(place as usize) {
            *own = true;
        }
    }
    marked
}

fn length(span: i64) -> usize {
    usize::try_from(span).unwrap_or_default()
}

/// Number of searched messages of a session with this head.
pub fn searched(search: &LogSearch, head: Seq) -> u64 {
    let Some(ranges) = &search.ranges else { return head.0 };
    let within = ranges.iter().map(|range| range.end.min(head).0.saturating_sub(range.start.0));
    within.fold(0, u64::saturating_add)
}

/// The error for bytes that are no row.
pub fn torn(error: TornRow) -> StoreError {
    damaged().with_source(error)
}

/// The error for rows that cannot be read.
pub fn damaged() -> StoreError {
    corrupt("the index of words is damaged: make it anew (`epitome session verify --reindex`)")
}

/// The part of an index that a search needs. `K` names a block: later messages are in greater blocks.
#[derive(Debug)]
pub struct Candidates<K> {
    /// The marks that a message has if it is searched.
    marks: Vec<Term>,
    /// The terms of the words, and how many messages have each.
    terms: Vec<(Term, u64)>,
    /// Number of messages that were looked at.
    messages: u64,
    blocks: Vec<Found<K>>,
}

/// The findings in a block.
#[derive(Debug)]
struct Found<K> {
    block: K,
    span: usize,
    /// By the number of a term, the places of the messages that have it.
    places: Vec<Vec<u32>>,
    /// By place, whether the message is searched; `None` if all are.
    admitted: Option<Vec<bool>>,
}

impl<K: Copy + Ord> Candidates<K> {
    /// The candidates of a search, before a block was looked at.
    pub fn new(search: &LogSearch) -> Self {
        let terms = query_terms(&search.words).into_iter().map(|term| (term, 0)).collect();
        let marks = search.role.map(role_mark).into_iter().chain(search.tool.as_deref().map(tool_mark));
        Self { marks: marks.collect(), terms, messages: 0, blocks: Vec::new() }
    }

    /// All that is looked up in a block: the terms of the search, and the marks of its role and its tool.
    pub fn looked_up(&self) -> impl Iterator<Item = Term> + Clone {
        self.terms.iter().map(|(term, _)| *term).chain(self.marks.iter().copied())
    }

    /// Adds a block of so many messages, behind those that were added before. `admitted` says by place whether the message is searched, but
    /// for its role and its tool; `None` if all are. `find` gives the places that have a term. A block without a message that is searched tells nothing.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn add<E>(
        &mut self,
        block: K,
        span: i64,
        mut admitted: Option<Vec<bool>>,
        mut find: impl FnMut(Term) -> Result<Vec<u32>, E>,
    ) -> Result<(), E> {
        for mark in &self.marks {
            let mut own = marked(span, find(*mark)?);
            for (own, admitted) in own.iter_mut().zip(admitted.iter().flatten()) {
                *own &= *admitted;
            }
            admitted = Some(own);
        }
        if admitted.as_ref().is_some_and(|admitted| !admitted.contains(&true)) {
            return Ok(());
        }
        let mut places = Vec::with_capacity(self.terms.len());
        for (term, with) in &mut self.terms {
            let own = find(*term)?;
            *with = with.saturating_add(own.len() as u64);
            places.push(own);
        }
        self.messages = self.messages.saturating_add(span.unsigned_abs());
        self.blocks.push(Found { block, span: length(span), places, admitted });
        Ok(())
    }

    /// Number of messages with a term.
    fn with(&self, term: Term) -> u64 {
        let at = self.terms.binary_search_by_key(&term, |(term, _)| *term).ok();
        at.and_then(|at| self.terms.get(at)).map_or(0, |(_, with)| *with)
    }

    /// The `count` messages whose words are rarest together, with the words beside them, the best first, of equal ones the newest; and
    /// whether these are all.
    fn best(&self, count: usize) -> (Vec<(K, u32)>, bool) {
        let rarities: Vec<u64> = self.terms.iter().map(|(_, with)| rarity(self.messages, *with)).collect();
        let (mut best, mut least, mut is_all) = (Vec::<(u64, K, u32)>::new(), None::<(u64, K, u32)>, true);
        let mut scores = Vec::<u64>::new();
        // A word that all messages have still says something.
        let worth = |rarity: &u64| rarity.saturating_add(1);
        // The newest first: of the many that are as good as each other the first are the best.
        for Found { block, span, places, admitted } in self.blocks.iter().rev() {
            let own = places.iter().zip(&rarities).filter(|(own, _)| !own.is_empty());
            let most = own.fold(0_u64, |most, (_, rarity)| most.saturating_add(worth(rarity)));
            // Not even a message with all words of the block, beside another one, is among the best.
            if least.is_some_and(|least| (beside(most, most, most), *block, u32::MAX) < least) {
                is_all = false;
                continue;
            }
            scores.clear();
            scores.resize(*span, 0);
            for (own, rarity) in places.iter().zip(&rarities) {
                for place in own {
                    if let Some(score) = scores.get_mut(*place as usize) {
                        *score = score.saturating_add(worth(rarity));
                    }
                }
            }
            let is_admitted = |place: usize| {
                admitted.as_ref().is_none_or(|own| own.get(place).copied().unwrap_or_default())
            };
            let score = |place: Option<usize>| {
                let place = place.filter(|place| is_admitted(*place));
                place.and_then(|place| scores.get(place)).copied().unwrap_or_default()
            };
            for place in (0..scores.len()).rev().filter(|place| score(Some(*place)) > 0) {
                let score =
                    beside(score(Some(place)), score(place.checked_sub(1)), score(place.checked_add(1)));
                let own = (score, *block, place as u32);
                if least.is_some_and(|least| own < least) {
                    is_all = false;
                    continue;
                }
                best.push(own);
                if best.len() >= count.saturating_mul(2) {
                    best.select_nth_unstable_by(count, |one, other| other.cmp(one));
                    best.truncate(count);
                    least = best.iter().copied().min();
                    is_all = false;
                }
            }
        }
        best.sort_unstable_by(|one, other| other.cmp(one));
        is_all &= best.len() <= count;
        best.truncate(count);
        (best.into_iter().map(|(_, block, place)| (block, place)).collect(), is_all)
    }
}

/// The candidates of a search in the order in which they are read, until enough of them are searched.
#[derive(Debug)]
pub struct Queue<'s, K> {
    candidates: &'s Candidates<K>,
    search: &'s LogSearch,
    /// The best of them, of which so many were asked for.
    best: Vec<(K, u32)>,
    asked: usize,
    /// Whether there are no others.
    is_all: bool,
    /// Number of messages that were distinguished.
    count: usize,
    /// Minimum number of messages that are read next: more each time, where many that are read are not searched.
    next: usize,
    read: Vec<((K, u32), FoundMessage)>,
}

impl<'s, K: Copy + Ord> Queue<'s, K> {
    pub fn new(candidates: &'s Candidates<K>, search: &'s LogSearch) -> Self {
        let (best, is_all) = candidates.best(BEST);
        Self { candidates, search, best, asked: 0, is_all, count: BEST, next: RANKED_MIN, read: Vec::new() }
    }

    fn limit(&self) -> usize {
        usize::try_from(self.search.limit).unwrap_or(usize::MAX)
    }

    /// The messages that are to be read next; none once there are enough.
    pub fn to_read(&mut self) -> Vec<(K, u32)> {
        let wanted = self.limit().saturating_mul(RANKED_PER_FOUND).max(RANKED_MIN);
        let wanted = wanted.saturating_sub(self.read.len());
        if wanted == 0 {
            return Vec::new();
        }
        if self.asked == self.best.len() && !self.is_all {
            // The best of a larger number begin with the same ones.
            self.count = self.count.saturating_mul(16);
            (self.best, self.is_all) = self.candidates.best(self.count);
        }
        let next: Vec<_> = self.best.iter().skip(self.asked).take(wanted.max(self.next)).copied().collect();
        self.asked = self.asked.saturating_add(next.len());
        self.next = self.next.saturating_mul(2).min(BEST);
        next
    }

    /// Adds a candidate that is searched.
    pub fn push(&mut self, candidate: (K, u32), message: FoundMessage) {
        self.read.push((candidate, message));
    }

    /// The nearest of what was read.
    pub fn nearest(mut self) -> Vec<FoundMessage> {
        // Of equal ones the search prefers the later.
        self.read.sort_unstable_by_key(|(candidate, _)| *candidate);
        let Candidates { messages, .. } = self.candidates;
        let mut nearest =
            MessageSearch::of_collection(&self.search.words, *messages, |term| self.candidates.with(term));
        let numbers = numbers(&self.read);
        for ((_, found), number) in self.read.iter().zip(&numbers) {
            nearest.add(*number, &found.logged.entry.message);
        }
        let limit = self.limit();
        let mut found: HashMap<u64, FoundMessage> =
            numbers.into_iter().zip(self.read.into_iter().map(|(_, found)| found)).collect();
        nearest.nearest(limit).into_iter().filter_map(|number| found.remove(&number)).collect()
    }
}

/// A number for each message: two have neighbouring numbers if they are neighbours in one session.
fn numbers<K>(read: &[(K, FoundMessage)]) -> Vec<u64> {
    let mut order: Vec<(&FoundMessage, usize)> = read.iter().map(|(_, found)| found).zip(0..).collect();
    order.sort_unstable_by_key(|(found, _)| (&found.session, found.logged.seq));
    let (mut numbers, mut number, mut last) = (vec![0; read.len()], 0_u64, None::<&FoundMessage>);
    for (found, at) in order {
        let is_next = |last: &FoundMessage| {
            last.session == found.session && last.logged.seq.0.checked_add(1) == Some(found.logged.seq.0)
        };
        number += if last.is_some_and(is_next) { 1 } else { 2 };
        last = Some(found);
        if let Some(own) = numbers.get_mut(at) {
            *own = number;
        }
    }
    numbers
}
