//! `epitome compact`: reports the plan for a transcript, or writes the compacted transcript.

mod piece;
mod repair;
mod summaries;
mod why;
mod write;

use std::path::Path;

use epitome::core::{Index, Plan, Planner, Profile, StandIn, TokenCounter, Tokens};
use epitome::history::{Notes, fill_with, part_text};
use epitome::models::Prices;
use epitome::wire::Format;

use crate::args::{BudgetArgs, CompactArgs};
use crate::budget::Asked;
use crate::failure::{ExitCode, Failure, Result, code};
use crate::filled::Filled;
use crate::model;
use crate::output::{self, Output, to_json};
use crate::pins::Pin;
use crate::report::{Decided, Facts, Picture, Report, Row, sum, table};
use crate::scan::{self, Counter, ESTIMATE, Scan};
use crate::strategy::Strategies;
use crate::summarizer::{self, Prompted};
use crate::transcript::{Input, Transcript};
use crate::visible::Printable;

use piece::{OwnedPiece, in_order, shortened};
use write::Written;

/// Settings of a compaction.
pub(super) struct Settings<'a> {
    pub(super) budget: BudgetArgs,
    pub(super) strategies: Strategies,
    /// The pinned messages: no strategy may hide them.
    pub(super) pins: &'a [Pin],
    /// Whether only messages that the verdicts depend on are counted.
    pub(super) lazy: bool,
    /// Whether the report has the reason of each group's verdict.
    pub(super) why: bool,
    /// Whether the result is repaired: made legal under a profile.
    pub(super) repair: bool,
    /// The profile of the repair; `None` for the profile of the transcript's format.
    pub(super) profile: Option<Profile>,
    /// Whether the result is to be written in the form of the input.
    pub(super) is_written_back: bool,
    /// The estimator for messages that are not counted.
    pub(super) estimator: Counter,
    /// The model that writes summaries, if one is named.
    pub(super) summarizer: Option<Prompted>,
    /// Prices of the model, if it is known.
    pub(super) prices: Option<Prices>,
}

/// Result for one conversation.
pub(super) struct Compacted {
    pub(super) report: Report,
    /// The pieces to write; `None` if the conversation stays unchanged.
    pieces: Option<Vec<OwnedPiece>>,
    /// The profile of the repair, and the number of violations that are left.
    repaired: Option<(Profile, u64)>,
}

impl Settings<'_> {
    /// Settings for a plan that is reported and not written.
    pub(super) const fn of_plan(budget: BudgetArgs, strategies: Strategies, estimator: Counter) -> Self {
        Self {
            budget,
            strategies,
            pins: &[],
            lazy: false,
            why: false,
            repair: false,
            profile: None,
            is_written_back: false,
            estimator,
            summarizer: None,
            prices: None,
        }
    }

    /// The profile of the repair, if a repair was asked for.
    fn repairs(&self, transcript: &Transcript<'_>) -> Option<Profile> {
        self.repair.then(|| self.profile.unwrap_or(transcript.format().profile()))
    }
}

pub(crate) fn run(args: &CompactArgs) -> Result<ExitCode> {
    let (text, outcome) = compacted(args)?;
    say(args, text)?;
    outcome
}

/// Compacts the conversations and writes the result. Returns the report, and the exit code for the same result. If a
/// goal is required and missed, the second value is an error, and nothing is written.
pub(crate) fn compacted(args: &CompactArgs) -> Result<(Printable, Result<ExitCode>)> {
    if args.output.is_none() && args.redact.is_asked() {
        return Err(Failure::input("--redact is for the transcript that is written: add -o OUT"));
    }
    if args.summary.summarizer.is_some() && (args.redact.is_asked() || args.dry_run) {
        let what = if args.dry_run {
            "--dry-run sends nothing to anybody"
        } else {
            "--redact does not reach what is sent"
        };
        return Err(Failure::input(format!(
            "{what}: leave it out, or --summarizer; --strategy tool-digest asks no model"
        )));
    }
    if let Some(path) = args.output.as_deref().filter(|_| !args.dry_run) {
        Output { path, force: args.force }.check()?;
    }
    let found = model::find(&args.plan.model)?;
    let settings = Settings {
        budget: model::budget(found.as_ref(), &args.plan.budget),
        strategies: Strategies::parse(&args.plan.strategy)?,
        pins: &args.pin,
        lazy: args.lazy,
        why: args.why,
        repair: args.repair,
        profile: args.profile.or(args.to.map(Format::profile)),
        is_written_back: args.to.is_none(),
        estimator: model::counter(found.as_ref(), Some(ESTIMATE), ESTIMATE)?,
        summarizer: summarizer::open(&args.summary, args.plan.model.model.as_deref())?,
        prices: found.as_ref().and_then(|model| model.prices),
    };
    summarizer::check(&settings.strategies, settings.summarizer.as_ref())?;
    let counter = model::counter(found.as_ref(), args.plan.tokenizer.as_deref(), ESTIMATE)?;
    let input = Input::open(&args.input)?;
    if let Some(path) = args.output.as_deref().filter(|_| !args.dry_run) {
        input.check_replaced(path)?;
    }
    let mut transcripts = input.transcripts(&args.input)?;
    if !args.input.part.each && !args.json {
        transcripts.iter().for_each(Transcript::mention_others);
    }
    let mut results = compact_all(args, &settings, &*counter, &input, &mut transcripts)?;
    let text = report(args, &results, &transcripts)?;
    if args.require_goal
        && let Some(failure) = missed(&mut results, &transcripts, &input)
    {
        return Ok((text, Err(failure)));
    }
    let done: Vec<_> = results.iter().map(|result| result.as_ref().ok()).collect();
    let written = Written::new(args, &input, &mut transcripts, &done)?;
    // Frees the sources before the written file is read again: both may be large.
    drop(transcripts);
    drop(input);
    if let Some(written) = written {
        written.publish(args)?;
    }
    let violations = |done: &Compacted| done.report.repair.map_or(0, |repair| repair.violations_left);
    Ok((text, Ok(exit_code(results.iter().map(|result| result.as_ref().ok().map(violations))))))
}

