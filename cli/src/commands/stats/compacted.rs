//! Price of a compaction of the conversation now, and the time until it pays.

use epitome::compactors::Truncation;
use epitome::core::{Budget, Index, Outcome, Pass, Planner};
use epitome::models::Prices;
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::report::Pays;

/// A compaction to half of the tokens by `truncate`, which asks no model.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Compacted {
    strategy: &'static str,
    tokens_after: u64,
    /// Tokens of the unchanged messages at the beginning: a prompt cache still covers them.
    stable_prefix_tokens: u64,
    #[serde(flatten)]
    pays: Pays,
}

impl Compacted {
    /// Figures of a compaction to half of the conversation; `None` if nothing can be hidden.
    pub(super) fn of(index: Index<'_>, prices: &Prices) -> Option<Self> {
        let tokens = index.tokens();
        let budget = Budget::builder().window(tokens.saturating_add(1)).reserve(0);
        let budget = budget.trigger(tokens).goal(tokens / 2).min_reclaim(0).build().ok()?;
        let mut planner = Planner::new();
        let planned = planner.plan(index, &budget, Pass::Manual, &Truncation::new()).ok()?;
        let Outcome::Planned(plan) = planned else { return None };
        let (tokens_after, stable_prefix_tokens) = (plan.tokens_after(), plan.stable_prefix().tokens);
        let figures = (tokens, tokens_after, stable_prefix_tokens);
        Some(Self {
            strategy: "truncate",
            tokens_after,
            stable_prefix_tokens,
            pays: Pays::new(prices, figures, 0),
        })
    }

    pub(super) fn to_text(self) -> String {
        format!(
            "\ncompacted to half by {}: {}, the first {} as before\n{}",
            self.strategy,
            counted(self.tokens_after, "token"),
            grouped(self.stable_prefix_tokens),
            self.pays.to_text()
        )
    }
}
