//! Reads the messages of a record.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, member_text, share};
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordMessages, RecordPart, SlotForm, blocks};

/// Audience of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    ByAll,
    /// By the model only: a summary.
    ByModel,
    /// By the user only, or by neither.
    NotByModel,
}

/// The messages of `raw`, a slice of `whole`.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a message")?;
    let [role, content] = json::fields(raw, &["role", "content"])?;
    let role = match role {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        _ => return Ok(Vec::new()),
    };
    let Some(content) = content.filter(|content| ValueKind::of(content) == ValueKind::Array) else {
        return Err(WireError::shape("expected `content`, a list of blocks"));
    };
    let mut pieces = RecordMessages::new(role);
    json::nested(raw, content, "/content", |content| {
        blocks(content, |block| {
            pieces.extend(block, part(whole, block)?.map(|noted| noted.with_element(content, block)));
            Ok(())
        })
    })?;
    Ok(pieces.into_list())
}

pub(super) fn seen(raw: &str) -> Result<Seen, WireError> {
    let metadata =
        json::field(raw, "metadata")?.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object);
    let Some(metadata) = metadata else { return Ok(Seen::ByAll) };
    Ok(match json::fields(metadata, &["agentVisible", "userVisible"])? {
        [Some("false"), _] => Seen::NotByModel,
        [_, Some("false")] => Seen::ByModel,
        _ => Seen::ByAll,
    })
}

/// The part of a block; none if no model sees it.
fn part<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    expect_object(raw, "a block")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(Some(RecordPart::new(match &*kind {
        "text" => match text("text")? {
            none if none.is_empty() => return Ok(None),
            said => {
                return Ok(Some(
                    RecordPart::new(Part::Text(said)).with_slot(json::field(raw, "text")?, SlotForm::Text),
                ));
            }
        },
        "image" => {
            let source = MediaSource::Base64(text("data")?);
            let image = Part::Media(Media::new(MediaKind::Image, text("mimeType")?, source));
            return Ok(Some(RecordPart::new(image).with_slot(Some(raw), TEXT_BLOCK)));
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
            Some(call) => return Ok(Some(call)),
            None => unknown(whole, kind, raw),
        },
        "toolResponse" => return result(whole, raw, text("id")?).map(Some),
        "toolConfirmationRequest"
        | "actionRequired"
        | "systemNotification"
        | "contextLengthExceeded"
        | "summarizationRequested"
        | "conversationCompacted" => return Ok(None),
        _ => unknown(whole, kind, raw),
    })))
}

fn unknown(whole: &Arc<str>, kind: Str, raw: &str) -> Part {
    Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, raw)))
}

/// The call of a block; none if goose could not read the call of the model.
fn call<'a>(whole: &Arc<str>, raw: &'a str, id: Str) -> Result<Option<RecordPart<'a>>, WireError> {
    let Some(value) = json::field(raw, "toolCall")?.filter(|call| ValueKind::of(call) == ValueKind::Object)
    else {
        return Ok(None);
    };
    let Some(value) = json::field(value, "value")?.filter(|value| ValueKind::of(value) == ValueKind::Object)
    else {
        return Ok(None);
    };
    let arguments = json::field(value, "arguments")?.filter(|arguments| *arguments != "null");
    let name = member_text(whole, value, "name")?.unwrap_or_default();
    let call = ToolCall::new(id, name, share(whole, arguments.unwrap_or("{}")));
    Ok(Some(RecordPart::new(Part::ToolCall(call)).with_slot(arguments, SlotForm::Arguments)))
}

/// The result of a block: a list of outputs, in newer files in an object, or the reason of a failure.
fn result<'a>(whole: &Arc<str>, raw: &'a str, id: Str) -> Result<RecordPart<'a>, WireError> {
    let mut result = ToolResult::new(id, Vec::new());
    let outcome =
        json::field(raw, "toolResult")?.filter(|outcome| ValueKind::of(outcome) == ValueKind::Object);
    let Some(outcome) = outcome else { return Ok(RecordPart::new(Part::ToolResult(result))) };
    let Some(value) = json::field(outcome, "value")? else {
        result.is_error = true;
        result.parts.extend(member_text(whole, outcome, "error")?.map(Part::Text));
        return Ok(RecordPart::new(Part::ToolResult(result))
            .with_slot(json::field(outcome, "error")?, SlotForm::Text));
    };
    let (mut list, mut repeated) = (value, None);
    if ValueKind::of(value) == ValueKind::Object {
        let [content, failed, structured] =
            json::fields(value, &["content", "isError", "structuredContent"])?;
        result.is_error = failed == Some("true");
        (list, repeated) = (content.unwrap_or("[]"), structured);
    }
    if ValueKind::of(list) != ValueKind::Array {
        let found = json::describe(list);
        return Err(WireError::shape(format!("expected a list of what the tool returned, found {found}")));
    }
    let mut inner = Vec::new();
    json::items(list, |item| {
        inner.extend(if is_for_model(item)? { part(whole, item)? } else { None });
        Ok(())
    })?;
    let noted = RecordPart::result(result, inner).with_slot(Some(list), TEXT_BLOCKS);
    Ok(noted.with_slot(repeated, SlotForm::Constant("null")))
}

/// Whether an item of a result is not for the user alone.
fn is_for_model(item: &str) -> Result<bool, WireError> {
    expect_object(item, "an item of a result")?;
    let notes = json::field(item, "annotations")?.filter(|notes| ValueKind::of(notes) == ValueKind::Object);
    let Some(notes) = notes else { return Ok(true) };
    let audience =
        json::field(notes, "audience")?.filter(|audience| ValueKind::of(audience) == ValueKind::Array);
    let Some(audience) = audience else { return Ok(true) };
    let mut found = false;
    json::items(audience, |who| {
        found |= who == "\"assistant\"";
        Ok(())
    })?;
    Ok(found)
}

const TEXT_BLOCK: SlotForm = SlotForm::Around(r#"{"type":"text","text":"#, "}");
const TEXT_BLOCKS: SlotForm = SlotForm::Around(r#"[{"type":"text","text":"#, "}]");
