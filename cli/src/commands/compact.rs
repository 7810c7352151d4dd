//! `epitome compact`: report what would stay of a transcript, or write it.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{
    ABORTED, Cell, Pending, Profile, Repair, Repairer, TokenCounter, Tokens, count_message, plan,
};
use epitome::std::message::Message;
use epitome::std::wire::document::Piece;
use epitome::std::wire::openai_chat::{self, ChatView};
use serde::Serialize;

use crate::args::CompactArgs;
use crate::budget::Asked;
use crate::commands::validate::profile;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::report::{Decided, Facts, Picture, RepairCounts, Report, Row, sum, table};
use crate::scan;
use crate::strategy::Strategies;
use crate::transcript::{Input, Transcript};

/// How to compact.
#[derive(Debug)]
struct Settings<'a> {
    args: &'a CompactArgs,
    strategies: Strategies,
    profile: Profile,
}

/// What came of one conversation.
struct Compacted {
    report: Report,
    /// What to write; `None` if it stays as it is.
    pieces: Option<Vec<OwnedPiece>>,
}

enum OwnedPiece {
    Original(usize),
    New(String),
}

pub(crate) fn run(args: &CompactArgs) -> Result<ExitCode> {
    let settings = Settings {
        args,
        strategies: Strategies::parse(&args.plan.strategy)?,
        profile: writable(profile(&args.profile)?, args.repair)?,
    };
    let counter = scan::counter(&args.plan.tokenizer)?;
    let input = Input::open(&args.input)?;
    if args.input.each {
        return run_each(&settings, &*counter, &input);
    }
    let mut transcript = input.conversation(&args.input)?;
    let done = compact(&mut transcript, &settings, &*counter).map_err(|failure| match failure.code() {
        code::INFEASIBLE => failure.during(input.place(transcript.pointer())),
        _ => failure,
    })?;
    write(&settings, &input, &mut [transcript], &[Some(&done)])?;
    let text = match args.json {
        true => json(&done.report)?,
        false => done.report.to_text(&Picture::for_stdout()),
    };
    say(args, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// The profile, if what `--repair` makes for it can be written: the output is Chat Completions.
fn writable(profile: Profile, repair: bool) -> Result<Profile> {
    if !repair || matches!(profile, Profile::OpenaiChat | Profile::Permissive) {
        return Ok(profile);
    }
    Err(Failure::input(format!(
        "--repair writes Chat Completions, so --profile takes openai-chat or permissive, not {}; \
         `epitome validate` takes every profile",
        profile.as_str()
    )))
}

/// Compacts every conversation. One that is infeasible stays as it is, and the others are done all the same.
fn run_each(settings: &Settings<'_>, counter: &dyn TokenCounter, input: &Input) -> Result<ExitCode> {
    let mut transcripts = input.each(&settings.args.input)?;
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
    write(settings, input, &mut transcripts, &done)?;
    let rows = results.iter().zip(&transcripts).enumerate();
    let rows = rows.map(|(at, (result, transcript))| {
        Row::new(result.as_ref().map(|done| &done.report), at, transcript.pointer())
    });
    let rows: Vec<_> = rows.collect();
    let text = if settings.args.json { json(&rows)? } else { table(&rows) };
    say(settings.args, &text)?;
    let infeasible = results.iter().any(core::result::Result::is_err);
    Ok(if infeasible { ExitCode::from(code::INFEASIBLE) } else { ExitCode::SUCCESS })
}

/// Decides what stays of one conversation.
fn compact(
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &dyn TokenCounter,
) -> Result<Compacted> {
    let (index, sizes) = scan::index(transcript, counter)?;
    let view = index.view();
    // What answers no call is part of the request until it is left out.
    let own = sum(&sizes);
    let asked = Asked::new(&settings.args.plan.budget, own)?;
    let mut cells = vec![Cell::default(); view.span_count()];
    let outcome = match asked.is_due(own) {
        false => None,
        true => {
            let (budget, pass) = (asked.budget, asked.pass());
            let planned =
                settings.strategies.with(|strategy| plan(view, &budget, pass, strategy, &mut cells));
            Some(planned.map_err(|error| Failure::plan(&error, &budget))?)
        }
    };
    let decided = Decided::new(outcome.as_ref(), view, own, &asked);
    let mut report = Report::new(Facts {
        index: view,
        decided,
        asked: &asked,
        strategies: &settings.strategies,
        sizes: &sizes,
        basis: counter.basis(),
        tokenizer: counter.name().to_owned(),
    });
    transcript.pointer().clone_into(&mut report.path);
    let mut pieces = decided.order(view).map(originals);
    if settings.args.repair {
        let all = || originals(0..u32::try_from(transcript.len()).unwrap_or(u32::MAX));
        let repaired = repair(&pieces.unwrap_or_else(all), transcript, settings.profile)?;
        pieces = account(repaired, &sizes, counter, &mut report)?;
    }
    Ok(Compacted { report, pieces })
}

fn originals(order: impl IntoIterator<Item = u32>) -> Vec<OwnedPiece> {
    order.into_iter().map(|at| OwnedPiece::Original(at as usize)).collect()
}

/// Brings the report up to date with what a repair did. `None` if the transcript is written as it is.
fn account(
    (pieces, counts): (Vec<OwnedPiece>, RepairCounts),
    sizes: &[Tokens],
    counter: &dyn TokenCounter,
    report: &mut Report,
) -> Result<Option<Vec<OwnedPiece>>> {
    report.repair = Some(counts);
    report.messages_after = pieces.len() as u64;
    report.tokens_after = 0;
    for piece in &pieces {
        report.tokens_after += match piece {
            OwnedPiece::Original(at) => sizes.get(*at).map_or(0, |size| size.as_u64()),
            OwnedPiece::New(text) => {
                let message = openai_chat::read(text).map_err(|error| Failure::input(error.to_string()))?;
                count_message(&message, counter).as_u64()
            }
        };
    }
    let same = |(at, piece): &(usize, &OwnedPiece)| matches!(piece, OwnedPiece::Original(from) if from == at);
    let stable = pieces.iter().enumerate().take_while(same).count();
    report.set_stable_prefix(stable, sizes);
    report.set_goal_missed();
    Ok(Some(pieces).filter(|pieces| stable < pieces.len() || pieces.len() < sizes.len()))
}

/// The messages of `order`, made legal.
fn repair(
    order: &[OwnedPiece],
    transcript: &mut Transcript<'_>,
    profile: Profile,
) -> Result<(Vec<OwnedPiece>, RepairCounts)> {
    let order: Vec<usize> = order.iter().filter_map(OwnedPiece::original).collect();
    let mut counts = RepairCounts { left_out: order.len() as u64, ..RepairCounts::default() };
    let mut newest = 0;
    let mut pieces = Vec::with_capacity(order.len());
    for step in repair_steps(&order, transcript, profile)? {
        match step {
            Repair::Abort { position, call } => {
                let at = order.get(position as usize).copied().unwrap_or(0);
                pieces.push(OwnedPiece::New(aborted(transcript, at, call)?));
                counts.aborted += 1;
            }
            Repair::Keep(at) => {
                counts.left_out -= 1;
                counts.moved += u64::from(at < newest);
                newest = newest.max(at);
                pieces.push(OwnedPiece::Original(order.get(at as usize).copied().unwrap_or(0)));
            }
            other => {
                return Err(Failure::input(format!("the repair {other:?} has no form in Chat Completions")));
            }
        }
    }
    Ok((pieces, counts))
}

fn repair_steps(order: &[usize], transcript: &mut Transcript<'_>, profile: Profile) -> Result<Vec<Repair>> {
    let mut repairer = Repairer::default();
    for at in order {
        transcript.with_message(*at, |message| repairer.push(message))?;
    }
    // A file is at rest: nothing of it is still running.
    Ok(repairer.finish(profile, Pending::Over))
}

/// The text of an aborted result for a call of the message at `at`.
fn aborted(transcript: &mut Transcript<'_>, at: usize, call: u32) -> Result<String> {
    let id = transcript.with_message(at, |message| call_id(message, call))?;
    let message = Message::tool(id, ABORTED);
    let text = openai_chat::write(&message).map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into_owned())
}

fn call_id(message: &ChatView<'_>, wanted: u32) -> String {
    let (mut seen, mut id) = (0, String::new());
    message.for_each_part(&mut |part| {
        if let PartView::ToolCall(call) = part {
            if seen == wanted {
                call.id.clone_into(&mut id);
            }
            seen += 1;
        }
    });
    id
}

/// Writes the file with what came of its conversations, if that was asked for.
fn write(
    settings: &Settings<'_>,
    input: &Input,
    transcripts: &mut [Transcript<'_>],
    done: &[Option<&Compacted>],
) -> Result<()> {
    let Some(path) = settings.args.output.as_deref().filter(|_| !settings.args.dry_run) else {
        return Ok(());
    };
    output::write(path, |out| {
        input.splice(transcripts, out, |at, transcript, out| {
            match done.get(at).copied().flatten().and_then(|done| done.pieces.as_deref()) {
                Some(pieces) => {
                    let pieces: Vec<_> = pieces.iter().map(OwnedPiece::as_piece).collect();
                    transcript.write(&pieces, out)
                }
                None => transcript.copy(out),
            }
        })
    })
}

impl OwnedPiece {
    fn as_piece(&self) -> Piece<'_> {
        match self {
            Self::Original(at) => Piece::Original(*at),
            Self::New(text) => Piece::New(text),
        }
    }

    const fn original(&self) -> Option<usize> {
        match self {
            Self::Original(at) => Some(*at),
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
