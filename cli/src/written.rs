//! Written files, which are read again and compared with the plan before they replace anything.

use core::hash::{Hash, Hasher as _};
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::path::Path;

use epitome::core::message::{MessageView, PartView, Parts, Role, ToolResultView};
use epitome::core::{OpenCallTree, Profile, Validator};
use epitome::wire::gemini::is_assigned_id;
use serde_json::{Map, Value};

use crate::amount::counted;
use crate::args::{From, InputArgs};
use crate::failure::{Failure, Result, code};
use crate::output::Draft;
use crate::transcript::Transcript;

/// Content of a conversation: a digest for each part of its messages. The distribution of parts over messages depends
/// on the format: some formats merge messages that others split.
#[derive(Debug, Default)]
pub(crate) struct Said {
    parts: Vec<SaidPart>,
    messages: u32,
    ids: AssignedIds,
    /// The readable reasoning that ends with the last part, if formats may merge it with the part before.
    reasoning: Option<String>,
}

/// The digest of a part.
#[derive(Debug, Clone, Copy)]
struct SaidPart {
    message: u32,
    digest: u64,
    /// The digest if a picture of a single pixel is in the place of a result: the results of some tools have no place
    /// for a note. Another part has its digest.
    cleared: u64,
}

/// The ids that a reader gave to calls without one in the text, numbered in the order of the calls. A message left out
/// before a call changes the id of the call, but not its number among the calls that stay.
#[derive(Debug, Default)]
struct AssignedIds(HashMap<String, usize>);

impl AssignedIds {
    /// Hashes the part of an id that is compared.
    fn hash(&mut self, id: &str, exactness: Exactness, digest: &mut DefaultHasher) {
        match exactness == Exactness::Converted || is_assigned_id(id) {
            true => {
                let next = self.0.len();
                self.0.entry(id.to_owned()).or_insert(next).hash(digest);
            }
            false => id.hash(digest),
        }
    }
}

/// Exactness of the comparison with the written conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exactness {
    /// All contents.
    Whole,
    /// All contents, in the form of another format. That has its own ids, one form for empty arguments, and its own
    /// parts for reasoning and for the texts of a result.
    Converted,
    /// Roles and kinds of the parts in their order: the texts are changed in the output.
    Kinds,
    /// Only that the text can be read.
    Readable,
}

/// The plan for a file: its conversations, and the options for reading it.
#[derive(Debug)]
pub(crate) struct Expected {
    pub(crate) conversations: Vec<Said>,
    pub(crate) exactness: Exactness,
    pub(crate) reader: InputArgs,
    /// The profile of the repair, and the number of violations that the plan leaves.
    pub(crate) rules: Option<(Profile, u64)>,
}

impl Said {
    /// The content of a transcript.
    pub(crate) fn of(transcript: &mut Transcript<'_>, exactness: Exactness) -> Result<Self> {
        let mut said = Self::default();
        transcript.for_each(|message| {
            said.push(message, exactness);
            Ok(())
        })?;
        Ok(said)
    }

    /// Adds a message.
    pub(crate) fn push(&mut self, message: &impl MessageView, exactness: Exactness) {
        let number = self.messages;
        self.messages = self.messages.saturating_add(1);
        let Self { parts, ids, reasoning, .. } = self;
        message.for_each_part(&mut |part| {
            let mut digest = DefaultHasher::new();
            speaker(message.role(), part).hash(&mut digest);
            match part {
                // An empty text is a part in some formats, and none in others.
                PartView::Text("") => return,
                PartView::Reasoning(own) if exactness == Exactness::Converted && own.opaque.is_none() => {
                    if reasoning.is_some() {
                        parts.pop();
                    }
                    let all = reasoning.get_or_insert_default();
                    all.extend(own.text.split_whitespace());
                    all.hash(&mut digest);
                }
                _ => {
                    *reasoning = None;
                    add(part, exactness, ids, &mut digest);
                }
            }
            let digest = digest.finish();
            let cleared = match part {
                PartView::ToolResult(result) => cleared(result, exactness, ids),
                _ => digest,
            };
            let digest = if is_cleared_picture(part) { cleared } else { digest };
            parts.push(SaidPart { message: number, digest, cleared });
        });
    }

    /// The first message of `self` that differs from `other`; `None` if both have the same content.
    fn difference(&self, other: &Self) -> Option<u32> {
        let mut pairs = self.parts.iter().zip(&other.parts);
        let differs = pairs.find(|(own, read)| read.digest != own.digest && read.digest != own.cleared);
        let (own, read) = (self.parts.len(), other.parts.len());
        match differs {
            Some((part, _)) => Some(part.message),
            None if own == read => None,
            None => Some(self.parts.get(own.min(read)).map_or(self.messages, |part| part.message)),
        }
    }
}

