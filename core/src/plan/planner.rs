//! Planning with owned memory.

use alloc::vec::Vec;

use super::{Outcome, PlanError, plan_with};
use crate::draft::{Cell, Replacement, Scratch};
use crate::index::Index;
use crate::{Budget, Pass, Strategy};

/// Makes plans, and owns the memory for them.
///
/// The memory grows to the largest history that was planned, and serves one plan after another.
///
/// ```
/// use epitome_core::{Budget, Draft, IndexBuf, OpenCallTree, Outcome, Pass, Planner, Span, Strategy, Tokens};
/// use epitome_core::message::SimpleMessage;
///
/// #[derive(Debug)]
/// struct Oldest;
///
/// impl Strategy for Oldest {
///     fn name(&self) -> &'static str {
///         "oldest"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         draft.drop_oldest();
///     }
/// }
///
/// let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
/// for text in ["What is 6 x 7?", "And 6 x 8?", "And 6 x 9?"] {
///     index.push(&SimpleMessage::user(text), Tokens(9))?;
///     index.push(&SimpleMessage::assistant("Let me see."), Tokens(7))?;
/// }
/// let budget = Budget::builder().window(100).trigger(46).goal(42).build()?;
/// let mut planner = Planner::new();
/// let outcome = planner.plan(index.view(), &budget, Pass::Manual, &Oldest)?;
/// let Outcome::Planned(plan) = outcome else { unreachable!("48 tokens are more than 42") };
/// assert!(plan.tokens_after() <= 42);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Planner {
    cells: Vec<Cell>,
    replacements: Vec<Replacement>,
}

impl Planner {
    /// A planner that has no memory yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { cells: Vec::new(), replacements: Vec::new() }
    }

    /// Plans as [`plan_with`] does, with memory for every verdict on every group and part.
    ///
    /// # Errors
    /// [`PlanError::Infeasible`] if the protected groups do not fit the window.
    pub fn plan<'a>(
        &'a mut self,
        index: Index<'a>,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
    ) -> Result<Outcome<'a>, PlanError> {
        // Two replaced spans are never adjacent.
        let spans = (index.group_count() as usize).div_ceil(2);
        self.cells.resize(index.cell_count().max(self.cells.len()), Cell::EMPTY);
        self.replacements.resize(spans.max(self.replacements.len()), Replacement::default());
        let scratch = Scratch::new(&mut self.cells).with_replacements(&mut self.replacements);
        plan_with(index, budget, pass, strategy, scratch)
    }
}
