//! Results of a strategy, as `compact` would report them.

use epitome::core::{GroupKind, TokenCounter};
use serde::Serialize;

use super::Work;
use crate::args::BudgetArgs;
use crate::commands::compact::{self, Settings};
use crate::failure::{Result, code};
use crate::report::Report;
use crate::scan::Counter;
use crate::strategy::Strategies;
use crate::transcript::Transcript;

/// Result of one strategy: sums over all conversations.
#[derive(Debug, Default, Serialize)]
pub(super) struct Kept {
    pub(super) strategy: String,
    pub(super) tokens_after: u64,
    pub(super) user_messages_kept: u64,
    pub(super) tool_exchanges_kept: u64,
    /// Tokens of the unchanged messages at the beginning: a prompt cache still covers them.
    pub(super) stable_prefix_tokens: u64,
    /// Number of conversations whose goal was missed.
    pub(super) goal_missed: u64,
    /// Number of conversations that stay unchanged: nothing was to be hidden, or nothing may be hidden.
    pub(super) unchanged: u64,
    /// Number of conversations that stay unchanged because their protected messages do not fit.
    pub(super) infeasible: u64,
}

impl Kept {
    pub(super) fn of(
        transcripts: &mut [Transcript<'_>],
        works: &[Work],
        strategies: Strategies,
        budget: BudgetArgs,
        (counter, estimator): (&(dyn TokenCounter + Send + Sync), Counter),
    ) -> Result<Self> {
        let mut kept = Self { strategy: strategies.names().join(" | "), ..Self::default() };
        let settings = Settings::of_plan(budget, strategies, estimator);
        for (transcript, work) in transcripts.iter_mut().zip(works) {
            match compact::compact(transcript, &settings, counter) {
                Ok(done) => kept.add(&done.report),
                Err(failure) if failure.code() == code::INFEASIBLE => kept.add_whole(work),
                Err(failure) => return Err(failure),
            }
        }
        Ok(kept)
    }

    fn add(&mut self, report: &Report) {
        let stays = |kind| {
            let groups = report.groups_detail.iter().filter(|group| group.kind == kind);
            groups.filter(|group| matches!(group.verdict, 'K' | 'E')).count() as u64
        };
        self.tokens_after += report.tokens_after;
        self.user_messages_kept += stays(GroupKind::User);
        self.tool_exchanges_kept += stays(GroupKind::Exchange);
        self.stable_prefix_tokens += report.stable_prefix_tokens;
        self.goal_missed += u64::from(report.goal_missed);
        self.unchanged += u64::from(report.unchanged_reason.is_some());
    }

    fn add_whole(&mut self, work: &Work) {
        self.tokens_after += work.tokens();
        self.user_messages_kept += work.groups(GroupKind::User);
        self.tool_exchanges_kept += work.groups(GroupKind::Exchange);
        self.stable_prefix_tokens += work.tokens();
        self.infeasible += 1;
    }
}
