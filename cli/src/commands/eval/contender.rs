//! The contenders: strategies, external programs, floors and ceilings.

use epitome::core::TokenCounter;
use epitome::search::SearchIndex;

use super::Measure;
use super::baseline::{Floor, nearest, oracle};
use super::command::{Command, Given};
use super::prompt::Prompt;
use super::shown::Shown;
use crate::budget::Asked;
use crate::failure::Result;
use crate::strategy::Strategies;

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Contender<'s> {
    Strategies(&'s Strategies),
    /// An external program.
    Command(&'s Command),
    Floor(Floor),
    /// The choice of a search for the request.
    Search,
    /// A ceiling, with a name for the needs that it looks for.
    Oracle(&'static str),
}

impl<'s> Contender<'s> {
    /// The strategies, then external programs, floors and `others`.
    pub(super) fn all(measure: &'s Measure, others: &[Self]) -> Vec<Self> {
        let strategies = measure.strategies.iter().map(Self::Strategies);
        let commands = measure.commands.iter().map(Self::Command);
        let floors = Floor::ALL.into_iter().map(Self::Floor);
        strategies.chain(commands).chain(floors).chain(others.iter().copied()).collect()
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Strategies(strategies) => strategies.names().join(" | "),
            Self::Command(command) => command.name().to_owned(),
            Self::Floor(floor) => floor.name().to_owned(),
            Self::Search => "(search: request)".to_owned(),
            Self::Oracle(name) => name.to_owned(),
        }
    }

    pub(super) const fn is_baseline(self) -> bool {
        !matches!(self, Self::Strategies(_) | Self::Command(_))
    }

    /// The messages that the contender leaves; `None` if the protected messages do not fit, and for a search without a
    /// request.
    pub(super) fn shown(
        self,
        prompt: &Prompt<'_>,
        asked: &Asked,
        known: Known<'_>,
        counter: &(dyn TokenCounter + Send + Sync),
    ) -> Result<Option<Shown>> {
        let goal = asked.budget.goal().unwrap_or_default();
        match self {
            Self::Strategies(strategies) => Shown::by(strategies, prompt, asked, counter),
            Self::Command(command) => {
                let given = prompt.given();
                Ok(Some(Given::shown(&given, &command.compact(&given, goal, counter)?)))
            }
            Self::Floor(floor) => Ok(Some(floor.shown(prompt, goal))),
            Self::Search => Ok(known.request.map(|(texts, request)| nearest(prompt, goal, texts, request))),
            Self::Oracle(_) => Ok(Some(oracle(prompt, goal, known.needs))),
        }
    }
}

/// Knowledge that only a baseline has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    /// For each need, the messages that contain it.
    pub(super) needs: &'k [&'k [u32]],
    /// The search index of the texts before the request, and the request.
    pub(super) request: Option<(&'k SearchIndex, &'k str)>,
}
