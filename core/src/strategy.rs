//! The rule that a plan follows.

use crate::Draft;

/// A pure rule that decides what a conversation keeps.
///
/// *Must*: be deterministic, read nothing but the draft, and make one pass over the groups (a fixed number of passes
/// counts as one). *May* do too little: a plan shows whether its goal was met. The draft refuses illegal verdicts, so a
/// strategy cannot split a call from its result or drop a protected group.
///
/// ```
/// use epitome_core::{Draft, Strategy};
///
/// /// Drops the oldest groups until the goal is met.
/// struct OldestFirst;
///
/// impl Strategy for OldestFirst {
///     fn name(&self) -> &'static str {
///         "oldest_first"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         for group in draft.index().groups() {
///             if draft.is_goal_met() {
///                 return;
///             }
///             // The draft refuses a protected group, which then stays.
///             let _ = draft.drop_group(group.leader());
///         }
///     }
/// }
/// ```
pub trait Strategy {
    /// The name of the strategy, for people and records.
    fn name(&self) -> &'static str;

    /// The protected groups: no plan of this strategy hides them. Parts of theirs may be shortened, except in the newest
    /// step, in groups with open calls and in pinned groups.
    fn protection(&self) -> Protection {
        Protection::default()
    }

    /// Whether a larger size never makes the strategy drop less.
    ///
    /// Then higher sizes of some groups, with higher floors and a higher total, never make it keep a group that it
    /// dropped before. Sizes with known bounds need no exact count if both bounds lead to the same verdicts. `false` is
    /// always right.
    fn is_monotone(&self) -> bool {
        false
    }

    /// Whether the strategy may put summaries in the place of groups ([`Draft::replace`]).
    ///
    /// A strategy that may do so must return true, and must be the last in a pipeline. A stage after it could drop the
    /// new summaries only in the next pass, so that a second pass would change the result of the first.
    fn replaces(&self) -> bool {
        false
    }

    /// The tokens of the goal that the strategy needs for its own stand-ins.
    ///
    /// The earlier stages in a pipeline leave this room free, and the strategy runs even if they have met the goal.
    fn reserve(&self, _draft: &Draft<'_>) -> u64 {
        0
    }

    /// Writes verdicts, from the oldest group on, until [`Draft::is_goal_met`] or until no group is left to drop.
    fn plan(&self, draft: &mut Draft<'_>);
}

const _: Option<&dyn Strategy> = None;

// A pointer to a strategy is that strategy.
macro_rules! pointers {
    ($($(#[$feature:meta])? $pointer:ty),*) => {$(
        $(#[$feature])?
        impl<S: Strategy + ?Sized> Strategy for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }

            fn protection(&self) -> Protection {
                (**self).protection()
            }

            fn is_monotone(&self) -> bool {
                (**self).is_monotone()
            }

            fn replaces(&self) -> bool {
                (**self).replaces()
            }

            fn reserve(&self, draft: &Draft<'_>) -> u64 {
                (**self).reserve(draft)
            }

            fn plan(&self, draft: &mut Draft<'_>) {
                (**self).plan(draft);
            }
        }
    )*};
}

pointers!(
    &S,
    #[cfg(feature = "alloc")] alloc::boxed::Box<S>,
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))] alloc::sync::Arc<S>
);

/// The protected groups, in addition to those that are always protected.
///
/// Always protected are the instructions at the beginning, pins with their calls and results, open calls, the last user
/// message and the newest step. With each of these steps, the user message of the step's turn is protected too.
///
/// If even these groups exceed the limit, their largest tool results are cut to one size before the strategy runs,
/// so that one result does not end a conversation. The results together get half of the room that the other protected
/// content leaves of the goal. If that is less than [`ELIDED_TOKENS_MAX`](crate::ELIDED_TOKENS_MAX) for each, the limit
/// takes the place of the goal. User messages, instructions, pins, and conversations in an index without parts are not
/// cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protection {
    /// Whether all system and developer messages of the caller stay, or only those at the beginning.
    pub system: bool,
    /// Whether the first user message stays: the task.
    pub first_user: bool,
    /// Number of the newest steps that stay as long as the request fits its limit, counted within the turn of the
    /// newest step.
    ///
    /// If the request would not fit, these steps are hidden, except for the newest. Three by default: in most agent
    /// transcripts less than that loses the thread.
    pub keep_steps: u32,
}

/// The default of [`Protection::keep_steps`].
pub const KEEP_STEPS_MIN: u32 = 3;

impl Default for Protection {
    fn default() -> Self {
        Self { system: true, first_user: true, keep_steps: KEEP_STEPS_MIN }
    }
}

impl Protection {
    /// Sets whether all of the caller's system messages are protected, or only the leading ones.
    #[must_use]
    pub const fn with_system(mut self, all: bool) -> Self {
        self.system = all;
        self
    }

    /// Sets whether the first user message is protected.
    #[must_use]
    pub const fn with_first_user(mut self, stays: bool) -> Self {
        self.first_user = stays;
        self
    }

    /// Sets the number of the newest steps that are held.
    #[must_use]
    pub const fn with_keep_steps(mut self, steps: u32) -> Self {
        self.keep_steps = steps;
        self
    }

    /// The protection of the groups that both values protect.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        Self {
            system: self.system && other.system,
            first_user: self.first_user && other.first_user,
            keep_steps: self.keep_steps.min(other.keep_steps),
        }
    }
}
