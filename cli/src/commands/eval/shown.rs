//! What is left of a conversation at a cut, and how much of what the model needed is in it.

use std::collections::{BTreeMap, BTreeSet};

use epitome::core::{
    Cell, Edit, Outcome, PlanError, ReadyPlan, Replacement, Scratch, StandIn, TokenCounter, plan_with,
};
use epitome::std::history::{Notes, PartStandIn, fill_with, part_text, shortened_messages};
use epitome::std::message::Message;

use super::case::{Cut, Need};
use super::words::{runs, text_of};
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::strategy::Strategies;
use crate::summarizer;

/// What the model is shown after a compaction.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// The messages that stand as they stood.
    pub(super) whole: BTreeSet<u32>,
    /// The texts of shortened messages and of summaries.
    pub(super) new: Vec<String>,
    pub(super) tokens: u64,
    /// The tokens from the beginning on that stand as they stood: what a prompt cache keeps.
    pub(super) stable: u64,
}

/// The share of what was needed that is shown; `None` where nothing was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Score {
    pub(super) identifiers: Option<f64>,
    /// The same, where a rare identifier weighs more.
    pub(super) weighted: Option<f64>,
    pub(super) runs: Option<f64>,
}

impl Shown {
    /// What a strategy leaves; `None` where what is protected does not fit.
    pub(super) fn by(
        strategies: &Strategies,
        cut: &Cut<'_>,
        asked: &Asked,
        counter: &(dyn TokenCounter + Send + Sync),
    ) -> Result<Option<Self>> {
        let messages: Vec<&Message> = cut.case.messages.iter().take(cut.at).collect();
        let strategies = strategies.about(|texts| {
            (0..).zip(&messages).for_each(|(at, message)| texts.look_through(at, *message));
            Ok(())
        })?;
        let view = cut.index.view();
        let mut cells = vec![Cell::default(); view.cell_count()];
        let mut room = vec![Replacement::default(); (view.group_count() as usize).div_ceil(2)];
        let scratch = Scratch::new(&mut cells).with_replacements(&mut room);
        let (budget, pass) = (asked.budget, asked.pass());
        let outcome = match strategies.with(|strategy| plan_with(view, &budget, pass, strategy, scratch)) {
            Ok(outcome) => outcome,
            Err(PlanError::Infeasible(_)) => return Ok(None),
            Err(error) => return Err(Failure::plan(&error, &budget)),
        };
        let Outcome::Planned(plan) = outcome else {
            return Ok(Some(Self::of_whole(cut, view.projection().flatten())));
        };
        let written = summarizer::write(&plan, &messages, None, counter, |_| Ok(Vec::new()))?;
        let summaries: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
        let text = |position: u32, ordinal| part_text(*messages.get(position as usize)?, ordinal);
        let shown = |ready: ReadyPlan<'_, '_>| Self::of_plan(&ready, &messages, plan.projection().flatten());
        fill_with(plan, &Notes::default(), &summaries, counter, text, shown)
            .map(Some)
            .map_err(|error| Failure::input(format!("--strategy: {error}")))
    }

    /// These messages, as they stood.
    pub(super) fn of_whole(cut: &Cut<'_>, positions: impl Iterator<Item = u32>) -> Self {
        let view = cut.index.view();
        let whole: BTreeSet<u32> = positions.collect();
        let (mut tokens, mut stable, mut unbroken) = (0, 0, true);
        for group in view.groups() {
            let stays = group.positions().flatten().all(|position| whole.contains(&position));
            unbroken &= stays;
            tokens += if stays { group.tokens().as_u64() } else { 0 };
            stable += if unbroken { group.tokens().as_u64() } else { 0 };
        }
        Self { whole, new: Vec::new(), tokens, stable }
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
        new.extend(ready.edits().filter_map(|edit| match edit {
            Edit::Summary(summary) => Some(summary.stand_in.text.to_owned()),
            _ => None,
        }));
        Self { whole, new, tokens: ready.tokens_after(), stable: ready.plan().stable_prefix().tokens }
    }

    /// How much of what was needed is shown.
    pub(super) fn score(&self, cut: &Cut<'_>) -> Score {
        let messages = cut.at as f64;
        let weight = |need: &Need<&str>| (1.0 + messages / need.stands_in.len().max(1) as f64).ln();
        let shown_runs: BTreeSet<u64> = self.new.iter().flat_map(|text| runs(text)).collect();
        let has_run = |need: &Need<u64>| self.shows_whole(need) || shown_runs.contains(&need.unit);
        Score {
            identifiers: share(&cut.identifiers, |need| self.has(need), |_| 1.0),
            weighted: share(&cut.identifiers, |need| self.has(need), weight),
            runs: share(&cut.runs, has_run, |_| 1.0),
        }
    }

    /// The identifiers that were needed and are not shown, the rarest first.
    pub(super) fn lost<'c, 'a>(&self, cut: &'c Cut<'a>) -> Vec<&'c Need<&'a str>> {
        let mut lost: Vec<_> = cut.identifiers.iter().filter(|need| !self.has(need)).collect();
        lost.sort_by_key(|need| (need.stands_in.len(), need.needed_at, need.unit));
        lost
    }

    fn has(&self, need: &Need<&str>) -> bool {
        self.shows_whole(need) || self.new.iter().any(|text| text.contains(need.unit))
    }

    fn shows_whole<T>(&self, need: &Need<T>) -> bool {
        need.stands_in.iter().any(|position| self.whole.contains(position))
    }
}

/// The weight of those needs that `has` finds, of that of all.
fn share<T>(
    needs: &[Need<T>],
    has: impl Fn(&Need<T>) -> bool,
    weight: impl Fn(&Need<T>) -> f64,
) -> Option<f64> {
    let all: f64 = needs.iter().map(&weight).sum();
    let shown: f64 = needs.iter().filter(|need| has(need)).map(&weight).sum();
    (all > 0.0).then(|| shown / all)
}
