//! What no plan touches, by the words of the design.

use epitome_core::attribution::SourceKind;
use epitome_core::{GroupKind, Strategy};

use super::{Group, Naive, begins_turn};
use crate::spec::Spec;

/// What is protected, group by group.
#[derive(Debug, Clone)]
pub struct Protected {
    /// Without exception.
    pub hard: Vec<bool>,
    /// As long as the request fits.
    pub held: Vec<bool>,
}

impl Protected {
    /// What `spec` protects.
    #[must_use]
    pub fn new(naive: &Naive<'_>, groups: &[Group], spec: &Spec) -> Self {
        let protection = spec.protection();
        let steps: Vec<usize> = (0..groups.len()).filter(|at| is_step(&groups[*at])).collect();
        let begins = |at: &usize| begins_turn(&naive.messages[groups[*at].members[0]]);
        let first_user = (0..groups.len()).find(begins).filter(|_| protection.first_user);
        let last_user = (0..groups.len()).rfind(begins);
        let hard = (0..groups.len()).map(|at| {
            let group = &groups[at];
            let leads =
                groups[..at].iter().all(|group| matches!(group.kind, GroupKind::System | GroupKind::Orphan));
            let caller = naive.messages[group.members[0]].source == SourceKind::Caller;
            let instruction = group.kind == GroupKind::System && caller && (protection.system || leads);
            let task = first_user == Some(at) || last_user == Some(at) || steps.last() == Some(&at);
            let kept = instruction || task || naive.is_pinned(group) || naive.is_open(group);
            kept && group.kind != GroupKind::Orphan
        });
        let newest: Vec<usize> = steps.iter().rev().take(protection.keep_steps as usize).copied().collect();
        let held = (0..groups.len()).map(|at| newest.contains(&at));
        Self { hard: hard.collect(), held: held.collect() }
    }
}

/// Whether a group is a step of the model.
pub(super) fn is_step(group: &Group) -> bool {
    matches!(group.kind, GroupKind::Assistant | GroupKind::Exchange)
}
