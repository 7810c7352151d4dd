//! Writes new records, and patches old ones.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use super::block;
use super::encode::{self, unsupported};
use super::hosted;
use super::record;
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::patch_parts::Elements;

/// Writes the record `source` with these messages, or a new record.
pub(crate) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let parts: Vec<Part> = messages.iter().flat_map(|message| message.parts()).cloned().collect();
    let content = patched_content(record::content(source)?, &parts)?;
    match ValueKind::of(source) {
        ValueKind::Object => patch(source, &[("content", Some(content))]).map(Some),
        _ => Ok(Some(content)),
    }
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let role = match messages.first().map(|message| message.role()) {
        Some(Role::System) => "system",
        Some(Role::Developer) => return Err(unsupported("a developer's message")),
        Some(Role::Assistant) => "assistant",
        _ => "user",
    };
    let mut record = format!(r#"{{"role":"{role}","content":"#);
    encode::push_content(&mut record, messages.iter().flat_map(|message| message.parts()))?;
    record.push('}');
    Ok(record)
}

/// Writes `content` with these parts. Unchanged blocks keep their text, and blocks with the id of a call or a result
/// are patched.
fn patched_content(content: &str, parts: &[Part]) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let known = block::parts(&whole, content)?;
    if known.iter().filter_map(|(part, _)| part.as_ref()).eq(parts) {
        return Ok(content.to_owned());
    }
    match (ValueKind::of(content), parts) {
        (ValueKind::Array, parts) => BLOCKS.patch(content, &known, parts),
        (_, [Part::Text(text)]) => Ok(quote(text)),
        (_, parts) => {
            let blocks = parts.iter().map(encode::block).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", blocks.join(",")))
        }
    }
}

const BLOCKS: Elements<Part> = Elements { key, fresh: encode::block, patched: patched_block };

/// The identity of a block, which stays when its content changes: the id of the call that it makes or answers.
fn key(part: &Part) -> Option<(bool, &str)> {
    match part {
        Part::ToolCall(ToolCall { id, .. }) => Some((true, id)),
        Part::ToolResult(ToolResult { call_id, .. }) => Some((false, call_id)),
        _ => None,
    }
}

fn patched_block(raw: &str, part: &Part) -> Result<String, WireError> {
    match part {
        Part::ToolCall(call) => {
            let (name, input) = (quote(&call.name), encode::input(call)?.to_owned());
            patch(raw, &[("name", Some(name)), ("input", Some(input))])
        }
        Part::ToolResult(result) => {
            let kind = json::field(raw, "type")?.map(json::decode).unwrap_or_default();
            let content = json::field(raw, "content")?.filter(|content| *content != "null");
            let whole = match content {
                Some(content) => hosted::patched(&kind, content, &result.parts)?,
                None => None,
            };
            let content = match content {
                _ if whole.is_some() => whole.unwrap_or_default(),
                Some(content) if ValueKind::of(content) != ValueKind::Object => {
                    patched_content(content, &result.parts)?
                }
                _ => encode::content(&result.parts)?,
            };
            let was = json::field(raw, "is_error")? == Some("true");
            let mut changes = vec![("content", Some(content))];
            if was != result.is_error {
                changes.push(("is_error", Some(result.is_error.to_string())));
            }
            patch(raw, &changes)
        }
        other => encode::block(other),
    }
}
