//! The share of the model's needs that is left after each of several compactions, with turns between them.

#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::Measure;
use super::case::{Case, Cut};
use super::contender::{Contender, Known};
use super::mean::Mean;
use super::rounds::{Share, shown_by_round};
use super::score::{ORACLES, Score, looked_for};
use super::shown::Shown;
use super::words::Finder;
use crate::amount::Percent;
use crate::failure::Result;
use crate::progress::Progress;

/// Measurements by round. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Degradation {
    conversations: u64,
    /// Number of conversations that are left out, because they have too few messages of the model.
    too_short: u64,
    /// Number of compactions of each conversation.
    rounds: usize,
    shares: Vec<Share<After>>,
}

/// One strategy after a number of compactions to the same goal: means over the conversations, in percent.
#[derive(Debug, Serialize)]
struct After {
    compactions: usize,
    /// Needed identifiers that are shown.
    identifiers: Option<f64>,
    /// Needed identifiers that are shown if nothing was compacted before.
    identifiers_once: Option<f64>,
    /// Needed runs of five words that are shown.
    copied_text: Option<f64>,
    /// Needed runs that are shown if nothing was compacted before.
    copied_text_once: Option<f64>,
    /// Tokens after the compaction, as a share of the goal.
    tokens_left: Option<f64>,
    /// Tokens of summaries and ledgers, as a share of the goal.
    written: Option<f64>,
    /// Number of conversations with more tokens left than the goal.
    missed: u64,
}

impl Degradation {
    /// Measures the conversations that are long enough; `None` if none is.
    pub(super) fn of(cases: &[Case], rounds: usize, measure: &Measure) -> Result<Option<Self>> {
        let finder = Finder::new()?;
        let cuts = cases.iter().map(|case| case.rounds(rounds, &finder)).collect::<Result<Vec<_>>>()?;
        let long: Vec<Vec<Cut<'_>>> = cuts.into_iter().flatten().collect();
        if long.is_empty() {
            return Ok(None);
        }
        let contenders = Contender::all(measure, &ORACLES);
        let work: usize = long.iter().filter_map(|cuts| Some(cuts.last()?.at)).sum();
        let mut progress = Progress::of_messages("measuring", (work * measure.keep.len()) as u64);
        let shares = measure.keep.iter().map(|keep| {
            let mut tally = ShareTally::new(*keep, rounds, contenders.len());
            for cuts in &long {
                tally.add(cuts, &contenders, measure)?;
                progress.advance(cuts.last().map_or(0, |cut| cut.at as u64));
            }
            Ok(tally.share(&contenders))
        });
        Ok(Some(Self {
            conversations: long.len() as u64,
            too_short: (cases.len() - long.len()) as u64,
            rounds,
            shares: shares.collect::<Result<_>>()?,
        }))
    }
}

/// Running sums of a [`Share`].
struct ShareTally {
    keep: Percent,
    left_out: u64,
    /// Tallies of each contender, by round.
    rows: Vec<Vec<Tally>>,
}

#[derive(Default)]
struct Tally {
    identifiers: Mean,
    identifiers_once: Mean,
    copied_text: Mean,
    copied_text_once: Mean,
    left: Mean,
    written: Mean,
    missed: u64,
}

impl ShareTally {
    fn new(keep: Percent, rounds: usize, rows: usize) -> Self {
        let row = || core::iter::repeat_with(Tally::default).take(rounds).collect();
        Self { keep, left_out: 0, rows: core::iter::repeat_with(row).take(rows).collect() }
    }

    /// Compacts a conversation repeatedly, with each contender.
    fn add(&mut self, cuts: &[Cut<'_>], contenders: &[Contender<'_>], measure: &Measure) -> Result<()> {
        let Some(first) = cuts.first() else { return Ok(()) };
        // One goal for all compactions, as in an application.
        let asked = first.prompt.budget(self.keep)?;
        let goal = asked.budget.goal().unwrap_or_default();
        if cuts.iter().any(|cut| !cut.prompt.can_be_left(goal)) {
            self.left_out += 1;
            return Ok(());
        }
        let prompts = cuts.iter().map(|cut| &cut.prompt);
        for (row, contender) in self.rows.iter_mut().zip(contenders) {
            let needs = |said: usize| {
                let cut = cuts.iter().find(|cut| cut.at == said);
                cut.map_or_else(Vec::new, |cut| looked_for(*contender, cut))
            };
            let said = &first.case.messages;
            let rounds = shown_by_round(*contender, said, prompts.clone(), &asked, needs, &measure.counter)?;
            for ((tally, cut), shown) in row.iter_mut().zip(cuts).zip(rounds) {
                let known = Known { needs: &looked_for(*contender, cut), request: None };
                let once = contender.shown(&cut.prompt, &asked, known, &*measure.counter)?;
                tally.add(&shown, cut, once.map(|once| Score::of(&once, cut)), goal);
            }
        }
        Ok(())
    }

    fn share(self, contenders: &[Contender<'_>]) -> Share<After> {
        let figures = self
            .rows
            .into_iter()
            .map(|tallies| (1..).zip(tallies).map(|(compactions, tally)| tally.after(compactions)).collect());
        Share::new(self.keep, self.left_out, contenders, figures)
    }
}

impl Tally {
    fn add(&mut self, shown: &Shown, cut: &Cut<'_>, once: Option<Score>, goal: u64) {
        let (score, of_goal) = (Score::of(shown, cut), goal.max(1) as f64);
        self.identifiers.add(score.identifiers);
        self.copied_text.add(score.runs);
        self.identifiers_once.add(once.and_then(|once| once.identifiers));
        self.copied_text_once.add(once.and_then(|once| once.runs));
        self.left.add(Some(shown.tokens as f64 / of_goal));
        self.written.add(Some(shown.written as f64 / of_goal));
        self.missed += u64::from(shown.tokens > goal);
    }

    fn after(self, compactions: usize) -> After {
        After {
            compactions,
            identifiers: self.identifiers.percent(),
            identifiers_once: self.identifiers_once.percent(),
            copied_text: self.copied_text.percent(),
            copied_text_once: self.copied_text_once.percent(),
            tokens_left: self.left.percent(),
            written: self.written.percent(),
            missed: self.missed,
        }
    }
}
