//! The index of words of a store in tables: which messages have which terms.
//!
//! Messages are numbered and indexed in blocks of 256. A block is written when its last message is written, within the
//! same transaction. Sixteen such blocks become one of 4,096 messages. Each search reads the messages after the last
//! block. An append therefore pays for the index once in 256 messages, and a search reads few rows. A block is written
//! as the rows of its [`Postings`].
//!
//! The index returns the messages that have a word of a search, and the number of messages for each word. The search
//! reads the best of these [`Candidates`], by the rarity of their words, and ranks them in the same way as every store.

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

/// Number of messages of a block that was merged from smaller ones.
pub const WIDE_SPAN: i64 = 4_096;

/// Maximum number of messages that a search reads without the index.
pub const READ_MAX: u64 = 1_024;

/// The minimum number of messages that are read for ranking, and the number for each result.
const RANKED_MIN: usize = 64;
const RANKED_PER_FOUND: usize = 4;

/// Initial number of best candidates in a search.
const BEST: usize = 1_024;

/// A range of message numbers that are indexed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub first: i64,
    pub span: i64,
}

impl Block {
    /// The block whose last message is `number`, if there is one.
    pub const fn ended_by(number: i64) -> Option<Self> {
        Self::of_span_ended_by(number, SPAN)
    }

    /// The wide block whose last message is `number`, if there is one.
    pub const fn wide_ended_by(number: i64) -> Option<Self> {
        Self::of_span_ended_by(number, WIDE_SPAN)
    }

    const fn of_span_ended_by(number: i64, span: i64) -> Option<Self> {
        match (number + 1) % span {
            0 => Some(Self { first: number + 1 - span, span }),
            _ => None,
        }
    }

    /// The block of a message, if `last` is the number of the last message; `None` for a message after the last block.
    pub fn of(number: i64, last: i64) -> Option<Self> {
        let span = if number < ends(last, WIDE_SPAN) { WIDE_SPAN } else { SPAN };
        (number < ends(last, span)).then_some(Self { first: number - number % span, span })
    }

    /// The number after its last message.
    pub const fn end(self) -> i64 {
        self.first + self.span
    }

    /// Whether the block contains all messages of another one.
    pub const fn holds(self, other: Self) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }

    /// The place of a message in the block.
    ///
    /// # Errors
    /// `Corrupt` if the message is in another block.
    pub fn place(self, number: i64) -> Result<u32, StoreError> {
        u32::try_from(number - self.first).map_err(|_| damaged())
    }
}

/// The end of the complete blocks, if `last` is the last message.
const fn ends(last: i64, span: i64) -> i64 {
    (last + 1) / span * span
}

/// All blocks, and the range of the message numbers after them.
pub fn blocks(last: i64) -> (impl Iterator<Item = Block> + Clone, Range<i64>) {
    let (wide, all) = (ends(last, WIDE_SPAN), ends(last, SPAN));
    let of = |from: i64, to: i64, span: i64| {
        (0..(to - from) / span).map(move |at| Block { first: from + at * span, span })
    };
    (of(0, wide, WIDE_SPAN).chain(of(wide, all, SPAN)), all..last.saturating_add(1))
}

/// The number of blocks, and the number of messages after them.
pub fn count(last: i64) -> (u64, u64) {
    let (wide, all) = (ends(last, WIDE_SPAN), ends(last, SPAN));
    let blocks = wide / WIDE_SPAN + (all - wide) / SPAN;
    (blocks.unsigned_abs(), last.saturating_add(1).abs_diff(all))
}

