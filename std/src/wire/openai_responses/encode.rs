//! Messages as items, in the shortest form that the format has for them.

use std::sync::Arc;

use epitome_core::message::{CallKind, MediaKind, Role};

use super::{FORMAT, PROVIDER, item};
use crate::message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart};
use crate::wire::WireError;
use crate::wire::json::{self, Kind, push_quoted, quote};

/// The items of a message: what it says together in one, every call, result and piece of reasoning its own.
pub(crate) fn items(message: &Message) -> Result<Vec<String>, WireError> {
    let (mut items, mut content) = (Vec::new(), String::new());
    let role = message.role();
    let flush = |content: &mut String, items: &mut Vec<String>| {
        if !content.is_empty() {
            content.push_str("]}");
            items.push(core::mem::take(content));
        }
    };
    for part in message.parts() {
        if let Some(item) = own_item(part)? {
            flush(&mut content, &mut items);
            items.push(item);
            continue;
        }
        match content.is_empty() {
            true => content = format!(r#"{{"type":"message","role":"{}","content":["#, role.as_str()),
            false => content.push(','),
        }
        push_part(&mut content, part, role)?;
    }
    flush(&mut content, &mut items);
    if items.is_empty() && role != Role::Assistant && role != Role::Tool {
        items.push(format!(r#"{{"type":"message","role":"{}","content":[]}}"#, role.as_str()));
    }
    Ok(items)
}

/// The item that a part is alone; none for what is part of a message.
fn own_item(part: &Part) -> Result<Option<String>, WireError> {
    Ok(Some(match part {
        Part::Reasoning(reasoning) => self::reasoning(reasoning),
        Part::ToolCall(call) => function_call(call)?,
        Part::ToolResult(result) => output(result)?,
        Part::Compaction(left) if left.provider == PROVIDER => {
            let sealed = quote(left.opaque.as_deref().unwrap_or_default());
            format!(r#"{{"type":"compaction","encrypted_content":{sealed}}}"#)
        }
        Part::Compaction(_) => return Err(unsupported("the compaction of another provider")),
        Part::ApprovalRequest(_) => return Err(unsupported("an approval request without its tool")),
        Part::ApprovalResponse(answer) => {
            let (id, yes) = (quote(&answer.approval.id), answer.approved);
            format!(r#"{{"type":"mcp_approval_response","approval_request_id":{id},"approve":{yes}}}"#)
        }
        Part::Unknown(item) if item.format == FORMAT && is_item(item) => item.raw.as_str().to_owned(),
        _ => return Ok(None),
    }))
}

/// Whether it is an item, and not a part of one: those are called after who sends them, or are no item to a reader.
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

/// The same, behind what is there: what was said is copied once.
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

/// A part that is no text.
fn other_part(part: &Part) -> Result<String, WireError> {
    match part {
        Part::Media(media) => self::media(media),
        Part::Unknown(UnknownPart { format, raw, .. })
            if *format == FORMAT && Kind::of(raw) == Kind::Object && json::check(raw).is_ok() =>
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
            // A message's image has to say it: `ResponseInputImageParam` of openai-python.
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

fn reasoning(reasoning: &Reasoning) -> String {
    let id = reasoning.id.as_deref().map(|id| format!(r#","id":{}"#, quote(id))).unwrap_or_default();
    let sealed =
        reasoning.opaque.as_deref().map(|sealed| format!(r#","encrypted_content":{}"#, quote(sealed)));
    let summary = match &*reasoning.text {
        "" => String::new(),
        text => format!(r#"{{"type":"summary_text","text":{}}}"#, quote(text)),
    };
    format!(r#"{{"type":"reasoning"{id},"summary":[{summary}]{}}}"#, sealed.unwrap_or_default())
}

fn function_call(call: &ToolCall) -> Result<String, WireError> {
    if call.kind != CallKind::Function {
        return Err(unsupported("a call that the provider ran"));
    }
    let (id, name, arguments) = (quote(&call.id), quote(&call.name), quote(&call.arguments));
    Ok(format!(r#"{{"type":"function_call","call_id":{id},"name":{name},"arguments":{arguments}}}"#))
}

fn output(result: &ToolResult) -> Result<String, WireError> {
    let mut item =
        format!(r#"{{"type":"function_call_output","call_id":{},"output":"#, quote(&result.call_id));
    match &*result.parts {
        [Part::Text(text)] => push_quoted(&mut item, text),
        parts => item.push_str(&output_of(parts)?),
    }
    item.push('}');
    Ok(item)
}

/// What stands under `output`: one text as itself, anything else as a list.
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

/// The error for what the format cannot say.
pub(super) fn unsupported(what: &str) -> WireError {
    WireError::unsupported(format!("Responses has no form for {what}"))
}
