//! Limits of a request, checked once.

use core::fmt;

/// The limits of requests in tokens: the largest size, the trigger of a compaction, and its goal.
///
/// A budget always has `goal < trigger <= window - reserve` and `min_reclaim <= trigger - goal`: after a pass that
/// reaches its goal, no other pass is due. With the feature `serde`, deserialization makes the same checks.
///
/// ```
/// use epitome_core::Budget;
///
/// let budget = Budget::default();
/// assert_eq!((budget.window(), budget.trigger(), budget.goal()), (128_000, 100_000, Some(50_000)));
/// let small = Budget::builder().window(8_000).build()?;
/// assert_eq!((small.limit(), small.trigger(), small.goal()), (7_000, 6_240, Some(3_120)));
/// # Ok::<(), epitome_core::BudgetError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "Figures"))]
pub struct Budget {
    window: u64,
    reserve: u64,
    trigger: u64,
    goal: Option<u64>,
    min_reclaim: u64,
}

/// The window of an unknown model, 128,000 tokens: the window of most models in use.
pub const WINDOW_DEFAULT: u64 = 128_000;
/// The largest default reserve, 8,192 tokens: room for the answer of a model.
pub const RESERVE_MAX: u64 = 8_192;

/// Trigger of a window of 128,000. Of another window it is 78 %, which is the same share.
const TRIGGER_DEFAULT: u64 = 100_000;
const TRIGGER_PERCENT: u64 = 78;
/// A pass that frees less than this share of the window, in percent, costs more than it gives: it voids the provider's
/// prompt cache from the first changed message on.
const MIN_RECLAIM_PERCENT: u64 = 2;

impl Default for Budget {
    fn default() -> Self {
        Self {
            window: WINDOW_DEFAULT,
            reserve: RESERVE_MAX,
            trigger: TRIGGER_DEFAULT,
            goal: Some(TRIGGER_DEFAULT / 2),
            min_reclaim: WINDOW_DEFAULT / 100 * MIN_RECLAIM_PERCENT,
        }
    }
}

impl Budget {
    /// A builder with all defaults.
    #[must_use]
    pub const fn builder() -> BudgetBuilder {
        BudgetBuilder {
            window: WINDOW_DEFAULT,
            reserve: None,
            trigger: None,
            goal: Goal::Default,
            min_reclaim: None,
        }
    }

    /// The window of the model: request and answer together.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// The tokens that are kept free for the answer. By default an eighth of the window, at most [`RESERVE_MAX`].
    #[must_use]
    pub const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// The largest size of a request: the window less the reserve.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.window.saturating_sub(self.reserve)
    }

    /// The trigger: a pass is due above this size. By default 78 % of the window.
    #[must_use]
    pub const fn trigger(&self) -> u64 {
        self.trigger
    }

    /// The size that a pass aims at; `None` leaves it to the strategy. By default half of the trigger.
    #[must_use]
    pub const fn goal(&self) -> Option<u64> {
        self.goal
    }

    /// Sets a lower goal.
    pub(crate) const fn with_lower_goal(mut self, goal: u64) -> Self {
        self.goal = Some(goal);
        self
    }

    /// The least amount that a proactive pass must free. By default 2 % of the window, and at most the trigger less the goal.
    #[must_use]
    pub const fn min_reclaim(&self) -> u64 {
        self.min_reclaim
    }

    /// Whether a pass is due for a request of `size`.
    #[must_use]
    pub const fn is_due(&self, size: u64) -> bool {
        size > self.trigger
    }
}

/// The serialized form of a budget: its figures may contradict each other.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Figures {
    window: u64,
    reserve: u64,
    trigger: u64,
    goal: Option<u64>,
    min_reclaim: u64,
}

#[cfg(feature = "serde")]
impl TryFrom<Figures> for Budget {
    type Error = BudgetError;

    fn try_from(figures: Figures) -> Result<Self, BudgetError> {
        let budget = Self::builder().window(figures.window).reserve(figures.reserve).trigger(figures.trigger);
        let budget = budget.min_reclaim(figures.min_reclaim);
        match figures.goal {
            Some(goal) => budget.goal(goal).build(),
            None => budget.without_goal().build(),
        }
    }
}

/// Builder of a budget.
#[derive(Debug, Clone, Copy)]
pub struct BudgetBuilder {
    window: u64,
    reserve: Option<u64>,
    trigger: Option<u64>,
    goal: Goal,
    min_reclaim: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Goal {
    Default,
    Strategy,
    Tokens(u64),
}

impl BudgetBuilder {
    /// Sets the window of the model, in tokens.
    #[must_use]
    pub const fn window(mut self, tokens: u64) -> Self {
        self.window = tokens;
        self
    }

