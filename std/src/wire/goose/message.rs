//! The messages of a record.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};

use super::FORMAT;
use crate::message::{
    Media, MediaSource, Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText,
};
use crate::wire::expect::{expect_object, member_text, share};
use crate::wire::json::{self, Kind};
use crate::wire::{Format, WireError};

/// A message of a record, and the blocks that its parts come from.
#[derive(Debug)]
pub(super) struct Piece {
    role: Role,
    /// The place of the block in the record, and what it is.
    pub(super) parts: Vec<(usize, Part)>,
    /// The text of its blocks in the record.
    text: Str,
}

/// Who sees a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    ByAll,
    /// By the model only: a summary.
    ByModel,
    /// By the user only, or by nobody.
    NotByModel,
}

/// What `raw`, a slice of `whole`, is.
pub(super) fn pieces(whole: &Arc<str>, raw: &str) -> Result<Vec<Piece>, WireError> {
    expect_object(raw, "a message")?;
    let [role, content] = json::fields(raw, &["role", "content"])?;
    let role = match role {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        _ => return Ok(Vec::new()),
    };
    let Some(content) = content.filter(|content| Kind::of(content) == Kind::Array) else {
        return Err(WireError::shape("expected `content`, a list of blocks"));
    };
    let (mut pieces, mut at) = (Vec::<Piece>::new(), 0_usize);
    json::items(content, |raw| {
        if let Some(part) =
            json::nested(content, raw, format_args!("/content/{at}"), |raw| block(whole, raw))?
        {
            let role = if matches!(part, Part::ToolResult(_)) { Role::Tool } else { role };
            match pieces.last_mut().filter(|last| role != Role::Tool && last.role == role) {
                Some(last) => last.parts.push((at, part)),
                None => pieces.push(Piece { role, parts: vec![(at, part)], text: share(whole, raw) }),
            }
        }
        at = at.saturating_add(1);
        Ok(())
    })?;
    Ok(pieces)
}

/// The messages of a record, a slice of `whole`.
pub(super) fn messages(whole: &Arc<str>, raw: &str) -> Result<Vec<Message>, WireError> {
    let pieces = pieces(whole, raw)?;
    let only = pieces.len() == 1;
    let each = pieces.into_iter().enumerate().map(|(at, piece)| {
        let text = if only { share(whole, raw) } else { piece.text };
        let parts = piece.parts.into_iter().map(|(_, part)| part).collect();
        let wire = WireText::new(Format::Goose.shared_name(), text).with_rejoin(at > 0);
        Message::new(piece.role, parts).with_wire(wire)
    });
    Ok(each.collect())
}

pub(super) fn seen(raw: &str) -> Result<Seen, WireError> {
    let metadata = json::field(raw, "metadata")?.filter(|metadata| Kind::of(metadata) == Kind::Object);
    let Some(metadata) = metadata else { return Ok(Seen::ByAll) };
    Ok(match json::fields(metadata, &["agentVisible", "userVisible"])? {
        [Some("false"), _] => Seen::NotByModel,
        [_, Some("false")] => Seen::ByModel,
        _ => Seen::ByAll,
    })
}

fn block(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    expect_object(raw, "a block")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(Some(match &*kind {
        "text" => match text("text")? {
            none if none.is_empty() => return Ok(None),
            said => Part::Text(said),
        },
        "image" => {
            Part::Media(Media::new(MediaKind::Image, text("mimeType")?, MediaSource::Base64(text("data")?)))
        }
        "thinking" => {
            let mut reasoning = Reasoning::new(text("thinking")?);
            reasoning.opaque = Some(text("signature")?).filter(|sealed| !sealed.is_empty());
            Part::Reasoning(reasoning)
        }
        "redactedThinking" => {
            let mut reasoning = Reasoning::new("");
            reasoning.opaque = Some(text("data")?);
            Part::Reasoning(reasoning)
        }
        "toolRequest" | "frontendToolRequest" => match call(whole, raw, text("id")?)? {
            Some(call) => Part::ToolCall(call),
            None => unknown(whole, kind, raw),
        },
        "toolResponse" => Part::ToolResult(result(whole, raw, text("id")?)?),
        "toolConfirmationRequest"
        | "actionRequired"
        | "systemNotification"
        | "contextLengthExceeded"
        | "summarizationRequested"
        | "conversationCompacted" => return Ok(None),
        _ => unknown(whole, kind, raw),
    }))
}

fn unknown(whole: &Arc<str>, kind: Str, raw: &str) -> Part {
    Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, raw)))
}

/// The call of a block; none if goose could not read what the model wrote.
fn call(whole: &Arc<str>, raw: &str, id: Str) -> Result<Option<ToolCall>, WireError> {
    let Some(value) = json::field(raw, "toolCall")?.filter(|call| Kind::of(call) == Kind::Object) else {
        return Ok(None);
    };
    let Some(value) = json::field(value, "value")?.filter(|value| Kind::of(value) == Kind::Object) else {
        return Ok(None);
    };
    let arguments = json::field(value, "arguments")?.filter(|arguments| *arguments != "null").unwrap_or("{}");
    let name = member_text(whole, value, "name")?.unwrap_or_default();
    Ok(Some(ToolCall::new(id, name, share(whole, arguments))))
}

/// The result of a block: a list of what the tool returned, in newer files in an object, or why it failed.
fn result(whole: &Arc<str>, raw: &str, id: Str) -> Result<ToolResult, WireError> {
    let mut result = ToolResult::new(id, Vec::new());
    let outcome = json::field(raw, "toolResult")?.filter(|outcome| Kind::of(outcome) == Kind::Object);
    let Some(outcome) = outcome else { return Ok(result) };
    let Some(value) = json::field(outcome, "value")? else {
        result.is_error = true;
        result.parts.extend(member_text(whole, outcome, "error")?.map(Part::Text));
        return Ok(result);
    };
    let list = match Kind::of(value) {
        Kind::Object => {
            let [content, failed] = json::fields(value, &["content", "isError"])?;
            result.is_error = failed == Some("true");
            content.unwrap_or("[]")
        }
        _ => value,
    };
    if Kind::of(list) != Kind::Array {
        return Err(WireError::shape(format!(
            "expected a list of what the tool returned, found {}",
            json::describe(list)
        )));
    }
    json::items(list, |item| {
        if is_for_model(item)? {
            result.parts.extend(block(whole, item)?);
        }
        Ok(())
    })?;
    Ok(result)
}

/// Whether an item of a result is not for the user alone.
fn is_for_model(item: &str) -> Result<bool, WireError> {
    expect_object(item, "an item of a result")?;
    let notes = json::field(item, "annotations")?.filter(|notes| Kind::of(notes) == Kind::Object);
    let Some(notes) = notes else { return Ok(true) };
    let audience = json::field(notes, "audience")?.filter(|audience| Kind::of(audience) == Kind::Array);
    let Some(audience) = audience else { return Ok(true) };
    let mut found = false;
    json::items(audience, |who| {
        found |= who == "\"assistant\"";
        Ok(())
    })?;
    Ok(found)
}
