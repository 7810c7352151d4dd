//! Reads one record as one or more messages.

use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_core::{GeminiTokens, Usage};
use epitome_message::{Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText};

use super::FORMAT;
use crate::expect::{expect_object, member_text, number, optional_text, share};
use crate::gemini::{Unit, runs, unit};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::{Format, WireError};

/// The content of a record.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) messages: Vec<Message>,
    /// Number of parts of all messages before the parts of its `content`.
    pub(super) before_content: usize,
    /// The usage that the record reports.
    pub(super) usage: Option<Usage>,
}

/// A call of a record, and its result.
type Call = (ToolCall, Option<ToolResult>);

/// The messages of the record `raw`, a slice of `whole`; none for a note.
pub(super) fn record<'a>(whole: &Arc<str>, record: impl Into<Value<'a>>) -> Result<Record, WireError> {
    let record = record.into();
    let raw = record.text();
    expect_object(raw, "a record")?;
    let names = &["id", "type", "content", "thoughts", "toolCalls", "tokens"];
    let [id, kind, content, thoughts, calls, tokens] = json::known::fields(record, names)?;
    let role = match kind {
        Some("\"user\"") => Role::User,
        Some("\"gemini\"") => Role::Assistant,
        _ => return Ok(Record { messages: Vec::new(), before_content: 0, usage: None }),
    };
    let calls = self::calls(whole, record, calls)?;
    let units = match content {
        Some(content) => json::nested(raw, content, "/content", |content| said(whole, content, &calls))?,
        None => Vec::new(),
    };
    let wire = WireText::new(Format::GeminiCli.shared_name(), share(whole, raw));
    let (mut messages, before_content) = match role {
        Role::User => (turns(units, &wire), 0),
        _ => answer(whole, raw, (units, thoughts, &calls), &wire)?,
    };
    let id = optional_text(raw, id, "id")?.map(|id| share(whole, &id));
    if let Some(first) = messages.first_mut() {
        let unnamed = core::mem::replace(first, Message::new(role, Vec::new()));
        *first = named(unnamed, id);
    }
    let results = calls.into_iter().filter_map(|(_, result)| result);
    let results = results.filter(|_| role == Role::Assistant);
    messages.extend(results.map(|result| {
        Message::new(Role::Tool, vec![Part::ToolResult(result)]).with_wire(wire.clone().with_rejoin(true))
    }));
    Ok(Record { messages, before_content, usage: reported(tokens)? })
}

/// Sets the id of a record on its first message.
fn named(message: Message, id: Option<Str>) -> Message {
    match (id, message.role()) {
        (Some(id), Role::Assistant) => message.with_response_id(id.clone()).with_id(id),
        (Some(id), _) => message.with_id(id),
        (None, _) => message,
    }
}

/// Removes the results of calls in the model's own record, if `is_told` returns true: they are in another record.
pub(super) fn without_results(messages: &mut Vec<Message>, is_told: impl Fn(&Str) -> bool) {
    if messages.first().is_some_and(|first| first.role() == Role::Assistant) {
        messages.retain(|message| !results(message).any(&is_told));
    }
}

/// The ids of the calls that a message answers.
pub(super) fn results(message: &Message) -> impl Iterator<Item = &Str> {
    message.parts().iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(&result.call_id),
        _ => None,
    })
}

/// The messages of a user's record. Each response to a call is a message of its own.
fn turns(units: Vec<(Unit, &str)>, wire: &WireText) -> Vec<Message> {
    let mut messages = Vec::new();
    let runs = runs(Role::User, &units);
    let mut units = units.into_iter();
    for (run, is_response) in runs {
        let role = if is_response { Role::Tool } else { Role::User };
        let parts = joined(units.by_ref().take(run.len()));
        messages.push(Message::new(role, parts).with_wire(wire.clone().with_rejoin(!messages.is_empty())));
    }
    if messages.is_empty() {
        messages.push(Message::new(Role::User, Vec::new()).with_wire(wire.clone()));
    }
    messages
}

