//! Groups that are protected from plans, as the design describes them.

use epitome_core::attribution::SourceKind;
use epitome_core::{GroupKind, Strategy};

use super::{Group, Naive, begins_turn};
use crate::strategy::TestStrategy;

/// The protection of each group.
#[derive(Debug, Clone)]
pub struct Protected {
    /// Protected without exception.
    pub hard: Vec<bool>,
    /// Protected as long as the request fits.
    pub held: Vec<bool>,
    /// Summaries that a step relies on, where the step is protected without exception. They are part of the floor of
    /// the goal.
    pub relied_on: Vec<bool>,
}

impl Protected {
    /// The groups that `strategy` protects.
    #[must_use]
    pub fn new(naive: &Naive<'_>, groups: &[Group], strategy: &TestStrategy) -> Self {
        let protection = strategy.protection();
        let steps: Vec<usize> = (0..groups.len()).filter(|at| is_step(&groups[*at])).collect();
        let begins = |at: &usize| begins_turn(&naive.messages[groups[*at].members[0]]);
        let first_user = (0..groups.len()).find(begins).filter(|_| protection.first_user);
        let last_user = (0..groups.len()).rfind(begins);
        let mut hard: Vec<bool> = (0..groups.len())
            .map(|at| {
                let group = &groups[at];
                let leads = groups[..at]
                    .iter()
                    .all(|group| matches!(group.kind, GroupKind::System | GroupKind::Orphan));
                let caller = naive.messages[group.members[0]].source == SourceKind::Caller;
                let instruction = group.kind == GroupKind::System && caller && (protection.system || leads);
                let task = first_user == Some(at) || last_user == Some(at) || steps.last() == Some(&at);
                let kept = instruction || task || naive.is_pinned(group) || naive.is_open(group);
                kept && group.kind != GroupKind::Orphan
            })
            .collect();
        let turn = steps.last().map(|newest| groups[*newest].turn);
        let of_turn = steps.iter().rev().filter(|at| Some(groups[**at].turn) == turn);
        let newest: Vec<usize> = of_turn.take(protection.keep_steps as usize).copied().collect();
        let held = (0..groups.len()).map(|at| newest.contains(&at)).collect();
        let brought = |at: &usize| naive.relying(groups, *at).any(|step| hard[step]);
        let brought: Vec<usize> = (0..groups.len()).filter(brought).collect();
        let relied_on = (0..groups.len()).map(|at| brought.contains(&at) && !begins(&at)).collect();
        brought.into_iter().filter(begins).for_each(|at| hard[at] = true);
        Self { hard, held, relied_on }
    }
}

impl Naive<'_> {
    /// The steps that stand behind a request or a summary and before the next request.
    pub(super) fn relying<'g>(
        &self,
        groups: &'g [Group],
        opener: usize,
    ) -> impl Iterator<Item = usize> + use<'g> {
        let begins = |at: &usize| begins_turn(&self.messages[groups[*at].members[0]]);
        let opens = self.opens(&groups[opener]);
        let end = (opener + 1..groups.len()).find(begins).unwrap_or(groups.len());
        (opener..end).filter(move |at| opens && is_step(&groups[*at]))
    }

    /// Whether a group goes with the last of the steps that rely on it.
    pub(super) fn opens(&self, group: &Group) -> bool {
        begins_turn(&self.messages[group.members[0]]) || group.kind == GroupKind::Summary
    }
}

/// Whether a group is a step of the model.
pub(super) fn is_step(group: &Group) -> bool {
    matches!(group.kind, GroupKind::Assistant | GroupKind::Exchange | GroupKind::Hosted)
}
