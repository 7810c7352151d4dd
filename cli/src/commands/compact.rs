//! `epitome compact`: report what would stay of a transcript, or write it.

mod repair;
mod summaries;
mod why;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use epitome::compactors::PromptedSummarizer;
use epitome::core::{
    Cell, Index, Plan, Profile, Replacement, Scratch, StandIn, TokenCounter, count_message, plan_with,
};
use epitome::std::history::{Notes, PartStandIn, fill_with, part_text};
use epitome::std::wire::document::Piece;
use epitome::std::wire::{WireError, openai_chat};
use serde::Serialize;

use crate::args::{BudgetArgs, CompactArgs};
use crate::budget::Asked;
use crate::commands::validate::profile;
use crate::failure::{Failure, Result, code};
use crate::filled::Filled;
use crate::model;
use crate::output;
use crate::pins::Pin;
use crate::redact::Redactor;
use crate::report::{Decided, Facts, Picture, Report, Row, sum, table};
use crate::scan::{self, Counter, ESTIMATE, Scan};
use crate::strategy::Strategies;
use crate::summarizer;
use crate::transcript::{Input, Transcript, View};

/// How to compact.
pub(super) struct Settings<'a> {
    pub(super) budget: BudgetArgs,
    pub(super) strategies: Strategies,
    /// What stays whatever is asked for.
    pub(super) pins: &'a [Pin],
    /// Whether only what the verdicts depend on is counted.
    pub(super) lazy: bool,
    /// Whether the report says of each group why it became what it became.
    pub(super) why: bool,
    /// Under whose rules the result is made legal, if it is.
    pub(super) repair: Option<Profile>,
    /// For what is not counted.
    pub(super) estimator: Counter,
    /// Who writes summaries, if somebody does.
    pub(super) summarizer: Option<PromptedSummarizer>,
}

/// What came of one conversation.
pub(super) struct Compacted {
    pub(super) report: Report,
    /// What to write; `None` if it stays as it is.
    pieces: Option<Vec<OwnedPiece>>,
}

#[derive(Clone)]
enum OwnedPiece {
    Original(usize),
    /// The message with this index, with shortened parts: its text, where messages are texts of their own.
    Shortened {
        at: usize,
        text: Option<String>,
        tokens: u64,
    },
    New(String),
}