/// The parts of these units, concatenated.
fn joined<'a>(units: impl IntoIterator<Item = (Unit, &'a str)>) -> Vec<Part> {
    let mut each = units.into_iter().map(|(unit, _)| unit.parts);
    // Most contents have a single unit.
    let mut parts = each.next().unwrap_or_default();
    parts.extend(each.flatten());
    parts
}

/// The message of the model: thoughts, content and calls. Newer content contains the calls and thoughts.
fn answer(
    whole: &Arc<str>,
    raw: &str,
    (units, thoughts, calls): (Vec<(Unit, &str)>, Option<&str>, &[Call]),
    wire: &WireText,
) -> Result<(Vec<Message>, usize), WireError> {
    let said = joined(units);
    let is_whole = said.iter().any(|part| matches!(part, Part::ToolCall(_) | Part::Reasoning(_)));
    let mut parts = Vec::new();
    each(raw, thoughts.filter(|_| !is_whole), "/thoughts", |thought| {
        parts.push(self::thought(whole, thought)?);
        Ok(())
    })?;
    let before_content = parts.len();
    let known: HashSet<&str> = said.iter().filter_map(call_id).collect();
    let others = calls.iter().map(|(call, _)| call).filter(|call| !known.contains(&*call.id));
    let others: Vec<_> = others.cloned().map(Part::ToolCall).collect();
    parts.reserve_exact(said.len().saturating_add(others.len()));
    parts.extend(said);
    parts.extend(others);
    Ok((vec![Message::new(Role::Assistant, parts).with_wire(wire.clone())], before_content))
}

fn call_id(part: &Part) -> Option<&str> {
    if let Part::ToolCall(call) = part { Some(&call.id) } else { None }
}

fn each(
    raw: &str,
    list: Option<&str>,
    path: &str,
    mut visit: impl FnMut(&str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let Some(list) = list.filter(|list| ValueKind::of(list) == ValueKind::Array) else { return Ok(()) };
    let mut at = 0_usize;
    json::nested(raw, list, path, |list| {
        json::known::items(list, |item| {
            let path = format_args!("/{at}");
            let done = json::nested(list, item, path, &mut visit);
            at = at.saturating_add(1);
            done
        })
    })
}

fn thought(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    expect_object(raw, "a thought")?;
    let (subject, text) = (member_text(whole, raw, "subject")?, member_text(whole, raw, "description")?);
    let texts: Vec<_> = [subject, text].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    Ok(Part::Reasoning(Reasoning::new(texts.iter().map(Str::as_str).collect::<Vec<_>>().join("\n"))))
}

/// The units of a text, a part or a list of both, each with its text. A call without an id gets the id of the call with
/// the same name in the record's `calls`.
fn said<'c>(whole: &Arc<str>, content: &'c str, calls: &[Call]) -> Result<Vec<(Unit, &'c str)>, WireError> {
    let mut open: Vec<&ToolCall> = calls.iter().map(|(call, _)| call).rev().collect();
    let mut id = |is_call: bool, name: &str| {
        let found = open.iter().rposition(|call| is_call && call.name == name);
        found.map(|at| open.remove(at).id.clone()).unwrap_or_default()
    };
    let mut units = Vec::new();
    if ValueKind::of(content) != ValueKind::Array {
        units.extend(element(whole, content, &mut id)?.map(|unit| (unit, content)));
        return Ok(units);
    }
    let mut at = 0_usize;
    json::known::items(content, |item| {
        let path = format_args!("/{at}");
        let found = json::nested(content, item, path, |item| element(whole, item, &mut id))?;
        units.push((found.unwrap_or_default(), item));
        at = at.saturating_add(1);
        Ok(())
    })?;
    Ok(units)
}

