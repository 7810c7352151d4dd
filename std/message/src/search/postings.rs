//! An index of words in blocks of bytes, for stores that save it with their messages.

use super::record::{said, without_role};
use super::terms::each_term;
use crate::Message;

/// Maximum bytes of a row, unless a single term needs more. A row of this size fits a page of a database.
const ROW_BYTES_MAX: usize = 3_000;

/// A term in an index: 32 bits of the hash of a word. Two words of a large store may have the same term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Term(pub u32);

impl Term {
    pub(super) const fn of_hash(hash: u64) -> Self {
        Self((hash ^ (hash >> 32)) as u32)
    }

    /// The term with these bits, as a store saved it.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// A term from `kind` and `text` that is no word of a text. A store marks messages with it.
    #[must_use]
    pub fn mark(kind: &str, text: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in kind.bytes().chain([0]).chain(text.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self::of_hash(hash)
    }
}

/// The terms of a query, each once, ascending.
#[must_use]
pub fn query_terms(query: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    each_term(query, |hash| terms.push(Term::of_hash(hash)));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// An index of the terms of numbered messages: one block of a store's index.
///
/// It is written as rows. Each row has the terms from one term on, with their messages. A look-up of a term reads
/// one row.
///
/// ```
/// use epitome_message::Message;
/// use epitome_message::search::{Postings, query_terms};
///
/// let mut postings = Postings::new();
/// postings.add(0, &Message::user("The cat sleeps."));
/// postings.add(3, &Message::user("Two cats."));
/// let rows = postings.into_rows();
/// let (first, row) = &rows[0];
/// assert!(*first <= query_terms("sleep")[0]);
/// let found = |query| Postings::find(row, query_terms(query)[0]).unwrap();
/// assert_eq!((found("sleep"), found("two"), found("dog")), (vec![0], vec![3], vec![]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Postings {
    /// The term (upper half) and the number (lower half) of a message, for each pair.
    pairs: Vec<u64>,
}

/// An error: the bytes are no row of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TornRow;

impl core::fmt::Display for TornRow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a row of the index of words cannot be read")
    }
}

impl core::error::Error for TornRow {}

impl Postings {
    /// A block without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the terms of a message. Returns whether it has any.
    pub fn add(&mut self, number: u32, message: &Message) -> bool {
        let mut terms = Vec::new();
        each_term(without_role(&said(message)), |hash| terms.push(Term::of_hash(hash)));
        // A long text repeats most of its words.
        terms.sort_unstable();
        terms.dedup();
        self.pairs.extend(terms.iter().map(|term| pair(*term, number)));
        !terms.is_empty()
    }

    /// Adds a mark to a message: a term that is not in its text.
    pub fn mark(&mut self, number: u32, mark: Term) {
        self.pairs.push(pair(mark, number));
    }

