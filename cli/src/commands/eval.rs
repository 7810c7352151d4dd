//! `epitome eval`: what a compacted conversation still knows of what the model needed next.

mod baseline;
mod case;
mod shown;
mod text;
mod words;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use epitome::core::message::Role;
use epitome::core::{Protection, TokenCounter, floors};
use serde::Serialize;

use crate::amount::Percent;
use crate::args::{BudgetArgs, EvalArgs, InputArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::progress::Progress;
use crate::scan;
use crate::strategy::Strategies;
use crate::transcript::Input;

use baseline::Baseline;
use case::{Case, Cut};
use shown::{Score, Shown};
use words::Finder;

/// What was measured. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
struct Eval {
    conversations: u64,
    /// The places at which conversations were cut: directly before a message of the model.
    cuts: u64,
    tokens_before: u64,
    tokenizer: String,
    shares: Vec<Share>,
}

/// All strategies at one budget.
#[derive(Debug, Serialize)]
struct Share {
    keep: String,
    /// Cuts that no strategy is measured at: what is protected has more than the budget.
    left_out: u64,
    rows: Vec<Row>,
}

/// One strategy at one budget: means over the cuts, in percent.
#[derive(Debug, Serialize)]
struct Row {
    strategy: String,
    /// A floor or a ceiling for the figures of strategies.
    baseline: bool,
    /// Needed identifiers that are shown.
    identifiers: Option<f64>,
    /// The same, where a rare identifier weighs more.
    identifiers_weighted: Option<f64>,
    /// Needed runs of five words that are shown.
    copied_text: Option<f64>,
    tokens_left: f64,
    stable_prefix: f64,
    /// Cuts at which more was left than the budget allowed.
    missed: u64,
    lost: Vec<Lost>,
}

/// An identifier that the model needed and was not shown any more.
#[derive(Debug, Clone, Serialize)]
struct Lost {
    identifier: String,
    conversation: String,
    /// The last message before the cut in which it stands.
    stood_in: u32,
    role: Role,
    /// The message behind the cut that needs it first.
    needed_at: u32,
    cut: usize,
}

/// What is measured where no strategy is named: each kind that asks no model, and combinations of them.
const STRATEGIES: &[&str] = &[
    "truncate",
    "window",
    "tool-results",
    "tool-digest",
    "tool-results | truncate",
    "tool-results:inputs | truncate",
    "supersede | tool-results | truncate",
    "truncate:walk=newest-first",
    "agent",
];

/// The most lost identifiers that are kept for a row, before those of all its cuts are sorted.
const LOST_MAX: usize = 100;

pub(crate) fn run(args: &EvalArgs) -> Result<ExitCode> {
    let strategies = strategies(&args.strategy)?;
    let counter = scan::counter(&args.tokenizer)?;
    let finder = Finder::new()?;
    let mut cases = Vec::new();
    for file in &args.files {
        cases.extend(read(file, args, &*counter)?);
    }
    let cuts = cases.iter().map(|case| case.cuts(&finder)).collect::<Result<Vec<_>>>()?;
    let cuts: Vec<Cut<'_>> = cuts.into_iter().flatten().collect();
    if cuts.is_empty() {
        return Err(Failure::input(
            "nothing to measure: no conversation has a message of the model that repeats a name, a number or five words of \
             what was said before it; give a longer transcript of an agent",
        ));
    }
    let eval = Eval::of(&cases, &cuts, &strategies, args, &*counter)?;
    let text = match args.json {
        true => {
            serde_json::to_string_pretty(&eval).map_err(|error| Failure::new(code::IO, error.to_string()))?
        }
        false => eval.to_text(),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn strategies(named: &[String]) -> Result<Vec<Strategies>> {
    let names: Vec<&str> = match named {
        [] => STRATEGIES.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let parsed = names.into_iter().map(Strategies::parse).collect::<Result<Vec<_>>>()?;
    match parsed.iter().any(Strategies::summarize) {
        true => Err(Failure::input(
            "--strategy: a summary is written by a model, and eval asks none: leave summarize out, or take tool-digest",
        )),
        false => Ok(parsed),
    }
}

/// The conversations of a file.
fn read(file: &Path, args: &EvalArgs, counter: &dyn TokenCounter) -> Result<Vec<Case>> {
    let input_args = InputArgs {
        file: file.to_owned(),
        project: None,
        from: args.from,
        at: None,
        each: args.each,
        leaf: None,
    };
    let input = Input::open(&input_args)?;
    let mut transcripts = input.transcripts(&input_args)?;
    let cases = transcripts.iter_mut().map(|transcript| {
        let place = format!("{}{}", file.display(), transcript.pointer());
        Case::of(place, transcript, counter)
    });
    cases.collect()
}

impl Eval {
    fn of(
        cases: &[Case],
        cuts: &[Cut<'_>],
        strategies: &[Strategies],
        args: &EvalArgs,
        counter: &(dyn TokenCounter + Send + Sync),
    ) -> Result<Self> {
        let rows = (strategies.len() + Baseline::ALL.len()) as u64;
        let messages: u64 = cuts.iter().map(|cut| cut.at as u64).sum();
        let mut progress = Progress::of_messages("measuring", messages * rows * args.keep.len() as u64);
        let shares = args.keep.iter().map(|keep| {
            let (cuts, left_out): (Vec<_>, Vec<_>) = cuts.iter().partition(|cut| cut.can_be_met(*keep));
            let mut rows = Vec::new();
            for strategies in strategies {
                let shown = |cut: &Cut<'_>, asked: &Asked| Shown::by(strategies, cut, asked, counter);
                rows.push(Row::of(
                    strategies.names().join(" | "),
                    &cuts,
                    *keep,
                    args.lost,
                    &mut progress,
                    shown,
                )?);
            }
            for baseline in Baseline::ALL {
                let shown = |cut: &Cut<'_>, asked: &Asked| {
                    Ok(Some(baseline.shown(cut, asked.budget.goal().unwrap_or_default())))
                };
                let row = Row::of(baseline.name().to_owned(), &cuts, *keep, 0, &mut progress, shown)?;
                rows.push(Row { baseline: true, ..row });
            }
            progress.advance(left_out.iter().map(|cut| cut.at as u64).sum::<u64>() * rows.len() as u64);
            Ok(Share { keep: keep.to_string(), left_out: left_out.len() as u64, rows })
        });
        let shares = shares.collect::<Result<_>>()?;
        Ok(Self {
            conversations: cases.len() as u64,
            cuts: cuts.len() as u64,
            tokens_before: cuts.iter().map(|cut| cut.index.view().tokens()).sum(),
            tokenizer: counter.name().to_owned(),
            shares,
        })
    }
}

impl Row {
    fn of(
        strategy: String,
        cuts: &[&Cut<'_>],
        keep: Percent,
        lost_max: usize,
        progress: &mut Progress,
        shown: impl Fn(&Cut<'_>, &Asked) -> Result<Option<Shown>>,
    ) -> Result<Self> {
        let (mut sums, mut lost) = (Sums::default(), Vec::new());
        for cut in cuts {
            let own = cut.index.view().tokens();
            let asked = asked(keep, own)?;
            match shown(cut, &asked)? {
                Some(shown) => {
                    sums.add(&shown, shown.score(cut), own, asked.budget.goal().unwrap_or_default());
                    lost.extend(Lost::of(&shown, cut));
                }
                None => sums.missed += 1,
            }
            progress.advance(cut.at as u64);
        }
        // The rarest come first within each cut; here, those of the longest conversations.
        lost.sort_by_key(|(often, one)| (*often, core::cmp::Reverse(one.cut)));
        let mut named = HashSet::new();
        let once = lost.into_iter().map(|(_, one)| one).filter(|one| named.insert(one.identifier.clone()));
        let lost = once.take(lost_max).collect();
        Ok(sums.row(strategy, lost))
    }
}

/// The budget of a conversation of `own` tokens that is to keep a share of them.
fn asked(keep: Percent, own: u64) -> Result<Asked> {
    Asked::new(&BudgetArgs { window: None, reserve: None, trigger: None, goal: None, keep: Some(keep) }, own)
}

impl Cut<'_> {
    /// Whether what is protected leaves a strategy a chance to keep no more than this share.
    fn can_be_met(&self, keep: Percent) -> bool {
        let view = self.index.view();
        let goal = asked(keep, view.tokens()).ok().and_then(|asked| asked.budget.goal());
        goal.is_some_and(|goal| floors(view, Protection::default()).hard <= goal)
    }
}

impl Lost {
    /// The lost identifiers of a cut, with the number of messages in which each stood.
    fn of(shown: &Shown, cut: &Cut<'_>) -> Vec<(usize, Self)> {
        let lost = shown.lost(cut).into_iter().take(LOST_MAX).filter_map(|need| {
            let stood_in = *need.stands_in.last()?;
            let lost = Self {
                identifier: need.unit.to_owned(),
                conversation: cut.case.place.clone(),
                stood_in,
                role: cut.case.messages.get(stood_in as usize)?.role(),
                needed_at: need.needed_at,
                cut: cut.at,
            };
            Some((need.stands_in.len(), lost))
        });
        lost.collect()
    }
}

/// Means in the making.
#[derive(Debug, Default)]
struct Sums {
    identifiers: Mean,
    weighted: Mean,
    runs: Mean,
    left: Mean,
    stable: Mean,
    missed: u64,
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: u64,
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
    }

    fn row(self, strategy: String, lost: Vec<Lost>) -> Row {
        Row {
            strategy,
            baseline: false,
            identifiers: self.identifiers.percent(),
            identifiers_weighted: self.weighted.percent(),
            copied_text: self.runs.percent(),
            tokens_left: self.left.percent().unwrap_or_default(),
            stable_prefix: self.stable.percent().unwrap_or_default(),
            missed: self.missed,
            lost,
        }
    }
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    /// In percent, with one digit behind the point.
    fn percent(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64 * 1_000.0).round() / 10.0)
    }
}
