//! The reason for a pass, for triggers and plans alike.

use crate::Budget;

/// The reason for a pass: triggers read it, and it decides whether a rule may delay the pass.
///
/// | | asked for by | `min_reclaim` and [`Pacing`](crate::Pacing) |
/// |---|---|---|
/// | `Proactive` | a [`Trigger`](crate::Trigger) on sizes and counts | apply, unless the request does not fit its limit |
/// | `Manual` | a person or the program | do not apply |
/// | `Overflow` | the provider, which refused the request | do not apply |
///
/// ```
/// use epitome_core::{Budget, Pass};
///
/// let budget = Budget::builder().window(8_000).build()?;
/// assert_eq!(budget.limit(), 7_000);
/// assert!(Pass::Proactive.can_wait(7_000, &budget));
/// assert!(!Pass::Proactive.can_wait(7_001, &budget));
/// assert!(!Pass::Manual.can_wait(10, &budget) && !Pass::Overflow.can_wait(10, &budget));
/// # Ok::<(), epitome_core::BudgetError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Pass {
    /// A regular pass, for the present state of the index alone. It is not worthwhile if it frees less than the
    /// budget's `min_reclaim`, or comes too soon after the last pass.
    #[default]
    Proactive,
    /// A person or the program requested the pass. It is made even if it frees little.
    Manual,
    /// The provider has refused the request as too large, even if it is small by the counter. The pass is made even if
    /// it frees little. It goes down to the goal of the budget, so use a budget with the window that the refusal names.
    Overflow,
}

impl Pass {
    /// All kinds of passes.
    pub const ALL: [Self; 3] = [Self::Proactive, Self::Manual, Self::Overflow];

    /// The name of the pass: `proactive`, `manual` or `overflow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proactive => "proactive",
            Self::Manual => "manual",
            Self::Overflow => "overflow",
        }
    }

    /// Whether the pass may be delayed, for a request of `size` tokens: the pass is proactive, and the request fits.
    #[must_use]
    pub const fn can_wait(self, size: u64, budget: &Budget) -> bool {
        matches!(self, Self::Proactive) && size <= budget.limit()
    }
}
