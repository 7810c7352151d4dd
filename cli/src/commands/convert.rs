//! `epitome convert`: writes a transcript in the format of another provider.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use epitome::message::Message;
use epitome::wire::{ConversionLoss, ConversionLossKind, Converted, Format, convert};
use serde::Serialize;

use crate::amount::counted;
use crate::args::{ConvertArgs, PartArgs, RedactArgs};
use crate::failure::{ExitCode, Failure, Result};
use crate::output::{self, Draft, Output};
use crate::redact::{Found, Redactor};
use crate::transcript::{Input, Transcript};
use crate::written::{Exactness, Expected, Said};

/// The losses of all conversations.
#[derive(Debug, Serialize)]
struct Report<'a> {
    to: &'static str,
    conversations: usize,
    /// Number of conversations that are not written: they have no messages, or nothing of them is left.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    by_kind: BTreeMap<&'static str, usize>,
    losses: Vec<Line<'a>>,
    /// The secrets that were redacted, if redaction is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'a Found>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// One loss.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// The number of the conversation in the input, from 0.
    conversation: usize,
    message: usize,
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    what: &'a str,
    reason: &'static str,
}

/// Conversations in another format, to be written to a file. Conversations without messages are left out, because
/// exports contain them. Conversations of which the format can hold nothing are left out too.
pub(crate) struct Conversions {
    to: Format,
    redactor: Option<Redactor>,
    /// Number of conversations of the input.
    conversations: usize,
    /// The conversations, each with its number in the input.
    converted: Vec<(usize, Converted)>,
    /// The first loss of the first conversation of which nothing is left.
    lost: Option<ConversionLoss>,
    said: Vec<Said>,
}

pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode> {
    let output = Output { path: &args.output, force: args.force };
    output.check()?;
    let mut conversions = Conversions::new(args.to, &args.redact)?;
    let input = Input::open(&args.input)?;
    input.check_replaced(output.path)?;
    let mut transcripts = input.transcripts(&args.input)?;
    for transcript in &mut transcripts {
        conversions.add(&messages(transcript, &input)?)?;
        if !args.json && !args.input.part.each {
            transcript.mention_others();
        }
    }
    let draft = Draft::new(output)?;
    conversions.publish(if args.json { draft.silent() } else { draft }, output.path)?;
    conversions.tell(args.json);
    Ok(ExitCode::SUCCESS)
}

impl Conversions {
    pub(crate) fn new(to: Format, redact: &RedactArgs) -> Result<Self> {
        let redactor = Redactor::new(redact)?;
        Ok(Self { to, redactor, conversations: 0, converted: Vec::new(), lost: None, said: Vec::new() })
    }

    /// Converts the next conversation of the input.
    pub(crate) fn add(&mut self, messages: &[Message]) -> Result<()> {
        let number = self.conversations;
        self.conversations += 1;
        if messages.is_empty() {
            return Ok(());
        }
        let mut done = convert(messages, self.to).map_err(|error| Failure::input(error.to_string()))?;
        let is_whole = |loss: &&ConversionLoss| {
            matches!(loss.kind, ConversionLossKind::Message | ConversionLossKind::BlankText)
        };
        let lost: BTreeSet<usize> = done.losses.iter().filter(is_whole).map(|loss| loss.message).collect();
        if lost.len() == messages.len() {
            self.lost = self.lost.take().or_else(|| done.losses.into_iter().next());
            return Ok(());
        }
        if let Some(redactor) = &mut self.redactor {
            done.text = redactor.json(&done.text);
            for loss in &mut done.losses {
                if let Some(what) = redactor.value(None, &loss.what) {
                    loss.what = what;
                }
            }
        }
        let mut said = Said::default();
        for message in messages {
            said.push(message, Exactness::Converted);
        }
        self.converted.push((number, done));
        self.said.push(said);
        Ok(())
    }

