//! Writes messages as items, in the shortest form of the format.

use std::sync::Arc;

use epitome_core::message::{CallKind, MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart};

use super::{FORMAT, PROVIDER, item};
use crate::WireError;
use crate::json::{self, ValueKind, push_quoted, quote};

/// One item: adjacent parts of a message, or a part that is an item of its own.
pub(crate) struct Item<'m> {
    role: Role,
    parts: &'m [Part],
    alone: bool,
}

/// The items of a message. Adjacent texts and media are one item; every call, result and piece of reasoning is its own
/// item.
pub(crate) fn items(message: &Message) -> Vec<Item<'_>> {
    let (role, parts) = (message.role(), message.parts());
    let mut items: Vec<Item<'_>> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let alone = stands_alone(part);
        let before = items.pop_if(|last| !alone && !last.alone).map_or(0, |last| last.parts.len());
        let parts = parts.get(at.saturating_sub(before)..=at).unwrap_or_default();
        items.push(Item { role, parts, alone });
    }
    if items.is_empty() && role != Role::Assistant && role != Role::Tool {
        items.push(Item { role, parts: &[], alone: false });
    }
    items
}

/// Appends the items of a message to `out`, with commas between them.
pub(crate) fn push_items(out: &mut String, message: &Message) -> Result<(), WireError> {
    for item in items(message) {
        out.push_str(if out.is_empty() || out.ends_with('[') { "" } else { "," });
        item.push(out)?;
    }
    Ok(())
}

fn stands_alone(part: &Part) -> bool {
    match part {
        Part::Text(_) | Part::Media(_) => false,
        Part::Unknown(item) => item.format == FORMAT && is_item(item),
        _ => true,
    }
}

impl Item<'_> {
    /// Appends the item to `out`. A conversation is long, so it is copied only once.
    pub(crate) fn push(&self, out: &mut String) -> Result<(), WireError> {
        if let ([part], true) = (self.parts, self.alone) {
            return push_alone(out, part);
        }
        out.extend([r#"{"type":"message","role":""#, self.role.as_str(), r#"","content":["#]);
        for (at, part) in self.parts.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            push_part(out, part, self.role)?;
        }
        out.push_str("]}");
        Ok(())
    }
}