/// Speaker of a part. A result belongs to the tool, in a message of any role. Any other part of a message with the role
/// tool belongs to the user.
const fn speaker(role: Role, part: PartView<'_>) -> &'static str {
    match (part, role) {
        (PartView::ToolResult(_), _) => "tool",
        (_, Role::Assistant) => "assistant",
        (_, Role::User | Role::Tool) => "user",
        _ => "instructions",
    }
}

fn add(part: PartView<'_>, exactness: Exactness, ids: &mut AssignedIds, digest: &mut DefaultHasher) {
    core::mem::discriminant(&part).hash(digest);
    let is_converted = exactness == Exactness::Converted;
    if exactness != Exactness::Whole && !is_converted {
        return;
    }
    match part {
        PartView::Text(text) => text.hash(digest),
        PartView::Reasoning(reasoning) => (reasoning.text, reasoning.opaque).hash(digest),
        PartView::ToolCall(call) => {
            ids.hash(call.id, exactness, digest);
            call.name.hash(digest);
            match is_converted {
                true => arguments(call.arguments).hash(digest),
                false => call.arguments.hash(digest),
            }
        }
        PartView::ToolResult(result) => {
            ids.hash(result.call_id, exactness, digest);
            result.is_error.hash(digest);
            match is_converted {
                true => joined(result.content).hash(digest),
                false => result.content.for_each_part(&mut |part| add(part, exactness, ids, digest)),
            }
        }
        // The reader of the target fills in the missing facts about media, such as the kind of file and the detail.
        PartView::Media(media) if is_converted => media.kind.hash(digest),
        other => format!("{other:?}").hash(digest),
    }
}

/// The digest of a result with a picture of a single pixel in the place of its content.
fn cleared(result: ToolResultView<'_>, exactness: Exactness, ids: &mut AssignedIds) -> u64 {
    let mut digest = DefaultHasher::new();
    "cleared".hash(&mut digest);
    ids.hash(result.call_id, exactness, &mut digest);
    result.is_error.hash(&mut digest);
    digest.finish()
}

/// Whether the part is a result that is a picture of a single pixel, and nothing else.
fn is_cleared_picture(part: PartView<'_>) -> bool {
    let PartView::ToolResult(result) = part else { return false };
    let (mut pixels, mut others) = (0_usize, 0_usize);
    result.content.for_each_part(&mut |part| match part {
        PartView::Media(media) if media.extent.pixels == Some((1, 1)) => pixels = pixels.saturating_add(1),
        _ => others = others.saturating_add(1),
    });
    (pixels, others) == (1, 0)
}

/// The arguments of a call as a value; empty arguments are an object without fields.
fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Null) | Err(_) if text.trim().is_empty() || text == "null" => Value::Object(Map::new()),
        Ok(value) => value,
        Err(_) => Value::from(text),
    }
}

/// The texts of a result without white space, which formats join differently, and the number of its other parts.
fn joined(content: &dyn Parts) -> (String, usize) {
    let (mut texts, mut others) = (String::new(), 0_usize);
    content.for_each_part(&mut |part| match part {
        PartView::Text(text) => texts.extend(text.split_whitespace()),
        _ => others = others.saturating_add(1),
    });
    (texts, others)
}

impl Expected {
    /// Reads the draft of `path` again, and refuses a draft with another content than the plan.
    pub(crate) fn check(&self, draft: &Draft, path: &Path) -> Result<()> {
        let is_converted = matches!(self.exactness, Exactness::Converted | Exactness::Readable);
        let other_format = match self.reader.part.from {
            From(None) => "name its format with --from FORMAT, or write another one with --to FORMAT",
            From(Some(_)) if is_converted => "write another format",
            From(Some(_)) => "write another format with --to FORMAT",
        };
        let (why, advice) = match self.read(draft) {
            Ok(read) => match (self.difference(&read), self.more_breaches(draft)?) {
                (Some(why), _) => (why, other_format),
                (None, Some(why)) if is_converted => {
                    (why, "convert it without --repair, then repair the converted file")
                }
                (None, Some(why)) => (why, other_format),
                (None, None) => return Ok(()),
            },
            Err(failure) => {
                let why = draft.without_name(failure.message());
                (format!("it cannot be read again ({why})"), other_format)
            }
        };
        let place =
            if path == Path::new("-") { "standard output".into() } else { path.display().to_string() };
        Err(Failure::new(code::UNFAITHFUL, format!("{place}: nothing was written, because {why}; {advice}")))
    }

    /// The reason to refuse the draft, if it violates more rules than the plan: a format may split messages that a
    /// repair has merged.
    fn more_breaches(&self, draft: &Draft) -> Result<Option<String>> {
        let Some((profile, planned)) = self.rules else { return Ok(None) };
        let input = draft.open(&self.reader)?;
        let mut breaches = 0;
        for transcript in &mut input.transcripts(&self.reader)? {
            let mut validator = Validator::<OpenCallTree>::new(profile);
            transcript.for_each(|message| {
                let pushed = validator.push(message, &mut |_| breaches += 1);
                pushed.map_err(|full| Failure::new(code::IO, full.to_string()))
            })?;
            validator.finish(&mut |_| breaches += 1);
        }
        let more = breaches > planned;
        let rules = profile.as_str();
        Ok(more.then(|| {
            let violations = counted(breaches, "violation");
            format!("it reads back with {violations} of {rules}, and the plan leaves {planned}")
        }))
    }

    fn read(&self, draft: &Draft) -> Result<Vec<Said>> {
        let input = draft.open(&self.reader)?;
        let mut transcripts = input.transcripts(&self.reader)?;
        transcripts.iter_mut().map(|transcript| Said::of(transcript, self.exactness)).collect()
    }

    fn difference(&self, read: &[Said]) -> Option<String> {
        let (own, there) = (self.conversations.len(), read.len());
        if own != there {
            return Some(format!("it reads back as {there} conversations instead of {own}"));
        }
        if self.exactness == Exactness::Readable {
            return None;
        }
        let mut pairs = self.conversations.iter().zip(read).enumerate();
        pairs.find_map(|(at, (own, read))| {
            let message = own.difference(read)?;
            let conversation = if there > 1 { format!(" of conversation {at}") } else { String::new() };
            Some(format!("message {message}{conversation} reads back as another than the plan has there"))
        })
    }
}
