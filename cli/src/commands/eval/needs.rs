//! The information that the model of a recorded conversation used next, and the share that a compaction keeps:
//! identifiers and copied text.

use std::collections::HashSet;

use epitome::core::message::Role;
use serde::Serialize;

use super::Measure;
use super::case::{Case, Cut};
use super::contender::{Contender, Known};
use super::mean::Mean;
use super::need::Need;
use super::price::{Price, Priced};
use super::replay::Paid;
use super::score::{ORACLES, Score, looked_for};
use super::shown::Shown;
use super::words::Finder;
use crate::amount::Percent;
use crate::failure::Result;
use crate::progress::Progress;

/// Measurements of the needs. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Needs {
    pub(super) conversations: u64,
    /// The number of cuts: places directly before a message of the model.
    pub(in crate::commands) cuts: u64,
    pub(super) tokens_before: u64,
    /// Prices of the requests, for a model with prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<Priced>,
    pub(in crate::commands) shares: Vec<Share>,
}

/// All strategies at one budget.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Share {
    pub(in crate::commands) keep: String,
    /// Number of cuts that are left out, because the protected messages exceed the budget.
    pub(in crate::commands) left_out: u64,
    pub(in crate::commands) rows: Vec<Row>,
}

/// One strategy at one budget: means over the cuts, in percent.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Row {
    pub(in crate::commands) strategy: String,
    /// A floor or a ceiling for the figures of strategies.
    pub(in crate::commands) baseline: bool,
    /// Needed identifiers that are shown.
    pub(in crate::commands) identifiers: Option<f64>,
    /// Needed identifiers that are shown; a rare one weighs more.
    pub(super) identifiers_weighted: Option<f64>,
    /// Needed runs of five words that are shown.
    pub(in crate::commands) copied_text: Option<f64>,
    pub(in crate::commands) tokens_left: f64,
    pub(super) stable_prefix: f64,
    /// Number of cuts at which more tokens were left than the budget allows.
    pub(super) missed: u64,
    /// Number of cuts at which an external program left messages that an API would refuse.
    pub(super) illegal: u64,
    /// Price of the requests of the conversations. A ceiling has none, because it needs a cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<Price>,
    pub(in crate::commands) lost: Vec<Lost>,
}

/// An identifier that the model needed and that was no longer shown.
#[derive(Debug, Clone, Serialize)]
pub(in crate::commands) struct Lost {
    pub(in crate::commands) identifier: String,
    pub(in crate::commands) conversation: String,
    /// The last message before the cut that contains it.
    pub(in crate::commands) stood_in: u32,
    pub(in crate::commands) role: Role,
    /// The first message after the cut that needs it.
    pub(in crate::commands) needed_at: u32,
    pub(in crate::commands) cut: usize,
}

/// Maximum number of lost identifiers that one cut adds to a row, before the row is sorted.
const LOST_MAX: usize = 100;

impl Needs {
    /// Measures the conversations at all their cuts; `None` if the model needed nothing.
    pub(in crate::commands) fn of(cases: &[Case], measure: &Measure) -> Result<Option<Self>> {
        let finder = Finder::new()?;
        let cuts = cases.iter().map(|case| case.cuts(&finder)).collect::<Result<Vec<_>>>()?;
        let cuts: Vec<Cut<'_>> = cuts.into_iter().flatten().collect();
        if cuts.is_empty() {
            return Ok(None);
        }
        let contenders = Contender::all(measure, &ORACLES);
        let messages: u64 = cuts.iter().map(|cut| cut.at as u64).sum();
        let work = messages * contenders.len() as u64 * measure.keep.len() as u64;
        let mut progress = Progress::of_messages("measuring", work);
        let price = measure.pricing.as_ref().map(|pricing| pricing.without_compaction(cases));
        let shares = measure.keep.iter().map(|keep| {
            let (cuts, left_out): (Vec<_>, Vec<_>) =
                cuts.iter().partition(|cut| cut.prompt.can_be_met(*keep));
            let rows = contenders.iter().map(|contender| {
                let row = Row::of(*contender, &cuts, *keep, measure, &mut progress)?;
                progress.advance(left_out.iter().map(|cut| cut.at as u64).sum::<u64>());
                Ok(Row { price: priced(*contender, cases, *keep, price.as_ref(), measure)?, ..row })
            });
            let rows = rows.collect::<Result<_>>()?;
            Ok(Share { keep: keep.to_string(), left_out: left_out.len() as u64, rows })
        });
        let shares = shares.collect::<Result<_>>()?;
        Ok(Some(Self {
            conversations: cases.len() as u64,
            cuts: cuts.len() as u64,
            tokens_before: cuts.iter().map(|cut| cut.prompt.tokens()).sum(),
            price,
            shares,
        }))
    }
}

