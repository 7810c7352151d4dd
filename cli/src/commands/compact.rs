//! `epitome compact`: report what would stay of a transcript, or write it.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{
    ABORTED, Cell, Outcome, Pending, Plan, PlanError, Profile, Repair, Repairer, TokenCounter, count_message,
    plan,
};
use epitome::std::message::Message;
use epitome::std::wire::document::Piece;
use epitome::std::wire::openai_chat::{self, ChatView};
use serde::Serialize;

use crate::amount::grouped;
use crate::args::CompactArgs;
use crate::budget::Asked;
use crate::commands::validate::profile;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::report::{Figures, Picture, RepairCounts, Report, counts, details, share};
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
    let done = compact(&mut transcript, &settings, &*counter)?;
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
            Ok(done) => results.push(Ok(done)),
            Err(failure) if failure.code() == code::INFEASIBLE => results.push(Err(failure)),
            Err(failure) => return Err(failure.during(format_args!("conversation {at}"))),
        }
    }
    let done: Vec<_> = results.iter().map(|result| result.as_ref().ok()).collect();
    write(settings, input, &mut transcripts, &done)?;
    let rows: Vec<_> =
        results.iter().zip(&transcripts).map(|(result, at)| Row::new(result, at.pointer())).collect();
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
    let index = scan::index(transcript, counter)?;
    let view = index.view();
    let own = view.tokens().saturating_add(view.orphan_tokens());
    let asked = Asked::new(&settings.args.plan.budget, own)?;
    let mut cells = vec![Cell::default(); view.span_count()];
    let floors = epitome::core::floors(view, settings.strategies.with(|strategy| strategy.protection()));
    let outcome = match asked.is_due(view.tokens()) {
        false => None,
        true => {
            let (budget, pass) = (asked.budget, asked.pass());
            let planned =
                settings.strategies.with(|strategy| plan(view, &budget, pass, strategy, &mut cells));
            Some(planned.map_err(|error| infeasible(error, transcript.pointer()))?)
        }
    };
    let (decided, reason) = match &outcome {
        None => (None, Some("not_due")),
        Some(Outcome::Unchanged(why)) => (None, Some(why.as_str())),
        Some(Outcome::Planned(plan)) => (Some(plan), None),
    };
    let details = details(view, decided);
    let tokens_after = decided.map_or(own, Plan::tokens_after);
    let mut report = Report {
        path: transcript.pointer().to_owned(),
        messages_before: transcript.len() as u64,
        messages_after: transcript.len() as u64,
        tokens_before: own,
        tokens_after,
        token_basis: counter.basis(),
        tokenizer: counter.name().to_owned(),
        groups: counts(&details),
        stable_prefix_messages: transcript.len() as u64,
        stable_prefix_tokens: decided.map_or(own, |plan| plan.stable_prefix().tokens),
        budget: Figures::new(&asked, floors),
        goal_missed: reason != Some("not_due") && asked.budget.goal().is_some_and(|goal| tokens_after > goal),
        strategies: settings.strategies.names().to_vec(),
        unchanged_reason: reason,
        repair: None,
        verdicts: details.iter().map(|group| group.verdict).collect(),
        groups_detail: details,
        turns: view.turn().0,
        defaults: asked.defaults,
    };
    let order = decided.map(|plan| plan.projection().flatten().collect::<Vec<_>>());
    let pieces = pieces(order, transcript, settings, counter, &mut report)?;
    if let Some(pieces) = &pieces {
        report.messages_after = pieces.len() as u64;
        let same =
            |(at, piece): &(usize, &OwnedPiece)| matches!(piece, OwnedPiece::Original(from) if from == at);
        report.stable_prefix_messages = pieces.iter().enumerate().take_while(same).count() as u64;
    }
    Ok(Compacted { report, pieces })
}

