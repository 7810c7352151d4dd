//! Canaries: sentences planted in a conversation, and their survival after compactions.
//!
//! A conversation is compacted at its half, and four times more with its own turns between, always to the same goal.

mod plant;
mod table;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use super::Measure;
use super::contender::Contender;
use super::mean::Mean;
use super::prompt::{CountedMessage, Prompt};
use super::rounds::{Rounds, Share, shown_by_round};
use super::shown::Shown;
use crate::amount::Percent;
use crate::failure::Result;
use crate::progress::Progress;

use plant::{Fate, Planted};
use table::Kind;

/// Survival of the planted sentences. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Canaries {
    conversations: u64,
    /// Number of conversations that are left out, because they have too few messages for five compactions.
    too_short: u64,
    /// Number of sentences that were planted in all conversations.
    planted: u64,
    shares: Vec<Share<Survival>>,
}

/// Survival after a number of compactions: means over the sentences, in percent.
#[derive(Debug, Serialize)]
struct Survival {
    compactions: usize,
    by_kind: BTreeMap<Kind, Option<f64>>,
    all: Option<f64>,
    /// Tokens after the compaction, as a share of the tokens of all messages so far.
    stale: Option<f64>,
    /// Tokens after the compaction, as a share of the tokens of all messages so far.
    tokens_left: Option<f64>,
    /// Number of compactions that left more tokens than the goal.
    missed: u64,
}

/// The compactions after which survival is reported.
const AFTER: [usize; 2] = [1, 5];

/// The name of the ceiling.
const ORACLE: &str = "(oracle: canaries)";

impl Canaries {
    /// Measures all conversations; `None` if none is long enough.
    pub(super) fn of(conversations: &[&[CountedMessage]], measure: &Measure) -> Result<Option<Self>> {
        let long: Vec<(&[CountedMessage], Rounds)> =
            conversations.iter().filter_map(|messages| Some((*messages, Rounds::of(messages)?))).collect();
        if long.is_empty() {
            return Ok(None);
        }
        let contenders = Contender::all(measure, &[Contender::Oracle(ORACLE)]);
        let mut tallies: Vec<ShareTally> =
            measure.keep.iter().map(|keep| ShareTally::new(*keep, contenders.len())).collect();
        let work = long.iter().map(|(messages, _)| (messages.len() * tallies.len()) as u64).sum();
        let (mut progress, mut planted) = (Progress::of_messages("measuring", work), 0);
        for (messages, rounds) in &long {
            let conversation = Planted::of(messages, rounds, &*measure.counter);
            planted += conversation.canaries.len() as u64;
            let prompts = rounds.prompts(&conversation.messages)?;
            for tally in &mut tallies {
                tally.add(&conversation, &prompts, &contenders, measure)?;
                progress.advance(messages.len() as u64);
            }
        }
        Ok(Some(Self {
            conversations: long.len() as u64,
            too_short: (conversations.len() - long.len()) as u64,
            planted,
            shares: tallies.into_iter().map(|tally| tally.share(&contenders)).collect(),
        }))
    }
}

/// Running sums of a [`Share`].
struct ShareTally {
    keep: Percent,
    left_out: u64,
    rows: Vec<[Tally; AFTER.len()]>,
}

#[derive(Default)]
struct Tally {
    by_kind: BTreeMap<Kind, Mean>,
    all: Mean,
    stale: Mean,
    left: Mean,
    missed: u64,
}

impl ShareTally {
    fn new(keep: Percent, rows: usize) -> Self {
        Self { keep, left_out: 0, rows: core::iter::repeat_with(Default::default).take(rows).collect() }
    }

    /// Compacts a conversation repeatedly, with each contender.
    fn add(
        &mut self,
        planted: &Planted,
        prompts: &[Prompt<'_>],
        contenders: &[Contender<'_>],
        measure: &Measure,
    ) -> Result<()> {
        let Some(first) = prompts.first().filter(|first| first.can_be_met(self.keep)) else {
            self.left_out += 1;
            return Ok(());
        };
        // One goal for all compactions, as in an application.
        let asked = first.budget(self.keep)?;
        let goal = asked.budget.goal().unwrap_or_default();
        let needs = |said: usize| -> Vec<&[u32]> {
            planted.canaries.iter().map(|canary| &*canary.valid(said).stands_in).collect()
        };
        for (row, contender) in self.rows.iter_mut().zip(contenders) {
            let said = &planted.messages;
            let shown = shown_by_round(*contender, said, prompts, &asked, needs, &measure.counter)?;
            for (tally, compactions) in row.iter_mut().zip(AFTER) {
                if let (Some(shown), Some(prompt)) =
                    (shown.get(compactions - 1), prompts.get(compactions - 1))
                {
                    tally.add(planted, shown, prompt, goal);
                }
            }
        }
        Ok(())
    }

    fn share(self, contenders: &[Contender<'_>]) -> Share<Survival> {
        let figures = self.rows.into_iter().map(|tallies| {
            tallies.into_iter().zip(AFTER).map(|(tally, after)| tally.survival(after)).collect()
        });
        Share::new(self.keep, self.left_out, contenders, figures)
    }
}

impl Tally {
    fn add(&mut self, planted: &Planted, shown: &Shown, prompt: &Prompt<'_>, goal: u64) {
        let said = prompt.messages.len();
        for canary in &planted.canaries {
            let fate = canary.fate(shown, said);
            let survived = Some(f64::from(u8::from(fate == Fate::Survived)));
            self.by_kind.entry(canary.kind).or_default().add(survived);
            self.all.add(survived);
            let replaced = canary.newer_by(said).is_some();
            self.stale.add(replaced.then(|| f64::from(u8::from(fate == Fate::Stale))));
        }
        self.left.add(Some(shown.tokens as f64 / prompt.tokens().max(1) as f64));
        self.missed += u64::from(shown.tokens > goal);
    }

    fn survival(self, compactions: usize) -> Survival {
        let percent = |kind: Kind| self.by_kind.get(&kind).and_then(Mean::percent);
        Survival {
            compactions,
            by_kind: Kind::ALL.into_iter().map(|kind| (kind, percent(kind))).collect(),
            all: self.all.percent(),
            stale: self.stale.percent(),
            tokens_left: self.left.percent(),
            missed: self.missed,
        }
    }
}
