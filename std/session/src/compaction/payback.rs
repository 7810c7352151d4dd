//! The rule that a compaction has to pay for itself.

use crate::models::{Cache, Prices};

/// The rule that a compaction has to pay for itself within a number of requests, by the prices of the conversation's model.
///
/// A compaction that does not pay is not made. The rule holds back only passes that can wait
/// ([`Pass::can_wait`](epitome_core::Pass::can_wait)): never a compaction that the caller asks for, one after a refusal by the
/// provider, or one without which the next request does not fit.
///
/// It is not a [`Trigger`](epitome_core::Trigger), because a trigger knows only the size of the request. The plan knows how many
/// tokens go, how many of the first ones stay, and whether a model has to write a summary. A compactor therefore applies the rule
/// to its plan, before it asks a model.
///
/// # Formula
/// N is the number of tokens before, n after, P the number of the first tokens that stay as they were, S the price of the summary,
/// w and r the prices of a token that is written to the cache and of one that is read from it. On a warm cache a compaction pays
/// after `K = ((n - P)(w - r) + S) / ((N - n) r)` requests ([`Prices::pays_after`]). The rule lets it pass if K is at most H, the
/// expected number of requests. This is the same as a least amount to reclaim: `N - n >= ((n - P)(w - r) + S) / (r H)`. On an
/// expired cache all tokens are written anew with and without the compaction: it pays at once unless S is more than `(N - n) w`
/// ([`Prices::pays_after_when_cold`]). The formula adds up the prices of the requests; the unit tests pay for them one by one.
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
    /// The prices of the conversation's model.
    pub prices: Prices,
    /// The number of requests that are still expected. 30 by default ([`PaybackRule::REQUESTS`]).
    pub requests: u64,
    /// The state of the provider's cache. A run sets it.
    pub cache: Cache,
    /// The number of tokens in front of the history that are not part of it, such as tools. A run sets it.
    pub front: u64,
}

impl PaybackRule {
    /// The number of requests that are expected by default. The default trigger and goal free 50,000 tokens. In eleven recorded
    /// conversations of agents, each of more than 20,000 tokens, one request adds 325 to 1,688 tokens (median 837), so that the
    /// freed room is full again after 30 to 154 requests.
    pub const REQUESTS: u64 = 30;

    /// The rule with these prices, [`PaybackRule::REQUESTS`] and a warm cache.
    #[must_use]
    pub const fn new(prices: Prices) -> Self {
        Self { prices, requests: Self::REQUESTS, cache: Cache::Warm, front: 0 }
    }

    /// Sets the number of expected requests. With 0, only a compaction that costs nothing passes.
    #[must_use]
    pub const fn with_requests(mut self, requests: u64) -> Self {
        self.requests = requests;
        self
    }

    /// Sets the state of the prompt cache.
    #[must_use]
    pub const fn with_cache(mut self, cache: Cache) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the number of tokens in front of the messages that are compacted.
    #[must_use]
    pub const fn with_front(mut self, tokens: u64) -> Self {
        self.front = tokens;
        self
    }

    /// Computes when a compaction from `before` tokens to `after` pays. The first `stable` tokens stay as they were.
    /// `made` is the price of making the compaction, in thousandths of an input token: [`Prices::summary`], or 0
    /// without a model.
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

/// The number of requests after which a compaction pays, and the number that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Payback {
    /// The number of requests after which the compaction has cost no more than no compaction: 0 is at once, `None` is
    /// never.
    pub after_requests: Option<u64>,
    /// The number of requests that are expected.
    pub expected_requests: u64,
    /// The state of the cache that the numbers assume.
    pub cache: Cache,
}

impl Payback {
    /// Whether the compaction pays within the expected number of requests.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.after_requests.is_some_and(|requests| requests <= self.expected_requests)
    }
}

#[cfg(test)]
mod tests;
