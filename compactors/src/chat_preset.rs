//! A preset for conversations of people.

use std::vec::Vec;

use epitome_core::{Draft, Protection, Strategy};

use crate::{Pipeline, Salience, ToolResultClearing, Truncation};

/// Clears the results of older tool uses, then keeps the groups of the highest worth.
///
/// *Keeps*, *drops* and *stable prefix*: as its stages, [`ToolResultClearing`] and [`Salience`], with their defaults. *Cost*: that
/// of its stages. It is for conversations of people with now and then a tool: facts stand early and anywhere in them.
/// `docs/what-is-kept.md` has the measurements.
///
/// As a [`StrategySpec`](crate::StrategySpec), `chat`, the worth is that of [`SpecTexts::worths`](crate::SpecTexts::worths).
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
    /// With the defaults of the clearing, and this choice of groups.
    #[must_use]
    pub const fn new(salience: Salience<W, U>) -> Self {
        Self { clearing: ToolResultClearing::new(), salience }
    }

    /// The groups it protects, the number of newest turns, and the rule without a goal.
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
