//! A preset for conversations between people and a model.

use std::vec::Vec;

use epitome_core::{Draft, Protection, Strategy};

use crate::{Pipeline, Salience, ToolResultClearing, Truncation};

/// Clears the results of older tool uses, then keeps the groups of the highest worth.
///
/// For conversations of people with occasional tool calls: important facts occur early, and anywhere in the
/// conversation. `docs/what-is-kept.md` has the measurements.
///
/// *Keeps*, *drops*, *stable prefix* and *cost*: those of its stages, [`ToolResultClearing`] and [`Salience`], with
/// their defaults.
///
/// In the [`StrategySpec`](crate::StrategySpec) `chat`, the worth of a group comes from
/// [`SpecTexts::worths`](crate::SpecTexts::worths).
///
/// ```
/// use epitome_compactors::{ChatPreset, Salience};
/// use epitome_core::{Draft, Strategy};
///
/// let worths = |draft: &Draft<'_>| draft.index().groups().map(|group| u64::from(group.is_request())).collect();
/// assert_eq!(ChatPreset::new(Salience::new(worths)).name(), "chat");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ChatPreset<W, U = fn(&Draft<'_>) -> Vec<(u32, u32)>> {
    clearing: ToolResultClearing<'static>,
    salience: Salience<W, U>,
}

impl<W, U> ChatPreset<W, U>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
    U: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
{
    /// A preset with the defaults of the clearing, and this choice of groups.
    #[must_use]
    pub const fn new(salience: Salience<W, U>) -> Self {
        Self { clearing: ToolResultClearing::new(), salience }
    }

    /// Sets the protected groups, the number of newest turns, and the rule without a goal.
    #[must_use]
    pub fn truncation(mut self, truncation: Truncation) -> Self {
        self.salience = self.salience.truncation(truncation);
        self
    }
}

impl<W, U> Strategy for ChatPreset<W, U>
where
    W: Fn(&Draft<'_>) -> Vec<u64>,
    U: Fn(&Draft<'_>) -> Vec<(u32, u32)>,
{
    fn name(&self) -> &'static str {
        "chat"
    }

    fn protection(&self) -> Protection {
        self.salience.protection()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        Pipeline::of(&[&self.clearing, &self.salience]).plan(draft);
    }
}
