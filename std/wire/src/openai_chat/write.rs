//! Writes messages: unchanged, patched, or new.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall};

use super::content::for_each_item;
use super::encode::{self, kind_of, unsupported};
use super::fields::Fields;
use super::{FORMAT, read};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote, rebuild};
use crate::places::Places;

/// A member's new value; `None` removes it.
type Change = (&'static str, Option<String>);

/// Writes `message` as one JSON object.
///
/// An unchanged message of this format is its source text, byte for byte. In a changed message only the changed fields
/// are written anew, in their places, and unchanged parts keep their own text. Any other message is compact JSON,
/// `{"role","name","content","reasoning_content","tool_calls"}`.
///
/// Chat Completions has a fixed order within a message (reasoning, content, calls), no error mark for results, and no
/// ids of messages: the function does not write them. If the reasoning of an assistant was removed,
/// `reasoning_details`, its signed form, is removed too.
///
/// # Errors
/// `Unsupported` for content that the format cannot represent: hosted calls, sealed reasoning, approvals, compactions,
/// unknown parts of another format, media that it does not accept, and parts that the role cannot have.
pub fn write(message: &Message) -> Result<Cow<'_, str>, WireError> {
    match message.wire() {
        Some(wire) if wire.format == FORMAT && wire.touched => patched(message, &wire.text).map(Cow::Owned),
        Some(wire) if wire.format == FORMAT => Ok(Cow::Borrowed(&wire.text)),
        _ => fresh(message).map(Cow::Owned),
    }
}

/// A message's parts, sorted by the fields that hold them.
struct Body<'m> {
    role: Role,
    reasoning: Option<Cow<'m, str>>,
    content: Vec<&'m Part>,
    calls: Vec<&'m ToolCall>,
    call_id: Option<&'m str>,
}

impl<'m> Body<'m> {
    fn of(message: &'m Message) -> Result<Self, WireError> {
        let role = message.role();
        let mut body = Self { role, reasoning: None, content: Vec::new(), calls: Vec::new(), call_id: None };
        if role == Role::Tool {
            let [Part::ToolResult(result)] = message.parts() else {
                return Err(unsupported("a tool message that is not one tool result"));
            };
            body.call_id = Some(&result.call_id);
            body.content = result.parts.iter().collect();
            return Ok(body);
        }
        let assistant = role == Role::Assistant;
        for part in message.parts() {
            match part {
                Part::Reasoning(one) if assistant && one.opaque.is_none() => body.add_reasoning(&one.text),
                Part::Reasoning(_) if assistant => return Err(unsupported("sealed reasoning")),
                Part::ToolCall(call) if assistant => body.calls.push(call),
                Part::Text(_) | Part::Media(_) | Part::Unknown(_) => body.content.push(part),
                other => return Err(unsupported(kind_of(other))),
            }
        }
        Ok(body)
    }

    fn add_reasoning(&mut self, text: &'m str) {
        self.reasoning = Some(match self.reasoning.take() {
            None => Cow::Borrowed(text),
            Some(before) => {
                let mut before = before.into_owned();
                before.push_str("\n\n");
                before.push_str(text);
                Cow::Owned(before)
            }
        });
    }
}

