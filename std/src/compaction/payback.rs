//! Whether a compaction is worth what it costs.

use crate::models::{Cache, Prices};

/// The rule that a compaction has to pay within so many requests, by the prices of the conversation's model. A compaction that
/// does not is left until it does, or until the next request would not fit: then it is made whatever it costs, as one is that was
/// asked for ([`Pass::can_wait`](epitome_core::Pass::can_wait)).
///
/// It is no [`Trigger`](epitome_core::Trigger): a trigger knows how large a request is, and only a plan knows how much of it goes,
/// how much of the beginning stays, and who has to be asked for a summary. So a compactor asks, when it has a plan and before it
/// asks anybody.
///
/// # Formula
/// With N tokens before, n after, the first P of them as they were, S for what is written, and the prices w and r of writing to
/// the cache and reading from it, a compaction pays after `K = ((n - P)(w - r) + S) / ((N - n) r)` requests on a warm cache
/// ([`Prices::pays_after`]). It passes where K is no more than the expected number of requests H, which is the same as the
/// least amount that is worth reclaiming: `N - n >= ((n - P)(w - r) + S) / (r H)`. On a cache that has expired all is written anew
/// in either case, and it pays at once unless a summary costs more than `(N - n) w` ([`Prices::pays_after_when_cold`]).
///
/// ```
/// use epitome_std::compaction::PaybackRule;
/// use epitome_std::models::{Cache, Models};
///
/// let prices = Models::builtin().find("claude-sonnet-4-5")?.prices.ok_or("no prices")?;
/// let rule = PaybackRule::new(prices);
/// assert_eq!(rule.requests, 30);
/// // From 150,000 tokens to 25,000, the first 10,000 as they were.
/// let payback = rule.payback(150_000, 25_000, 10_000, 0);
/// assert!(payback.is_expected() && payback.after_requests == Some(2));
/// // To clear 5,000 tokens in the middle is not worth it, until the cache has expired.
/// let payback = rule.payback(150_000, 145_000, 20_000, 0);
/// assert!(!payback.is_expected() && payback.after_requests == Some(288));
/// assert!(rule.with_cache(Cache::Cold).payback(150_000, 145_000, 20_000, 0).is_expected());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaybackRule {
    /// What the conversation's model charges.
    pub prices: Prices,
    /// Within how many requests it has to pay: how many are still expected. 30 by default ([`PaybackRule::REQUESTS`]).
    pub requests: u64,
    /// Whether the provider's cache still holds the last request. A run sees to it.
    pub cache: Cache,
    /// How many tokens stand in front of what is compacted and are no part of it, such as tools. A run sees to it.
    pub front: u64,
}

impl PaybackRule {
    /// How many requests are expected by default. A compaction by default frees 50,000 tokens, and what it has freed serves until it
    /// is filled again: in eleven recorded conversations of agents, each of over 20,000 tokens, a request adds 325 to 1,688 tokens
    /// (in the middle 837), which fills it after 30 to 154 requests.
    pub const REQUESTS: u64 = 30;

    /// It has to pay within [`PaybackRule::REQUESTS`] by these prices, on a warm cache.
    #[must_use]
    pub const fn new(prices: Prices) -> Self {
        Self { prices, requests: Self::REQUESTS, cache: Cache::Warm, front: 0 }
    }

    /// The same with another number of requests that are still expected. With none, what costs anything never pays.
    #[must_use]
    pub const fn with_requests(mut self, requests: u64) -> Self {
        self.requests = requests;
        self
    }

    /// The same for a cache in this state.
    #[must_use]
    pub const fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// The same with so many tokens in front of what is compacted.
    #[must_use]
    pub const fn with_front(mut self, tokens: u64) -> Self {
        self.front = tokens;
        self
    }

    /// When a compaction from `before` tokens to `after` pays, of which the first `stable` are as they were. `made` is what it
    /// costs to make it, in thousandths of an input token: [`Prices::summary`], or 0 without a model.
    #[must_use]
    pub fn payback(&self, before: u64, after: u64, stable: u64, made: u64) -> Payback {
        let [before, after, stable] = [before, after, stable].map(|tokens| tokens.saturating_add(self.front));
        let after_requests = match self.cache {
            Cache::Warm => self.prices.pays_after(before, after, stable, made),
            Cache::Cold => self.prices.pays_after_when_cold(before, after, made),
        };
        Payback { after_requests, expected_requests: self.requests, cache: self.cache }
    }
}

/// When a compaction pays, and when it has to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Payback {
    /// After so many requests it has cost no more than going on without it: 0 at once, `None` never.
    pub after_requests: Option<u64>,
    /// How many requests are expected.
    pub expected_requests: u64,
    /// For which state of the cache.
    pub cache: Cache,
}

impl Payback {
    /// Whether it pays within the requests that are expected.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.after_requests.is_some_and(|requests| requests <= self.expected_requests)
    }
}

#[cfg(test)]
mod tests;
