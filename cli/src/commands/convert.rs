//! `epitome convert`: a transcript in the format of another provider.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use epitome::std::message::Message;
use epitome::std::wire::{Converted, Loss, LossKind, convert};
use serde::Serialize;

use crate::amount::counted;
use crate::args::ConvertArgs;
use crate::failure::{Failure, Result, code};
use crate::output;
use crate::redact::{Found, Redactor};
use crate::transcript::{Input, Transcript};

/// What was lost of all conversations.
#[derive(Debug, Serialize)]
struct Report<'a> {
    to: &'static str,
    conversations: usize,
    by_kind: BTreeMap<&'static str, usize>,
    losses: Vec<Line<'a>>,
    /// What was taken out, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'a Found>,
}

/// One loss.
#[derive(Debug, Serialize)]
struct Line<'a> {
    conversation: usize,
    message: usize,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    what: &'a str,
    reason: &'static str,
}

pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode> {
    let mut redactor = Redactor::new(&args.redact)?;
    let input = Input::open(&args.input)?;
    let mut transcripts = match args.input.each {
        true => input.each(&args.input)?,
        false => vec![input.conversation(&args.input)?],
    };
    let mut converted = Vec::with_capacity(transcripts.len());
    for transcript in &mut transcripts {
        let messages = messages(transcript, &input)?;
        let mut done = convert(&messages, args.to).map_err(|error| Failure::input(error.to_string()))?;
        if let Some(redactor) = &mut redactor {
            done.text = redactor.json(&done.text);
        }
        converted.push(done);
    }
    // One conversation is one JSON object; several are JSONL.
    output::write(&args.output, |out| converted.iter().try_for_each(|done| writeln!(out, "{}", done.text)))?;
    tell(args, &converted, redactor.as_ref().map(Redactor::found))?;
    Ok(ExitCode::SUCCESS)
}

fn messages(transcript: &mut Transcript<'_>, input: &Input) -> Result<Vec<Message>> {
    let mut messages = Vec::with_capacity(transcript.len());
    transcript.for_each(|view| {
        messages.push(view.to_message().map_err(|error| Failure::wire(input.path(), &error))?);
        Ok(())
    })?;
    Ok(messages)
}

/// Lists the losses on standard error, where they are in nobody's way.
fn tell(args: &ConvertArgs, converted: &[Converted], secrets: Option<&Found>) -> Result<()> {
    let text = if args.json { json(args, converted, secrets)? } else { lines(converted) };
    // Nobody who does not read it misses it.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    if let Some(found) = secrets.filter(|_| !args.json) {
        found.tell();
    }
    Ok(())
}

fn json(args: &ConvertArgs, converted: &[Converted], secrets: Option<&Found>) -> Result<String> {
    let losses = each(converted).map(|(conversation, loss)| Line {
        conversation,
        message: loss.message,
        kind: loss.kind.as_str(),
        what: &loss.what,
        reason: loss.kind.reason(),
    });
    let by_kind = by_kind(converted).into_iter().map(|(kind, count)| (kind.as_str(), count)).collect();
    let (to, losses) = (args.to.as_str(), losses.collect());
    let report = Report { to, conversations: converted.len(), by_kind, losses, secrets };
    let text = serde_json::to_string_pretty(&report);
    text.map(|text| text + "\n").map_err(|error| Failure::new(code::IO, error.to_string()))
}

/// A line for each loss of a single conversation; of several, a line for each kind.
fn lines(converted: &[Converted]) -> String {
    let kinds = by_kind(converted);
    let total: usize = kinds.values().sum();
    let mut text = match converted.len() {
        1 => each(converted).map(|(_, loss)| format!("{loss}\n")).collect(),
        _ => String::new(),
    };
    for (kind, count) in kinds {
        text += &format!("{count:>6} {}: {}\n", kind.as_str(), kind.reason());
    }
    match total {
        0 => "nothing was lost\n".to_owned(),
        total => {
            text + &format!(
                "{} lost in {}\n",
                counted(total as u64, "thing"),
                counted(converted.len() as u64, "conversation")
            )
        }
    }
}

fn each(converted: &[Converted]) -> impl Iterator<Item = (usize, &Loss)> {
    converted.iter().enumerate().flat_map(|(at, done)| done.losses.iter().map(move |loss| (at, loss)))
}

fn by_kind(converted: &[Converted]) -> BTreeMap<LossKind, usize> {
    let mut kinds = BTreeMap::new();
    for (_, loss) in each(converted) {
        *kinds.entry(loss.kind).or_default() += 1;
    }
    kinds
}
