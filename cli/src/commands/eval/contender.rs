//! What is compared: strategies, and the floors and the ceiling beside them.

use epitome::core::TokenCounter;

use super::baseline::{Floor, oracle};
use super::prompt::Prompt;
use super::shown::Shown;
use crate::budget::Asked;
use crate::failure::Result;
use crate::strategy::Strategies;

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Contender<'s> {
    Strategies(&'s Strategies),
    Floor(Floor),
    /// The ceiling. Its name says what it looks for.
    Oracle(&'static str),
}

impl<'s> Contender<'s> {
    /// The strategies, then floors and the oracle of this name.
    pub(super) fn all(strategies: &'s [Strategies], oracle: &'static str) -> Vec<Self> {
        let floors = Floor::ALL.into_iter().map(Self::Floor);
        strategies.iter().map(Self::Strategies).chain(floors).chain([Self::Oracle(oracle)]).collect()
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Strategies(strategies) => strategies.names().join(" | "),
            Self::Floor(floor) => floor.name().to_owned(),
            Self::Oracle(name) => name.to_owned(),
        }
    }

    pub(super) const fn is_baseline(self) -> bool {
        !matches!(self, Self::Strategies(_))
    }

    /// What it leaves; `None` where what is protected does not fit. The oracle looks for `needs`: the messages in which each need
    /// stands.
    pub(super) fn shown(
        self,
        prompt: &Prompt<'_>,
        asked: &Asked,
        needs: &[&[u32]],
        counter: &(dyn TokenCounter + Send + Sync),
    ) -> Result<Option<Shown>> {
        let goal = asked.budget.goal().unwrap_or_default();
        match self {
            Self::Strategies(strategies) => Shown::by(strategies, prompt, asked, counter),
            Self::Floor(floor) => Ok(Some(floor.shown(prompt, goal))),
            Self::Oracle(_) => Ok(Some(oracle(prompt, goal, needs))),
        }
    }
}
