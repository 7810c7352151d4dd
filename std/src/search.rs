//! Search over texts in any script, without a model.
//!
//! ```
//! use epitome_std::search::SearchIndex;
//!
//! let mut index = SearchIndex::new();
//! for text in ["The cat sleeps.", "Invoices are due on the 14th.", "The dog sleeps too."] {
//!     index.add(text);
//! }
//! assert_eq!(index.nearest("When is the invoice due?", 1, |_| true), [1]);
//! ```

mod bm25;
mod log2;
mod once;
mod record;
mod sentences;
mod terms;
#[cfg(test)]
mod tests;
mod updates;
mod words;

use std::collections::HashMap;

use bm25::Bm25;
use log2::log2;
use sentences::for_each_sentence;

pub use once::{Hit, Search};
pub use record::{RECALL, Record, nearest_piece, said, text_of, without_role};
pub use terms::for_each_term;
pub use updates::{Update, UpdateIndex};

/// Texts by the terms in them: how much each text says, and how near it is to a query.
///
/// A term is a word in lower case, cut to its first five letters, so that forms of one word are one term; in Chinese, Japanese
/// and Korean it is each pair of neighbouring characters ([`for_each_term`]). All scores are integers, equal on every platform.
///
/// *Cost*: adding takes one pass over the text; a query takes one step for each occurrence of its terms. A text takes 12
/// bytes of memory for each of its distinct terms, and is not kept itself.
#[derive(Debug, Clone, Default)]
pub struct SearchIndex {
    /// By the hash of a term, its number.
    numbers: HashMap<u64, u32>,
    /// By the number of a term, the texts that hold it, ascending.
    postings: Vec<Vec<Posting>>,
    /// The distinct terms of all texts, one text after the other.
    terms: Vec<u32>,
    /// By text, where its terms end in `terms`, and how many it has, repeated ones too.
    texts: Vec<(usize, u64)>,
    all: Bm25,
}

/// How often a text holds a term.
#[derive(Debug, Clone, Copy)]
struct Posting {
    text: u32,
    count: u32,
}

impl SearchIndex {
    /// Without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. The first has the number 0, the next one 1.
    pub fn add(&mut self, text: &str) {
        let mut terms = Vec::new();
        for_each_term(text, &mut |term| {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            terms.push(*self.numbers.entry(term).or_insert(next));
        });
        let length = terms.len() as u64;
        terms.sort_unstable();
        self.postings.resize_with(self.numbers.len(), Vec::new);
        let text = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        for run in terms.chunk_by(|a, b| a == b) {
            let Some(&term) = run.first() else { continue };
            if let Some(posting) = self.postings.get_mut(term as usize) {
                posting.push(Posting { text, count: u32::try_from(run.len()).unwrap_or(u32::MAX) });
                self.terms.push(term);
            }
        }
        self.texts.push((self.terms.len(), length));
        self.all.add(length);
    }

    /// How many texts it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it has no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// How much each text says: the sum over its distinct terms of `log2(1 + texts / texts with the term)`, in units of 1 / 65,536.
    #[must_use]
    pub fn weights(&self) -> Vec<u64> {
        let texts = self.texts.len() as u64;
        let rare = self.postings.iter().map(|posting| {
            let with = (posting.len() as u64).max(1);
            log2(texts.saturating_add(with)).saturating_sub(log2(with))
        });
        let rare: Vec<u64> = rare.collect();
        let of_term = |term: &u32| rare.get(*term as usize).copied().unwrap_or_default();
        (0..self.texts.len()).map(|text| self.terms_of(text).iter().map(of_term).sum()).collect()
    }

    /// How near each text is to a query: BM25 with `k1` = 1.2 and `b` = 0.75 (Robertson and Zaragoza 2009, in the form that
    /// Lucene uses), in units of 1 / 65,536; 0 if it has no term of the query.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<u64> {
        let mut terms = Vec::new();
        for_each_term(query, &mut |term| terms.extend(self.numbers.get(&term)));
        terms.sort_unstable();
        terms.dedup();
        self.scores_of_terms(&terms)
    }

    /// The same for a query that is one of the texts; all are 0 if there is no such text.
    #[must_use]
    pub fn scores_like(&self, text: usize) -> Vec<u64> {
        self.scores_of_terms(self.terms_of(text))
    }

    /// The numbers of the `count` texts that are nearest to a query, of those that `allowed` lets pass: the nearest first, of
    /// equal ones the newest. A text without a term of the query is never among them.
    #[must_use]
    pub fn nearest(&self, query: &str, count: usize, allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        let scores = self.scores(query).into_iter().zip(0..);
        let mut texts: Vec<(u64, usize)> =
            scores.filter(|(score, text)| *score > 0 && allowed(*text)).collect();
        texts.sort_unstable_by(|one, other| other.cmp(one));
        texts.into_iter().take(count).map(|(_, text)| text).collect()
    }

    fn scores_of_terms(&self, terms: &[u32]) -> Vec<u64> {
        let mut scores = vec![0_u64; self.texts.len()];
        for term in terms {
            let posting = self.posting(*term);
            let rarity = self.all.rarity(posting.len() as u64);
            for own in posting {
                if let Some(score) = scores.get_mut(own.text as usize) {
                    let (_, length) = self.texts.get(own.text as usize).copied().unwrap_or_default();
                    *score = score.saturating_add(self.all.score(own.count, length, rarity));
                }
            }
        }
        scores
    }

    fn posting(&self, term: u32) -> &[Posting] {
        self.postings.get(term as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// The distinct terms of a text.
    fn terms_of(&self, text: usize) -> &[u32] {
        let start = text.checked_sub(1).and_then(|before| self.texts.get(before)).map_or(0, |(end, _)| *end);
        let end = self.texts.get(text).map_or(start, |(end, _)| *end);
        self.terms.get(start..end).unwrap_or_default()
    }
}
