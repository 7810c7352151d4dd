//! A preset for a model's window.

use epitome_core::{Budget, BudgetError, Draft, Protection, Strategy};

use crate::{Pipeline, Summarization, ToolResultClearing, Truncation};

/// Clears old tool results when half of the window is full, and goes on to truncation, or to a summary, when four fifths
/// are: down to half.
///
/// *Keeps*, *drops* and *stable prefix*: as its stages, [`ToolResultClearing`] and [`Truncation`] or [`Summarization`], with
/// their defaults. Results are only cleared if that frees a twentieth of the window, because each clearing voids the
/// provider's cache from there on. *Cost*: that of its stages.
///
/// The window is what the model takes less what it may answer. It is meant for [`ContextWindow::budget`], which says when
/// to plan and what to reach.
///
/// ```
/// use epitome_compactors::ContextWindow;
///
/// let preset = ContextWindow::new(200_000, 8_000);
/// let budget = preset.budget()?;
/// assert_eq!((budget.limit(), budget.trigger(), budget.goal()), (192_000, 96_000, Some(95_999)));
/// # Ok::<(), epitome_core::BudgetError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    window: u64,
    output_max: u64,
    then: Then,
}

/// Stage that follows when clearing is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Truncate(Truncation),
    Summarize(Summarization),
}

/// From this share of the window on results are cleared, and down to it the rest goes: `tool_eviction_threshold` of the
/// preset of this name in Microsoft Agent Framework.
const CLEAR_PERCENT: u64 = 50;

/// From this share on more than results has to go: its `truncation_threshold`.
const CUT_PERCENT: u64 = 80;

/// Less than this share is not worth the cache.
const CLEAR_AT_LEAST_PERCENT: u64 = 5;

impl ContextWindow {
    /// For a model with a window of `window` tokens that answers with `output_max` of them at most. It truncates.
    #[must_use]
    pub fn new(window: u64, output_max: u64) -> Self {
        Self { window, output_max, then: Then::Truncate(Truncation::new()) }
    }

    /// Writes a summary in the place of the groups that truncation would drop. The engine needs a summarizer for that.
    #[must_use]
    pub fn summarize(mut self) -> Self {
        self.then = Then::Summarize(Summarization::new());
        self
    }

    /// When it plans, and what is to be reached.
    ///
    /// # Errors
    /// [`BudgetError`] if there is no window left beside the answer.
    pub fn budget(&self) -> Result<Budget, BudgetError> {
        let half = self.share(CLEAR_PERCENT);
        let budget = Budget::builder().window(self.window).reserve(self.output_max);
        budget.trigger(half).goal(half.saturating_sub(1)).min_reclaim(1).build()
    }

    const fn share(&self, percent: u64) -> u64 {
        self.window.saturating_sub(self.output_max).saturating_mul(percent) / 100
    }

    fn then(&self) -> &dyn Strategy {
        match &self.then {
            Then::Truncate(truncation) => truncation,
            Then::Summarize(summarization) => summarization,
        }
    }
}

impl Strategy for ContextWindow {
    fn name(&self) -> &'static str {
        "context_window"
    }

    fn protection(&self) -> Protection {
        self.then().protection()
    }

    fn replaces(&self) -> bool {
        self.then().replaces()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let clearing = ToolResultClearing::new().clear_at_least(self.share(CLEAR_AT_LEAST_PERCENT));
        let above = Above { tokens: self.share(CUT_PERCENT), stage: self.then() };
        Pipeline::of(&[&clearing, &above]).plan(draft);
    }
}

/// A stage that is for large requests only.
struct Above<'a> {
    tokens: u64,
    stage: &'a dyn Strategy,
}

impl Strategy for Above<'_> {
    fn name(&self) -> &'static str {
        self.stage.name()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        if draft.tokens() > self.tokens {
            self.stage.plan(draft);
        }
    }
}
