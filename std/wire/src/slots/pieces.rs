//! Common functions of the readers that note the places of parts.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Attribution, Part};

use super::{ReadRecord, RecordMessage, RecordPart, messages, reported};
use crate::WireError;
use crate::body::{Body, Content};
use crate::document::Pointer;
use crate::expect::expect_text;
use crate::injected::{is_ledger, ledger};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::transcript::{Conversation, Transcript, UsageEntry};

/// The pieces of a message of blocks. Each result is a tool message of its own.
#[derive(Debug)]
pub(crate) struct RecordMessages<'a> {
    role: Role,
    list: Vec<RecordMessage<'a>>,
}

impl<'a> RecordMessages<'a> {
    /// Creates an empty list of pieces for a message of this role.
    pub(crate) const fn new(role: Role) -> Self {
        Self { role, list: Vec::new() }
    }

    /// Adds the parts of `block`. A result becomes a message of its own, and so does a ledger, which a writer may have
    /// joined with the message behind it.
    pub(crate) fn extend(&mut self, block: &'a str, parts: impl IntoIterator<Item = RecordPart<'a>>) {
        for noted in parts {
            if self.role == Role::Assistant && is_ledger(&noted.part) {
                self.push_from(self.role, block, noted, ledger());
                continue;
            }
            let is_result = matches!(noted.part, Part::ToolResult(_));
            self.push(if is_result { Role::Tool } else { self.role }, block, noted);
        }
    }

    /// Adds the parts of `block` to the current message, results included: the provider ran the tool.
    pub(crate) fn extend_own(&mut self, block: &'a str, parts: impl IntoIterator<Item = RecordPart<'a>>) {
        parts.into_iter().for_each(|noted| self.push(self.role, block, noted));
    }

    /// Adds a part of `block` with this role.
    pub(crate) fn push(&mut self, role: Role, block: &'a str, noted: RecordPart<'a>) {
        let is_new = self.list.last().is_none_or(|last| last.role != role || last.attribution.is_some());
        if is_new || matches!(noted.part, Part::ToolResult(_)) && role == Role::Tool {
            self.list.push(RecordMessage::new(role, block));
        }
        if let Some(piece) = self.list.last_mut() {
            // A result is alone in its message, and a record may have very many results.
            piece.parts.reserve_exact(usize::from(piece.parts.is_empty()));
            piece.parts.push(noted);
        }
    }

    /// Adds a part of `block` as a message of its own, which does not come from the usual speaker of this role.
    pub(crate) fn push_from(&mut self, role: Role, block: &'a str, noted: RecordPart<'a>, from: Attribution) {
        let mut piece = RecordMessage::new(role, block);
        piece.attribution = Some(from);
        piece.parts.push(noted);
        self.list.push(piece);
    }

    /// The parts so far, for changes.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut RecordPart<'a>> {
        self.list.iter_mut().flat_map(|piece| &mut piece.parts)
    }

    pub(crate) fn into_list(self) -> Vec<RecordMessage<'a>> {
        self.list
    }
}

/// The pieces of a message of this role in `raw`, whose blocks are at `path`. `part` returns the part of a block, and
/// whether the provider ran its tool.
pub(crate) fn list<'a>(
    whole: &Arc<str>,
    (raw, content): (&'a str, &'a str),
    (path, role): (&str, Role),
    part: ReadPart<'a>,
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let mut pieces = RecordMessages::new(role);
    json::nested(raw, content, path, |list| {
        blocks(list, |block| {
            let (noted, is_hosted) = part(whole, block)?;
            let noted = noted.map(|noted| noted.with_element(list, block));
            match is_hosted {
                true => pieces.extend_own(block, noted),
                false => pieces.extend(block, noted),
            }
            Ok(())
        })
    })?;
    Ok(pieces.into_list())
}

/// See [`list`].
type ReadPart<'a> = fn(&Arc<str>, &'a str) -> Result<(Option<RecordPart<'a>>, bool), WireError>;

/// Calls `visit` with each element of the array `list`. An error names the element.
pub(crate) fn blocks<'a>(
    list: &'a str,
    mut visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut at = 0_usize;
    json::items(list, |block| {
        json::nested(list, block, format_args!("/{at}"), &mut visit)?;
        at = at.saturating_add(1);
        Ok(())
    })
}

/// Adds the messages of a list to `conversation`: of the array under `key` in the object `body`, of the array itself,
/// or of the lines.
pub(crate) fn read_list(
    transcript: &mut Transcript,
    body: &Body<'_>,
    conversation: &mut Conversation,
    key: &'static str,
    read: ReadRecord,
) -> Result<(), WireError> {
    let format = conversation.format;
    let (mut reports, mut first) = (Vec::new(), conversation.entries.len());
    let read_element = |source: &Arc<str>, text: Value<'_>| {
        let (messages, usages) = reported(source, text.text(), format, read)?;
        let placed = |own: UsageEntry| UsageEntry::new(first.saturating_add(own.at), own.usage);
        reports.extend(usages.into_iter().map(placed));
        first = first.saturating_add(messages.len());
        Ok((messages, None))
    };
    let (whole, path, list) = match (&body.content, body.field(key)) {
        (Content::Lines(text), _) => (*text, String::new(), transcript.lines(text)),
        (Content::Value(document), Some(list)) => {
            let path = format!("/{key}");
            let number = json::nested(document.text(), list, &path, |list| array(transcript, list))?;
            (document.text(), path, number)
        }
        (Content::Value(document), None) => {
            (document.text(), String::new(), array(transcript, document.text())?)
        }
    };
    conversation.path = format!("{}{path}", body.path());
    transcript.extend(conversation, list, (whole, &path), read_element)?;
    conversation.usage.extend(reports);
    Ok(())
}

/// Adds the system message in the text under `key`, if there is one.
pub(crate) fn read_system(
    transcript: &mut Transcript,
    body: &Body<'_>,
    conversation: &mut Conversation,
    key: &'static str,
) -> Result<(), WireError> {
    let Some(value) = body.field(key) else { return Ok(()) };
    let messages = json::nested(body.text(), value, Pointer::default().join(key), |value| {
        messages(body.source, value, conversation.format, system)
    })?;
    if !messages.is_empty() {
        let record = transcript.field(&body.members, key, messages.len());
        conversation.extend(record, messages);
    }
    Ok(())
}

/// The system message in the text `raw`; none if the text is empty.
pub(crate) fn system<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_text(raw)?;
    let part = RecordPart::text(whole, Some(raw));
    Ok(part.map(|part| RecordMessage::new(Role::System, raw).with_parts([part])).into_iter().collect())
}

fn array(transcript: &mut Transcript, list: &str) -> Result<u32, WireError> {
    match ValueKind::of(list) {
        ValueKind::Array => transcript.array(list),
        _ => Err(WireError::shape(format!("expected a list of messages, found {}", json::describe(list)))),
    }
}
