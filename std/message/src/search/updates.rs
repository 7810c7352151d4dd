//! An index of updates: texts that repeat an older statement with another value.

use super::log2::{Rarities, log2};
use super::sentences::for_each_sentence;
use super::vocabulary::Vocabulary;

/// An index of texts by their sentences. It finds the texts that update a sentence of an older text.
///
/// A sentence updates an older one if both have the same subject and the newer one differs. The conditions are:
/// they share three or more terms that few sentences have; the shared terms have at least two fifths of the weight
/// of one of them; the newer one has a term that the older one lacks. The weight of a term is its rarity among all
/// sentences. A question updates nothing. The index needs no dictionary of any language.
///
/// ```
/// use epitome_message::search::UpdateIndex;
///
/// let mut index = UpdateIndex::new();
/// for text in ["The proxy listens on port 8080.", "Thank you.", "Done. The proxy listens on port 9090 now."] {
///     index.add(text);
/// }
/// let updates: Vec<_> = index.updates(|_| true).into_iter().map(|update| (update.older, update.newer)).collect();
/// assert_eq!(updates, [(0, 2)]);
/// ```
///
/// *Cost*: adding takes one pass over the text. [`updates`](Self::updates) compares each sentence with those that
/// share three rare terms with it, at most fifteen for each of its terms.
#[derive(Debug, Clone, Default)]
pub struct UpdateIndex {
    vocabulary: Vocabulary,
    sentences: Sentences,
    /// Buffer for the terms of a sentence.
    room: Vec<u32>,
}

/// An update: a newer text repeats a statement of an older text with another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Update {
    /// The number of the older text.
    pub older: usize,
    /// The number of the newest text that updates a sentence of it.
    pub newer: usize,
}

/// Minimum number of distinct terms of a sentence: with fewer, its subject is not clear.
const TERMS_MIN: usize = 3;

/// Maximum number of distinct terms of a sentence: a longer one is data, or many statements.
const TERMS_MAX: usize = 64;

/// Maximum number of sentences with a rare term. A more frequent term is no sign of a common subject.
const SENTENCES_MAX: u32 = 16;

/// Minimum number of rare terms that two sentences share.
const RARE_MIN: usize = 3;

/// Minimum share of the weight of one of two sentences that they have in common, in percent.
const SHARED_PERCENT_MIN: u64 = 40;

/// Minimum weight that two sentences share, in multiples of the information that identifies one sentence among all.
/// With less, common words would be enough.
const TIMES_ONE_OF_ALL: u64 = 2;

impl UpdateIndex {
    /// An index without texts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. The first has the number 0, the next one 1.
    pub fn add(&mut self, text: &str) {
        for_each_sentence(text, |sentence| {
            self.room.clear();
            self.vocabulary.numbers(sentence, &mut self.room);
            self.sentences.add_sentence(sentence, &self.room);
        });
        self.sentences.end_text();
    }

    /// The updates: each text with an updated sentence, and each newest text that updates one of its sentences. A
    /// text updates others only if `may_update` accepts it.
    #[must_use]
    pub fn updates(&self, may_update: impl Fn(usize) -> bool) -> Vec<Update> {
        self.sentences.updates(may_update)
    }
}

/// Sentences by their terms.
#[derive(Debug, Clone, Default)]
pub(super) struct Sentences {
    /// The row of each term, by the number of the term.
    rows: Vec<Row>,
    /// The distinct terms of all sentences, in order of the sentences.
    terms: Vec<u32>,
    sentences: Vec<Sentence>,
    texts: usize,
    /// Number of added sentences, including those with too few or too many distinct terms.
    seen: u32,
}

/// The sentences with a term.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// Number of these sentences.
    with: u32,
    /// The last added sentence with the term, counted from 1.
    seen: u32,
}

