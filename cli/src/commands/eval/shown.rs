//! The rest of a conversation after a compaction.

use std::collections::{BTreeMap, BTreeSet};

use epitome::core::{Outcome, PlanError, PlannedEdit, Planner, ReadyPlan, StandIn, TokenCounter};
use epitome::history::{Notes, PartStandIn, fill_with, part_text, shortened_messages};
use epitome::message::Message;

use super::need::Need;
use super::prompt::Prompt;
use super::words::text_of;
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::strategy::Strategies;
use crate::summarizer;

/// The messages that the model sees after a compaction.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// The messages that are shown unchanged.
    pub(super) whole: BTreeSet<u32>,
    /// The texts of shortened messages and of summaries.
    pub(super) new: Vec<String>,
    /// Tokens of all these messages and texts.
    pub(super) tokens: u64,
    /// Tokens of summaries and ledgers.
    pub(super) written: u64,
    /// Tokens of the unchanged messages at the beginning: a prompt cache still covers them.
    pub(super) stable: u64,
    /// Whether an API of Chat Completions would refuse the messages. Checked only for answers of external programs.
    pub(super) illegal: bool,
}

impl Shown {
    /// The messages that a strategy leaves; `None` if the protected messages do not fit.
    pub(super) fn by(
        strategies: &Strategies,
        prompt: &Prompt<'_>,
        asked: &Asked,
        counter: &(dyn TokenCounter + Send + Sync),
    ) -> Result<Option<Self>> {
        let messages = &*prompt.messages;
        let strategies = strategies.about(|texts| {
            (0..).zip(messages).for_each(|(at, message)| texts.look_through(at, *message));
            Ok(())
        })?;
        let view = prompt.index.view();
        let (budget, pass, mut planner) = (asked.budget, asked.pass(), Planner::new());
        let outcome = match strategies.with(|strategy| planner.plan(view, &budget, pass, strategy)) {
            Ok(outcome) => outcome,
            Err(PlanError::Infeasible(_)) => return Ok(None),
            Err(error) => return Err(Failure::plan(&error, &budget)),
        };
        let Outcome::Planned(plan) = outcome else {
            return Ok(Some(Self::of_whole(prompt, view.projection().flatten())));
        };
        let written = summarizer::write(&plan, messages, None, counter, |_| Ok(Vec::new()))?;
        let summaries: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
        let text = |position: u32, ordinal| part_text(*messages.get(position as usize)?, ordinal);
        let shown = |ready: ReadyPlan<'_, '_>| Self::of_plan(&ready, messages, plan.projection().flatten());
        fill_with(plan, &Notes::default(), &summaries, counter, text, shown)
            .map(Some)
            .map_err(|error| Failure::input(format!("--strategy: {error}")))
    }

    /// A view with these messages, all unchanged.
    pub(super) fn of_whole(prompt: &Prompt<'_>, positions: impl Iterator<Item = u32>) -> Self {
        let view = prompt.index.view();
        let whole: BTreeSet<u32> = positions.collect();
        let (mut tokens, mut stable, mut unbroken) = (0, 0, true);
        for group in view.groups() {
            let stays = group.positions().flatten().all(|position| whole.contains(&position));
            unbroken &= stays;
            tokens += if stays { group.tokens().as_u64() } else { 0 };
            stable += if unbroken { group.tokens().as_u64() } else { 0 };
        }
        Self { whole, tokens, stable, ..Self::default() }
    }

    fn of_plan(
        ready: &ReadyPlan<'_, '_>,
        messages: &[&Message],
        positions: impl Iterator<Item = u32>,
    ) -> Self {
        let edits: BTreeMap<u32, Vec<PartStandIn>> = shortened_messages(ready).into_iter().collect();
        let (mut whole, mut new) = (BTreeSet::new(), Vec::new());
        for position in positions {
            match (edits.get(&position), messages.get(position as usize)) {
                (Some(stand_ins), Some(message)) => {
                    new.push(text_of(&PartStandIn::apply(stand_ins, message)))
                }
                _ => {
                    whole.insert(position);
                }
            }
        }
        let mut written = 0;
        for edit in ready.edits() {
            if let PlannedEdit::Summary(summary) = edit {
                new.push(summary.stand_in.text.to_owned());
                written += summary.stand_in.tokens.as_u64();
            }
        }
        let stable = ready.plan().stable_prefix().tokens;
        Self { whole, new, tokens: ready.tokens_after(), written, stable, illegal: false }
    }

    /// Whether a needed text is shown.
    pub(super) fn has<T: AsRef<str>>(&self, need: &Need<T>) -> bool {
        self.shows_whole(need) || self.new.iter().any(|text| text.contains(need.unit.as_ref()))
    }

    /// Whether a message that contains the unit is shown unchanged.
    pub(super) fn shows_whole<T>(&self, need: &Need<T>) -> bool {
        need.stands_in.iter().any(|position| self.whole.contains(position))
    }
}
