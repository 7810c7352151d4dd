//! A recorded conversation as the requests to which its answers belong.

use std::sync::Arc;

use epitome::core::TokenCounter;
use epitome::core::message::Role;

use super::contender::{Contender, Known};
use super::ongoing::Ongoing;
use super::price::Pricing;
use super::prompt::{CountedMessage, Prompt};
use crate::budget::Asked;
use crate::failure::Result;

/// Price and number of requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Paid {
    pub(super) requests: u64,
    /// The price in thousandths of an input token that no cache holds.
    pub(super) thousandths: u64,
    pub(super) compactions: u64,
    /// The size of the largest request, in tokens.
    pub(super) largest: u64,
}

impl Paid {
    /// Price of the requests of a conversation without compactions: each request has all messages before it.
    pub(super) fn without_compaction(messages: &[CountedMessage], pricing: &Pricing) -> Self {
        let (mut paid, mut cached, mut said, mut tokens) = (Self::default(), 0, 0, 0);
        for request in Request::all(messages) {
            let new = messages.get(said..request.at).unwrap_or_default();
            tokens += new.iter().map(CountedMessage::tokens).sum::<u64>();
            said = request.at;
            cached = paid.request(tokens, request.finds(cached, pricing), pricing);
        }
        paid
    }

    /// Price of the requests if a request that fills the window is compacted first.
    pub(super) fn with_compactions(
        contender: Contender<'_>,
        messages: &[CountedMessage],
        asked: &Asked,
        pricing: &Pricing,
        counter: &Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self> {
        let (mut paid, mut cached) = (Self::default(), 0);
        let mut ongoing = Ongoing::new(contender, counter)?;
        for request in Request::all(messages) {
            let said = messages.get(..request.at).unwrap_or_default();
            ongoing.append_up_to(said)?;
            cached = request.finds(cached, pricing);
            if ongoing.tokens() > pricing.trigger() {
                let known = Known { needs: &[], request: None };
                let stable = ongoing.compact(said, &Prompt::of(said)?, asked, known, counter)?;
                paid.compactions += u64::from(stable.is_some());
                cached = cached.min(stable.unwrap_or(cached));
            }
            cached = paid.request(ongoing.tokens(), cached, pricing);
        }
        Ok(paid)
    }

    /// Adds the price of a request whose first `cached` tokens the cache may hold. Returns the number of tokens that
    /// the cache may hold after it.
    fn request(&mut self, tokens: u64, cached: u64, pricing: &Pricing) -> u64 {
        self.requests += 1;
        self.thousandths = self.thousandths.saturating_add(pricing.prices.request(tokens, cached));
        self.largest = self.largest.max(tokens);
        tokens
    }

    pub(super) const fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.thousandths = self.thousandths.saturating_add(other.thousandths);
        self.compactions += other.compactions;
        if other.largest > self.largest {
            self.largest = other.largest;
        }
    }
}

/// A request to the model.
struct Request {
    /// The number of messages before its answer.
    at: usize,
    /// Whether the user has written a message since the previous request.
    follows_user: bool,
}

impl Request {
    /// The requests of a conversation. Consecutive messages of the model are one answer. A message of the model at the
    /// beginning answers no request.
    fn all(messages: &[CountedMessage]) -> impl Iterator<Item = Self> {
        let mut follows_user = false;
        let pairs = messages.iter().zip(messages.iter().skip(1)).enumerate();
        pairs.filter_map(move |(at, (before, next))| {
            follows_user |= before.message.role() == Role::User;
            let by_model = |counted: &CountedMessage| counted.message.role() == Role::Assistant;
            let is_answer = by_model(next) && !by_model(before);
            is_answer.then(|| Self { at: at + 1, follows_user: core::mem::take(&mut follows_user) })
        })
    }

    /// The number of the `cached` tokens that the cache still holds at this request.
    const fn finds(&self, cached: u64, pricing: &Pricing) -> u64 {
        if self.follows_user && pricing.expires { 0 } else { cached }
    }
}

#[cfg(test)]
mod tests;
