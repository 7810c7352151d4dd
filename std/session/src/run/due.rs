//! Size of the next request, the trigger of a compaction, and the budget that a due compaction has to reach.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use epitome_core::{
    Budget, Fired, Index, ModelKey, Size, Stamp, TokenCounter, Trigger, TriggerKind, TriggerView, UsageLedger,
};

use serde_json::{Map, Value};
use tracing::warn;

use super::RunSettings;
use crate::compaction::{CompactionOptions, Condition};
use crate::models::measure_functions;
use crate::session::{AgentSession, Tool};

/// Known sizes of a request before it is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    /// In the provider's tokens.
    pub(super) size: Size,
    /// The input tokens of the latest report.
    pub(super) token_count: u64,
}

impl Measure {
    /// A request of `counted` tokens by the counter.
    pub(super) fn of(
        session: &mut AgentSession,
        model: ModelKey,
        budget: Budget,
        counted: u64,
        stamp: Stamp,
    ) -> Self {
        let ledger = session.ledger_for(model, budget);
        let size = ledger.size(counted, stamp);
        session.note_context_size(size);
        Self { size, token_count: session.token_count() }
    }

    /// Trigger that makes a compaction due; `None` if none does.
    pub(super) fn fired(&self, trigger: &Trigger<'_>, index: Index<'_>, budget: &Budget) -> Option<Fired> {
        trigger.fired(&self.view(index, budget, self.size.tokens, self.token_count))
    }

    /// Trigger of a compaction that is due by a condition of the caller.
    pub(super) fn fired_by(&self, condition: &Condition, index: Index<'_>, budget: &Budget) -> Option<Fired> {
        let view = self.view(index, budget, self.size.tokens, self.token_count);
        // A condition that panics counts as not met.
        let is_due = || {
            let asked = catch_unwind(AssertUnwindSafe(|| condition.is_due(&view)));
            asked.unwrap_or_else(|_| {
                warn!("the condition of the compaction panicked");
                false
            })
        };
        Trigger::always().fired(&view).filter(|_| is_due())
    }

    /// Trigger that would make a compaction due at five quarters of the size: the request has more than four fifths of
    /// its limit.
    pub(super) fn near(&self, trigger: &Trigger<'_>, index: Index<'_>, budget: &Budget) -> Option<Fired> {
        let grown = |tokens: u64| tokens.saturating_add(tokens / 4);
        trigger.fired(&self.view(index, budget, grown(self.size.tokens), grown(self.token_count)))
    }

    /// Trigger that makes a compaction due when the conversation grows; `None` if it does not depend on the size.
    pub(super) fn when_large(
        &self,
        trigger: &Trigger<'_>,
        index: Index<'_>,
        budget: &Budget,
    ) -> Option<Fired> {
        trigger.fired(&self.view(index, budget, u64::MAX, u64::MAX))
    }

    fn view<'a>(&self, index: Index<'a>, budget: &'a Budget, size: u64, reported: u64) -> TriggerView<'a> {
        TriggerView::new(index, budget, size).with_token_count(reported)
    }
}

/// The budget of a request under these options, with `answer_max` tokens for its answer. It is the budget of the
/// agent's model, or a smaller one if a provider has reported a smaller window to this session.
pub(super) fn budget(
    settings: &RunSettings,
    session: &AgentSession,
    options: Option<&CompactionOptions>,
    answer_max: Option<u64>,
) -> Budget {
    let budget = settings.budget_under(options);
    let reserve = options.and_then(CompactionOptions::reserve);
    match told_window(settings, session).filter(|told| *told < budget.window()) {
        Some(told) => settings.budget_of(told, reserve, answer_max),
        None if answer_max.is_some_and(|most| most > budget.reserve()) => {
            settings.budget_of(budget.window(), reserve, answer_max)
        }
        None => budget,
    }
}

/// Tokens of a request that these options of the client reserve for the answer: providers count them as a part of the request.
pub(super) fn answer_max(options: &Map<String, Value>) -> Option<u64> {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    names.iter().find_map(|name| options.get(*name)?.as_u64())
}

/// The window that the provider of the agent's model has reported to this session, if there is one.
pub(super) fn told_window(settings: &RunSettings, session: &AgentSession) -> Option<u64> {
    session.window_told.filter(|(model, _)| *model == settings.model_key()).map(|(_, window)| window)
}

