//! Which texts say anew, with another value, what an older one says.

use core::ops::Range;
use std::collections::HashMap;

use super::log2::log2;
use super::{for_each_sentence, for_each_term};

/// Texts by their sentences: which text updates a sentence of an older one.
///
/// A sentence updates an older one if both are about the same thing and the newer one says something else: they share three terms or
/// more that few sentences have, and with all that they share two fifths of the weight of one of them, and the newer one has a term
/// that the older one lacks. The weight of a term is its rarity among all sentences. A question updates nothing. The index knows no
/// word of any language.
///
/// ```
/// use epitome_std::search::UpdateIndex;
///
/// let mut index = UpdateIndex::new();
/// for text in ["The proxy listens on port 8080.", "Thank you.", "Done. The proxy listens on port 9090 now."] {
///     index.add(text);
/// }
/// let updates: Vec<_> = index.updates(|_| true).into_iter().map(|update| (update.older, update.newer)).collect();
/// assert_eq!(updates, [(0, 2)]);
/// ```
///
/// *Cost*: adding takes one pass over the text. [`updates`](Self::updates) compares each sentence with those that share a rare
/// term with it, at most fifteen for each of its terms.
#[derive(Debug, Clone, Default)]
pub struct UpdateIndex {
    /// By the hash of a term, its number.
    numbers: HashMap<u64, u32>,
    /// By the number of a term, the first sentences that hold it, ascending, and how many hold it.
    postings: Vec<(Vec<u32>, u32)>,
    /// The distinct terms of all sentences, one sentence after the other, each ascending.
    terms: Vec<u32>,
    sentences: Vec<Sentence>,
    texts: usize,
}

/// A text that says anew what an older one says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Update {
    /// The number of the older text.
    pub older: usize,
    /// The number of the newest text that updates a sentence of it.
    pub newer: usize,
}

/// A sentence of a text.
#[derive(Debug, Clone)]
struct Sentence {
    text: usize,
    terms: Range<usize>,
    is_question: bool,
}

/// A sentence with fewer distinct terms says too little to tell what it is about.
const TERMS_MIN: usize = 3;

/// A longer sentence is data, or many statements.
const TERMS_MAX: usize = 64;

/// A term that more sentences have is no sign that two of them are about the same thing.
const SENTENCES_MAX: u32 = 16;

/// Two sentences share at least so many of such rare terms.
const RARE_MIN: usize = 3;

/// Two sentences share at least this part of the weight of one of them, in percent.
const SHARED_PERCENT_MIN: u64 = 40;

/// The weight that two sentences share, in multiples of what tells one sentence from all others: with less, words of every day would do.
const TIMES_ONE_OF_ALL: u64 = 2;

impl UpdateIndex {
    /// Without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. The first has the number 0, the next one 1.
    pub fn add(&mut self, text: &str) {
        for_each_sentence(text, &mut |sentence| self.add_sentence(sentence));
        self.texts = self.texts.saturating_add(1);
    }

    /// Each text of which a sentence is updated, with each newest text that does so. A text updates others only if `may_update` lets it.
    #[must_use]
    pub fn updates(&self, may_update: impl Fn(usize) -> bool) -> Vec<Update> {
        let count = self.sentences.len() as u64;
        let rare = self.postings.iter().map(|(_, with)| {
            let with = u64::from(*with);
            log2(count.saturating_add(with)).saturating_sub(log2(with))
        });
        let weights: Vec<u64> = rare.collect();
        let (mut updates, mut room) = (Vec::new(), Vec::new());
        for (at, sentence) in (0..).zip(&self.sentences) {
            self.candidates(at, sentence, &mut room);
            let newest = room.iter().rev().filter_map(|newer| self.sentences.get(*newer as usize));
            let newest = newest
                .filter(|newer| !newer.is_question && may_update(newer.text))
                .find(|newer| self.is_about_the_same(sentence, newer, &weights));
            if let Some(newer) = newest.filter(|newer| newer.text > sentence.text)
                && self.says_more(newer, sentence)
            {
                updates.push(Update { older: sentence.text, newer: newer.text });
            }
        }
        updates.sort_unstable();
        updates.dedup();
        updates
    }

    fn add_sentence(&mut self, sentence: &str) {
        let mut own = Vec::new();
        for_each_term(sentence, &mut |term| {
            if own.len() <= TERMS_MAX && !own.contains(&term) {
                own.push(term);
            }
        });
        own.sort_unstable();
        if !(TERMS_MIN..=TERMS_MAX).contains(&own.len()) {
            return;
        }
        let start = self.terms.len();
        let at = u32::try_from(self.sentences.len()).unwrap_or(u32::MAX);
        for term in own {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry(term).or_insert(next);
            self.terms.push(number);
            if number == next {
                self.postings.push((Vec::new(), 0));
            }
            if let Some((posting, with)) = self.postings.get_mut(number as usize) {
                *with = with.saturating_add(1);
                if *with <= SENTENCES_MAX {
                    posting.push(at);
                }
            }
        }
        if let Some(own) = self.terms.get_mut(start..) {
            own.sort_unstable();
        }
        let is_question = sentence.trim_end().ends_with(['?', '？', '؟']);
        self.sentences.push(Sentence { text: self.texts, terms: start..self.terms.len(), is_question });
    }

    /// The sentences behind this one that share a rare term with it, ascending.
    fn candidates(&self, at: u32, sentence: &Sentence, candidates: &mut Vec<u32>) {
        candidates.clear();
        for term in self.terms_of(sentence) {
            let Some((posting, with)) = self.postings.get(*term as usize) else { continue };
            if *with <= SENTENCES_MAX {
                candidates.extend(posting.iter().filter(|other| **other > at));
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
    }

    fn is_about_the_same(&self, one: &Sentence, other: &Sentence, weights: &[u64]) -> bool {
        let [one, other] = [one, other].map(|sentence| self.terms_of(sentence));
        let weight = |term: &u32| weights.get(*term as usize).copied().unwrap_or_default();
        let (mut shared, mut rare) = (0_u64, 0_usize);
        for term in one.iter().filter(|term| other.binary_search(term).is_ok()) {
            shared = shared.saturating_add(weight(term));
            let is_rare = self.postings.get(*term as usize).is_some_and(|(_, with)| *with <= SENTENCES_MAX);
            rare = rare.saturating_add(usize::from(is_rare));
        }
        let least = log2(self.sentences.len() as u64).saturating_mul(TIMES_ONE_OF_ALL);
        if rare < RARE_MIN || shared < least {
            return false;
        }
        let [of_one, of_other] = [one, other].map(|terms| terms.iter().map(weight).sum::<u64>());
        shared.saturating_mul(100) >= of_one.min(of_other).saturating_mul(SHARED_PERCENT_MIN)
    }

    /// Whether a sentence has a term that another one lacks.
    fn says_more(&self, sentence: &Sentence, than: &Sentence) -> bool {
        let than = self.terms_of(than);
        self.terms_of(sentence).iter().any(|term| than.binary_search(term).is_err())
    }

    fn terms_of(&self, sentence: &Sentence) -> &[u32] {
        self.terms.get(sentence.terms.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
