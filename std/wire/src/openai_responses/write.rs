//! Writes new items, and patches old ones.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use super::content;
use super::custom_output;
use super::encode;
use super::hosted;
use super::item::{self, ItemKind};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::patch_parts::Elements;

/// Writes the item `source` with these messages, or new items, separated by commas.
pub(crate) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let items = write_items(source, messages)?;
    Ok(Some(items.join(",")).filter(|items| !items.is_empty()))
}

/// Writes the item `source` with these messages, or new items, each with its own text. One item may become several.
pub(crate) fn write_items(source: Option<&str>, messages: &[&Message]) -> Result<Vec<String>, WireError> {
    let [message] = messages else {
        return Err(WireError::unsupported("Responses has one message in each item"));
    };
    if let Some(source) = source.or_else(|| custom_output::form(message))
        && let Some(patched) = patched(source, message)?
    {
        return Ok(vec![patched]);
    }
    let text = |item: encode::Item<'_>| {
        let mut text = String::new();
        item.push(&mut text)?;
        Ok(text)
    };
    encode::items(message).into_iter().map(text).collect()
}

/// The patched item; `None` if the message no longer has the form of the item.
fn patched(source: &str, message: &Message) -> Result<Option<String>, WireError> {
    if ValueKind::of(source) != ValueKind::Object {
        // `instructions`, or an input that is a text.
        return match message.parts() {
            [Part::Text(text)] if *text == *json::decode(source) => Ok(Some(source.to_owned())),
            [Part::Text(text)] => Ok(Some(quote(text))),
            [] => Ok(Some(quote(""))),
            _ => Ok(None),
        };
    }
    let whole: Arc<str> = Arc::from(source);
    let Some(before) = item::message(&whole, &whole)? else { return Ok(None) };
    if before.parts() == message.parts() {
        return Ok(Some(source.to_owned()));
    }
    let (kind, name) = ItemKind::of(source)?;
    let change = match (kind, before.parts(), message.parts()) {
        (ItemKind::Message, _, parts) => ("content", patched_content(source, parts, message.role())?),
        (ItemKind::Call(key, _), [Part::ToolCall(old), rest @ ..], [Part::ToolCall(new), kept @ ..])
            if old.id == new.id && old.name == new.name =>
        {
            let Some(source) = with_result(source, rest, kept)? else { return Ok(None) };
            if old.arguments == new.arguments {
                return Ok(Some(source));
            }
            let source = source.as_str();
            let is_text = json::field(source, key)?.is_none_or(|raw| ValueKind::of(raw) == ValueKind::Text);
            let valid = || json::check(&new.arguments).is_ok();
            let input =
                if is_text || !valid() { quote(&new.arguments) } else { new.arguments.as_str().to_owned() };
            return patch(source, &[(key, Some(input))]).map(Some);
        }
        (ItemKind::Output, [Part::ToolResult(old)], [Part::ToolResult(new)])
            if old.call_id == new.call_id =>
        {
            ("output", patched_output(source, &name, new)?)
        }
        _ => return Ok(None),
    };
    patch(source, &[(change.0, Some(change.1))]).map(Some)
}

fn patched_content(source: &str, parts: &[Part], role: Role) -> Result<String, WireError> {
    let list = json::field(source, "content")?.filter(|content| ValueKind::of(content) == ValueKind::Array);
    match (list, parts) {
        (Some(list), parts) => {
            let whole: Arc<str> = Arc::from("");
            elements(role).patch(list, &content::parts(&whole, list)?, parts)
        }
        (None, [Part::Text(text)]) => Ok(quote(text)),
        (None, parts) => {
            let parts = parts.iter().map(|part| encode::part(part, role)).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("[{}]", parts.join(",")))
        }
    }
}

/// The item of a call that the provider ran, with `wanted` in the place of `had`, the parts other than the call.
fn with_result(source: &str, had: &[Part], wanted: &[Part]) -> Result<Option<String>, WireError> {
    match (had, wanted) {
        (had, wanted) if had == wanted => Ok(Some(source.to_owned())),
        ([Part::ToolResult(had)], [Part::ToolResult(wanted)]) if had.call_id == wanted.call_id => {
            hosted::patched(source, &wanted.parts)
        }
        _ => Ok(None),
    }
}

fn patched_output(source: &str, kind: &str, result: &ToolResult) -> Result<String, WireError> {
    if let Some(output) = hosted::output(kind, json::field(source, "output")?.unwrap_or("null"), result)? {
        return Ok(output);
    }
    let parts = &result.parts;
    match json::field(source, "output")?.filter(|output| ValueKind::of(output) == ValueKind::Array) {
        Some(list) => {
            let whole: Arc<str> = Arc::from("");
            elements(Role::Tool).patch(list, &content::parts(&whole, list)?, parts)
        }
        None => encode::output_of(parts),
    }
}

const fn elements(role: Role) -> Elements<Part> {
    let fresh = match role {
        Role::Assistant => |part: &Part| encode::part(part, Role::Assistant),
        _ => |part: &Part| encode::part(part, Role::User),
    };
    Elements { key: |_| None, fresh, patched: |_, part| encode::part(part, Role::User) }
}