/// The first conversation that is infeasible, or else the first one that misses its goal.
fn missed(
    results: &mut Vec<Result<Compacted>>,
    transcripts: &[Transcript<'_>],
    input: &Input,
) -> Option<Failure> {
    if let Some(at) = results.iter().position(Result::is_err) {
        return results
            .swap_remove(at)
            .err()
            .map(|failure| failure.during(format_args!("conversation {at}")));
    }
    results.iter().zip(transcripts).find_map(|(done, transcript)| {
        let missed = done.as_ref().ok()?.report.require_goal().err()?;
        Some(missed.during(input.place(transcript.pointer())))
    })
}

/// Compacts every conversation. With `--each`, an infeasible conversation stays unchanged, and the others are
/// compacted.
fn compact_all(
    args: &CompactArgs,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
    input: &Input,
    transcripts: &mut [Transcript<'_>],
) -> Result<Vec<Result<Compacted>>> {
    let mut results = Vec::with_capacity(transcripts.len());
    for (at, transcript) in transcripts.iter_mut().enumerate() {
        match compact(transcript, settings, counter) {
            Ok(mut done) => {
                done.report.conversation = args.input.part.each.then_some(at);
                results.push(Ok(done));
            }
            Err(failure) if failure.code() != code::INFEASIBLE => return Err(failure),
            Err(failure) if args.input.part.each => results.push(Err(failure)),
            Err(failure) => return Err(failure.during(input.place(transcript.pointer()))),
        }
    }
    Ok(results)
}

/// The report, as JSON or as text.
fn report(
    args: &CompactArgs,
    results: &[Result<Compacted>],
    transcripts: &[Transcript<'_>],
) -> Result<Printable> {
    if let ([Ok(done)], false) = (results, args.input.part.each) {
        return match args.json {
            true => to_json(&done.report).map(Printable::from),
            false => Ok(done.report.to_text(&Picture::for_stdout())),
        };
    }
    let rows = results.iter().zip(transcripts).enumerate();
    let rows = rows.map(|(at, (result, transcript))| {
        Row::new(result.as_ref().map(|done| &done.report), at, transcript.pointer())
    });
    let rows: Vec<_> = rows.collect();
    if args.json { to_json(&rows).map(Printable::from) } else { Ok(table(&rows).into()) }
}

/// The exit code for all conversations. `violations_left` has the number of violations that the repair left in each
/// conversation, or `None` for an infeasible one.
fn exit_code(violations_left: impl Iterator<Item = Option<u64>>) -> ExitCode {
    let (mut any, mut infeasible) = (false, false);
    for left in violations_left {
        any |= left.is_some_and(|left| left > 0);
        infeasible |= left.is_none();
    }
    ExitCode::from(match (infeasible, any) {
        (true, _) => code::INFEASIBLE,
        (false, true) => code::VIOLATIONS,
        (false, false) => return ExitCode::SUCCESS,
    })
}

/// Plans the compaction of one conversation and makes the pieces to write.
pub(super) fn compact(
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<Compacted> {
    let (Scan { index, sizes, basis, uncounted, is_due }, asked) = scan(transcript, settings, counter)?;
    let (view, own) = (index.view(), sum(&sizes));
    let strategies = settings.strategies.about(|texts| {
        let messages = u32::try_from(transcript.len()).unwrap_or(u32::MAX);
        (0..messages).try_for_each(|at| {
            transcript.with_message(at as usize, |message| texts.look_through(at, message))
        })
    })?;
    let mut planner = Planner::new();
    let outcome = match is_due {
        false => None,
        true => {
            let (budget, pass) = (asked.budget, asked.pass());
            let planned = strategies.with(|strategy| planner.plan(view, &budget, pass, strategy));
            Some(planned.map_err(|error| Failure::plan(&error, &budget))?)
        }
    };
    let decided = Decided::new(outcome.as_ref(), view, own, &asked);
    let filled = match decided {
        Decided::Planned(plan) => {
            if settings.is_written_back {
                rehearse(*plan, view, transcript, settings, counter)?;
            }
            let written = summaries::write(plan, transcript, settings.summarizer.as_ref(), counter)?;
            Some(filled(*plan, transcript, &written, counter)?)
        }
        _ => None,
    };
    let mut report = Report::new(Facts {
        index: view,
        decided,
        filled: filled.as_ref(),
        asked: &asked,
        strategies: &strategies,
        sizes: &sizes,
        basis,
        uncounted,
        tokenizer: counter.name().to_owned(),
    });
    if settings.why {
        report.why = why::explain(view, &asked, &strategies, &report)?;
    }
    transcript.pointer().clone_into(&mut report.path);
    let mut pieces = match (decided.order(view), &filled) {
        (Some(order), Some(filled)) => {
            Some(shortened(in_order(view, order, Some(filled)), filled, transcript, counter)?)
        }
        (order, _) => order.map(|order| in_order(view, order, None)),
    };
    if settings.is_written_back && pieces.as_ref().is_some_and(Vec::is_empty) {
        let nothing =
            "no message is left, because none has content that can be read; `epitome show` lists them";
        return Err(Failure::input(nothing.to_owned()));
    }
    let mut left = None;
    if let Some(profile) = settings.repairs(transcript) {
        let kept = pieces.unwrap_or_else(|| piece::all(transcript));
        let repaired = repair::repair(&kept, transcript, profile, counter)?;
        pieces = repair::account(repaired, &sizes, counter, &mut report)?;
        let now = pieces.clone().unwrap_or_else(|| piece::all(transcript));
        if now.is_empty() {
            return Err(Failure::input(format!(
                "--repair: no message is left, because each one breaks a rule of {}; `epitome validate` lists them",
                profile.as_str()
            )));
        }
        let violations = repair::violations(&now, transcript, profile)?;
        report.set_violations_left(violations);
        left = Some((profile, violations));
    }
    if let Some(prices) = &settings.prices {
        report.set_pays(prices, settings.strategies.summarize());
    }
    Ok(Compacted { report, pieces, repaired: left })
}

/// The sizes and the budget of a conversation. With `--lazy`, only sizes that verdicts depend on are counted.
fn scan(
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &dyn TokenCounter,
) -> Result<(Scan, Asked)> {
    if settings.lazy {
        // Only `--keep` needs the total size, and it conflicts with `--lazy`.
        let asked = Asked::new(&settings.budget, 0)?;
        let counters = (counter, &*settings.estimator as &dyn TokenCounter);
        if let Some(scan) = scan::lazily(transcript, counters, &asked, &settings.strategies, settings.pins)? {
            return Ok((scan, asked));
        }
    }
    scan::whole(transcript, counter, settings.pins, |own| Asked::new(&settings.budget, own))
}

/// Refuses a plan with summaries that the form of the input cannot hold, before a model is called.
fn rehearse(
    plan: Plan<'_>,
    view: Index<'_>,
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<()> {
    let stubs: Vec<_> = plan.summaries().map(|_| (STUB.to_owned(), Tokens(1))).collect();
    if stubs.is_empty() {
        return Ok(());
    }
    let filled = filled(plan, transcript, &stubs, counter)?;
    let order = plan.projection().flatten().collect();
    let mut pieces = shortened(in_order(view, order, Some(&filled)), &filled, transcript, counter)?;
    if let Some(profile) = settings.repairs(transcript) {
        pieces = repair::repair(&pieces, transcript, profile, counter)?.0;
    }
    let pieces = pieces.iter().map(OwnedPiece::as_piece).collect::<Result<Vec<_>>>()?;
    transcript.rehearse(&pieces).map_err(|error| Failure::unwritable(&error))
}

/// Placeholder for a summary that is not written yet.
const STUB: &str = ".";

/// The plan with notes in place of the parts that it shortens, and with its summaries.
fn filled(
    plan: Plan<'_>,
    transcript: &mut Transcript<'_>,
    written: &[(String, Tokens)],
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<Filled> {
    let stand_ins: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
    let text = |position: u32, ordinal| {
        let text = transcript.with_message(position as usize, |message| part_text(message, ordinal));
        text.ok().flatten()
    };
    fill_with(plan, &Notes::default(), &stand_ins, counter, text, |ready| Filled::new(&ready))
        .map_err(|error| Failure::input(format!("--strategy: {error}")))?
}

/// Prints the report: on standard error if the transcript goes to standard output.
fn say(args: &CompactArgs, text: Printable) -> Result<()> {
    if args.output.as_deref() == Some(Path::new("-")) && !args.dry_run {
        output::tell(text);
        return Ok(());
    }
    output::say(text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No known conversation has violations after a repair. If there is one, the exit code must report it.
    #[test]
    fn the_exit_code_tells_what_repairs_have_left() {
        for (left, expected) in [
            (vec![Some(0), Some(0)], ExitCode::SUCCESS),
            (vec![Some(0), Some(2)], ExitCode::from(code::VIOLATIONS)),
            (vec![Some(2), None], ExitCode::from(code::INFEASIBLE)),
        ] {
            assert_eq!(exit_code(left.into_iter()), expected);
        }
    }
}