impl LogSearch {
    /// For each place in a block, whether the message's number is in the scope of the search, beginning with the number
    /// `begin`. `Some(None)` if all are, `None` if none is.
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

/// A row without the messages for which `is_gone` returns true; `None` if it has none of them. The key of the row stays
/// valid.
///
/// # Errors
/// `Corrupt` if the bytes are not a row.
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

/// The places in a block that have a term. `row` is the row that can contain the term.
///
/// # Errors
/// `Corrupt` if the bytes are not a row.
pub fn places_in_row(row: &[u8], term: Term) -> Result<Vec<u32>, StoreError> {
    Postings::find(row, term).map_err(torn)
}

/// The places in a block that have a term. `rows` are all rows of the block.
///
/// # Errors
/// `Corrupt` if the bytes of the row are not a row.
pub fn places_in_rows(rows: &[(Term, Vec<u8>)], term: Term) -> Result<Vec<u32>, StoreError> {
    row_with(rows, |row| row.0, term).map_or(Ok(Vec::new()), |(_, row)| places_in_row(row, term))
}

/// The row that can contain a term. The rows are ordered by their first terms.
fn row_with<R>(rows: &[R], first: impl Fn(&R) -> Term, term: Term) -> Option<&R> {
    rows.get(rows.partition_point(|row| first(row) <= term).checked_sub(1)?)
}

/// The rows that can contain one of these terms. Rows and terms are in order.
pub(crate) fn rows_with<'r, R>(rows: &'r [R], first: impl Fn(&R) -> Term, terms: &[Term]) -> Vec<&'r R> {
    let mut found: Vec<&R> = terms.iter().filter_map(|term| row_with(rows, &first, *term)).collect();
    found.dedup_by_key(|row| first(row));
    found
}

/// The blocks of both sizes that can contain one of these messages.
pub fn blocks_of(seqs: &[Seq]) -> BTreeSet<Block> {
    let numbers = seqs.iter().map(|seq| int(seq.0));
    numbers
        .flat_map(|number| [SPAN, WIDE_SPAN].map(|span| Block { first: number - number % span, span }))
        .collect()
}

/// Length of the checksum of a row in bytes, for media without checksums of their own.
pub const SUM_BYTES: usize = 8;

/// The first bytes of the SHA-256 of the concatenated data.
pub fn checksum(data: &[&[u8]]) -> [u8; SUM_BYTES] {
    let mut hash = Sha256::new();
    data.iter().for_each(|data| hash.update(data));
    let digest: [u8; 32] = hash.finalize().into();
    digest.first_chunk().copied().unwrap_or_default()
}

/// For each place in a block of `span` messages, whether it is one of `places`.
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

/// Number of messages of a session with this head that are in the scope of the search.
pub fn searched(search: &LogSearch, head: Seq) -> u64 {
    let Some(ranges) = &search.ranges else { return head.0 };
    let within = ranges.iter().map(|range| range.end.min(head).0.saturating_sub(range.start.0));
    within.fold(0, u64::saturating_add)
}

/// The error for bytes that are not a row.
pub fn torn(error: TornRow) -> StoreError {
    damaged().with_source(error)
}

/// The error for rows that cannot be read.
pub fn damaged() -> StoreError {
    corrupt("the index of words is damaged: make it anew (`epitome session verify --reindex`)")
}

/// The part of an index that a search needs. `K` identifies a block; blocks of later messages have greater values.
#[derive(Debug)]
pub struct Candidates<K> {
    /// The marks that every matching message has.
    marks: Vec<Term>,
    /// The terms of the search, each with the number of messages that have it.
    terms: Vec<(Term, u64)>,
    /// Number of messages in the blocks that were looked up.
    messages: u64,
    blocks: Vec<Found<K>>,
}

/// The matches in a block.
#[derive(Debug)]
struct Found<K> {
    block: K,
    span: usize,
    /// For each term, the places of the messages that have it.
    places: Vec<Vec<u32>>,
    /// For each place, whether the message is in the scope of the search; `None` if all are.
    admitted: Option<Vec<bool>>,
}

impl<K: Copy + Ord> Candidates<K> {
    /// Makes the candidates of a search, before the first block.
    pub fn new(search: &LogSearch) -> Self {
        let terms = query_terms(&search.words).into_iter().map(|term| (term, 0)).collect();
        let marks = search.role.map(role_mark).into_iter().chain(search.tool.as_deref().map(tool_mark));
        Self { marks: marks.collect(), terms, messages: 0, blocks: Vec::new() }
    }

