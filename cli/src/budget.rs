//! Makes a budget from the options of the command line.

use epitome::core::{Budget, BudgetBuilder, BudgetError, Pass, RESERVE_MAX, WINDOW_DEFAULT};

use crate::args::BudgetArgs;
use crate::failure::{Failure, Result};

/// A budget, and whether a compaction is due at any size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) budget: Budget,
    /// True for a goal without a trigger: the compaction is due now.
    pub(crate) now: bool,
    /// Marks the figures that are defaults.
    pub(crate) defaults: Defaults,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) window: bool,
    pub(crate) reserve: bool,
    pub(crate) trigger: bool,
    pub(crate) goal: bool,
}

impl Asked {
    /// The budget that the options describe, for a conversation of `own` tokens.
    pub(crate) fn new(args: &BudgetArgs, own: u64) -> Result<Self> {
        let goal_given = args.goal.is_some() || args.keep.is_some();
        let now = goal_given && args.trigger.is_none();
        let defaults = Defaults {
            window: args.window.is_none(),
            reserve: args.reserve.is_none(),
            trigger: args.trigger.is_none(),
            goal: !goal_given,
        };
        let window = args.window.unwrap_or_else(|| window_for(args, own));
        let mut builder = Budget::builder().window(window);
        if let Some(reserve) = args.reserve {
            builder = builder.reserve(reserve);
        }
        let limit = limit(builder)?;
        if let Some(trigger) = args.trigger {
            builder = builder.trigger(trigger.of(limit));
        } else if now {
            builder = builder.trigger(limit);
        }
        if let Some(goal) = goal(args, limit, own)? {
            builder = builder.goal(goal);
        }
        let budget = builder.build().map_err(|error| explain(error, args, window))?;
        Ok(Self { budget, now, defaults })
    }

    /// Whether a conversation of `size` tokens is due for a compaction.
    pub(crate) const fn is_due(&self, size: u64) -> bool {
        self.now || self.budget.is_due(size)
    }

    pub(crate) const fn pass(&self) -> Pass {
        if self.now { Pass::Manual } else { Pass::Proactive }
    }
}

/// Largest size of a request, in tokens: the window less the reserve.
fn limit(builder: BudgetBuilder) -> Result<u64> {
    // Without a goal, only the window and the reserve can contradict each other.
    let budget = builder.without_goal().build()?;
    let (window, reserve) = (budget.window(), budget.reserve());
    match budget.limit() {
        0 => Err(Failure::input(format!(
            "the reserve ({reserve}) leaves nothing of the window ({window}): lower --reserve or raise --window"
        ))),
        limit => Ok(limit),
    }
}

/// The goal from the command line, if any.
fn goal(args: &BudgetArgs, limit: u64, own: u64) -> Result<Option<u64>> {
    let now = args.trigger.is_none();
    match (args.goal.map(|goal| goal.of(limit)), args.keep) {
        (Some(goal), _) if now && goal > limit => Err(Failure::input(format!(
            "the goal ({goal}) is above window - reserve ({limit}): lower --goal, or raise --window"
        ))),
        // Without a trigger, the trigger is the limit. A goal of the same size is lowered, because a goal must be below
        // the trigger.
        (Some(goal), _) => Ok(Some(if now { goal.min(limit - 1) } else { goal })),
        // A share of the transcript that does not fit the window is lowered to the largest goal that fits.
        (None, Some(keep)) => Ok(Some(keep.of(own).min(limit - 1))),
        (None, None) => Ok(None),
    }
}

/// Explains an error in terms of the options that were given.
fn explain(error: BudgetError, args: &BudgetArgs, window: u64) -> Failure {
    let BudgetError::GoalOverTrigger { goal, trigger } = error else { return error.into() };
    Failure::input(match (args.trigger, args.keep, args.goal) {
        (None, ..) => format!("the window ({window}) is too small for any goal: raise --window"),
        (_, Some(keep), _) => format!(
            "the share to keep ({keep} of the transcript, {goal} tokens) must be under the trigger ({trigger}): \
             lower --keep, or raise --trigger"
        ),
        (_, _, Some(_)) => format!(
            "the goal ({goal}) must be under the trigger ({trigger}): lower --goal, or raise --trigger"
        ),
        _ => format!("the trigger ({trigger}) is too low for any goal: raise --trigger"),
    })
}

/// The window, if the command line has none. With `--keep`, the window is at least the size of the transcript plus the
/// reserve, so that it does not limit the share.
fn window_for(args: &BudgetArgs, own: u64) -> u64 {
    match args.keep {
        Some(_) => {
            WINDOW_DEFAULT.max(own.saturating_add(1).saturating_add(args.reserve.unwrap_or(RESERVE_MAX)))
        }
        None => WINDOW_DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Amount;

    const NONE: BudgetArgs =
        BudgetArgs { window: None, reserve: None, trigger: None, goal: None, keep: None };

    fn figures(args: BudgetArgs, own: u64) -> (u64, u64, u64, Option<u64>, bool) {
        let asked = Asked::new(&args, own).unwrap();
        let budget = asked.budget;
        (budget.window(), budget.reserve(), budget.trigger(), budget.goal(), asked.now)
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        assert_eq!(figures(NONE, 0), (128_000, 8_192, 100_000, Some(50_000), false));
        let small = BudgetArgs { window: Some(8_000), ..NONE };
        assert_eq!(figures(small, 0), (8_000, 1_000, 6_240, Some(3_120), false));
    }

    #[test]
    fn a_goal_without_a_trigger_means_now() {
        let keep = BudgetArgs { keep: Some("25%".parse().unwrap()), ..NONE };
        assert_eq!(figures(keep, 1_000), (128_000, 8_192, 119_808, Some(250), true));
        let (window, .., goal, _) = figures(keep, 1_000_000);
        assert_eq!((window, goal), (1_008_193, Some(250_000)));
        let all = BudgetArgs { goal: Some("100%".parse().unwrap()), ..NONE };
        assert_eq!(figures(all, 0).3, Some(119_807));
        let goal = BudgetArgs { goal: Some("50%".parse().unwrap()), ..NONE };
        assert_eq!(figures(goal, 0).3, Some(59_904));
        let both = BudgetArgs { trigger: Some(Amount::Tokens(70_000)), ..goal };
        assert_eq!(figures(both, 0), (128_000, 8_192, 70_000, Some(59_904), false));
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let reserve = BudgetArgs { window: Some(100), reserve: Some(100), ..NONE };
        let goal = BudgetArgs { goal: Some(Amount::Tokens(200_000)), ..NONE };
        let trigger = BudgetArgs { trigger: Some(Amount::Tokens(127_000)), ..NONE };
        for wrong in [reserve, goal, trigger] {
            assert!(Asked::new(&wrong, 0).is_err());
        }
    }
}
