//! Reads the message of an entry.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_core::{AnthropicTokens, Usage};
use epitome_message::{MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart, WireText};

use super::FORMAT;
use crate::expect::{expect_object, new_media, number, optional_text, present, share};
use crate::json::known::{Members, Value};
use crate::json::{self, ValueKind};
use crate::{Format, WireError};

/// The message of `raw`, a slice of `whole`. None if no model sees its role, or if it is empty.
pub(super) fn message(whole: &Arc<str>, raw: &str) -> Result<Option<Message>, WireError> {
    message_of(whole, &Members::of(raw, &FIELDS))
}

/// The keys of a message that are read.
pub(super) const FIELDS: [&str; 5] = ["role", "content", "isError", "toolCallId", "usage"];

/// The message with known [`FIELDS`].
pub(super) fn message_of(
    whole: &Arc<str>,
    found: &Members<'_, { FIELDS.len() }>,
) -> Result<Option<Message>, WireError> {
    let raw = found.object();
    expect_object(raw, "a message")?;
    let (content, failed) = (found.get("content")?, found.get("isError")?);
    let role = match found.get("role")? {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        Some("\"toolResult\"") => Role::Tool,
        _ => return Ok(None),
    };
    let parts = present(raw, content, "content", |content| self::content(whole, found.within(content)))?
        .unwrap_or_default();
    let parts = match role {
        Role::Tool => {
            let answers = optional_text(raw, found.get("toolCallId")?, "toolCallId")?.unwrap_or_default();
            let mut result = ToolResult::new(share(whole, &answers), parts);
            result.is_error = failed == Some("true");
            vec![Part::ToolResult(result)]
        }
        Role::Assistant if parts.is_empty() => return Ok(None),
        _ => parts,
    };
    let wire = WireText::new(Format::Pi.shared_name(), share(whole, raw));
    Ok(Some(Message::new(role, parts).with_wire(wire)))
}

fn content(whole: &Arc<str>, value: Value<'_>) -> Result<Vec<Part>, WireError> {
    let (content, mut parts) = (value.text(), Vec::new());
    match ValueKind::of(content) {
        ValueKind::Text if content == "\"\"" => {}
        ValueKind::Text => parts.push(Part::Text(share(whole, &json::decode(content)))),
        ValueKind::Array => json::known::items_and_members(value, &NAMES, |block| {
            parts.extend(self::block(whole, &block)?);
            Ok(())
        })?,
        _ => {
            let found = json::describe(content);
            return Err(WireError::shape(format!("expected a text or a list of blocks, found {found}")));
        }
    }
    Ok(parts)
}

/// The keys of a block that are read, in a single scan, because a block may be long.
pub(super) const NAMES: [&str; 9] =
    ["type", "text", "thinking", "thinkingSignature", "arguments", "id", "name", "mimeType", "data"];

/// The part of a block whose members under [`NAMES`] are known; none for an empty text.
pub(super) fn block(
    whole: &Arc<str>,
    found: &Members<'_, { NAMES.len() }>,
) -> Result<Option<Part>, WireError> {
    let raw = found.object();
    expect_object(raw, "a block")?;
    let optional = |key| {
        let text = optional_text(raw, found.get(key)?, key)?;
        Ok::<_, WireError>(text.map(|text| share(whole, &text)))
    };
    let text = |key| Ok::<_, WireError>(optional(key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(Some(match &*kind {
        "text" => match text("text")? {
            none if none.is_empty() => return Ok(None),
            said => Part::Text(said),
        },
        "thinking" => {
            let mut reasoning = Reasoning::new(text("thinking")?);
            let sealed = optional("thinkingSignature")?;
            reasoning.opaque = sealed.filter(|sealed| !sealed.is_empty());
            Part::Reasoning(reasoning)
        }
        "toolCall" => {
            let arguments = share(whole, found.get("arguments")?.unwrap_or("{}"));
            Part::ToolCall(ToolCall::new(text("id")?, text("name")?, arguments))
        }
        "image" => {
            Part::Media(new_media(MediaKind::Image, text("mimeType")?, MediaSource::Base64(text("data")?)))
        }
        _ => Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, raw))),
    }))
}

/// The usage in the message, if it reports any.
pub(super) fn reported(found: &Members<'_, { FIELDS.len() }>) -> Result<Option<Usage>, WireError> {
    let Some(usage) = found.get("usage")?.filter(|usage| ValueKind::of(usage) == ValueKind::Object) else {
        return Ok(None);
    };
    let [input, output, cache_read, cache_creation] =
        json::known::fields(usage, &["input", "output", "cacheRead", "cacheWrite"])?.map(number);
    let report = Usage::anthropic(AnthropicTokens { input, cache_read, cache_creation, output });
    Ok(Some(report).filter(|report| report.total.is_some_and(|total| total > 0)))
}