    /// Writes the conversations. One conversation is one JSON object; several are JSONL.
    pub(crate) fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        self.converted.iter().try_for_each(|(_, done)| writeln!(out, "{}", done.text))
    }

    /// The expected contents of the written conversations. If something was lost or redacted, they need only be
    /// readable.
    ///
    /// # Errors
    ///
    /// No conversation is left to write: none has messages, or nothing of them is left in the format.
    pub(crate) fn expected(&mut self) -> Result<Expected> {
        if self.converted.is_empty() {
            let why = match &self.lost {
                Some(loss) => format!("nothing is left of it in {}: {loss}", self.to),
                None => "no conversation has messages".to_owned(),
            };
            return Err(Failure::input(format!("nothing to write: {why}")));
        }
        let is_whole =
            self.redactor.is_none() && self.converted.iter().all(|(_, done)| done.losses.is_empty());
        let exactness = if is_whole { Exactness::Converted } else { Exactness::Readable };
        let conversations = core::mem::take(&mut self.said);
        let each = conversations.len() != 1;
        let reader = PartArgs::of_format(self.to, each).of(Path::new(""));
        Ok(Expected { conversations, exactness, reader, rules: None })
    }

    /// Writes the conversations to `draft`, reads it again, and publishes it as `path`.
    pub(crate) fn publish(&mut self, draft: Draft, path: &Path) -> Result<()> {
        let expected = self.expected()?;
        let draft = draft.filled(|out| self.write(out))?;
        expected.check(&draft, path)?;
        draft.publish()
    }

    /// Lists the losses on standard error, apart from the output.
    pub(crate) fn tell(&self, as_json: bool) {
        let secrets = self.redactor.as_ref().map(Redactor::found);
        let empty = self.conversations.saturating_sub(self.converted.len());
        if empty > 0 && !as_json {
            let empty = counted(empty as u64, "conversation");
            output::tell(format!("epitome: {empty} without messages left out"));
        }
        let text = if as_json { self.json(empty, secrets) } else { lines(&self.converted) };
        output::tell(text);
        if let Some(found) = secrets.filter(|_| !as_json) {
            found.tell();
        }
    }

    fn json(&self, left_out: usize, secrets: Option<&Found>) -> String {
        let losses = each(&self.converted).map(|(conversation, loss)| Line {
            conversation,
            message: loss.message,
            kind: loss.kind.as_str(),
            what: &loss.what,
            reason: loss.kind.reason(),
        });
        let kinds = by_kind(&self.converted);
        let by_kind = kinds.into_iter().map(|(kind, count)| (kind.as_str(), count)).collect();
        let (to, losses) = (self.to.as_str(), losses.collect());
        let conversations = self.converted.len();
        let report = Report { to, conversations, left_out, by_kind, losses, secrets };
        // Strings and numbers under fixed names are always valid JSON.
        serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"
    }
}

pub(super) fn messages(transcript: &mut Transcript<'_>, input: &Input) -> Result<Vec<Message>> {
    let mut messages = Vec::with_capacity(transcript.len());
    transcript.for_each(|view| {
        messages.push(view.to_message().map_err(|error| Failure::wire(input.path(), &error))?);
        Ok(())
    })?;
    Ok(messages)
}

/// A line for each kind of loss; before these, a line for each loss if there is only one conversation.
fn lines(converted: &[(usize, Converted)]) -> String {
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
        0 => "no message has lost anything; fields beside the messages (model, tools) are not converted\n"
            .to_owned(),
        total => {
            text + &format!(
                "{} lost in {}\n",
                counted(total as u64, "thing"),
                counted(converted.len() as u64, "conversation")
            )
        }
    }
}

fn each(converted: &[(usize, Converted)]) -> impl Iterator<Item = (usize, &ConversionLoss)> {
    converted.iter().flat_map(|(number, done)| done.losses.iter().map(move |loss| (*number, loss)))
}

fn by_kind(converted: &[(usize, Converted)]) -> BTreeMap<ConversionLossKind, usize> {
    let mut kinds = BTreeMap::new();
    for (_, loss) in each(converted) {
        *kinds.entry(loss.kind).or_default() += 1;
    }
    kinds
}