fn push_alone(out: &mut String, part: &Part) -> Result<(), WireError> {
    match part {
        Part::Reasoning(reasoning) => push_reasoning(out, reasoning),
        Part::ToolCall(call) => push_call(out, call)?,
        Part::ToolResult(result) => push_output(out, result)?,
        Part::Compaction(left) if left.provider == PROVIDER => {
            out.push_str(r#"{"type":"compaction","encrypted_content":"#);
            push_quoted(out, left.opaque.as_deref().unwrap_or_default());
            out.push('}');
        }
        Part::Compaction(_) => return Err(unsupported("the compaction of another provider")),
        Part::ApprovalRequest(_) => return Err(unsupported("an approval request without its tool")),
        Part::ApprovalResponse(answer) => {
            let (id, yes) = (quote(&answer.approval.id), answer.approved);
            out.push_str(&format!(
                r#"{{"type":"mcp_approval_response","approval_request_id":{id},"approve":{yes}}}"#
            ));
        }
        Part::Unknown(item) => out.push_str(&item.raw),
        Part::Text(_) | Part::Media(_) => return Err(unsupported("a part that is no item")),
    }
    Ok(())
}

/// Whether the unknown part is an item. If its type begins with `input_` or `output_`, or the reader does not read it
/// as an item, it is a part of an item.
fn is_item(unknown: &UnknownPart) -> bool {
    let is_part = unknown.kind.starts_with("input_") || unknown.kind.starts_with("output_");
    let whole: Arc<str> = Arc::from(unknown.raw.as_str());
    !is_part && json::check(&whole).is_ok() && item::message(&whole, &whole).is_ok_and(|read| read.is_some())
}

/// One content part of a message of this role.
pub(super) fn part(part: &Part, role: Role) -> Result<String, WireError> {
    let mut out = String::new();
    push_part(&mut out, part, role)?;
    Ok(out)
}

/// Appends the content part to `out`, so that texts are copied once.
fn push_part(out: &mut String, part: &Part, role: Role) -> Result<(), WireError> {
    match part {
        Part::Text(text) => {
            let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
            out.extend([r#"{"type":""#, kind, r#"","text":"#]);
            push_quoted(out, text);
            out.push('}');
        }
        part => out.push_str(&other_part(part)?),
    }
    Ok(())
}

/// Writes a part that is no text.
fn other_part(part: &Part) -> Result<String, WireError> {
    match part {
        Part::Media(media) => self::media(media),
        Part::Unknown(UnknownPart { format, raw, .. })
            if *format == FORMAT && ValueKind::of(raw) == ValueKind::Object && json::check(raw).is_ok() =>
        {
            Ok(raw.as_str().to_owned())
        }
        _ => Err(unsupported("a part of this kind here")),
    }
}

fn media(media: &Media) -> Result<String, WireError> {
    let url = match &media.source {
        MediaSource::Base64(data) => format!("data:{};base64,{}", &*media.mime, &**data),
        MediaSource::Uri(uri) => uri.as_str().to_owned(),
    };
    let at_url = url.contains(':');
    match media.kind {
        MediaKind::Image => {
            // An image of a message requires `detail`: `ResponseInputImageParam` of openai-python.
            let detail = if media.extent.low_detail { "low" } else { "auto" };
            let key = if at_url { "image_url" } else { "file_id" };
            Ok(format!(r#"{{"type":"input_image","{key}":{},"detail":"{detail}"}}"#, quote(&url)))
        }
        MediaKind::Document => {
            let bare = media.mime.is_empty() && matches!(media.source, MediaSource::Base64(_));
            let key = match media.source {
                MediaSource::Base64(_) => "file_data",
                MediaSource::Uri(_) if url.starts_with("data:") => "file_data",
                MediaSource::Uri(_) if at_url => "file_url",
                MediaSource::Uri(_) => "file_id",
            };
            let url = if bare { url.trim_start_matches("data:;base64,").to_owned() } else { url };
            Ok(format!(r#"{{"type":"input_file","{key}":{}}}"#, quote(&url)))
        }
        MediaKind::Audio => Err(unsupported("a sound")),
        _ => Err(unsupported("a video")),
    }
}

fn push_reasoning(out: &mut String, reasoning: &Reasoning) {
    out.push_str(r#"{"type":"reasoning""#);
    if let Some(id) = &reasoning.id {
        out.push_str(r#","id":"#);
        push_quoted(out, id);
    }
    out.push_str(r#","summary":["#);
    if !reasoning.text.is_empty() {
        out.push_str(r#"{"type":"summary_text","text":"#);
        push_quoted(out, &reasoning.text);
        out.push('}');
    }
    out.push(']');
    if let Some(sealed) = &reasoning.opaque {
        out.push_str(r#","encrypted_content":"#);
        push_quoted(out, sealed);
    }
    out.push('}');
}

fn push_call(out: &mut String, call: &ToolCall) -> Result<(), WireError> {
    if call.kind != CallKind::Function {
        return Err(unsupported("a call that the provider ran"));
    }
    for (key, value) in [
        (r#"{"type":"function_call","call_id":"#, &call.id),
        (r#","name":"#, &call.name),
        (r#","arguments":"#, &call.arguments),
    ] {
        out.push_str(key);
        push_quoted(out, value);
    }
    out.push('}');
    Ok(())
}

fn push_output(out: &mut String, result: &ToolResult) -> Result<(), WireError> {
    out.push_str(r#"{"type":"function_call_output","call_id":"#);
    push_quoted(out, &result.call_id);
    out.push_str(r#","output":"#);
    match &*result.parts {
        [Part::Text(text)] => push_quoted(out, text),
        parts => out.push_str(&output_of(parts)?),
    }
    out.push('}');
    Ok(())
}

/// The value of `output`: a single text as a JSON string, otherwise a list.
pub(super) fn output_of(parts: &[Part]) -> Result<String, WireError> {
    match parts {
        [] => Ok(quote("")),
        [Part::Text(text)] => Ok(quote(text)),
        parts => {
            let parts =
                parts.iter().map(|part| self::part(part, Role::Tool)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", parts.join(",")))
        }
    }
}

/// The error for content that the format cannot represent.
pub(super) fn unsupported(what: &str) -> WireError {
    WireError::unsupported(format!("Responses has no form for {what}"))
}