/// The unit of one element of a content.
pub(super) fn element(
    whole: &Arc<str>,
    raw: &str,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<Option<Unit>, WireError> {
    match ValueKind::of(raw) {
        ValueKind::Text if raw == "\"\"" => Ok(None),
        ValueKind::Text => {
            Ok(Some(Unit { parts: vec![Part::Text(share(whole, &json::decode(raw)))], name: None }))
        }
        ValueKind::Object => unit(whole, raw, id).map(Some),
        // The format has no list within a list.
        ValueKind::Array => Err(WireError::shape("expected a text or a part, found an array")),
        _ => Ok(None),
    }
}

fn calls<'a>(whole: &Arc<str>, record: Value<'a>, calls: Option<&'a str>) -> Result<Vec<Call>, WireError> {
    let (raw, mut found) = (record.text(), Vec::new());
    let Some(list) = calls.filter(|list| ValueKind::of(list) == ValueKind::Array) else { return Ok(found) };
    json::nested(raw, list, "/toolCalls", |list| {
        json::known::items_and_fields(
            record.within(list),
            &["id", "name", "args", "status", "result"],
            |call, fields| {
                let path = format_args!("/{}", found.len());
                found.push(json::nested(list, call, path, |call| self::call(whole, call, fields))?);
                Ok(())
            },
        )
    })?;
    Ok(found)
}

fn call(
    whole: &Arc<str>,
    raw: &str,
    fields: Result<[Option<&str>; 5], WireError>,
) -> Result<Call, WireError> {
    expect_object(raw, "a call")?;
    let [id, name, args, status, result] = fields?;
    let text = |value, key| {
        Ok::<_, WireError>(
            optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default(),
        )
    };
    let id = text(id, "id")?;
    let call = ToolCall::new(id.clone(), text(name, "name")?, share(whole, args.unwrap_or("{}")));
    let Some(result) = result.filter(|result| !matches!(*result, "null" | "[]")) else {
        return Ok((call, None));
    };
    let mut answer = ToolResult::new(id, Vec::new());
    answer.parts.reserve_exact(1);
    answer.is_error = matches!(status, Some("\"error\"" | "\"cancelled\""));
    let mut add = |part: &str, response: Result<[Option<&str>; 1], WireError>| {
        answer.parts.push(returned(whole, part, response)?);
        Ok(())
    };
    match ValueKind::of(result) {
        ValueKind::Array => json::known::items_and_fields(result, &["functionResponse"], add)?,
        ValueKind::Object => add(result, json::known::fields(result, &["functionResponse"]))?,
        _ => add(result, Ok([None]))?,
    }
    Ok((call, Some(answer)))
}

/// The content of a part of a result: `output` of its response, or the unchanged response.
fn returned(
    whole: &Arc<str>,
    raw: &str,
    function: Result<[Option<&str>; 1], WireError>,
) -> Result<Part, WireError> {
    let unknown = || Part::Unknown(UnknownPart::new(FORMAT, "part", share(whole, raw)));
    match ValueKind::of(raw) {
        ValueKind::Object => {}
        ValueKind::Text => return Ok(Part::Text(share(whole, &json::decode(raw)))),
        _ => return Ok(unknown()),
    }
    let object = |text: &&str| ValueKind::of(text) == ValueKind::Object;
    let [function] = function?;
    let Some(function) = function.filter(object) else { return Ok(unknown()) };
    let Some(response) = json::known::field(function, "response")?.filter(object) else {
        return Ok(unknown());
    };
    let [output, error] = json::known::fields(response, &["output", "error"])?;
    Ok(Part::Text(match output.or(error).filter(|text| ValueKind::of(text) == ValueKind::Text) {
        Some(text) => share(whole, &json::decode(text)),
        None => share(whole, response),
    }))
}

/// The usage that `tokens` reports.
fn reported(tokens: Option<&str>) -> Result<Option<Usage>, WireError> {
    let Some(tokens) = tokens.filter(|tokens| ValueKind::of(tokens) == ValueKind::Object) else {
        return Ok(None);
    };
    let names = &["input", "output", "cached", "thoughts", "tool", "total"];
    let [prompt, candidates, cached, thoughts, tool_use_prompt, total] =
        json::known::fields(tokens, names)?.map(number);
    Ok(Some(Usage::gemini(GeminiTokens { prompt, tool_use_prompt, candidates, thoughts, total, cached })))
}
