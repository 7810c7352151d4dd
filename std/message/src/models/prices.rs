//! Relative prices of tokens, and the number of requests after which a compaction pays.

use core::time::Duration;

/// The prices of a model's provider, in thousandths of the price of an uncached input token.
///
/// ```
/// use epitome_message::models::Models;
///
/// let prices = Models::builtin().find("claude-sonnet-4-5")?.prices.ok_or("no prices")?;
/// // From 150,000 tokens to 25,000, of which the first 10,000 stay as they were: paid back by the second request.
/// assert_eq!(prices.pays_after(150_000, 25_000, 10_000, 0), Some(2));
/// // With a summary of 4,000 tokens that a request of its own has asked for, by the thirteenth.
/// let asked = prices.summary(125_000, 4_000);
/// assert_eq!(prices.pays_after(150_000, 25_000, 10_000, asked), Some(13));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prices {
    /// Price of an input token that is written to the cache: 1,250 if writing costs a quarter more.
    pub write: u32,
    /// Price of an input token that is read from the cache.
    pub read: u32,
    /// Price of an output token.
    pub output: u32,
    /// The shortest prefix that the provider caches, in tokens.
    pub cached_min: u64,
    /// The lifetime of an unused prefix in the cache; `None` if it is not published.
    pub lifetime: Option<Duration>,
}

/// Whether a provider's prompt cache still covers the prefix of the last request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::exhaustive_enums, reason = "it holds the prompt or it does not")]
pub enum Cache {
    /// The cache covers it.
    #[default]
    Warm,
    /// The cache has expired: the next request writes all its tokens, compacted or not.
    Cold,
}

/// Price of an uncached input token.
const INPUT: u64 = 1_000;

impl Prices {
    /// Prices for a cache without a surcharge for writing and without a shortest prefix, with `read` for a cached
    /// token and `output` for an output token.
    #[must_use]
    pub const fn new(read: u32, output: u32) -> Self {
        Self { write: 1_000, read, output, cached_min: 0, lifetime: None }
    }

    /// The number of requests after which a compaction has cost no more than the conversation without it, while the
    /// cache is warm: 0 if it cost nothing, `None` if it never pays.
    ///
    /// `before` and `after` are the tokens of the request; the first `stable` of them are unchanged. `made` is the
    /// price of making the compaction, in thousandths of an input token. All tokens behind the stable ones are
    /// written to the cache once more. From then on each request reads `before - after` tokens less. The saving is
    /// counted at the price of cached tokens, because these tokens would have been read from the cache.
    #[must_use]
    pub fn pays_after(&self, before: u64, after: u64, stable: u64, made: u64) -> Option<u64> {
        let saves = self.saves(before, after);
        (saves > 0).then(|| self.costs(after, stable, made).div_ceil(saves))
    }

    /// The price of such a compaction while the cache is warm, in thousandths of an input token: `made`, plus the
    /// tokens that are written to the cache once more.
    #[must_use]
    pub fn costs(&self, after: u64, stable: u64, made: u64) -> u64 {
        let stable = if stable < self.cached_min { 0 } else { stable.min(after) };
        let once = u64::from(self.write.saturating_sub(self.read));
        after.saturating_sub(stable).saturating_mul(once).saturating_add(made)
    }

    /// The saving of each later request while the cache is warm, in thousandths of an input token.
    #[must_use]
    pub fn saves(&self, before: u64, after: u64) -> u64 {
        before.saturating_sub(after).saturating_mul(u64::from(self.read))
    }

    /// The number of requests after which a compaction has cost no more than the conversation without it, if the
    /// cache has expired: 0 if making it cost nothing, `None` if it never pays.
    ///
    /// The first request writes `after` tokens to the cache instead of `before`. Each later request reads as many
    /// tokens less.
    ///
    /// ```
    /// use epitome_message::models::Models;
    ///
    /// let prices = Models::builtin().find("claude-sonnet-4-5")?.prices.ok_or("no prices")?;
    /// assert_eq!(prices.pays_after_when_cold(150_000, 25_000, 0), Some(0));
    /// assert_eq!(prices.pays_after_when_cold(150_000, 25_000, prices.summary(125_000, 4_000)), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pays_after_when_cold(&self, before: u64, after: u64, made: u64) -> Option<u64> {
        let (first, saves) =
            (before.saturating_sub(after).saturating_mul(u64::from(self.write)), self.saves(before, after));
        match made.saturating_sub(first) {
            _ if before <= after => None,
            0 => Some(u64::from(made > 0)),
            rest => (saves > 0).then(|| rest.div_ceil(saves).saturating_add(1)),
        }
    }

    /// The state of the cache after a pause of this length. Without a published lifetime, the cache counts as warm.
    #[must_use]
    pub fn cache_after(&self, idle: Duration) -> Cache {
        if self.lifetime.is_some_and(|lifetime| idle > lifetime) { Cache::Cold } else { Cache::Warm }
    }

    /// The price of the input of a request with `tokens` tokens, in thousandths of an input token, if the cache
    /// covers the first `cached` of them. A prefix shorter than [`cached_min`](Self::cached_min) is not read from
    /// the cache, and a request shorter than that is not written to it.
    ///
    /// ```
    /// use epitome_message::models::Prices;
    ///
    /// let mut prices = Prices::new(100, 5_000);
    /// (prices.write, prices.cached_min) = (1_250, 1_024);
    /// assert_eq!(prices.request(10_000, 8_000), 8_000 * 100 + 2_000 * 1_250);
    /// assert_eq!(prices.request(10_000, 1_000), 10_000 * 1_250);
    /// assert_eq!(prices.request(1_000, 0), 1_000 * 1_000);
    /// ```
    #[must_use]
    pub const fn request(&self, tokens: u64, cached: u64) -> u64 {
        let is_cached = tokens >= self.cached_min;
        let read = if !is_cached || cached < self.cached_min {
            0
        } else if cached < tokens {
            cached
        } else {
            tokens
        };
        let each = if is_cached { self.write as u64 } else { INPUT };
        let new = tokens.saturating_sub(read).saturating_mul(each);
        read.saturating_mul(self.read as u64).saturating_add(new)
    }

    /// The price of a summary of `tokens` tokens from a separate request. This request reads the `covered` tokens,
    /// which no cache holds in that form.
    #[must_use]
    pub fn summary(&self, covered: u64, tokens: u64) -> u64 {
        covered.saturating_mul(INPUT).saturating_add(tokens.saturating_mul(u64::from(self.output)))
    }

    /// The price of a summary of `tokens` tokens that a model writes behind a request of `cached` tokens, all of
    /// them in the cache.
    #[must_use]
    pub fn summary_within(&self, cached: u64, tokens: u64) -> u64 {
        let (read, output) = (u64::from(self.read), u64::from(self.output));
        cached.saturating_mul(read).saturating_add(tokens.saturating_mul(output))
    }
}