pub(crate) fn run(args: &CompactArgs) -> Result<ExitCode> {
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
    let found = model::find(&args.plan.model)?;
    let profile = profile(&args.profile)?;
    let settings = Settings {
        budget: model::budget(found.as_ref(), &args.plan.budget),
        strategies: Strategies::parse(&args.plan.strategy)?,
        pins: &args.pin,
        lazy: args.lazy,
        why: args.why,
        repair: args.repair.then_some(profile),
        estimator: model::counter(found.as_ref(), Some(ESTIMATE), ESTIMATE)?,
        summarizer: summarizer::open(&args.summary, args.plan.model.model.as_deref())?,
    };
    summarizer::check(&settings.strategies, settings.summarizer.as_ref())?;
    let counter = model::counter(found.as_ref(), args.plan.tokenizer.as_deref(), ESTIMATE)?;
    let input = Input::open(&args.input)?;
    if args.input.each {
        return run_each(args, &settings, &*counter, &input);
    }
    let mut transcript = input.conversation(&args.input)?;
    let done = compact(&mut transcript, &settings, &*counter).map_err(|failure| match failure.code() {
        code::INFEASIBLE => failure.during(input.place(transcript.pointer())),
        _ => failure,
    })?;
    write(args, &input, &mut [transcript], &[Some(&done)])?;
    let text = match args.json {
        true => json(&done.report)?,
        false => done.report.to_text(&Picture::for_stdout()),
    };
    say(args, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// Compacts every conversation. One that is infeasible stays as it is, and the others are done all the same.
fn run_each(
    args: &CompactArgs,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
    input: &Input,
) -> Result<ExitCode> {
    let mut transcripts = input.each(&args.input)?;
    let mut results = Vec::with_capacity(transcripts.len());
    for (at, transcript) in transcripts.iter_mut().enumerate() {
        match compact(transcript, settings, counter) {
            Ok(mut done) => {
                done.report.conversation = Some(at);
                results.push(Ok(done));
            }
            Err(failure) if failure.code() == code::INFEASIBLE => results.push(Err(failure)),
            Err(failure) => return Err(failure),
        }
    }
    let done: Vec<_> = results.iter().map(|result| result.as_ref().ok()).collect();
    write(args, input, &mut transcripts, &done)?;
    let rows = results.iter().zip(&transcripts).enumerate();
    let rows = rows.map(|(at, (result, transcript))| {
        Row::new(result.as_ref().map(|done| &done.report), at, transcript.pointer())
    });
    let rows: Vec<_> = rows.collect();
    let text = if args.json { json(&rows)? } else { table(&rows) };
    say(args, &text)?;
    let infeasible = results.iter().any(core::result::Result::is_err);
    Ok(if infeasible { ExitCode::from(code::INFEASIBLE) } else { ExitCode::SUCCESS })
}

/// Decides what stays of one conversation.
pub(super) fn compact(
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<Compacted> {
    let (Scan { index, sizes, basis, uncounted, is_due }, asked) = scan(transcript, settings, counter)?;
    let (view, own) = (index.view(), sum(&sizes));
    let strategies = settings.strategies.about(|things| {
        let messages = u32::try_from(transcript.len()).unwrap_or(u32::MAX);
        (0..messages).try_for_each(|at| {
            transcript.with_message(at as usize, |message| things.look_through(at, message))
        })
    })?;
    let mut cells = vec![Cell::default(); view.cell_count()];
    let mut room = vec![Replacement::default(); (view.group_count() as usize).div_ceil(2)];
    let outcome = match is_due {
        false => None,
        true => {
            let (budget, pass) = (asked.budget, asked.pass());
            let planned = {
                let scratch = Scratch::new(&mut cells).with_replacements(&mut room);
                strategies.with(|strategy| plan_with(view, &budget, pass, strategy, scratch))
            };
            Some(planned.map_err(|error| Failure::plan(&error, &budget))?)
        }
    };
    let decided = Decided::new(outcome.as_ref(), view, own, &asked);
    let filled = match decided {
        Decided::Planned(plan) => Some(filled(*plan, transcript, settings, counter)?),
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
    let order = decided.order(view).map(|order| in_order(view, order, filled.as_ref()));
    let mut pieces = match (order, &filled) {
        (Some(pieces), Some(filled)) => Some(shortened(pieces, filled, transcript, counter)?),
        (pieces, _) => pieces,
    };
    if let Some(profile) = settings.repair {
        let all = || originals(0..u32::try_from(transcript.len()).unwrap_or(u32::MAX));
        let repaired = repair::repair(&pieces.unwrap_or_else(all), transcript, profile, counter)?;
        pieces = repair::account(repaired, &sizes, counter, &mut report)?;
    }
    Ok(Compacted { report, pieces })
}

/// All sizes of a conversation, or with `--lazy` those that matter; and what is asked of it.
fn scan(
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &dyn TokenCounter,
) -> Result<(Scan, Asked)> {
    if settings.lazy {
        // Only --keep asks for a share of the sizes, and it does not go with --lazy.
        let asked = Asked::new(&settings.budget, 0)?;
        let counters = (counter, &*settings.estimator as &dyn TokenCounter);
        if let Some(scan) = scan::lazily(transcript, counters, &asked, &settings.strategies, settings.pins)? {
            return Ok((scan, asked));
        }
    }
    scan::whole(transcript, counter, settings.pins, |own| Asked::new(&settings.budget, own))
}

fn originals(order: impl IntoIterator<Item = u32>) -> Vec<OwnedPiece> {
    order.into_iter().map(|at| OwnedPiece::Original(at as usize)).collect()
}

/// The messages that stay, each summary in its place.
fn in_order(view: Index<'_>, order: Vec<u32>, filled: Option<&Filled>) -> Vec<OwnedPiece> {
    let Some(filled) = filled.filter(|filled| !filled.summaries.is_empty()) else { return originals(order) };
    let stays: BTreeSet<u32> = order.into_iter().collect();
    let pieces = view.projection().flatten().filter_map(|at| match filled.summaries.get(&at) {
        Some(summary) => Some(OwnedPiece::New(summary.message.clone())),
        None => stays.contains(&at).then_some(OwnedPiece::Original(at as usize)),
    });
    pieces.collect()
}

/// The plan with notes in place of what it shortens, and with its summaries.
fn filled(
    plan: Plan<'_>,
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<Filled> {
    let written = summaries::write(&plan, transcript, settings.summarizer.as_ref(), counter)?;
    let stand_ins: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
    let text = |position: u32, ordinal| {
        let text = transcript.with_message(position as usize, |message| part_text(message, ordinal));
        text.ok().flatten()
    };
    fill_with(plan, &Notes::default(), &stand_ins, counter, text, |ready| Filled::new(&ready))
        .map_err(|error| Failure::input(format!("--strategy: {error}")))?
}

/// The same pieces, with the messages in them that the plan shortens written anew.
fn shortened(
    pieces: Vec<OwnedPiece>,
    filled: &Filled,
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
) -> Result<Vec<OwnedPiece>> {
    transcript.shorten(&filled.edits);
    let write = |piece: OwnedPiece| {
        let OwnedPiece::Original(at) = piece else { return Ok(piece) };
        let stand_ins = u32::try_from(at).ok().and_then(|at| filled.edits.get(&at));
        let Some(stand_ins) = stand_ins else { return Ok(piece) };
        let written = transcript.with_message(at, |view| {
            let message = PartStandIn::apply(stand_ins, &view.to_message()?);
            let text = match view {
                View::Chat(_) => Some(openai_chat::write(&message)?.into_owned()),
                View::Owned(_) => None,
            };
            Ok((text, count_message(&message, counter).as_u64()))
        })?;
        let (text, tokens) = written.map_err(|error: WireError| Failure::input(error.to_string()))?;
        Ok(OwnedPiece::Shortened { at, text, tokens })
    };
    pieces.into_iter().map(write).collect()
}

/// Writes the file with what came of its conversations, if that was asked for.
fn write(
    args: &CompactArgs,
    input: &Input,
    transcripts: &mut [Transcript<'_>],
    done: &[Option<&Compacted>],
) -> Result<()> {
    let Some(path) = args.output.as_deref().filter(|_| !args.dry_run) else {
        return Ok(());
    };
    let mut redactor = Redactor::new(&args.redact)?;
    let mut splice = |out: &mut dyn Write| {
        input.splice(transcripts, out, |at, transcript, out| {
            match done.get(at).copied().flatten().and_then(|done| done.pieces.as_deref()) {
                Some(pieces) => {
                    let pieces: Vec<_> = pieces.iter().map(OwnedPiece::as_piece).collect();
                    transcript.write(&pieces, out)
                }
                None => transcript.copy(out),
            }
        })
    };
    let Some(redactor) = &mut redactor else { return output::write(path, |out| splice(out)) };
    output::write(path, |out| {
        let mut out = redactor.writer(out);
        splice(&mut out)?;
        out.finish()
    })?;
    redactor.found().tell();
    Ok(())
}

impl OwnedPiece {
    fn as_piece(&self) -> Piece<'_> {
        match self {
            Self::Original(at) | Self::Shortened { at, text: None, .. } => Piece::Original(*at),
            Self::New(text) | Self::Shortened { text: Some(text), .. } => Piece::New(text),
        }
    }

    const fn original(&self) -> Option<usize> {
        match self {
            Self::Original(at) | Self::Shortened { at, .. } => Some(*at),
            Self::New(_) => None,
        }
    }
}

/// Says the report: on standard error if the transcript itself goes to standard output.
fn say(args: &CompactArgs, text: &str) -> Result<()> {
    if args.output.as_deref() == Some(Path::new("-")) && !args.dry_run {
        // Nobody may be listening there; the transcript is written all the same.
        let _ = writeln!(io::stderr().lock(), "{text}");
        return Ok(());
    }
    output::say(text).map(|_| ())
}

fn json(report: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(report).map_err(|error| Failure::new(code::IO, error.to_string()))
}