/// A sentence of a text.
#[derive(Debug, Clone, Copy)]
struct Sentence {
    text: usize,
    /// The end of its terms; they begin at the end of the terms of the sentence before.
    end: usize,
    is_question: bool,
}

impl Sentences {
    /// Adds a sentence of the current text, with the numbers of its terms, with repetitions.
    pub(super) fn add_sentence(&mut self, sentence: &str, terms: &[u32]) {
        if terms.len() < TERMS_MIN {
            return;
        }
        self.seen = self.seen.wrapping_add(1).max(1);
        let start = self.terms.len();
        for term in terms {
            let at = *term as usize;
            if at >= self.rows.len() {
                self.rows.resize(at + 1, Row::default());
            }
            let Some(row) = self.rows.get_mut(at).filter(|row| row.seen != self.seen) else { continue };
            row.seen = self.seen;
            self.terms.push(*term);
            if self.terms.len() - start > TERMS_MAX {
                break;
            }
        }
        let own = self.terms.get(start..).unwrap_or_default();
        if !(TERMS_MIN..=TERMS_MAX).contains(&own.len()) {
            self.terms.truncate(start);
            return;
        }
        for number in own {
            if let Some(row) = self.rows.get_mut(*number as usize) {
                row.with = row.with.saturating_add(1);
            }
        }
        let is_question = sentence.trim_end().ends_with(['?', '？', '؟']);
        self.sentences.push(Sentence { text: self.texts, end: self.terms.len(), is_question });
    }

    /// Ends the current text.
    pub(super) const fn end_text(&mut self) {
        self.texts = self.texts.saturating_add(1);
    }

    /// As [`UpdateIndex::updates`].
    pub(super) fn updates(&self, may_update: impl Fn(usize) -> bool) -> Vec<Update> {
        let mut rarities = Rarities::among(self.sentences.len() as u64);
        let weights: Vec<u64> = self.rows.iter().map(|row| rarities.of(row.with)).collect();
        let mut older = Older { weights: &weights, own: vec![0; self.rows.len()], weight: 0, number: 0 };
        let least = log2(self.sentences.len() as u64).saturating_mul(TIMES_ONE_OF_ALL);
        let rare = Rare::of(self);
        let (mut updates, mut room, mut start) = (Vec::new(), Vec::new(), 0);
        for (at, sentence) in (0..).zip(&self.sentences) {
            let own = self.terms.get(start..sentence.end).unwrap_or_default();
            start = sentence.end;
            rare.candidates(at, own, &mut room);
            if room.is_empty() {
                continue;
            }
            older.set(own);
            let newest = room.iter().rev().find_map(|newer| {
                let (newer, terms) = self.sentence(*newer)?;
                let is_statement = !newer.is_question && may_update(newer.text);
                let shared = is_statement.then(|| older.shared_with(terms))?;
                shared.is_about_the_same(least).then_some((newer, shared))
            });
            if let Some((newer, shared)) = newest
                && newer.text > sentence.text
                && shared.says_more
            {
                updates.push(Update { older: sentence.text, newer: newer.text });
            }
        }
        updates.sort_unstable();
        updates.dedup();
        updates
    }

    /// A sentence with its terms.
    fn sentence(&self, at: u32) -> Option<(&Sentence, &[u32])> {
        let before = (at as usize).checked_sub(1).and_then(|before| self.sentences.get(before));
        let sentence = self.sentences.get(at as usize)?;
        Some((sentence, self.terms.get(before.map_or(0, |before| before.end)..sentence.end)?))
    }
}

/// The sentences with each rare term, by the number of the term.
struct Rare {
    /// The beginning of the sentences of each term, and the end of the last.
    begins: Vec<usize>,
    sentences: Vec<u32>,
}

