//! One strategy after another.

use epitome_core::{Draft, Protection, Strategy};

/// Runs strategies in order and stops as soon as the goal is met.
///
/// What only some of its stages protect is not protected: put the gentle ones first. *Cost*: that of its stages.
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
        for (at, stage) in self.stages.iter().enumerate() {
            let begun = at > 0 && draft.budget().goal().is_some();
            if begun && draft.is_goal_met() {
                return;
            }
            stage.plan(draft);
        }
    }
}