/// What to write: the messages that stay, made legal if that was asked for. `None` if nothing changes.
fn pieces(
    order: Option<Vec<u32>>,
    transcript: &mut Transcript<'_>,
    settings: &Settings<'_>,
    counter: &dyn TokenCounter,
    report: &mut Report,
) -> Result<Option<Vec<OwnedPiece>>> {
    if !settings.args.repair {
        let keep = |order: Vec<u32>| order.into_iter().map(|at| OwnedPiece::Original(at as usize)).collect();
        return Ok(order.map(keep));
    }
    let all = || (0..u32::try_from(transcript.len()).unwrap_or(u32::MAX)).collect();
    let order = order.unwrap_or_else(all);
    let steps = repair_steps(&order, transcript, settings.profile)?;
    let mut counts = RepairCounts { left_out: order.len() as u64, ..RepairCounts::default() };
    let mut newest = 0;
    let mut pieces = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Repair::Abort { position, call } => {
                let text = aborted(transcript, order.get(position as usize).copied().unwrap_or(0), call)?;
                let message = openai_chat::read(&text).map_err(|error| Failure::input(error.to_string()))?;
                report.tokens_after += count_message(&message, counter).as_u64();
                counts.aborted += 1;
                pieces.push(OwnedPiece::New(text));
            }
            Repair::Keep(at) => {
                counts.left_out -= 1;
                counts.moved += u64::from(at < newest);
                newest = newest.max(at);
                pieces.push(OwnedPiece::Original(order.get(at as usize).copied().unwrap_or(0) as usize));
            }
            other => {
                return Err(Failure::input(format!("the repair {other:?} has no form in Chat Completions")));
            }
        }
    }
    report.repair = Some(counts);
    Ok(Some(pieces))
}

fn repair_steps(order: &[u32], transcript: &mut Transcript<'_>, profile: Profile) -> Result<Vec<Repair>> {
    let mut repairer = Repairer::default();
    for at in order {
        transcript.with_message(*at as usize, |message| repairer.push(message))?;
    }
    // A file is at rest: nothing of it is still running.
    Ok(repairer.finish(profile, Pending::Over))
}

/// The text of an aborted result for a call of the message at `at`.
fn aborted(transcript: &mut Transcript<'_>, at: u32, call: u32) -> Result<String> {
    let id = transcript.with_message(at as usize, |message| call_id(message, call))?;
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
}

/// Says the report: on standard error if the transcript itself goes to standard output.
fn say(args: &CompactArgs, text: &str) -> Result<()> {
    if args.output.as_deref() == Some(Path::new("-")) && !args.dry_run {
        eprintln!("{text}");
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|error| Failure::stdout(&error))
}

fn json(report: &impl Serialize) -> Result<String> {
    serde_json::to_string_pretty(report).map_err(|error| Failure::new(code::IO, error.to_string()))
}

fn infeasible(error: PlanError, place: &str) -> Failure {
    let failure = Failure::from(error);
    if place.is_empty() { failure } else { failure.during(place) }
}

/// One conversation of many: its report, or why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Row<'a> {
    Done(&'a Report),
    Infeasible { path: &'a str, exit_code: u8, error: &'a str },
}

impl<'a> Row<'a> {
    fn new(result: &'a Result<Compacted>, path: &'a str) -> Self {
        match result {
            Ok(done) => Self::Done(&done.report),
            Err(failure) => Self::Infeasible { path, exit_code: failure.code(), error: failure.message() },
        }
    }
}

/// Many conversations as people read them: a line each, and the sum.
fn table(rows: &[Row<'_>]) -> String {
    let mut text =
        format!("{:<24}{:>10}{:>12}{:>12}{:>8}  result\n", "conversation", "messages", "was", "is", "share");
    let (mut before, mut after, mut changed, mut infeasible) = (0, 0, 0_usize, 0_usize);
    for (at, row) in rows.iter().enumerate() {
        match row {
            Row::Done(report) => {
                before += report.tokens_before;
                after += report.tokens_after;
                changed += usize::from(report.unchanged_reason.is_none());
                let result = match (report.unchanged_reason, report.goal_missed) {
                    (Some(reason), _) => reason.to_owned(),
                    (None, true) => format!(
                        "{} of {} groups dropped, goal missed",
                        report.groups.dropped, report.groups.total
                    ),
                    (None, false) => {
                        format!("{} of {} groups dropped", report.groups.dropped, report.groups.total)
                    }
                };
                let name = name(&report.path, at);
                text += &format!(
                    "{name:<24}{:>10}{:>12}{:>12}{:>8}  {result}\n",
                    grouped(report.messages_before),
                    grouped(report.tokens_before),
                    grouped(report.tokens_after),
                    share(report.tokens_after, report.tokens_before)
                );
            }
            Row::Infeasible { path, error, .. } => {
                infeasible += 1;
                text += &format!("{:<24}  infeasible: {error}\n", name(path, at));
            }
        }
    }
    text + &format!(
        "\n{} conversations, {changed} compacted, {infeasible} infeasible; {} tokens are now {}, {} of what they were",
        rows.len(),
        grouped(before),
        grouped(after),
        share(after, before)
    )
}

fn name(path: &str, at: usize) -> String {
    if path.is_empty() { format!("#{at}") } else { path.to_owned() }
}