impl Rare {
    fn of(all: &Sentences) -> Self {
        let (mut begins, mut end) = (Vec::with_capacity(all.rows.len() + 1), 0_usize);
        // A term of a single sentence is shared by no two sentences.
        let is_rare = |row: &Row| (2..=SENTENCES_MAX).contains(&row.with);
        for row in &all.rows {
            begins.push(end);
            end += if is_rare(row) { row.with as usize } else { 0 };
        }
        begins.push(end);
        // The place of the next sentence of each term.
        let mut next = begins.clone();
        let (mut sentences, mut start) = (vec![0; end], 0);
        for (at, sentence) in (0..).zip(&all.sentences) {
            for number in all.terms.get(start..sentence.end).unwrap_or_default() {
                if all.rows.get(*number as usize).is_some_and(is_rare)
                    && let Some(next) = next.get_mut(*number as usize)
                    && let Some(slot) = sentences.get_mut(*next)
                {
                    *slot = at;
                    *next += 1;
                }
            }
            start = sentence.end;
        }
        Self { begins, sentences }
    }

    /// The sentences with a term, in ascending order, if the term is rare.
    fn with(&self, term: u32) -> &[u32] {
        match self.begins.get(term as usize..) {
            Some([begin, end, ..]) => self.sentences.get(*begin..*end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The later sentences that share at least three rare terms with this one, in ascending order.
    fn candidates(&self, at: u32, terms: &[u32], candidates: &mut Vec<u32>) {
        candidates.clear();
        for term in terms {
            let sentences = self.with(*term);
            if sentences.last().is_some_and(|last| *last > at) {
                candidates.extend(sentences.iter().rev().take_while(|other| **other > at));
            }
        }
        if candidates.len() < RARE_MIN {
            candidates.clear();
            return;
        }
        candidates.sort_unstable();
        let mut kept = 0;
        let mut run = 0;
        for next in 0..candidates.len() {
            let [own, behind] = [next, next + 1].map(|at| candidates.get(at).copied());
            run += 1;
            if own != behind {
                if let (true, Some(own), Some(slot)) = (run >= RARE_MIN, own, candidates.get_mut(kept)) {
                    *slot = own;
                    kept += 1;
                }
                run = 0;
            }
        }
        candidates.truncate(kept);
    }
}

/// The sentence that is compared with later ones.
struct Older<'w> {
    /// The weight of each term, by the number of the term.
    weights: &'w [u64],
    /// The last sentence with each term, counted from 1, by the number of the term.
    own: Vec<u32>,
    weight: u64,
    number: u32,
}

/// The overlap of a later sentence with the older one.
#[derive(Clone, Copy)]
struct Shared {
    weight: u64,
    /// The weight of the lighter one of the two.
    lighter: u64,
    /// Whether the later sentence has a term that the older one lacks.
    says_more: bool,
}

impl Older<'_> {
    fn set(&mut self, terms: &[u32]) {
        self.number += 1;
        self.weight = terms.iter().map(|term| self.weight_of(*term)).sum();
        for term in terms {
            if let Some(own) = self.own.get_mut(*term as usize) {
                *own = self.number;
            }
        }
    }

    fn shared_with(&self, other: &[u32]) -> Shared {
        let (mut shared, mut all, mut says_more) = (0_u64, 0_u64, false);
        for term in other {
            let weight = self.weight_of(*term);
            let is_own = self.own.get(*term as usize) == Some(&self.number);
            all = all.saturating_add(weight);
            shared = shared.saturating_add(if is_own { weight } else { 0 });
            says_more |= !is_own;
        }
        Shared { weight: shared, lighter: self.weight.min(all), says_more }
    }

    fn weight_of(&self, term: u32) -> u64 {
        self.weights.get(term as usize).copied().unwrap_or_default()
    }
}

impl Shared {
    /// Whether two sentences with this overlap, and three common rare terms, have the same subject.
    const fn is_about_the_same(self, least: u64) -> bool {
        self.weight >= least
            && self.weight.saturating_mul(100) >= self.lighter.saturating_mul(SHARED_PERCENT_MIN)
    }
}

#[cfg(test)]
mod tests;
