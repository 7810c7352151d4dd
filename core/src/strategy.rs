//! The rule that a plan follows.

use crate::Draft;

/// A pure rule that decides what a conversation keeps.
///
/// *Must*: be deterministic, look at nothing but the draft, and make one pass over the groups (a fixed number of passes
/// is one). *May* do too little: a plan says whether its goal was met. Illegal verdicts are refused by the draft, so a
/// strategy cannot split a call from its result or drop what is protected.
pub trait Strategy {
    /// Its name, for people and records.
    fn name(&self) -> &'static str;

    /// The protected groups: no plan of this strategy touches them.
    fn protection(&self) -> Protection {
        Protection::default()
    }

    /// Whether it never drops less because something is larger: raising the sizes of some groups, and the floors and the
    /// total with them, never makes it keep a group that it dropped before. Sizes that are only known to lie between two
    /// others then need no exact count where both lead to the same verdicts. `false` is always right.
    fn is_monotone(&self) -> bool {
        false
    }

    /// Whether it may put summaries in the place of what was said ([`Draft::replace`]). What comes after it in the same pass
    /// would find them gone in the next one: one that may has to say so, and stands last in a pipeline.
    fn replaces(&self) -> bool {
        false
    }

    /// The tokens of the goal that the strategy needs for its own stand-ins. The stages before it in a pipeline leave that free, and it is
    /// run even where they have met the goal.
    fn reserve(&self, _draft: &Draft<'_>) -> u64 {
        0
    }

    /// Writes verdicts, from the oldest group on, until [`Draft::is_goal_met`] or there is nothing left to drop.
    fn plan(&self, draft: &mut Draft<'_>);
}

const _: Option<&dyn Strategy> = None;

impl<S: Strategy + ?Sized> Strategy for &S {
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

/// The protected groups beside those that always are: pins with their calls and results, open work, the last user request and the
/// newest step; and of each step among these the request of its turn.
///
/// Where not even that fits the window, its largest results of tools are cut to one size before the strategy is asked, so that
/// one result does not end a conversation: together they get half of what the rest of it leaves of the goal, or if that is less
/// than [`ELIDED_TOKENS_MAX`](crate::ELIDED_TOKENS_MAX) for each, of the limit. What a user or an instruction says, pins, and
/// conversations in an index without parts are not cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protection {
    /// Whether all system and developer messages of the caller stay, or only those that stand first.
    pub system: bool,
    /// Whether the first user message stays: the task.
    pub first_user: bool,
    /// Number of the newest steps that stay as long as the request fits its limit at all, counted within the turn of the newest step. They
    /// go before the request would not fit, the newest excepted. Three by default: in most agent transcripts less than that loses the
    /// thread.
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

    /// Sets how many of the newest steps are held.
    #[must_use]
    pub const fn with_keep_steps(mut self, steps: u32) -> Self {
        self.keep_steps = steps;
        self
    }

    /// The groups that both protect.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        Self {
            system: self.system && other.system,
            first_user: self.first_user && other.first_user,
            keep_steps: self.keep_steps.min(other.keep_steps),
        }
    }
}
