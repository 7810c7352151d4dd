//! A search for one query.

use super::bm25::{Bm25, rarity};
use super::each_term;
use super::postings::Term;
use super::vocabulary::Vocabulary;

/// Finds the texts that are nearest to one query, in one pass over them. The scores are those of a
/// [`SearchIndex`](super::SearchIndex) of the same texts.
///
/// *Cost*: one pass over each text. A text with a term of the query takes some 40 bytes of memory, another one
/// takes none.
///
/// ```
/// use epitome_message::search::Search;
///
/// let mut search = Search::new("When is the invoice due?");
/// for text in ["The cat sleeps.", "Invoices are due on the 14th.", "The dog sleeps too."] {
///     search.add(text);
/// }
/// assert_eq!(search.nearest(1)[0].text, 1);
/// ```
#[derive(Debug, Clone)]
pub struct Search {
    /// The terms of the query.
    terms: Vocabulary,
    /// Number of texts with each term, by the number of the term.
    with: Vec<u64>,
    all: Bm25,
    /// The larger collection, if there is one: the number of its texts, and the number of texts with each term, by
    /// the number of the term.
    collection: Option<(u64, Vec<u64>)>,
    /// The texts with a term of the query.
    found: Vec<Candidate>,
    /// The counts of their terms, in order of the texts.
    counts: Vec<(u32, u32)>,
    /// The count of each term in the current text, by the number of the term; 0 between texts.
    own: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    text: u64,
    length: u64,
    /// The end of its counts.
    end: usize,
}

/// A text that a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Hit {
    /// Its score for the query, in units of 1 / 65,536; never 0.
    pub score: u64,
    /// The number of the text, from 0 in the order in which the texts were added.
    pub text: u64,
}

impl Search {
    /// A search without texts. A query without a term finds nothing.
    #[must_use]
    pub fn new(query: &str) -> Self {
        let mut terms = Vocabulary::default();
        each_term(query, |term| {
            terms.number(term);
        });
        let (with, own) = (vec![0; terms.len()], vec![0; terms.len()]);
        let all = Bm25::default();
        Self { terms, with, all, collection: None, found: Vec::new(), counts: Vec::new(), own }
    }

    /// A search over some texts of a larger collection of `texts` texts. `with` returns the number of texts in the
    /// collection with a term, which determines the term's rarity.
    #[must_use]
    pub fn of_collection(query: &str, texts: u64, with: impl Fn(Term) -> u64) -> Self {
        let mut search = Self::new(query);
        let mut counts = vec![0; search.terms.len()];
        each_term(query, |hash| {
            let count = search.terms.find(hash).and_then(|number| counts.get_mut(number as usize));
            if let Some(count) = count {
                *count = with(Term::of_hash(hash));
            }
        });
        search.collection = Some((texts, counts));
        search
    }

    /// Whether the query has no term: no letter and no digit.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.terms.len() == 0
    }

    /// Adds the next text. Returns whether it has a term of the query.
    pub fn add(&mut self, text: &str) -> bool {
        let (before, mut length) = (self.counts.len(), 0_u64);
        each_term(text, |term| {
            length += 1;
            let Some(number) = self.terms.find(term) else { return };
            let at = number as usize;
            let (Some(count), Some(with)) = (self.own.get_mut(at), self.with.get_mut(at)) else { return };
            if *count == 0 {
                *with += 1;
                self.counts.push((number, 0));
            }
            *count = count.saturating_add(1);
        });
        for (number, count) in self.counts.iter_mut().skip(before) {
            *count = self.own.get_mut(*number as usize).map(core::mem::take).unwrap_or_default();
        }
        let is_found = self.counts.len() > before;
        if is_found {
            self.found.push(Candidate { text: self.all.texts, length, end: self.counts.len() });
        }
        self.all.add(length);
        is_found
    }

    /// Whether a text has a term of the query. The text is not added to the search.
    #[must_use]
    pub fn has_term(&self, text: &str) -> bool {
        let mut has_one = false;
        each_term(text, |term| has_one |= self.terms.find(term).is_some());
        has_one
    }

    /// Number of added texts.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.all.texts
    }

    /// Whether no text was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.texts == 0
    }

    /// The `count` texts that are nearest to the query, nearest first. Of equally near texts the newest comes
    /// first.
    #[must_use]
    pub fn nearest(&self, count: usize) -> Vec<Hit> {
        let (texts, with) = match &self.collection {
            Some((texts, with)) => (*texts, with),
            None => (self.all.texts, &self.with),
        };
        let rarities: Vec<u64> = with.iter().map(|with| rarity(texts, *with)).collect();
        let rarity = |number: u32| rarities.get(number as usize).copied().unwrap_or_default();
        let mut start = 0;
        let scored = self.found.iter().map(|found| {
            let counts = self.counts.get(start..found.end).unwrap_or_default();
            start = found.end;
            let scores =
                counts.iter().map(|(term, count)| self.all.score(*count, found.length, rarity(*term)));
            // A word in all texts of a very large collection has less than one unit.
            Hit { score: scores.fold(0, u64::saturating_add).max(1), text: found.text }
        });
        let mut hits: Vec<Hit> = scored.collect();
        hits.sort_unstable_by(|one, other| other.cmp(one));
        hits.truncate(count);
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word in all texts of a very large collection has less than one unit, and is found all the same.
    #[test]
    fn a_word_of_all_texts_is_found() {
        let mut search = Search::new("2026");
        for text in 0..60_000 {
            search.add(if text % 2 == 0 { "2026" } else { "2026 a b c d e f g h i j k l m" });
        }
        let hits = search.nearest(usize::MAX);
        assert!(hits.len() == 60_000 && hits.iter().all(|hit| hit.score > 0), "{}", hits.len());
    }
}