/// Budget of a pass over a part of a request: a history of `tokens` by the counter, in a request of `size`. The other parts of the request
/// take their share of the budget. The counter's error is taken into account: a plan counts as the counter does, the budget as the provider
/// does.
///
/// The goal is that of the options, or half of the amount that made the pass due. A trigger that is not an amount of tokens (a number of
/// turns, say) sets no goal: the strategy decides how much stays.
pub(super) fn plan_budget(
    whole: &Budget,
    options: &CompactionOptions,
    fired: Option<&Fired>,
    size: u64,
    tokens: u64,
    ledger: &UsageLedger,
) -> Budget {
    let counted = |amount: u64| match amount.checked_sub(size) {
        None => tokens.saturating_sub(ledger.must_free(size, amount)),
        // Rounded down, so that a request that does not fit never counts as fitting.
        Some(more) => tokens.saturating_add(ledger.correction().counted_from(more).saturating_sub(1)),
    };
    let limit = counted(whole.limit()).max(2);
    let due = fired.and_then(limit_of);
    let trigger = due.map_or(limit, |due| counted(due.min(whole.limit())).clamp(1, limit));
    let goal = options.goal().or_else(|| due.map(|due| due / 2));
    let goal = goal.map(|goal| counted(goal).min(trigger.saturating_sub(1)));
    let min_reclaim = options.min_reclaim().map(|tokens| ledger.correction().counted_from(tokens));
    part_of(limit, trigger, goal, min_reclaim).unwrap_or(*whole)
}

/// The budget of a part of a request, by the counter.
fn part_of(limit: u64, trigger: u64, goal: Option<u64>, min_reclaim: Option<u64>) -> Option<Budget> {
    let builder = Budget::builder().window(limit).reserve(0).trigger(trigger);
    let builder = goal.map_or_else(|| builder.without_goal(), |goal| builder.goal(goal));
    let room = trigger.saturating_sub(goal.unwrap_or_default());
    let builder = match min_reclaim {
        Some(tokens) => builder.min_reclaim(tokens.min(room)),
        None => builder,
    };
    builder.build().ok()
}

/// The budget of a pass that is planned now and made when it is due. The pass also frees the tokens that the history
/// grows by until then. It therefore leaves the same size as a pass that is planned then.
pub(super) fn early_budget(
    whole: &Budget,
    options: &CompactionOptions,
    due: Option<&Fired>,
    size: u64,
    tokens: u64,
    ledger: &UsageLedger,
) -> Budget {
    let then = plan_budget(whole, options, due, size, tokens, ledger);
    let Some(goal) = then.goal() else { return then };
    let grows = then.trigger().saturating_sub(tokens);
    let goal = goal.saturating_sub(grows).max(1);
    let min_reclaim = options.min_reclaim().map(|_| then.min_reclaim());
    part_of(then.window(), then.trigger(), Some(goal), min_reclaim).unwrap_or(then)
}

/// The amount of tokens that made a pass due.
fn limit_of(fired: &Fired) -> Option<u64> {
    let is_tokens = matches!(
        fired.kind(),
        TriggerKind::Tokens | TriggerKind::Budget | TriggerKind::Reported | TriggerKind::Window
    );
    fired.amounts().filter(|_| is_tokens).map(|(_, limit)| limit)
}

/// Tokens of a request beside its messages, by the counter: its tools, and the frame of the request.
pub(super) fn tokens_beside(tools: &[Tool], counter: &(impl TokenCounter + ?Sized)) -> u64 {
    let functions = tools.iter().map(|tool| (&*tool.name, &*tool.description, &tool.parameters));
    let tools = measure_functions(functions, counter).tokens.as_u64();
    tools.saturating_add(counter.framing().request.into())
}

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use serde_json::json;

    use super::*;
    use crate::models::measure_tools;

    /// A request has its tools by the formula of the provider, and its frame, also without any.
    #[test]
    fn beside_its_messages_a_request_has_tools_and_a_frame() {
        let counter = ClassEstimator::new();
        let frame = u64::from(counter.framing().request);
        assert_eq!((tokens_beside(&[], &counter), frame), (frame, 3));
        let schema = json!({"type": "object", "properties": {"path": {"type": "string", "description": "Of the file."}}});
        let tools =
            [Tool::new("read_file", "Reads a file.", schema.clone()), Tool::new("now", "", json!({}))];
        let sent = json!([
            {"type": "function", "function": {"name": "read_file", "description": "Reads a file.", "parameters": schema}},
            {"type": "function", "function": {"name": "now", "description": "", "parameters": {}}},
        ]);
        let measured = measure_tools(&sent.to_string(), &counter).unwrap().tokens.as_u64();
        assert!(measured > 30, "{measured}");
        assert_eq!(tokens_beside(&tools, &counter), measured + frame);
    }
}
