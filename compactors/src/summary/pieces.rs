//! A search for texts within many other texts.

use std::string::String;
use std::vec;
use std::vec::Vec;

/// Texts without control characters, indexed by every three adjacent bytes.
///
/// *Cost*: adding takes one step for each byte. A look-up takes one step for each byte of its text, and compares
/// the text at the places of its rarest three bytes.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// All texts in order, each with a line break.
    all: String,
    /// By the hash of three bytes, their places. Empty until there is a text.
    rows: Vec<Row>,
    /// By the place of three bytes in `all`, the place before with the same hash, counted from 1.
    before: Vec<u32>,
}

/// The places of bytes with the same hash.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    count: u32,
    /// The last place, counted from 1.
    last: u32,
}

/// Number of bytes of an index entry.
const BYTES: usize = 3;

/// Bits of a hash: identifiers seldom have more different sequences of three bytes.
const BITS: u32 = 15;

impl Pieces {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) {
        if self.rows.is_empty() {
            self.rows = vec![Row::default(); 1 << BITS];
        }
        self.all.push_str(text);
        self.all.push('\n');
        for three in text.as_bytes().windows(BYTES) {
            let place = u32::try_from(self.before.len()).unwrap_or(u32::MAX).saturating_add(1);
            if let Some(row) = self.rows.get_mut(hash(three)) {
                self.before.push(row.last);
                *row = Row { count: row.count.saturating_add(1), last: place };
            }
        }
        // The last bytes of a text begin no sequence of three bytes.
        self.before.resize(self.all.len(), 0);
    }

    /// Whether `text` is in one of the texts, and not within a longer word: `PROJ-1` is not in `PROJ-12`; a file
    /// name is in its path.
    pub(super) fn contains(&self, text: &str) -> bool {
        let rows = text.as_bytes().windows(BYTES).map(|three| self.rows.get(hash(three)).copied());
        let rarest = rows.map(Option::unwrap_or_default).enumerate().min_by_key(|(_, row)| row.count);
        let is_at = |begin: usize| {
            let all = self.all.as_bytes().get(begin..);
            all.is_some_and(|all| all.starts_with(text.as_bytes())) && self.is_apart(begin, text.len())
        };
        let Some((offset, row)) = rarest else { return (0..self.all.len()).any(is_at) };
        let mut next = row.last;
        while let Some(place) = next.checked_sub(1).map(|place| place as usize) {
            if place.checked_sub(offset).is_some_and(is_at) {
                return true;
            }
            next = self.before.get(place).copied().unwrap_or(0);
        }
        false
    }

    /// Whether the bytes at `begin` are not part of a longer word.
    fn is_apart(&self, begin: usize, bytes: usize) -> bool {
        let is_of_word = |at: Option<usize>| {
            let byte = at.and_then(|at| self.all.as_bytes().get(at));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
        };
        !is_of_word(begin.checked_sub(1)) && !is_of_word(begin.checked_add(bytes))
    }
}

fn hash(three: &[u8]) -> usize {
    let number = three.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    // Fibonacci hashing.
    (number.wrapping_mul(0x9E37_79B9) >> (u32::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_of_a_longer_word_is_not_found() {
        let mut pieces = Pieces::default();
        ["PROJ-12", "src/main.rs", "valve_10"].iter().for_each(|text| pieces.add(text));
        let found = ["PROJ-12", "main.rs", "src", "rs", "12", "PROJ"];
        assert!(found.iter().all(|text| pieces.contains(text)));
        let parts = ["PROJ-1", "valve_1", "valve", "ain.rs", "1", "10", "rs\nvalve_10 "];
        assert!(!parts.iter().any(|text| pieces.contains(text)));
    }

    proptest! {
        #[test]
        fn it_finds_what_a_look_at_each_text_finds(
            texts in prop::collection::vec("[ab/]{0,9}|[a-z0-9é]{0,6}", 0..12), piece in "[ab/]{0,5}|[a-z0-9é]{0,4}", of in 0_usize..12, from in 0_usize..9,
        ) {
            let mut pieces = Pieces::default();
            texts.iter().for_each(|text| pieces.add(text));
            let own = texts.get(of).and_then(|text| text.get(from.min(text.len())..)).unwrap_or_default();
            for piece in [piece.as_str(), own].into_iter().filter(|piece| !piece.is_empty()) {
                let is_apart = |text: &String| {
                    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
                    let ends = |at: usize| (text[..at].chars().last(), text[at..][piece.len()..].chars().next());
                    let mut hits = (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(piece.as_bytes()));
                    hits.any(|at| {
                        let (before, behind) = ends(at);
                        !before.is_some_and(is_of_word) && !behind.is_some_and(is_of_word)
                    })
                };
                prop_assert_eq!(pieces.contains(piece), texts.iter().any(is_apart), "{}", piece);
            }
        }
    }
}
