//! Several strategies in order.

use core::error::Error;
use core::fmt;

use epitome_core::{Draft, Protection, Strategy};

/// Runs strategies in order, and stops as soon as the goal is met.
///
/// A group is protected only if all stages protect it. Put the stages that preserve the most first.
///
/// If all stages miss the goal, they run again: a later stage may drop a group that an earlier stage waited for,
/// for example a group whose reasoning must be hidden together with other reasoning. One pass is therefore enough.
/// *Cost*: that of its stages; if the goal is missed twice that, seldom more, and at most as many times as there are
/// stages (twice as many if a stage reserves room).
///
/// A stage sees the parts as the stages before it left them, and may shorten them further. Of two stages that
/// shorten the same part, the smaller result counts.
///
/// A stage that writes summaries comes last. A stage behind it could drop the summaries only in the next pass, and
/// would then change the result again. Use a fallback of the engine if the last stage may not be enough.
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
    /// [`NotLast`] if a stage that replaces groups ([`Strategy::replaces`]) is not the last one.
    pub fn new(stages: &'a [&'a dyn Strategy]) -> Result<Self, NotLast> {
        match stages.iter().rev().skip(1).find(|stage| stage.replaces()) {
            Some(stage) => Err(NotLast { stage: stage.name() }),
            None => Ok(Self::of(stages)),
        }
    }

    /// A pipeline of stages that are known to be in order.
    pub(crate) const fn of(stages: &'a [&'a dyn Strategy]) -> Self {
        Self { stages }
    }
}

/// An error: a stage that replaces groups by summaries is not the last one.
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
            // A stage that shortens nothing for a goal below the protected groups may reach the whole goal.
            if !draft.is_goal_met() {
                self.plan_without_reserve(draft);
            }
            for stage in self.stages {
                if stage.reserve(draft) > 0 {
                    stage.plan(draft);
                }
            }
        }
    }
}

impl Pipeline<'_> {
    /// Runs the stages that reserve nothing of the goal.
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
