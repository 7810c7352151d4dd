//! Price of a compaction, and the number of requests until it pays.

use epitome::models::Prices;
use serde::Serialize;

use crate::amount::{counted, grouped};

/// Price and saving of a compaction, and the number of requests after which it costs no more than going on without it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Pays {
    /// Price of the compaction, paid once while the prompt cache is warm, in input tokens that no cache holds.
    pub(crate) costs_input_tokens: u64,
    /// Saving per request while the prompt cache is warm, in input tokens that no cache holds.
    pub(crate) saves_input_tokens: u64,
    /// Number of requests until it pays while the prompt cache is warm; `None`, in JSON `null`: never.
    pub(crate) after_requests: Option<u64>,
    /// Whether the next request alone pays for the compaction if the cache has expired.
    pub(crate) at_once_when_cold: bool,
}

impl Pays {
    /// Figures of a compaction from `before` tokens to `after`, with the first `stable` unchanged. `made` is the price
    /// of making it, in thousandths of an input token.
    pub(crate) fn new(prices: &Prices, (before, after, stable): (u64, u64, u64), made: u64) -> Self {
        Self {
            costs_input_tokens: whole(prices.costs(after, stable, made)),
            saves_input_tokens: whole(prices.saves(before, after)),
            after_requests: prices.pays_after(before, after, stable, made),
            at_once_when_cold: prices
                .pays_after_when_cold(before, after, made)
                .is_some_and(|requests| requests <= 1),
        }
    }

    pub(crate) fn to_text(self) -> String {
        let (costs, saves) = (grouped(self.costs_input_tokens), grouped(self.saves_input_tokens));
        let warm = match self.after_requests {
            None => "never while the prompt cache is warm".to_owned(),
            Some(0) => "at once while the prompt cache is warm".to_owned(),
            Some(requests) => {
                format!("after {} while the prompt cache is warm", counted(requests, "request"))
            }
        };
        let cold = if self.at_once_when_cold { "at once" } else { "later" };
        format!(
            "costs     as much as {costs} input tokens once, saves {saves} with each request on a warm prompt cache\n\
             pays      {warm}, {cold} when it has expired\n"
        )
    }
}

/// Thousandths, rounded to the nearest whole.
const fn whole(thousandths: u64) -> u64 {
    thousandths.saturating_add(500) / 1_000
}