    /// All terms to look up in a block: the terms of the search, and the marks of its role and its tool.
    pub fn looked_up(&self) -> impl Iterator<Item = Term> + Clone {
        self.terms.iter().map(|(term, _)| *term).chain(self.marks.iter().copied())
    }

    /// Adds a block of `span` messages, after the blocks that were added before. `admitted` has for each place whether
    /// the message is in the scope of the search, apart from its role and its tool; `None` if all are. `find` returns
    /// the places that have a term. A block without a message in the scope does not count.
    ///
    /// # Errors
    /// The errors of `find`.
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

    /// Number of messages that have a term.
    fn with(&self, term: Term) -> u64 {
        let at = self.terms.binary_search_by_key(&term, |(term, _)| *term).ok();
        at.and_then(|at| self.terms.get(at)).map_or(0, |(_, with)| *with)
    }

    /// The best `count` messages by the total rarity of their words and of the words in adjacent messages, the best
    /// first. Of equal messages the newest comes first. Returns also whether there are no others.
    fn best(&self, count: usize) -> (Vec<(K, u32)>, bool) {
        let rarities: Vec<u64> = self.terms.iter().map(|(_, with)| rarity(self.messages, *with)).collect();
        let (mut best, mut least, mut is_all) = (Vec::<(u64, K, u32)>::new(), None::<(u64, K, u32)>, true);
        let mut scores = Vec::<u64>::new();
        // A word that all messages have still counts a little.
        let worth = |rarity: &u64| rarity.saturating_add(1);
        // The newest blocks come first: of many equally good messages, the first ones found are then the best.
        for Found { block, span, places, admitted } in self.blocks.iter().rev() {
            let own = places.iter().zip(&rarities).filter(|(own, _)| !own.is_empty());
            let most = own.fold(0_u64, |most, (_, rarity)| most.saturating_add(worth(rarity)));
            // Not even a message with all words of the block in it and in an adjacent message would be among the best.
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

/// The candidates of a search in reading order, until enough messages in the scope were read.
#[derive(Debug)]
pub struct Queue<'s, K> {
    candidates: &'s Candidates<K>,
    search: &'s LogSearch,
    /// The best candidates, and the number of those already returned for reading.
    best: Vec<(K, u32)>,
    asked: usize,
    /// Whether there are no other candidates.
    is_all: bool,
    /// The number of best candidates that were requested.
    count: usize,
    /// Minimum number of messages of the next read. It grows if many messages that are read are outside of the scope.
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

    /// The messages to read next; empty once there are enough.
    pub fn to_read(&mut self) -> Vec<(K, u32)> {
        let wanted = self.limit().saturating_mul(RANKED_PER_FOUND).max(RANKED_MIN);
        let wanted = wanted.saturating_sub(self.read.len());
        if wanted == 0 {
            return Vec::new();
        }
        if self.asked == self.best.len() && !self.is_all {
            // A longer list of the best candidates begins with the same ones.
            self.count = self.count.saturating_mul(16);
            (self.best, self.is_all) = self.candidates.best(self.count);
        }
        let next: Vec<_> = self.best.iter().skip(self.asked).take(wanted.max(self.next)).copied().collect();
        self.asked = self.asked.saturating_add(next.len());
        self.next = self.next.saturating_mul(2).min(BEST);
        next
    }

    /// Adds a candidate that was read and is in the scope of the search.
    pub fn push(&mut self, candidate: (K, u32), message: FoundMessage) {
        self.read.push((candidate, message));
    }

    /// The nearest of the messages that were read.
    pub fn nearest(mut self) -> Vec<FoundMessage> {
        // Of equal messages, the search prefers the one that was added later.
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

/// A number for each message. Two messages have adjacent numbers if they are adjacent in one session.
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
