//! Messages patched, or written anew.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{MediaSource, Message, Part, ToolCall};

use super::message::{Fields, message};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{changes, form, text};

/// The message `source` as it is now, or a new one.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let whole: Arc<str> = Arc::from(source);
    let fields = Fields::of(&whole)?;
    let was = message(&whole, &whole, &fields)?;
    let changes = changes(core::slice::from_ref(&was), messages)?;
    if changes.is_empty() {
        return Ok(Some(source.to_owned()));
    }
    let mut own = fields.own.to_owned();
    for change in changes {
        let new = text(change.new)?;
        let texts = was.parts().iter().filter(|part| matches!(part, Part::Text(_))).count();
        let old = match was.parts().get(change.part) {
            Some(old @ (Part::Text(_) | Part::ToolResult(_))) => old,
            _ => return Err(form("a changed call or reasoning")),
        };
        own = match (old, json::field(&own, "content")?) {
            (Part::ToolResult(_), Some(_)) => patch(&own, &[("content", Some(quote(new)))])?,
            (_, Some(content)) if ValueKind::of(content) == ValueKind::Text => {
                patch(&own, &[("content", Some(quote(new)))])?
            }
            (Part::Text(_), Some(content)) if texts == 1 => {
                let content = with_text(content, new)?;
                patch(&own, &[("content", Some(content))])?
            }
            _ => return Err(form("one of several texts that changed")),
        };
    }
    match fields.key {
        "" => Ok(Some(own)),
        key => patch(source, &[(key, Some(own))]).map(Some),
    }
}

/// The list of blocks with another text in the one that is not empty.
fn with_text(list: &str, new: &str) -> Result<String, WireError> {
    let (mut ranges, mut pieces) = (Vec::new(), Vec::new());
    json::items(list, |block| {
        let at = ranges.len();
        ranges.push(json::range_of(list, block));
        let is_text = |text: Option<&str>| {
            text.is_some_and(|text| ValueKind::of(text) == ValueKind::Text && text != "\"\"")
        };
        let piece = match ValueKind::of(block) {
            ValueKind::Text if block != "\"\"" => quote(new),
            ValueKind::Object
                if json::field(block, "type")? == Some("\"text\"")
                    && is_text(json::field(block, "text")?) =>
            {
                patch(block, &[("text", Some(quote(new)))])?
            }
            _ => block.to_owned(),
        };
        pieces.push((Some(at), piece));
        Ok(())
    })?;
    Ok(json::rebuild(list, &ranges, pieces.iter().map(|(at, piece)| (*at, piece.as_str()))))
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let [message] = messages else { return Err(form("several messages in one record")) };
    let (kind, mut more) = match message.role() {
        Role::User => ("human", String::new()),
        Role::Assistant => ("ai", String::new()),
        Role::Tool => ("tool", String::new()),
        Role::System => ("system", String::new()),
        // As its package for OpenAI says it.
        Role::Developer => ("system", r#","additional_kwargs":{"__openai_role__":"developer"}"#.to_owned()),
        _ => return Err(form("a new message of this role")),
    };
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    for part in message.parts() {
        match part {
            Part::ToolCall(call) if message.role() == Role::Assistant => calls.push(fresh_call(call)?),
            Part::ToolResult(result) if message.role() == Role::Tool => {
                let status = if result.is_error { "error" } else { "success" };
                more += &format!(r#","tool_call_id":{},"status":"{status}""#, quote(&result.call_id));
                content.extend(&result.parts);
            }
            Part::Reasoning(thought) if content.is_empty() && more.is_empty() && thought.opaque.is_none() => {
                more = format!(r#","additional_kwargs":{{"reasoning_content":{}}}"#, quote(&thought.text));
            }
            part => content.push(part),
        }
    }
    if !calls.is_empty() {
        more += &format!(r#","tool_calls":[{}]"#, calls.join(","));
    }
    if let Some(name) = message.name() {
        more += &format!(r#","name":{}"#, quote(name));
    }
    let content = match content.as_slice() {
        [] => quote(""),
        [Part::Text(text)] => quote(text),
        parts => {
            format!("[{}]", parts.iter().map(|part| block(part)).collect::<Result<Vec<_>, _>>()?.join(","))
        }
    };
    Ok(format!(r#"{{"type":"{kind}","data":{{"content":{content},"type":"{kind}"{more}}}}}"#))
}

fn fresh_call(call: &ToolCall) -> Result<String, WireError> {
    let args = match json::trim(&call.arguments) {
        "" => "{}",
        text if ValueKind::of(text) == ValueKind::Object && json::check(text).is_ok() => text,
        _ => return Err(form("a call whose arguments are no JSON object")),
    };
    let (name, id) = (quote(&call.name), quote(&call.id));
    Ok(format!(r#"{{"name":{name},"args":{args},"id":{id},"type":"tool_call"}}"#))
}

/// A part as a block of content.
fn block(part: &Part) -> Result<String, WireError> {
    match part {
        Part::Text(text) => Ok(format!(r#"{{"type":"text","text":{}}}"#, quote(text))),
        Part::Reasoning(thought) => {
            let sealed = thought.opaque.as_ref();
            let sealed =
                sealed.map(|sealed| format!(r#","signature":{}"#, quote(sealed))).unwrap_or_default();
            Ok(format!(r#"{{"type":"thinking","thinking":{}{sealed}}}"#, quote(&thought.text)))
        }
        Part::Media(media) => {
            let kind = match media.kind {
                MediaKind::Image => "image",
                MediaKind::Audio => "audio",
                MediaKind::Video => "video",
                _ => "file",
            };
            let mime = match &*media.mime {
                "" => String::new(),
                mime => format!(r#","mime_type":{}"#, quote(mime)),
            };
            Ok(match &media.source {
                MediaSource::Base64(data) => {
                    format!(r#"{{"type":"{kind}","base64":{}{mime}}}"#, quote(data))
                }
                MediaSource::Uri(uri) => format!(r#"{{"type":"{kind}","url":{}{mime}}}"#, quote(uri)),
            })
        }
        Part::Unknown(unknown) if unknown.format == super::FORMAT => Ok(unknown.raw.to_string()),
        _ => Err(form("this part")),
    }
}
