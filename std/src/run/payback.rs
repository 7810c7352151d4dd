//! The rule that a compaction has to pay, as it stands at a point of a run.

use core::time::Duration;

use super::Point;
use super::live::Run;
use crate::compaction::PaybackRule;
use crate::models::Cache;

impl Run<'_> {
    /// The rule, if there is one, with what stands in front of the history and the state of the provider's cache.
    pub(super) fn payback_at(&self, point: Point) -> Option<PaybackRule> {
        let rule =
            PaybackRule::new(self.settings.prices()?).with_requests(self.compaction.as_ref()?.payback?);
        // Instructions are in the index of all that is sent, and not in that of what is stored.
        let front = match point {
            Point::BeforeCall => self.tool_tokens,
            _ => self.tool_tokens.saturating_add(self.instruction_tokens),
        };
        Some(rule.with_front(front).with_cache(self.cache(&rule)))
    }

    /// Whether the cache still holds the last request. Where nobody knows when that was made, it does.
    fn cache(&self, rule: &PaybackRule) -> Cache {
        let Some(requested) = self.session.requested else { return Cache::Warm };
        let idle = (self.settings.clock)().0.saturating_sub(requested.0);
        rule.prices.cache_after(Duration::from_millis(idle))
    }

    /// Notes when a request is made, if a rule has to know.
    pub(super) fn note_request(&mut self) {
        if self.compaction.as_ref().is_some_and(|auto| auto.payback.is_some()) {
            self.session.requested = Some((self.settings.clock)());
        }
    }
}
