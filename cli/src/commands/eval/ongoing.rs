//! A conversation that continues while a contender compacts it repeatedly.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome::core::TokenCounter;

use super::command::{Command, Given};
use super::contender::{Contender, Known};
use super::prompt::{CountedMessage, Prompt};
use super::shown::Shown;
use super::stored::Stored;
use crate::budget::Asked;
use crate::failure::Result;
use crate::strategy::Strategies;

/// A conversation and the contender that compacts it.
pub(super) enum Ongoing<'c> {
    /// A strategy: its session continues in a store in memory.
    Stored { strategies: &'c Strategies, session: Box<Stored> },
    /// An external program: the conversation continues with its answer.
    Answered { command: &'c Command, messages: Vec<Given>, said: usize },
    /// A floor or a ceiling: it chooses anew from all messages so far.
    Chosen { contender: Contender<'c>, shown: Shown, said: usize },
}

impl<'c> Ongoing<'c> {
    /// A conversation without messages.
    pub(super) fn new(
        contender: Contender<'c>,
        counter: &Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self> {
        Ok(match contender {
            Contender::Strategies(strategies) => {
                Self::Stored { strategies, session: Box::new(Stored::new(counter)?) }
            }
            Contender::Command(command) => Self::Answered { command, messages: Vec::new(), said: 0 },
            contender => Self::Chosen { contender, shown: Shown::default(), said: 0 },
        })
    }

    /// Appends those messages of `said` that the conversation does not have yet.
    pub(super) fn append_up_to(&mut self, said: &[CountedMessage]) -> Result<()> {
        match self {
            Self::Stored { session, .. } => session.append_up_to(said.iter())?,
            Self::Answered { messages, said: before, .. } => {
                let new = (0_u32..).zip(said).skip(*before);
                messages.extend(
                    new.map(|(position, counted)| Given {
                        position: Some(position),
                        counted: counted.clone(),
                    }),
                );
                *before = said.len();
            }
            Self::Chosen { shown, said: before, .. } => {
                let new = (0_u32..).zip(said).skip(*before);
                new.for_each(|(position, counted)| {
                    shown.whole.insert(position);
                    shown.tokens += counted.tokens();
                });
                *before = said.len();
            }
        }
        Ok(())
    }

    /// Compacts the conversation. Returns the tokens of the unchanged messages at the beginning, or `None` if nothing
    /// changes. `prompt` has all messages of `said`.
    pub(super) fn compact(
        &mut self,
        said: &[CountedMessage],
        prompt: &Prompt<'_>,
        asked: &Asked,
        known: Known<'_>,
        counter: &Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Option<u64>> {
        match self {
            // If nothing can be hidden, all messages stay, and the goal is missed.
            Self::Stored { strategies, session } => session.compact_to_prefix(strategies, asked),
            Self::Answered { command, messages, .. } => {
                let in_request: BTreeSet<u32> = prompt.index.view().projection().flatten().collect();
                messages.retain(|given| given.position.is_none_or(|position| in_request.contains(&position)));
                let goal = asked.budget.goal().unwrap_or_default();
                let left = command.compact(messages, goal, &**counter)?;
                let (stable, before) = (Given::stable(messages, &left), size(messages));
                let changed = left.len() != messages.len() || stable != before;
                *messages = left;
                Ok(changed.then_some(stable))
            }
            Self::Chosen { contender, shown, .. } => {
                let new = contender.shown(prompt, asked, known, &**counter)?.unwrap_or_default();
                let same = shown.whole.iter().zip(&new.whole).take_while(|(one, other)| one == other);
                let stable = same.filter_map(|(position, _)| said.get(*position as usize));
                let stable = stable.map(CountedMessage::tokens).sum();
                let changed = shown.whole != new.whole;
                *shown = new;
                Ok(changed.then_some(stable))
            }
        }
    }

    /// The size of the next request.
    pub(super) fn tokens(&self) -> u64 {
        match self {
            Self::Stored { session, .. } => session.tokens(),
            Self::Answered { messages, .. } => size(messages),
            Self::Chosen { shown, .. } => shown.tokens,
        }
    }

    /// Contents of the next request.
    pub(super) fn shown(&self) -> Shown {
        match self {
            Self::Stored { session, .. } => session.shown(),
            Self::Answered { messages, .. } => Given::shown(messages, messages),
            Self::Chosen { shown, .. } => shown.clone(),
        }
    }
}

fn size(messages: &[Given]) -> u64 {
    messages.iter().map(|given| given.counted.tokens()).sum()
}
