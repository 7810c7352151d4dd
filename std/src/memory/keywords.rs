//! Search by keywords.

use core::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;

use super::words::words;
use super::{Retrieved, Retriever};
use crate::session::SessionError;

/// Texts by their words, ranked by BM25 (Robertson and Zaragoza 2009, in the form that Lucene uses, whose `idf` is never
/// negative). Of equal ranks the newer text is first.
#[derive(Debug, Default)]
pub(super) struct Keywords {
    /// For each word, in which texts it is and how often there; by text, ascending.
    postings: HashMap<String, Vec<(u32, u32)>>,
    /// How many words each text has.
    lengths: Vec<u32>,
    length_sum: u64,
}

/// How soon more of the same word stops counting; Lucene's default.
const K1: f64 = 1.2;
/// How much a long text is marked down; Lucene's default.
const B: f64 = 0.75;

impl Keywords {
    /// Adds a text behind the others.
    pub(super) fn push(&mut self, text: &str) {
        let number = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let words = words(text);
        let length = u32::try_from(words.len()).unwrap_or(u32::MAX);
        for word in words {
            let posting = self.postings.entry(word).or_default();
            match posting.last_mut() {
                Some((last, count)) if *last == number => *count = count.saturating_add(1),
                _ => posting.push((number, 1)),
            }
        }
        self.lengths.push(length);
        self.length_sum = self.length_sum.saturating_add(u64::from(length));
    }

    /// The texts with a word of `query`, best first, at most `limit` of those that `allowed` lets pass.
    pub(super) fn search(&self, query: &str, limit: usize, allowed: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut asked = words(query);
        // In one order, so that sums of floats are the same every time.
        asked.sort_unstable();
        asked.dedup();
        let mut scores: BTreeMap<u32, f64> = BTreeMap::new();
        for word in &asked {
            let Some(posting) = self.postings.get(word) else { continue };
            let idf = idf(self.lengths.len(), posting.len());
            for (number, count) in posting {
                *scores.entry(*number).or_default() += idf * self.weight(*number, *count);
            }
        }
        let found = scores.into_iter().map(|(number, score)| (number as usize, score));
        let mut found: Vec<(usize, f64)> = found.filter(|(number, _)| allowed(*number)).collect();
        found
            .sort_by(|(one, low), (other, high)| high.total_cmp(low).then(Reverse(one).cmp(&Reverse(other))));
        found.into_iter().take(limit).map(|(number, _)| number).collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "a rank; 2^53 words are beyond any memory")]
    fn weight(&self, number: u32, count: u32) -> f64 {
        let length = self.lengths.get(number as usize).copied().unwrap_or_default();
        let average = self.length_sum as f64 / self.lengths.len().max(1) as f64;
        let count = f64::from(count);
        count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * f64::from(length) / average.max(f64::MIN_POSITIVE)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rank; 2^53 texts are beyond any memory")]
pub(super) fn idf(texts: usize, with_word: usize) -> f64 {
    (1.0 + (texts as f64 - with_word as f64 + 0.5) / (with_word as f64 + 0.5)).ln()
}

/// Finds texts by their words: what a search service does, for a handful of texts.
///
/// ```
/// use epitome_std::memory::{KeywordRetriever, Retriever};
///
/// # futures::executor::block_on(async {
/// let retriever = KeywordRetriever::new(["Rust has no garbage collector.", "Bread needs flour and time."]);
/// let found = retriever.retrieve("Does rust collect garbage?", 5).await?;
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].text, "Rust has no garbage collector.");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct KeywordRetriever {
    texts: Vec<String>,
    keywords: Keywords,
}

impl KeywordRetriever {
    /// Over these texts.
    #[must_use]
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        let mut keywords = Keywords::default();
        for text in &texts {
            keywords.push(text);
        }
        Self { texts, keywords }
    }
}

#[async_trait]
impl Retriever for KeywordRetriever {
    async fn retrieve(&self, query: &str, limit: usize) -> Result<Vec<Retrieved>, SessionError> {
        let found = self.keywords.search(query, limit, |_| true);
        Ok(found
            .into_iter()
            .filter_map(|at| self.texts.get(at))
            .map(|text| Retrieved::new(text.as_str()))
            .collect())
    }
}
