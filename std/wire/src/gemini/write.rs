//! Writes new contents, and patches old ones.

use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, Str, ToolResult};

use super::content;
use super::encode::{self, unsupported};
use super::part::{self, CODE_RESULT, Unit};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::patch_parts::Elements;

/// Writes the content `source` with these messages, or a new content.
pub(crate) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let wanted: Vec<Unit> = messages.iter().flat_map(|message| encode::units(message)).collect();
    let Some(source) = source else { return fresh(messages, &wanted).map(Some) };
    if let Some(content) = json::field(source, "content").ok().flatten().filter(|_| is_candidate(source)) {
        let content = patched(content, &wanted)?;
        return patch(source, &[("content", Some(content))]).map(Some);
    }
    patched(source, &wanted).map(Some)
}

/// Whether a record is an element of `candidates`.
fn is_candidate(source: &str) -> bool {
    ValueKind::of(source) == ValueKind::Object
        && json::field(source, "parts").is_ok_and(|parts| parts.is_none())
}

fn fresh(messages: &[&Message], wanted: &[Unit]) -> Result<String, WireError> {
    let role = match messages.first().map(|message| message.role()) {
        Some(Role::Assistant) => "model",
        Some(Role::System | Role::Developer) => return Err(unsupported("instructions among the contents")),
        _ => "user",
    };
    Ok(format!(r#"{{"role":"{role}","parts":{}}}"#, list(wanted)?))
}

/// Writes a list of these units.
pub(super) fn list(units: &[Unit]) -> Result<String, WireError> {
    let parts = units.iter().map(encode::unit).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", parts.join(",")))
}

fn patched(source: &str, wanted: &[Unit]) -> Result<String, WireError> {
    if ValueKind::of(source) != ValueKind::Object {
        return match wanted {
            [Unit { parts, .. }] if matches!(parts.as_slice(), [Part::Text(_)]) => {
                let text =
                    parts.iter().find_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
                let text = text.map(Str::as_str).unwrap_or_default();
                let is_same = ValueKind::of(source) == ValueKind::Text && json::decode(source) == text;
                Ok(if is_same { source.to_owned() } else { quote(text) })
            }
            _ => Ok(format!(r#"{{"parts":{}}}"#, list(wanted)?)),
        };
    }
    let whole: Arc<str> = Arc::from("");
    let known = content::units(&whole, source, &mut |_, _| Str::default())?;
    if known.iter().flat_map(|(unit, _)| &unit.parts).eq(wanted.iter().flat_map(|unit| &unit.parts)) {
        return Ok(source.to_owned());
    }
    let parts = json::field(source, "parts")?.filter(|list| ValueKind::of(list) == ValueKind::Array);
    let Some(parts) = parts else { return patch(source, &[("parts", Some(list(wanted)?))]) };
    let known: Vec<_> = known.into_iter().map(|(unit, raw)| (Some(unit), raw)).collect();
    let units = Elements { key, fresh: encode::unit, patched: patched_unit };
    patch(source, &[("parts", Some(units.patch(parts, &known, wanted)?))])
}

/// The identity of a part, which stays when its content changes: the id or the name of the call that it makes or
/// answers.
fn key(unit: &Unit) -> Option<(bool, &str)> {
    unit.parts.iter().find_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => {
            Some((true, if call.id.is_empty() { &*call.name } else { &*call.id }))
        }
        Part::ToolResult(result) if result.call_id.is_empty() => Some((false, unit.name.as_deref()?)),
        Part::ToolResult(result) => Some((false, &result.call_id)),
        _ => None,
    })
}

fn patched_unit(raw: &str, unit: &Unit) -> Result<String, WireError> {
    let [camel_call, call, camel_response, response] =
        json::fields(raw, &["functionCall", "function_call", "functionResponse", "function_response"])?;
    let before = part::unit(&Arc::from(""), raw, &mut |_, _| Str::default())?;
    let sealed = |unit: &Unit| match unit.parts.first() {
        Some(Part::Reasoning(sealed)) => sealed.opaque.clone(),
        _ => None,
    };
    if sealed(&before) != sealed(unit) {
        return encode::unit(unit);
    }
    let (body_key, changes) = match unit.parts.last() {
        Some(Part::ToolCall(call)) => {
            let args = encode::args(call)?.to_owned();
            let key = if camel_call.is_some() { "functionCall" } else { "function_call" };
            (key, vec![("name", Some(quote(&call.name))), ("args", Some(args))])
        }
        Some(Part::ToolResult(result)) if unit.name.as_deref() == Some(CODE_RESULT) => {
            return patched_code(raw, result);
        }
        Some(Part::ToolResult(result)) => {
            let body = camel_response.or(response).unwrap_or("{}");
            let old = json::field(body, "response")?.unwrap_or("null");
            let key = part::only_text(old)?.map(|(key, _)| key);
            let media = encode::media_of(result)?;
            let fresh = encode::response_of(result, key)?;
            let response = match (key, part::only_text(&fresh)?) {
                (Some(old_key), Some((key, text))) if old_key == key => {
                    patch(old, &[(key, Some(quote(&text)))])?
                }
                _ => fresh,
            };
            let mut changes = vec![("response", Some(response))];
            if json::field(body, "parts")?.is_some() || !media.is_empty() {
                changes.push(("parts", Some(format!("[{}]", media.join(","))).filter(|_| !media.is_empty())));
            }
            (if camel_response.is_some() { "functionResponse" } else { "function_response" }, changes)
        }
        _ => return encode::unit(unit),
    };
    let body = [camel_call, call, camel_response, response].into_iter().flatten().next();
    let Some(body) = body else { return encode::unit(unit) };
    patch(raw, &[(body_key, Some(patch(body, &changes)?))])
}

/// Writes the result of the provider's own code with another output; its outcome stays.
fn patched_code(raw: &str, result: &ToolResult) -> Result<String, WireError> {
    for key in [CODE_RESULT, "code_execution_result"] {
        let Some(body) = json::field(raw, key)?.filter(|body| ValueKind::of(body) == ValueKind::Object)
        else {
            continue;
        };
        let output = match result.parts.as_slice() {
            [Part::Unknown(unknown)] if *unknown.raw == *body => return Ok(raw.to_owned()),
            _ => quote(&encode::printed(result)?),
        };
        return patch(raw, &[(key, Some(patch(body, &[("output", Some(output))])?))]);
    }
    Err(unsupported("this part of a result"))
}
