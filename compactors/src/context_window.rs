//! A preset for a model's window.

use epitome_core::{Budget, BudgetError, Draft, Protection, Strategy};

use crate::{Pipeline, Summarization, ToolResultClearing, Truncation};

/// Clears old tool results when half of the window is full, and truncates or summarizes when four fifths of it are
/// still full after that.
///
/// The second stage reduces the request to half of the window; the clearing aims at no size. The window here is the
/// model's window less the tokens of its answer. Use it with the budget of [`ContextWindow::budget`], which has the
/// matching trigger and goal.
///
/// *Keeps*, *drops*, *stable prefix* and *cost*: those of its stages, [`ToolResultClearing`] and [`Truncation`] or
/// [`Summarization`], with their defaults. Results are only cleared if this frees a twentieth of the window,
/// because each clearing voids the provider's cache from the first cleared result on.
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

/// The stage that runs when the clearing of results is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Truncate(Truncation),
    Summarize(Summarization),
}

/// Trigger of the clearing, and goal of the second stage, in percent of the window: `tool_eviction_threshold` of the
/// preset of this name in Microsoft Agent Framework.
const CLEAR_PERCENT: u64 = 50;

/// Trigger of the second stage, in percent of the window: `truncation_threshold` of the same preset.
const CUT_PERCENT: u64 = 80;

/// Least amount that a clearing must free, in percent of the window: less is not worth the loss of the cache.
const CLEAR_AT_LEAST_PERCENT: u64 = 5;

impl ContextWindow {
    /// A preset that truncates, for a model with a window of `window` tokens and answers of at most `output_max`
    /// tokens.
    #[must_use]
    pub fn new(window: u64, output_max: u64) -> Self {
        Self { window, output_max, then: Then::Truncate(Truncation::new()) }
    }

    /// Replaces the groups that truncation would drop by a summary. The engine needs a summarizer for this.
    #[must_use]
    pub fn summarize(mut self) -> Self {
        self.then = Then::Summarize(Summarization::new());
        self
    }

    /// The budget with the trigger and the goal of this preset.
    ///
    /// # Errors
    /// [`BudgetError`] if the answer leaves no part of the window.
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

/// A stage that runs only if the request has more than `tokens` tokens.
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