fn fresh(message: &Message) -> Result<String, WireError> {
    let body = Body::of(message)?;
    // The older form has the name of the function instead of the id of the call.
    let legacy = body.call_id == Some("") && message.name().is_some();
    let role = if legacy { "function" } else { message.role().as_str() };
    let mut members = vec![format!(r#""role":{}"#, quote(role))];
    let mut push = |key: &str, value: String| members.push(format!(r#""{key}":{value}"#));
    if let Some(name) = message.name() {
        push("name", quote(name));
    }
    match body.content.is_empty() && !body.calls.is_empty() {
        true => push("content", "null".to_owned()),
        false => push("content", encode::content(&body.content)?),
    }
    if let Some(reasoning) = &body.reasoning {
        push("reasoning_content", quote(reasoning));
    }
    match body.calls.as_slice() {
        [] => {}
        [call] if call.id.is_empty() => push("function_call", encode::function(call)?),
        calls => {
            let calls = calls.iter().map(|call| encode::call(call)).collect::<Result<Vec<_>, _>>()?;
            push("tool_calls", format!("[{}]", calls.join(",")));
        }
    }
    if let Some(id) = body.call_id.filter(|id| !id.is_empty()) {
        push("tool_call_id", quote(id));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn patched(message: &Message, source: &str) -> Result<String, WireError> {
    let before = read(source)?;
    let (old, new) = (Body::of(&before)?, Body::of(message)?);
    let fields = Fields::of(source)?;
    let mut changes = Vec::new();
    if message.name() != before.name() {
        changes.push(("name", message.name().map(quote)));
    }
    if new.reasoning != old.reasoning {
        reasoning(&fields, new.reasoning.as_deref(), &mut changes);
    }
    content(&fields, &old, &new, &mut changes)?;
    if new.calls != old.calls {
        calls(&fields, &old.calls, &new.calls, &mut changes)?;
    }
    if new.call_id != old.call_id {
        changes.push(("tool_call_id", new.call_id.filter(|id| !id.is_empty()).map(quote)));
        changes.push(("tool_call_ids", None));
    }
    patch(source, &changes)
}

fn reasoning(fields: &Fields<'_>, new: Option<&str>, changes: &mut Vec<Change>) {
    let key = fields.reasoning().map_or("reasoning_content", |(key, _)| key);
    changes.push((key, new.map(quote)));
    let other = if key == "reasoning" { "reasoning_content" } else { "reasoning" };
    changes.push((other, None));
    changes.push(("reasoning_details", None));
}

fn content(
    fields: &Fields<'_>,
    old: &Body<'_>,
    new: &Body<'_>,
    changes: &mut Vec<Change>,
) -> Result<(), WireError> {
    let (mut before, mut after) = (old.content.as_slice(), new.content.as_slice());
    let refusal = fields.refusal.filter(|raw| *raw != "\"\"" && new.role == Role::Assistant);
    if let (Some(_), Some((refusal, rest))) = (refusal, before.split_last()) {
        before = rest;
        match after.split_last() {
            Some((last, rest)) if last == refusal => after = rest,
            _ => changes.push(("refusal", None)),
        }
    }
    let may_be_absent = !new.calls.is_empty();
    let left_empty = after.is_empty() && !may_be_absent && !old.calls.is_empty();
    if before == after && !left_empty {
        return Ok(());
    }
    let list = fields.content.filter(|raw| ValueKind::of(raw) == ValueKind::Array && !after.is_empty());
    let value = match list {
        _ if after.is_empty() && may_be_absent => None,
        Some(list) => Some(content_list(list, after)?),
        None => Some(encode::content(after)?),
    };
    changes.push(("content", value));
    Ok(())
}

/// Writes the content list `list` with these parts. Known parts keep their text.
fn content_list(list: &str, parts: &[&Part]) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let (mut items, mut ranges) = (Vec::new(), Vec::new());
    for_each_item(list, |part, raw| {
        items.push((part.map(|part| part.to_part(&whole)), raw));
        ranges.push(json::range_of(list, raw));
    })?;
    let known: Vec<_> = items.iter().map(|(item, _)| item.as_ref()).collect();
    let (mut places, mut next) = (Places::new(&known), 0);
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let place = places.find(&Some(*part), next);
        pieces.push(match place.and_then(|at| Some((at, items.get(at)?.1))) {
            Some((at, raw)) => {
                next = at.saturating_add(1);
                (Some(at), Cow::Borrowed(raw))
            }
            None => (None, Cow::Owned(encode::part(part)?)),
        });
    }
    Ok(rebuild(list, &ranges, pieces.iter().map(|(at, text)| (*at, &**text))))
}

fn calls(
    fields: &Fields<'_>,
    old: &[&ToolCall],
    new: &[&ToolCall],
    changes: &mut Vec<Change>,
) -> Result<(), WireError> {
    let mut raws = Vec::new();
    if let Some(list) = fields.tool_calls {
        json::items(list, |raw| {
            raws.push(raw);
            Ok(())
        })?;
    }
    let mut rest = new;
    if let Some(raw) = fields.function_call {
        let before = old.get(raws.len());
        match new.split_last() {
            Some((call, others)) if call.id.is_empty() => {
                rest = others;
                if before != Some(call) {
                    changes.push(("function_call", Some(patched_function(raw, "arguments", call)?)));
                }
            }
            _ => changes.push(("function_call", None)),
        }
    }
    let kept = old.get(..raws.len()).unwrap_or_default();
    if kept != rest {
        changes.push(("tool_calls", call_list(fields.tool_calls, kept, &raws, rest)?));
    }
    Ok(())
}

/// The list of `calls`. Those of `old` keep their text, and calls with an id of `old` are patched.
fn call_list(
    list: Option<&str>,
    old: &[&ToolCall],
    raws: &[&str],
    calls: &[&ToolCall],
) -> Result<Option<String>, WireError> {
    if calls.is_empty() {
        return Ok(None);
    }
    let ids: Vec<&str> = old.iter().map(|call| call.id.as_str()).collect();
    let (mut same, mut similar, mut next) = (Places::new(old), Places::new(&ids), 0);
    let mut pieces = Vec::with_capacity(calls.len());
    for call in calls {
        let place = same.find(call, next).or_else(|| similar.find(&call.id.as_str(), next));
        pieces.push(match place.and_then(|at| Some((at, raws.get(at)?, old.get(at)?))) {
            Some((at, raw, known)) => {
                next = at.saturating_add(1);
                let text = if known == call { (*raw).to_owned() } else { patched_call(raw, call)? };
                (Some(at), text)
            }
            None => (None, encode::call(call)?),
        });
    }
    let list = list.unwrap_or("[]");
    let ranges: Vec<_> = raws.iter().map(|raw| json::range_of(list, raw)).collect();
    Ok(Some(rebuild(list, &ranges, pieces.iter().map(|(at, text)| (*at, text.as_str())))))
}

fn patched_call(raw: &str, call: &ToolCall) -> Result<String, WireError> {
    let [function, custom] = json::fields(raw, &["function", "custom"])?;
    let (key, input, body) = match (function.filter(|raw| *raw != "null"), custom) {
        (Some(body), _) => ("function", "arguments", body),
        (None, Some(body)) => ("custom", "input", body),
        (None, None) => return encode::call(call),
    };
    patch(raw, &[(key, Some(patched_function(body, input, call)?))])
}

fn patched_function(raw: &str, input: &'static str, call: &ToolCall) -> Result<String, WireError> {
    encode::function(call)?;
    patch(raw, &[("name", Some(quote(&call.name))), (input, Some(quote(&call.arguments)))])
}
