//! Parts as blocks, in the shortest form that the format has for them.

use epitome_core::message::{CallKind, MediaKind};
use epitome_message::{
    CompactionPart, Media, MediaSource, Part, Reasoning, ToolCall, ToolResult, UnknownPart,
};

use super::block::REDACTED;
use super::{FORMAT, PROVIDER};
use crate::WireError;
use crate::json::{self, ValueKind, push_quoted, quote};

/// Writes `content` with these parts: a single text as a JSON string, otherwise a list.
pub(super) fn content(parts: &[Part]) -> Result<String, WireError> {
    let mut out = String::new();
    push_content(&mut out, parts)?;
    Ok(out)
}

/// Appends the `content` of these parts to `out`, so that texts are copied once.
pub(super) fn push_content<'p>(
    out: &mut String,
    parts: impl IntoIterator<Item = &'p Part>,
) -> Result<(), WireError> {
    let mut parts = parts.into_iter().peekable();
    let first = parts.next();
    if let (Some(Part::Text(text)), None) = (first, parts.peek()) {
        push_quoted(out, text);
        return Ok(());
    }
    out.push('[');
    for (at, part) in first.into_iter().chain(parts).enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_block(out, part)?;
    }
    out.push(']');
    Ok(())
}

/// One block.
pub(super) fn block(part: &Part) -> Result<String, WireError> {
    let mut out = String::new();
    push_block(&mut out, part)?;
    Ok(out)
}

fn push_block(out: &mut String, part: &Part) -> Result<(), WireError> {
    match part {
        Part::Text(text) => {
            out.push_str(r#"{"type":"text","text":"#);
            push_quoted(out, text);
            out.push('}');
        }
        Part::ToolResult(result) => push_tool_result(out, result)?,
        part => out.push_str(&small_block(part)?),
    }
    Ok(())
}

/// A block of the kinds that are seldom long.
fn small_block(part: &Part) -> Result<String, WireError> {
    match part {
        Part::Text(_) | Part::ToolResult(_) => block(part),
        Part::Reasoning(reasoning) => Ok(thinking(reasoning)),
        Part::ToolCall(call) => tool_use(call),
        Part::Media(media) => self::media(media),
        Part::Compaction(compaction) => self::compaction(compaction),
        Part::Unknown(UnknownPart { format, raw, .. })
            if *format == FORMAT && ValueKind::of(raw) == ValueKind::Object && json::check(raw).is_ok() =>
        {
            Ok(raw.as_str().to_owned())
        }
        Part::Unknown(_) => Err(unsupported("a part of unknown kind")),
        Part::ApprovalRequest(_) => Err(unsupported("an approval request")),
        Part::ApprovalResponse(_) => Err(unsupported("an approval response")),
    }
}

/// Redacted reasoning is sealed data. A signature belongs to a text, which can be empty.
fn thinking(reasoning: &Reasoning) -> String {
    match (&*reasoning.text, reasoning.opaque.as_deref()) {
        ("", Some(data)) if reasoning.id.as_ref() == Some(&*REDACTED) => {
            format!(r#"{{"type":"redacted_thinking","data":{}}}"#, quote(data))
        }
        (text, signature) => {
            let signature = quote(signature.unwrap_or_default());
            format!(r#"{{"type":"thinking","thinking":{},"signature":{signature}}}"#, quote(text))
        }
    }
}

fn tool_use(call: &ToolCall) -> Result<String, WireError> {
    let kind = match call.kind {
        CallKind::Hosted => "server_tool_use",
        _ => "tool_use",
    };
    let (id, name, input) = (quote(&call.id), quote(&call.name), input(call)?);
    Ok(format!(r#"{{"type":"{kind}","id":{id},"name":{name},"input":{input}}}"#))
}

/// The arguments as a JSON object, which the format requires. A call without arguments has `{}`.
pub(super) fn input(call: &ToolCall) -> Result<&str, WireError> {
    let arguments = json::trim(&call.arguments);
    match arguments {
        "" => Ok("{}"),
        text if ValueKind::of(text) == ValueKind::Object && json::check(text).is_ok() => Ok(text),
        _ => Err(unsupported("a call whose arguments are no JSON object")),
    }
}

fn push_tool_result(out: &mut String, result: &ToolResult) -> Result<(), WireError> {
    out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
    push_quoted(out, &result.call_id);
    out.push_str(r#","content":"#);
    push_content(out, &result.parts)?;
    out.push_str(if result.is_error { r#","is_error":true}"# } else { "}" });
    Ok(())
}

fn media(media: &Media) -> Result<String, WireError> {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Document => "document",
        MediaKind::Audio => return Err(unsupported("a sound")),
        _ => return Err(unsupported("a video")),
    };
    let source = match &media.source {
        MediaSource::Base64(data) => {
            let (mime, data) = (quote(&media.mime), quote(data));
            format!(r#"{{"type":"base64","media_type":{mime},"data":{data}}}"#)
        }
        MediaSource::Uri(uri) if uri.contains("://") => format!(r#"{{"type":"url","url":{}}}"#, quote(uri)),
        MediaSource::Uri(id) => format!(r#"{{"type":"file","file_id":{}}}"#, quote(id)),
    };
    Ok(format!(r#"{{"type":"{kind}","source":{source}}}"#))
}

fn compaction(compaction: &CompactionPart) -> Result<String, WireError> {
    if compaction.provider != PROVIDER {
        return Err(unsupported("the compaction of another provider"));
    }
    let content = if compaction.text.is_empty() { "null".to_owned() } else { quote(&compaction.text) };
    let mut sealed = String::new();
    match compaction.opaque.as_deref() {
        None => {}
        // An object of the block's other members: see the reader.
        Some(others) if ValueKind::of(others) == ValueKind::Object && json::check(others).is_ok() => {
            json::raw_members(others, |key, value| {
                sealed.extend([",", key, ":", value]);
                Ok(())
            })?;
        }
        Some(content) => sealed.extend([r#","encrypted_content":"#, &quote(content)]),
    }
    Ok(format!(r#"{{"type":"compaction","content":{content}{sealed}}}"#))
}

/// The error for content that the format cannot represent.
pub(super) fn unsupported(what: &str) -> WireError {
    WireError::unsupported(format!("Anthropic's Messages have no form for {what}"))
}