    /// Adds a row from [`into_rows`](Self::into_rows). The numbers of its messages are increased by `moved`.
    /// Messages for which `is_gone` returns true are left out.
    ///
    /// # Errors
    /// [`TornRow`] if the bytes are no such row. The terms before the damaged place are then already added.
    pub fn add_row(&mut self, row: &[u8], moved: u32, is_gone: impl Fn(u32) -> bool) -> Result<(), TornRow> {
        let mut rest = row;
        let mut term = 0_u32;
        while !rest.is_empty() {
            term = term.checked_add(number(&mut rest)?).ok_or(TornRow)?;
            for_each_posting(&mut rest, |own| {
                let at = own.checked_add(moved).ok_or(TornRow)?;
                if !is_gone(at) {
                    self.pairs.push(pair(Term(term), at));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The rows, in the order of their terms, each with its first term.
    #[must_use]
    pub fn into_rows(mut self) -> Vec<(Term, Vec<u8>)> {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let mut rows: Vec<(Term, Vec<u8>)> = Vec::new();
        let mut last = 0;
        for own in self.pairs.chunk_by(|one, other| one >> 32 == other >> 32) {
            let Some(term) = own.first().map(|pair| (pair >> 32) as u32) else { continue };
            if rows.last().is_none_or(|(_, row)| row.len() >= ROW_BYTES_MAX) {
                rows.push((Term(term), Vec::new()));
                last = 0;
            }
            let Some((_, row)) = rows.last_mut() else { continue };
            push(row, term.wrapping_sub(last));
            last = term;
            push(row, u32::try_from(own.len()).unwrap_or(u32::MAX));
            let mut before = 0;
            for number in own.iter().map(|pair| *pair as u32) {
                push(row, number.wrapping_sub(before));
                before = number;
            }
        }
        rows
    }

    /// The numbers of the messages in a row that have a term, in ascending order.
    ///
    /// # Errors
    /// [`TornRow`] if the bytes are no row.
    pub fn find(row: &[u8], wanted: Term) -> Result<Vec<u32>, TornRow> {
        let (mut rest, mut term) = (row, 0_u32);
        while !rest.is_empty() && term <= wanted.0 {
            term = term.checked_add(number(&mut rest)?).ok_or(TornRow)?;
            if term != wanted.0 {
                for_each_posting(&mut rest, |_| Ok(()))?;
                continue;
            }
            // Each number takes at least one byte.
            let mut found = Vec::with_capacity(rest.len());
            for_each_posting(&mut rest, |own| {
                found.push(own);
                Ok(())
            })?;
            return Ok(found);
        }
        Ok(Vec::new())
    }
}

const fn pair(term: Term, number: u32) -> u64 {
    (term.0 as u64) << 32 | number as u64
}

/// Calls `visit` with the message numbers of the next term.
fn for_each_posting(
    rest: &mut &[u8],
    mut visit: impl FnMut(u32) -> Result<(), TornRow>,
) -> Result<(), TornRow> {
    let count = number(rest)?;
    let mut own = 0_u32;
    for _ in 0..count {
        own = own.checked_add(number(rest)?).ok_or(TornRow)?;
        visit(own)?;
    }
    Ok(())
}

/// Appends a number in LEB128: seven bits a byte, the lowest first; all bytes but the last have the upper bit.
fn push(row: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        row.push(number as u8 | 0x80);
        number >>= 7;
    }
    row.push(number as u8);
}

fn number(rest: &mut &[u8]) -> Result<u32, TornRow> {
    // Most numbers are small.
    if let Some((byte, behind)) = rest.split_first()
        && *byte < 0x80
    {
        *rest = behind;
        return Ok(u32::from(*byte));
    }
    let mut number = 0_u32;
    for shift in (0..u32::BITS).step_by(7) {
        let (byte, behind) = rest.split_first().ok_or(TornRow)?;
        *rest = behind;
        let bits = u32::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return Err(TornRow);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(TornRow)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    type Twin = BTreeMap<u32, BTreeSet<u32>>;

    fn postings(of: &[(u32, u32)]) -> Postings {
        let mut postings = Postings::new();
        of.iter().for_each(|(term, number)| postings.mark(*number, Term(*term)));
        postings
    }

    fn twin(of: &[(u32, u32)]) -> Twin {
        let mut twin = Twin::new();
        for (term, number) in of {
            twin.entry(*term).or_default().insert(*number);
        }
        twin
    }

    /// Looks up a term in the same way as a store: in the last row that begins with this term or an earlier one.
    fn find(rows: &[(Term, Vec<u8>)], term: u32) -> Vec<u32> {
        let at = rows.partition_point(|(first, _)| first.0 <= term);
        rows[..at].last().map(|(_, row)| Postings::find(row, Term(term)).unwrap()).unwrap_or_default()
    }

    fn pairs() -> impl Strategy<Value = Vec<(u32, u32)>> {
        let term = prop_oneof![0..40_u32, any::<u32>(), Just(u32::MAX)];
        let number = prop_oneof![0..300_u32, any::<u32>(), Just(u32::MAX)];
        prop::collection::vec((term, number), 0..500)
    }

    proptest! {
        #[test]
        fn each_term_is_found_where_a_map_has_it(pairs in pairs()) {
            let (rows, twin) = (postings(&pairs).into_rows(), twin(&pairs));
            for (term, numbers) in &twin {
                prop_assert_eq!(find(&rows, *term), numbers.iter().copied().collect::<Vec<_>>());
                let next = term.wrapping_add(1);
                prop_assert_eq!(find(&rows, next).is_empty(), !twin.contains_key(&next));
            }
            prop_assert!(rows.iter().all(|(_, row)| row.len() < ROW_BYTES_MAX + 5 * 600));
            prop_assert!(rows.is_sorted_by_key(|(first, _)| *first));
        }

        #[test]
        fn rows_of_several_blocks_are_one_block_without_what_is_gone(
            blocks in prop::collection::vec(prop::collection::vec((0..60_u32, 0..100_u32), 0..90), 0..5),
            gone in 0..5_u32,
        ) {
            let is_gone = |number: u32| number % 5 == gone;
            let (mut merged, mut all) = (Postings::new(), Vec::new());
            for (at, block) in (0..).zip(&blocks) {
                for (_, row) in postings(block).into_rows() {
                    merged.add_row(&row, at * 100, is_gone).unwrap();
                }
                all.extend(block.iter().map(|(term, number)| (*term, number + at * 100)));
            }
            all.retain(|(_, number)| !is_gone(*number));
            prop_assert_eq!(merged.into_rows(), postings(&all).into_rows());
        }

        /// Reads any bytes without a panic: the readable part is a row of the same postings.
        #[test]
        fn any_bytes_are_a_row_or_torn(bytes in prop::collection::vec(prop_oneof![0..6_u8, any::<u8>()], 0..90)) {
            let mut read = Postings::new();
            let whole = read.add_row(&bytes, 0, |_| false);
            for term in [0, 1, 5, u32::MAX] {
                let _ = Postings::find(&bytes, Term(term));
            }
            if whole.is_ok() {
                let rows = read.clone().into_rows();
                let mut again = Postings::new();
                for (_, row) in &rows {
                    again.add_row(row, 0, |_| false).unwrap();
                }
                prop_assert_eq!(again.into_rows(), rows);
            }
        }

        #[test]
        fn a_message_has_the_terms_of_its_words(texts in prop::collection::vec("([a-c]{1,3}|[ .]|[\u{6771}\u{4eac}]){0,12}", 1..5)) {
            let mut postings = Postings::new();
            for (number, text) in (0..).zip(&texts) {
                let has_one = postings.add(number, &Message::user(text.as_str()));
                prop_assert_eq!(has_one, !query_terms(text).is_empty());
            }
            let rows = postings.into_rows();
            for word in texts.iter().flat_map(|text| query_terms(text)) {
                let with = (0..).zip(&texts).filter(|(_, text)| query_terms(text).contains(&word));
                prop_assert_eq!(find(&rows, word.0), with.map(|(number, _)| number).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn marks_are_told_from_words() {
        let marks = [Term::mark("session", "1"), Term::mark("session", "2"), Term::mark("role", "1")];
        assert!(marks.iter().collect::<BTreeSet<_>>().len() == 3);
        assert!(!marks.contains(&query_terms("1")[0]));
    }
}