impl Row {
    fn of(
        contender: Contender<'_>,
        cuts: &[&Cut<'_>],
        keep: Percent,
        measure: &Measure,
        progress: &mut Progress,
    ) -> Result<Self> {
        let (mut sums, mut lost) = (Sums::default(), Vec::new());
        for cut in cuts {
            let own = cut.prompt.tokens();
            let asked = cut.prompt.budget(keep)?;
            let known = Known { needs: &looked_for(contender, cut), request: None };
            match contender.shown(&cut.prompt, &asked, known, &*measure.counter)? {
                Some(shown) => {
                    sums.add(&shown, Score::of(&shown, cut), own, asked.budget.goal().unwrap_or_default());
                    lost.extend(Lost::of(&shown, cut));
                }
                None => sums.missed += 1,
            }
            progress.advance(cut.at as u64);
        }
        let lost = if contender.is_baseline() { Vec::new() } else { Lost::first(lost, measure.lost_max) };
        Ok(sums.row(contender, lost))
    }
}

/// Price of the requests of the conversations with this contender; `None` without prices.
fn priced(
    contender: Contender<'_>,
    cases: &[Case],
    keep: Percent,
    price: Option<&Priced>,
    measure: &Measure,
) -> Result<Option<Price>> {
    let (Some(price), Some(pricing)) = (price, &measure.pricing) else { return Ok(None) };
    if matches!(contender, Contender::Oracle(_)) {
        return Ok(None);
    }
    let (mut all, asked) = (Paid::default(), pricing.asked(keep)?);
    for case in cases {
        all.add(&Paid::with_compactions(contender, &case.messages, &asked, pricing, &measure.counter)?);
    }
    Ok(Some(price.beside(&all)))
}

impl Lost {
    /// The lost identifiers of a cut, each with the number of messages that contained it.
    fn of(shown: &Shown, cut: &Cut<'_>) -> Vec<(usize, Self)> {
        let lost = lost(shown, cut).into_iter().take(LOST_MAX).filter_map(|need| {
            let stood_in = *need.stands_in.last()?;
            let lost = Self {
                identifier: need.unit.to_owned(),
                conversation: cut.case.place.clone(),
                stood_in,
                role: cut.case.messages.get(stood_in as usize)?.message.role(),
                needed_at: need.needed_at,
                cut: cut.at,
            };
            Some((need.stands_in.len(), lost))
        });
        lost.collect()
    }

    /// The first `most` lost identifiers, each identifier once. The rarest come first; of equally rare ones, those of
    /// the longest beginnings.
    fn first(mut all: Vec<(usize, Self)>, most: usize) -> Vec<Self> {
        all.sort_by_key(|(often, one)| (*often, core::cmp::Reverse(one.cut)));
        let mut named = HashSet::new();
        let once = all.into_iter().map(|(_, one)| one).filter(|one| named.insert(one.identifier.clone()));
        once.take(most).collect()
    }
}

/// The identifiers that were needed and are not shown, the rarest first.
fn lost<'c, 'a>(shown: &Shown, cut: &'c Cut<'a>) -> Vec<&'c Need<&'a str>> {
    let mut lost: Vec<_> = cut.identifiers.iter().filter(|need| !shown.has(need)).collect();
    lost.sort_by_key(|need| (need.stands_in.len(), need.needed_at, need.unit));
    lost
}

/// Running sums of means.
#[derive(Debug, Default)]
struct Sums {
    identifiers: Mean,
    weighted: Mean,
    runs: Mean,
    left: Mean,
    stable: Mean,
    missed: u64,
    illegal: u64,
}

impl Sums {
    fn add(&mut self, shown: &Shown, score: Score, own: u64, goal: u64) {
        let own = own.max(1) as f64;
        self.identifiers.add(score.identifiers);
        self.weighted.add(score.weighted);
        self.runs.add(score.runs);
        self.left.add(Some(shown.tokens as f64 / own));
        self.stable.add(Some(shown.stable as f64 / own));
        self.missed += u64::from(shown.tokens > goal);
        self.illegal += u64::from(shown.illegal);
    }

    fn row(self, contender: Contender<'_>, lost: Vec<Lost>) -> Row {
        Row {
            strategy: contender.name(),
            baseline: contender.is_baseline(),
            identifiers: self.identifiers.percent(),
            identifiers_weighted: self.weighted.percent(),
            copied_text: self.runs.percent(),
            tokens_left: self.left.percent().unwrap_or_default(),
            stable_prefix: self.stable.percent().unwrap_or_default(),
            missed: self.missed,
            illegal: self.illegal,
            price: None,
            lost,
        }
    }
}
