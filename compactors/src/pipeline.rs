//! One strategy after another.

use epitome_core::{Draft, Protection, Strategy};

/// Runs strategies in order and stops as soon as the goal is met.
///
/// What only some of its stages protect is not protected: put the gentle ones first.
///
/// Where all of them miss the goal they run again: what a later stage dropped may be what an earlier one waited for (a
/// group that held reasoning which has to go together with that of others), and the next pass would find it gone. So one
/// pass is enough. *Cost*: that of its stages; where the goal is missed twice that, seldom more, and at most once for each
/// stage.
#[derive(Clone, Copy)]
pub struct Pipeline<'a> {
    stages: &'a [&'a dyn Strategy],
}

impl core::fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|stage| stage.name())).finish()
    }
}

impl<'a> Pipeline<'a> {
    /// These stages, in this order.
    #[must_use]
    pub const fn new(stages: &'a [&'a dyn Strategy]) -> Self {
        Self { stages }
    }
}

impl Strategy for Pipeline<'_> {
    fn name(&self) -> &'static str {
        "pipeline"
    }

    fn protection(&self) -> Protection {
        let stages = self.stages.iter().map(|stage| stage.protection());
        stages.reduce(Protection::weaker).unwrap_or_default()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let toward_goal = draft.budget().goal().is_some();
        for _ in self.stages {
            let before = draft.tokens();
            for (at, stage) in self.stages.iter().enumerate() {
                if at > 0 && toward_goal && draft.is_goal_met() {
                    return;
                }
                stage.plan(draft);
            }
            if !toward_goal || draft.is_goal_met() || draft.tokens() == before {
                return;
            }
        }
    }
}
