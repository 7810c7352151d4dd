//! Why a pass is made, for triggers and plans alike.

use crate::Budget;

/// Why a pass is made: triggers look at it, and what may hold a pass back depends on it.
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
    /// A regular pass: nothing has happened but what the index shows. A pass that frees less than the budget's
    /// `min_reclaim`, or comes too soon after the last, is not worth it.
    #[default]
    Proactive,
    /// Somebody asked for it. Whatever it frees, it is made.
    Manual,
    /// The provider has refused the request as too large, whatever the counter says. Whatever it frees, it is made; down
    /// to where is the budget's goal, so give a budget of the window that the refusal names.
    Overflow,
}

impl Pass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Proactive, Self::Manual, Self::Overflow];

    /// Its name: `proactive`, `manual` or `overflow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proactive => "proactive",
            Self::Manual => "manual",
            Self::Overflow => "overflow",
        }
    }

    /// Whether it may be held back, for a request of `size` tokens: nobody asked for it, and the request fits.
    #[must_use]
    pub const fn can_wait(self, size: u64, budget: &Budget) -> bool {
        matches!(self, Self::Proactive) && size <= budget.limit()
    }
}
