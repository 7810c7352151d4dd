//! Search over texts in any script, without a model.
//!
//! ```
//! use epitome_message::search::SearchIndex;
//!
//! let mut index = SearchIndex::new();
//! for text in ["The cat sleeps.", "Invoices are due on the 14th.", "The dog sleeps too."] {
//!     index.add(text);
//! }
//! assert_eq!(index.nearest("When is the invoice due?", 1, |_| true), [1]);
//! ```

mod bm25;
mod conversation;
mod counts;
mod log2;
mod messages;
mod once;
mod postings;
mod record;
mod sentences;
mod terms;
#[cfg(test)]
mod tests;
mod updates;
mod vocabulary;
mod words;

use counts::Counts;
use terms::each_term;
use vocabulary::Vocabulary;

pub use bm25::rarity;
pub use conversation::ConversationIndex;
pub use messages::{MessageSearch, beside};
pub use once::{Hit, Search};
pub use postings::{Postings, Term, TornRow, query_terms};
pub use record::{RECALL, Record, nearest_piece, nearest_record, said, text_of, without_role};
pub use terms::for_each_term;
pub use updates::{Update, UpdateIndex};

/// An index of texts by their terms. It computes the information of each text, and the nearness of texts to a
/// query.
///
/// A term is a word in lower case, cut to its first five letters, so that forms of one word are one term. In
/// Chinese, Japanese and Korean, each pair of adjacent characters is a term ([`for_each_term`]). All scores are
/// integers, equal on every platform.
///
/// *Cost*: adding takes one pass over the text; a query takes one step for each occurrence of its terms. A text
/// takes 16 bytes of memory for each of its distinct terms. The text itself is not stored.
///
/// ```
/// use epitome_message::search::SearchIndex;
///
/// let mut index = SearchIndex::new();
/// index.add("The cat sleeps.");
/// index.add("The dog barks.");
/// let scores = index.scores("Is it sleeping?");
/// assert!(scores[0] > 0 && scores[1] == 0);
/// assert_eq!(index.nearest("a dog or a cat", 2, |text| text != 1), [0]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct SearchIndex {
    vocabulary: Vocabulary,
    counts: Counts,
    /// The texts with each term, in ascending order, by the number of the term.
    postings: Vec<Vec<Posting>>,
    /// Buffer for the terms of a text.
    room: Vec<u32>,
}

/// Number of occurrences of a term in a text.
#[derive(Debug, Clone, Copy)]
struct Posting {
    text: u32,
    count: u32,
}

impl SearchIndex {
    /// An index without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. The first has the number 0, the next one 1.
    pub fn add(&mut self, text: &str) {
        let number = u32::try_from(self.len()).unwrap_or(u32::MAX);
        self.room.clear();
        self.vocabulary.numbers(text, &mut self.room);
        self.counts.add(&self.room);
        self.postings.resize_with(self.vocabulary.len(), Vec::new);
        for own in self.counts.end_text() {
            if let Some(posting) = self.postings.get_mut(own.term as usize) {
                posting.push(Posting { text: number, count: own.count });
            }
        }
    }

    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether the index has no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The information of each text: the sum over its distinct terms of `log2(1 + texts / texts with the term)`, in
    /// units of 1 / 65,536.
    #[must_use]
    pub fn weights(&self) -> Vec<u64> {
        self.counts.weights()
    }

    /// The score of each text for a query: BM25 with `k1` = 1.2 and `b` = 0.75 (Robertson and Zaragoza 2009, in the
    /// form of Lucene), in units of 1 / 65,536; 0 for a text without a term of the query.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<u64> {
        let mut terms = Vec::new();
        each_term(query, |term| terms.extend(self.vocabulary.find(term)));
        terms.sort_unstable();
        terms.dedup();
        self.scores_of_terms(terms.into_iter())
    }

    /// The similarity of each text to the text with this number; all scores are 0 if there is no such text.
    #[must_use]
    pub fn scores_like(&self, text: usize) -> Vec<u64> {
        self.scores_of_terms(self.counts.of_text(text).iter().map(|own| own.term))
    }

    /// The numbers of the `count` texts that are nearest to a query, nearest first, among those that `allowed`
    /// accepts. Of equally near texts the newest comes first. A text without a term of the query is never included.
    #[must_use]
    pub fn nearest(&self, query: &str, count: usize, allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        let scores = self.scores(query).into_iter().zip(0..);
        let mut texts: Vec<(u64, usize)> =
            scores.filter(|(score, text)| *score > 0 && allowed(*text)).collect();
        texts.sort_unstable_by(|one, other| other.cmp(one));
        texts.into_iter().take(count).map(|(_, text)| text).collect()
    }

    fn scores_of_terms(&self, terms: impl Iterator<Item = u32>) -> Vec<u64> {
        let mut scores = vec![0_u64; self.len()];
        for term in terms {
            let rarity = self.counts.rarity(term);
            for own in self.postings.get(term as usize).into_iter().flatten() {
                if let Some(score) = scores.get_mut(own.text as usize) {
                    *score = score.saturating_add(self.counts.score(own.text as usize, own.count, rarity));
                }
            }
        }
        scores
    }
}
