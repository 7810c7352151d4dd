//! BM25 with `k1` = 1.2 and `b` = 0.75 (Robertson and Zaragoza 2009, in the form of Lucene), in integers.

use super::log2::log2;

/// The statistics of all texts that BM25 needs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bm25 {
    pub(super) texts: u64,
    /// Number of terms in all texts, with repetitions.
    pub(super) length: u64,
}

impl Bm25 {
    /// Adds a text of `length` terms.
    pub(super) const fn add(&mut self, length: u64) {
        self.texts = self.texts.saturating_add(1);
        self.length = self.length.saturating_add(length);
    }

    /// The rarity of a term that occurs in `with` of the texts.
    pub(super) fn rarity(self, with: u64) -> u64 {
        rarity(self.texts, with)
    }

    /// The score of a text of `length` terms that has a term `count` times:
    /// `rarity count (k1 + 1) / (count + k1 (1 - b + b length / average))`.
    ///
    /// Both sides of the fraction are multiplied by ten times the length of all texts.
    pub(super) fn score(self, count: u32, length: u64, rarity: u64) -> u64 {
        let [count, length, rarity, all, texts] =
            [u64::from(count), length, rarity, self.length, self.texts].map(u128::from);
        let above = 22 * count * all;
        let below = 10 * count * all + 3 * all + 9 * length * texts;
        u64::try_from(rarity * above / below.max(1)).unwrap_or(u64::MAX)
    }
}

/// The rarity of a term that occurs in `with` of `texts` texts: `log2(1 + (texts - with + 1/2) / (with + 1/2))`, in
/// units of 1 / 65,536.
#[must_use]
pub fn rarity(texts: u64, with: u64) -> u64 {
    log2(2 * texts + 2).saturating_sub(log2(2 * with + 1))
}
