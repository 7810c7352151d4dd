//! Patches messages, and writes new ones.

use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{MediaSource, Message, Part, ToolCall};

use super::message::{self, COPIES, Fields};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{
    changes, form, loses_thoughts, text, with_items, with_nth_part, with_quoted_arguments, within,
    without_thoughts,
};

/// Writes the present message for `source`, or a new message.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let whole: Arc<str> = Arc::from(source);
    let fields = Fields::of(&whole)?;
    let was = message::message(&whole, &whole, &fields)?;
    if loses_thoughts(core::slice::from_ref(&was), messages) {
        return write_record(Some(&with_own(source, &fields, unthought(fields.own)?)?), messages);
    }
    let changes = changes(core::slice::from_ref(&was), messages)?;
    if changes.is_empty() {
        return Ok(Some(source.to_owned()));
    }
    let is_list = |content: &&str| ValueKind::of(content) == ValueKind::Array;
    let of_content = fields.content.filter(is_list).map(count).transpose()?.unwrap_or_default();
    let calls = was.parts().iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
    let before_content = was.parts().len().saturating_sub(of_content).saturating_sub(calls);
    let mut own = fields.own.to_owned();
    // From last to first: a text that is empty now is no part.
    for change in changes.iter().rev() {
        if let Part::ToolCall(call) = change.new {
            let before = was.parts().iter().take(change.part);
            own = with_call(&own, before.filter(|part| matches!(part, Part::ToolCall(_))).count(), call)?;
            continue;
        }
        let new = text(change.new)?;
        let written = match (was.parts().get(change.part), json::field(&own, "content")?.filter(is_list)) {
            (Some(Part::Text(_) | Part::Media(_)), Some(list)) => {
                with_text(list, change.part.saturating_sub(before_content), new)?
            }
            (Some(Part::Text(_) | Part::ToolResult(_)), _) => quote(new),
            _ => return Err(form("a changed call or reasoning")),
        };
        own = patch(&own, &[("content", Some(written))])?;
    }
    with_own(source, &fields, own).map(Some)
}

/// Writes the record with this message in it.
fn with_own(source: &str, fields: &Fields<'_>, own: String) -> Result<String, WireError> {
    match fields.key {
        "" => Ok(own),
        key => patch(source, &[(key, Some(own))]),
    }
}

/// Writes the message without its thoughts.
fn unthought(own: &str) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let is_thought = |raw: &str| Ok(matches!(message::block(&whole, raw)?, Some(Part::Reasoning(_))));
    let own = without_thoughts(own, "content", is_thought)?;
    within(&own, &["additional_kwargs"], |more| patch(more, &[("reasoning_content", None)]))
}

/// Writes the message with other arguments for the call with the number `wanted`, also in the copies of packages for
/// providers.
fn with_call(own: &str, wanted: usize, call: &ToolCall) -> Result<String, WireError> {
    let own = with_items(own, "tool_calls", |at, raw| match at == wanted {
        true => with_quoted_arguments(raw, "args", call),
        false => Ok(raw.to_owned()),
    })?;
    let own = with_items(&own, "content", |_, raw| {
        let kind = members(raw, &["type"])?[0].map(json::decode).unwrap_or_default();
        if COPIES.contains(&&*kind) { with_copy(raw, call) } else { Ok(raw.to_owned()) }
    })?;
    let own = with_items(&own, "tool_call_chunks", |_, raw| with_copy(raw, call))?;
    let with_function = |raw: &str| with_quoted_arguments(raw, "arguments", call);
    within(&own, &["additional_kwargs"], |more| {
        let more = with_items(more, "tool_calls", |at, raw| {
            // A call without an id is identified by its place.
            let is_it = is_copy(raw, call)? || (at == wanted && members(raw, &["id"])?[0].is_none());
            if is_it { within(raw, &["function"], with_function) } else { Ok(raw.to_owned()) }
        })?;
        // The older form of a single call.
        within(&more, &["function_call"], |raw| {
            let name = members(raw, &["name"])?[0].map(json::decode);
            if name.is_some_and(|name| *name == *call.name) { with_function(raw) } else { Ok(raw.to_owned()) }
        })
    })
}

/// The object `raw` with the arguments of this call in each member for arguments, if it has the id of the call. Blocks
/// of a streaming model also hold the text of the arguments.
fn with_copy(raw: &str, call: &ToolCall) -> Result<String, WireError> {
    let keys: &[&str] =
        if is_copy(raw, call)? { &["input", "args", "arguments", "partial_json"] } else { &[] };
    keys.iter().try_fold(raw.to_owned(), |raw, key| with_quoted_arguments(&raw, key, call))
}

/// Whether `raw` has the id of this call.
fn is_copy(raw: &str, call: &ToolCall) -> Result<bool, WireError> {
    let [call_id, id] = members(raw, &["call_id", "id"])?;
    let id = call_id.or(id).map(json::decode).unwrap_or_default();
    Ok(!id.is_empty() && *id == *call.id)
}

/// The members of `raw` that are texts; none if `raw` is no object.
fn members<'a, const N: usize>(
    raw: &'a str,
    keys: &'static [&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    if ValueKind::of(raw) != ValueKind::Object {
        return Ok([None; N]);
    }
    let is_text = |value: &&str| ValueKind::of(value) == ValueKind::Text;
    Ok(json::fields(raw, keys)?.map(|value| value.filter(is_text)))
}

/// Writes the list of blocks with this text in the place of the part `wanted`.
fn with_text(list: &str, wanted: usize, new: &str) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let is_part = |raw: &str| Ok(message::block(&whole, raw)?.is_some());
    with_nth_part(list, wanted, is_part, |raw| match ValueKind::of(raw) {
        ValueKind::Object if json::field(raw, "type")? != Some("\"text\"") => {
            Ok(format!(r#"{{"type":"text","text":{}}}"#, quote(new)))
        }
        ValueKind::Object => patch(raw, &[("text", Some(quote(new)))]),
        _ => Ok(quote(new)),
    })
}

/// Number of parts in the list of blocks.
fn count(list: &str) -> Result<usize, WireError> {
    let (whole, mut count): (Arc<str>, _) = (Arc::from(""), 0_usize);
    json::items(list, |raw| {
        count = count.saturating_add(usize::from(message::block(&whole, raw)?.is_some()));
        Ok(())
    })?;
    Ok(count)
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let [message] = messages else { return Err(form("several messages in one record")) };
    let (kind, mut more) = match message.role() {
        Role::User => ("human", String::new()),
        Role::Assistant => ("ai", String::new()),
        Role::Tool => ("tool", String::new()),
        Role::System => ("system", String::new()),
        // The form of the package for OpenAI.
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
            format!(
                "[{}]",
                parts.iter().map(|part| new_block(part)).collect::<Result<Vec<_>, _>>()?.join(",")
            )
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

/// Writes a part as a block of content.
fn new_block(part: &Part) -> Result<String, WireError> {
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
