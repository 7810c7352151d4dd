//! The message of an entry.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_core::{AnthropicTokens, Usage};

use super::FORMAT;
use crate::message::{MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart, WireText};
use crate::wire::expect::{expect_object, member_text, new_media, number, present, share};
use crate::wire::json::{self, Kind};
use crate::wire::{Format, WireError};

/// The message that `raw`, a slice of `whole`, is; none if it is of a role that no model sees, or says nothing.
pub(super) fn message(whole: &Arc<str>, raw: &str) -> Result<Option<Message>, WireError> {
    expect_object(raw, "a message")?;
    let [role, content, failed] = json::fields(raw, &["role", "content", "isError"])?;
    let role = match role {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        Some("\"toolResult\"") => Role::Tool,
        _ => return Ok(None),
    };
    let parts =
        present(raw, content, "content", |content| self::content(whole, content))?.unwrap_or_default();
    let parts = match role {
        Role::Tool => {
            let mut result =
                ToolResult::new(member_text(whole, raw, "toolCallId")?.unwrap_or_default(), parts);
            result.is_error = failed == Some("true");
            vec![Part::ToolResult(result)]
        }
        Role::Assistant if parts.is_empty() => return Ok(None),
        _ => parts,
    };
    let wire = WireText::new(Format::Pi.shared_name(), share(whole, raw));
    Ok(Some(Message::new(role, parts).with_wire(wire)))
}

fn content(whole: &Arc<str>, content: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = Vec::new();
    match Kind::of(content) {
        Kind::Text if content == "\"\"" => {}
        Kind::Text => parts.push(Part::Text(share(whole, &json::decode(content)))),
        Kind::Array => json::items(content, |block| {
            parts.extend(self::block(whole, block)?);
            Ok(())
        })?,
        _ => {
            let found = json::describe(content);
            return Err(WireError::shape(format!("expected a text or a list of blocks, found {found}")));
        }
    }
    Ok(parts)
}

pub(super) fn block(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    expect_object(raw, "a block")?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let kind = text("type")?;
    Ok(Some(match &*kind {
        "text" => match text("text")? {
            none if none.is_empty() => return Ok(None),
            said => Part::Text(said),
        },
        "thinking" => {
            let mut reasoning = Reasoning::new(text("thinking")?);
            reasoning.opaque =
                member_text(whole, raw, "thinkingSignature")?.filter(|sealed| !sealed.is_empty());
            Part::Reasoning(reasoning)
        }
        "toolCall" => {
            let arguments = json::field(raw, "arguments")?.unwrap_or("{}");
            Part::ToolCall(ToolCall::new(text("id")?, text("name")?, share(whole, arguments)))
        }
        "image" => {
            Part::Media(new_media(MediaKind::Image, text("mimeType")?, MediaSource::Base64(text("data")?)))
        }
        _ => Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, raw))),
    }))
}

/// What the message reports, if it reports anything.
pub(super) fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let usage = json::field(raw, "usage")?;
    let Some(usage) = usage.filter(|usage| Kind::of(usage) == Kind::Object) else { return Ok(None) };
    let [input, output, cache_read, cache_creation] =
        json::fields(usage, &["input", "output", "cacheRead", "cacheWrite"])?.map(number);
    let report = Usage::anthropic(AnthropicTokens { input, cache_read, cache_creation, output });
    Ok(Some(report).filter(|report| report.total.is_some_and(|total| total > 0)))
}