    /// Sets the tokens that are kept free for the answer.
    #[must_use]
    pub const fn reserve(mut self, tokens: u64) -> Self {
        self.reserve = Some(tokens);
        self
    }

    /// Sets the trigger: the size above which a compaction is due, in tokens.
    #[must_use]
    pub const fn trigger(mut self, tokens: u64) -> Self {
        self.trigger = Some(tokens);
        self
    }

    /// Sets the goal: the size that a pass aims at, in tokens.
    #[must_use]
    pub const fn goal(mut self, tokens: u64) -> Self {
        self.goal = Goal::Tokens(tokens);
        self
    }

    /// Sets no goal: the measure of the strategy decides.
    #[must_use]
    pub const fn without_goal(mut self) -> Self {
        self.goal = Goal::Strategy;
        self
    }

    /// Sets the least amount that a proactive pass must free, in tokens.
    #[must_use]
    pub const fn min_reclaim(mut self, tokens: u64) -> Self {
        self.min_reclaim = Some(tokens);
        self
    }

    /// Builds the budget.
    ///
    /// Defaults follow from the given values. The default goal is half of the trigger. A goal never changes the default
    /// trigger: a goal that is not below it needs a trigger of its own.
    ///
    /// # Errors
    /// [`BudgetError`]: `TriggerOverLimit` if the trigger is above the limit, `GoalOverTrigger` if the goal is not
    /// below the trigger, `ReclaimOverRoom` if the least amount to free exceeds the distance from the trigger to the
    /// goal.
    pub const fn build(self) -> Result<Budget, BudgetError> {
        let window = self.window;
        let reserve = match self.reserve {
            Some(reserve) => reserve,
            None => min(RESERVE_MAX, window / 8),
        };
        let limit = window.saturating_sub(reserve);
        let trigger = match self.trigger {
            Some(trigger) => trigger,
            None if window == WINDOW_DEFAULT => min(TRIGGER_DEFAULT, limit),
            None => min(percent(window, TRIGGER_PERCENT), limit),
        };
        let goal = match self.goal {
            Goal::Default => Some(trigger / 2),
            Goal::Strategy => None,
            Goal::Tokens(goal) => Some(goal),
        };
        if trigger > limit {
            return Err(BudgetError::TriggerOverLimit { trigger, limit });
        }
        let room = match goal {
            Some(goal) if goal >= trigger => return Err(BudgetError::GoalOverTrigger { goal, trigger }),
            Some(goal) => trigger.saturating_sub(goal),
            None => trigger,
        };
        let min_reclaim = match self.min_reclaim {
            Some(min_reclaim) if min_reclaim > room => {
                return Err(BudgetError::ReclaimOverRoom { min_reclaim, room });
            }
            Some(min_reclaim) => min_reclaim,
            None => min(percent(window, MIN_RECLAIM_PERCENT), room),
        };
        Ok(Budget { window, reserve, trigger, goal, min_reclaim })
    }
}

/// The contradiction between the figures of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetError {
    /// The trigger is above the limit of a request.
    TriggerOverLimit {
        /// The trigger, in tokens.
        trigger: u64,
        /// The window less the reserve.
        limit: u64,
    },
    /// The goal is not below the trigger, so that a pass could be due again at once.
    GoalOverTrigger {
        /// The goal, in tokens.
        goal: u64,
        /// The trigger, in tokens.
        trigger: u64,
    },
    /// The least amount that a pass must free is larger than the distance from the trigger to the goal.
    ReclaimOverRoom {
        /// The least amount that a pass must free, in tokens.
        min_reclaim: u64,
        /// The distance from the trigger to the goal.
        room: u64,
    },
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TriggerOverLimit { trigger, limit } => {
                write!(
                    f,
                    "the trigger ({trigger}) is above window - reserve ({limit}): lower it, or raise the window"
                )
            }
            Self::GoalOverTrigger { goal, trigger } => {
                if *trigger == 0 {
                    return f.write_str(
                        "no tokens are left for a request: lower the reserve, or raise the window",
                    );
                }
                write!(
                    f,
                    "the goal ({goal}) must be under the trigger ({trigger}): lower it, or raise the window"
                )
            }
            Self::ReclaimOverRoom { min_reclaim, room } => {
                write!(
                    f,
                    "a pass frees at most {room} tokens (trigger - goal), less than min_reclaim ({min_reclaim})"
                )
            }
        }
    }
}

impl core::error::Error for BudgetError {}

const fn min(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

/// `percent` percent of `amount`, rounded down. If the product overflows, `amount` is divided by 100 first.
const fn percent(amount: u64, percent: u64) -> u64 {
    match amount.checked_mul(percent) {
        Some(product) => product / 100,
        None => (amount / 100).saturating_mul(percent),
    }
}
