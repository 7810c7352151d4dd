//! Counts of the terms of texts.

use super::bm25::Bm25;
use super::log2::Rarities;

/// The terms of each text, with their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// The row of each term, by the number of the term.
    rows: Vec<Row>,
    /// The counts of all texts, in order.
    counts: Vec<Count>,
    /// By text, the end of its counts, and the number of its terms with repetitions.
    texts: Vec<(usize, u64)>,
    /// Number of terms of the text that is being added.
    length: u64,
    all: Bm25,
}

/// Number of texts with a term, and the newest of them, counted from 1, with the place of its count.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    with: u32,
    newest: u32,
    at: u32,
}

/// Number of occurrences of a term in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub(super) term: u32,
    pub(super) count: u32,
}

impl Counts {
    /// Adds further terms of the current text.
    pub(super) fn add(&mut self, terms: &[u32]) {
        self.length += terms.len() as u64;
        let text = as_u32(self.texts.len()).saturating_add(1);
        for term in terms {
            let at = *term as usize;
            if at >= self.rows.len() {
                self.rows.resize(at + 1, Row::default());
            }
            let Some(row) = self.rows.get_mut(at) else { continue };
            if row.newest != text {
                let with = row.with.saturating_add(1);
                *row = Row { with, newest: text, at: as_u32(self.counts.len()) };
                self.counts.push(Count { term: *term, count: 1 });
            } else if let Some(own) = self.counts.get_mut(row.at as usize) {
                own.count = own.count.saturating_add(1);
            }
        }
    }

    /// Ends the current text, and returns its counts.
    pub(super) fn end_text(&mut self) -> &[Count] {
        self.texts.push((self.counts.len(), self.length));
        self.all.add(self.length);
        self.length = 0;
        self.of_text(self.len().saturating_sub(1))
    }

    pub(super) const fn len(&self) -> usize {
        self.texts.len()
    }

    /// As [`SearchIndex::weights`](super::SearchIndex::weights).
    pub(super) fn weights(&self) -> Vec<u64> {
        let mut rarities = Rarities::among(self.len() as u64);
        let rare: Vec<u64> = self.rows.iter().map(|row| rarities.of(row.with)).collect();
        let of_term = |own: &Count| rare.get(own.term as usize).copied().unwrap_or_default();
        (0..self.len()).map(|text| self.of_text(text).iter().map(of_term).sum()).collect()
    }

    /// As [`SearchIndex::scores_like`](super::SearchIndex::scores_like). It reads all counts.
    pub(super) fn scores_like(&self, text: usize) -> Vec<u64> {
        let mut rarities = vec![None; self.rows.len()];
        for own in self.of_text(text) {
            if let Some(rarity) = rarities.get_mut(own.term as usize) {
                *rarity = Some(self.rarity(own.term));
            }
        }
        let score = |text: usize| {
            let scores = self.of_text(text).iter().filter_map(|own| {
                let rarity = rarities.get(own.term as usize).copied().flatten()?;
                Some(self.score(text, own.count, rarity))
            });
            scores.fold(0, u64::saturating_add)
        };
        (0..self.len()).map(score).collect()
    }

    /// The rarity of a term.
    pub(super) fn rarity(&self, term: u32) -> u64 {
        self.all.rarity(self.rows.get(term as usize).map_or(0, |row| u64::from(row.with)))
    }

    /// The score of a text that has a term of this rarity `count` times.
    pub(super) fn score(&self, text: usize, count: u32, rarity: u64) -> u64 {
        let (_, length) = self.texts.get(text).copied().unwrap_or_default();
        self.all.score(count, length, rarity)
    }

    /// The counts of a text.
    pub(super) fn of_text(&self, text: usize) -> &[Count] {
        let start = text.checked_sub(1).and_then(|before| self.texts.get(before)).map_or(0, |(end, _)| *end);
        let end = self.texts.get(text).map_or(start, |(end, _)| *end);
        self.counts.get(start..end).unwrap_or_default()
    }
}

fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
