//! The verdicts of a strategy at a budget, group by group.

use epitome::core::{GroupKind, TokenCounter};
use serde::Serialize;

use crate::amount::Percent;
use crate::args::BudgetArgs;
use crate::commands::compact::{self, Settings};
use crate::failure::{Result, code};
use crate::model;
use crate::report::{GroupDetail, Pays, Report};
use crate::scan::ESTIMATE;
use crate::strategy::Strategies;
use crate::transcript::Transcript;

use super::Asking;

/// The verdicts of one strategy at one budget.
#[derive(Debug, Serialize)]
pub(super) struct Strip {
    pub(super) strategy: String,
    pub(super) keep: String,
    /// Whether the protected groups exceed the budget; all groups stay then.
    pub(super) infeasible: bool,
    pub(super) tokens_after: u64,
    pub(super) goal_missed: bool,
    /// Tokens of the unchanged messages at the beginning: a prompt cache still covers them.
    pub(super) stable_prefix_tokens: u64,
    /// Price and saving of the compaction, if the prices of the model are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pays: Option<Pays>,
    /// One letter per group: K kept, E kept with shortened parts, D dropped, R replaced.
    pub(super) verdicts: String,
}

/// A group: messages that are kept or hidden together.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Group {
    /// Its first message, counted from 0.
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) kind: GroupKind,
    pub(super) tokens: u32,
}

/// The strips of a conversation, and its groups.
pub(super) fn all(transcript: &mut Transcript<'_>, asking: &Asking) -> Result<(Vec<Group>, Vec<Strip>)> {
    let (mut groups, mut strips) = (Vec::new(), Vec::new());
    for strategies in &asking.measure.strategies {
        for keep in &asking.measure.keep {
            let name = strategies.names().join(" | ");
            let report = report(transcript, strategies.about(|_| Ok(()))?, *keep, asking)?;
            if let (true, Some(report)) = (groups.is_empty(), &report) {
                groups = report.groups_detail.iter().map(Group::of).collect();
            }
            strips.push(Strip::of(name, *keep, report));
        }
    }
    // A strip without a feasible plan shows the unchanged conversation.
    let all: u64 = groups.iter().map(|group| u64::from(group.tokens)).sum();
    for strip in strips.iter_mut().filter(|strip| strip.infeasible) {
        strip.verdicts = "K".repeat(groups.len());
        (strip.tokens_after, strip.stable_prefix_tokens) = (all, all);
    }
    Ok((groups, strips))
}

/// The report of `compact`; `None` if the protected groups do not fit.
fn report(
    transcript: &mut Transcript<'_>,
    strategies: Strategies,
    keep: Percent,
    asking: &Asking,
) -> Result<Option<Report>> {
    let counter: &(dyn TokenCounter + Send + Sync) = &*asking.measure.counter;
    let budget = BudgetArgs { window: None, reserve: None, trigger: None, goal: None, keep: Some(keep) };
    let estimator = model::counter(asking.model.as_ref(), Some(ESTIMATE), ESTIMATE)?;
    let settings = Settings { prices: asking.prices(), ..Settings::of_plan(budget, strategies, estimator) };
    match compact::compact(transcript, &settings, counter) {
        Ok(done) => Ok(Some(done.report)),
        Err(failure) if failure.code() == code::INFEASIBLE => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Strip {
    fn of(strategy: String, keep: Percent, report: Option<Report>) -> Self {
        let keep = keep.to_string();
        match report {
            Some(report) => Self {
                strategy,
                keep,
                infeasible: false,
                tokens_after: report.tokens_after,
                goal_missed: report.goal_missed,
                stable_prefix_tokens: report.stable_prefix_tokens,
                pays: report.pays,
                verdicts: report.verdicts,
            },
            None => Self {
                strategy,
                keep,
                infeasible: true,
                tokens_after: 0,
                goal_missed: true,
                stable_prefix_tokens: 0,
                pays: None,
                verdicts: String::new(),
            },
        }
    }
}

impl Group {
    fn of(detail: &GroupDetail) -> Self {
        Self { first: detail.first, last: detail.last, kind: detail.kind, tokens: detail.tokens }
    }
}
