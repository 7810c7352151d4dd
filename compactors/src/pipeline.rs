//! One strategy after another.

use core::error::Error;
use core::fmt;

use epitome_core::{Draft, Protection, Strategy};

/// Runs strategies in order and stops as soon as the goal is met.
///
/// What only some of its stages protect is not protected: put the gentle ones first.
///
/// Where all of them miss the goal they run again: what a later stage dropped may be what an earlier one waited for (a
/// group that held reasoning which has to go together with that of others), and the next pass would find it gone. So one
/// pass is enough. *Cost*: that of its stages; where the goal is missed twice that, seldom more, and at most once for each
/// stage.
///
/// A stage sees what those before it have left of a part, and may shorten it further: of two stages that shorten the same
/// parts the one that leaves less decides.
///
/// What puts summaries in the place of what was said comes last: a stage behind it could drop them only in the pass after,
/// which would then not be left alone. What is to happen where that is not enough is a fallback of the engine.
///
/// ```
/// use epitome_compactors::{Pipeline, ToolExchangeDigest, ToolResultClearing, Truncation};
///
/// let (clearing, digest, truncation) = (ToolResultClearing::new(), ToolExchangeDigest::new(), Truncation::new());
/// assert!(Pipeline::new(&[&clearing, &truncation]).is_ok());
/// assert!(Pipeline::new(&[&clearing, &digest]).is_ok());
/// assert_eq!(Pipeline::new(&[&digest, &truncation]).unwrap_err().stage, "digest_tool_exchanges");
/// ```
#[derive(Clone, Copy)]
pub struct Pipeline<'a> {
    stages: &'a [&'a dyn Strategy],
}

impl fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|stage| stage.name())).finish()
    }
}

impl<'a> Pipeline<'a> {
    /// Creates a pipeline of these stages, in this order.
    ///
    /// # Errors
    /// [`NotLast`] if one that replaces ([`Strategy::replaces`]) has another behind it.
    pub fn new(stages: &'a [&'a dyn Strategy]) -> Result<Self, NotLast> {
        match stages.iter().rev().skip(1).find(|stage| stage.replaces()) {
            Some(stage) => Err(NotLast { stage: stage.name() }),
            None => Ok(Self::of(stages)),
        }
    }

    /// Stages that are known to be in order.
    pub(crate) const fn of(stages: &'a [&'a dyn Strategy]) -> Self {
        Self { stages }
    }
}

/// A stage that puts summaries in the place of what was said, and is not the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLast {
    /// The strategy's name.
    pub stage: &'static str,
}

impl fmt::Display for NotLast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage } = self;
        write!(f, "{stage} has to come last: what follows it would drop its summaries in the pass after")
    }
}

impl Error for NotLast {}

impl Strategy for Pipeline<'_> {
    fn name(&self) -> &'static str {
        "pipeline"
    }

    fn protection(&self) -> Protection {
        let stages = self.stages.iter().map(|stage| stage.protection());
        stages.reduce(Protection::weaker).unwrap_or_default()
    }

    fn replaces(&self) -> bool {
        self.stages.iter().any(|stage| stage.replaces())
    }

    fn reserve(&self, draft: &Draft<'_>) -> u64 {
        self.stages.iter().fold(0, |sum: u64, stage| sum.saturating_add(stage.reserve(draft)))
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let reserved = self.reserve(draft);
        draft.hold_back(reserved);
        self.plan_without_reserve(draft);
        draft.hold_back(0);
        if reserved > 0 {
            for stage in self.stages {
                if stage.reserve(draft) > 0 {
                    stage.plan(draft);
                }
            }
            if !draft.is_goal_met() {
                self.plan_without_reserve(draft);
            }
        }
    }
}

impl Pipeline<'_> {
    /// Runs the stages that need nothing of the goal for themselves.
    fn plan_without_reserve(&self, draft: &mut Draft<'_>) {
        let toward_goal = draft.budget().goal().is_some();
        for _ in self.stages {
            let before = draft.tokens();
            for (at, stage) in self.stages.iter().enumerate() {
                if at > 0 && toward_goal && draft.is_goal_met() {
                    return;
                }
                if stage.reserve(draft) == 0 {
                    stage.plan(draft);
                }
            }
            if !toward_goal || draft.is_goal_met() || draft.tokens() == before {
                return;
            }
        }
    }
}
