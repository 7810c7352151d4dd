//! Patches records, and writes new ones.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, Str, ToolCall, ToolResult};

use super::message::{Record, element, record, results, without_results};
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{
    changes, form, loses_thoughts, only_text, text, with_arguments, with_items, within, without_thoughts,
};

/// Writes the record `source` with the present messages, or a new record with a text.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    match source {
        Some(source) => changed(source, messages, read(source)?).map(Some),
        None => fresh(messages).map(Some),
    }
}

/// Works like [`write_record`], in a log: there a result may be a record of its own.
pub(super) fn write_logged(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    let told: HashSet<&Str> = messages.iter().flat_map(|message| results(message)).collect();
    let mut was = read(source)?;
    without_results(&mut was.messages, |id| !told.contains(id));
    changed(source, messages, was).map(Some)
}

fn read(source: &str) -> Result<Record, WireError> {
    let whole: Arc<str> = Arc::from(source);
    record(&whole, &whole)
}

fn changed(source: &str, messages: &[&Message], mut was: Record) -> Result<String, WireError> {
    if loses_thoughts(&was.messages, messages) {
        let unthought = unthought(source)?;
        for message in &mut was.messages {
            let parts = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_))).cloned();
            *message = Message::new(message.role(), parts.collect());
        }
        // A text or a call may be signed: the signature is a thought within its part.
        let said = |messages: &[Message]| messages.first().map(|message| message.parts().to_vec());
        if said(&read(&unthought)?.messages) != said(&was.messages) {
            return Err(form("a message without its signed thoughts"));
        }
        return changed(&unthought, messages, Record { before_content: 0, ..was });
    }
    let mut record = source.to_owned();
    // From last to first: a text that is empty now is no part.
    for change in changes(&was.messages, messages)?.iter().rev() {
        let before = was.messages.iter().take(change.piece).map(|message| message.parts().len());
        let at = before.sum::<usize>().saturating_add(change.part).checked_sub(was.before_content);
        let is_of_call =
            change.piece > 0 && messages.first().is_some_and(|first| first.role() == Role::Assistant);
        record = match (change.new, at) {
            (Part::ToolResult(result), _) if is_of_call => with_result(&record, result, text(change.new)?)?,
            (Part::ToolCall(call), Some(at)) => {
                let was = was.messages.get(change.piece).and_then(|was| was.parts().get(change.part));
                let Some(Part::ToolCall(was)) = was else { return Err(form("a call that was none")) };
                with_call(&with_part(&record, at, change.new)?, (was, call))?
            }
            (new, Some(at)) => with_part(&record, at, new)?,
            (_, None) => return Err(form("a change to a thought")),
        };
    }
    Ok(record)
}

/// Writes the record without its thoughts, which may be in its content too.
fn unthought(record: &str) -> Result<String, WireError> {
    let whole: Arc<str> = Arc::from("");
    let is_thought = |raw: &str| {
        let parts =
            element(&whole, raw, &mut |_, _| Str::default())?.map(|unit| unit.parts).unwrap_or_default();
        Ok(!parts.is_empty() && parts.iter().all(|part| matches!(part, Part::Reasoning(_))))
    };
    without_thoughts(&patch(record, &[("thoughts", None)])?, "content", is_thought)
}

/// Writes the record with another part in the place `wanted` of its content.
fn with_part(record: &str, wanted: usize, new: &Part) -> Result<String, WireError> {
    let content = json::field(record, "content")?.unwrap_or("\"\"");
    let (whole, mut before): (Arc<str>, _) = (Arc::from(""), 0_usize);
    let mut written = |raw: &str| {
        let count = element(&whole, raw, &mut |_, _| Str::default())?.map_or(0, |unit| unit.parts.len());
        let within = wanted.checked_sub(before).filter(|within| *within < count);
        before = before.saturating_add(count);
        within.map_or_else(|| Ok(raw.to_owned()), |within| with_element(raw, within, new))
    };
    let content = match ValueKind::of(content) {
        ValueKind::Array => json::map_items(content, |_, raw| written(raw))?,
        _ => written(content)?,
    };
    match new {
        _ if wanted < before => patch(record, &[("content", Some(content))]),
        // The call is only in the list of calls.
        Part::ToolCall(_) => Ok(record.to_owned()),
        _ => Err(form("this change")),
    }
}

/// Writes the element `raw` of a content with another part in it.
fn with_element(raw: &str, at: usize, new: &Part) -> Result<String, WireError> {
    if let Part::ToolCall(call) = new {
        let is_object =
            |key| Ok(json::field(raw, key)?.is_some_and(|body| ValueKind::of(body) == ValueKind::Object));
        let key = if is_object("functionCall")? { "functionCall" } else { "function_call" };
        return within(raw, &[key], |body| with_arguments(body, "args", call));
    }
    let said = text(new)?;
    match (ValueKind::of(raw), new) {
        (ValueKind::Text, Part::Text(_)) if at == 0 => Ok(quote(said)),
        (ValueKind::Object, Part::Text(_)) if json::field(raw, "text")?.is_some() => {
            patch(raw, &[("text", Some(quote(said)))])
        }
        (ValueKind::Object, Part::ToolResult(result)) => {
            let [camel, snake] = json::fields(raw, &["functionResponse", "function_response"])?;
            let (key, body) = match (camel, snake) {
                (Some(body), _) => ("functionResponse", body),
                (None, Some(body)) => ("function_response", body),
                (None, None) => return Err(form("this change")),
            };
            let body = patch(body, &[("response", Some(response(result, said))), ("parts", None)])?;
            patch(raw, &[(key, Some(body))])
        }
        _ => Err(form("this change")),
    }
}

fn response(result: &ToolResult, said: &str) -> String {
    let key = if result.is_error { "error" } else { "output" };
    format!(r#"{{"{key}":{}}}"#, quote(said))
}

/// Writes the record with another result of a call.
fn with_result(record: &str, result: &ToolResult, new: &str) -> Result<String, WireError> {
    each_call(record, |call| {
        let [own, name] = json::fields(call, &["id", "name"])?;
        let (own, name) = (own.unwrap_or("\"\""), name.unwrap_or("\"\""));
        if *json::decode(own) != *result.call_id {
            return Ok(call.to_owned());
        }
        let output = quote(new);
        let result = format!(
            r#"[{{"functionResponse":{{"id":{own},"name":{name},"response":{{"output":{output}}}}}}}]"#
        );
        patch(call, &[("result", Some(result))])
    })
}

/// Writes the record with the arguments of `call` in its list of calls, if the list has the call `was`.
fn with_call(record: &str, (was, call): (&ToolCall, &ToolCall)) -> Result<String, WireError> {
    each_call(record, |raw| {
        let [id, name, args] = json::fields(raw, &["id", "name", "args"])?;
        let is_text = |value: &&str| ValueKind::of(value) == ValueKind::Text;
        let says = |value: Option<&str>, text: &str| {
            value.filter(is_text).map(json::decode).unwrap_or_default() == text
        };
        let is_it = says(id, &was.id) && says(name, &was.name);
        match is_it && (!was.id.is_empty() || args.unwrap_or("{}") == was.arguments.as_str()) {
            true => with_arguments(raw, "args", call),
            false => Ok(raw.to_owned()),
        }
    })
}

/// Writes the record with other calls.
fn each_call(
    record: &str,
    mut written: impl FnMut(&str) -> Result<String, WireError>,
) -> Result<String, WireError> {
    with_items(record, "toolCalls", |_, call| written(call))
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let (message, text) = only_text(messages)?;
    let kind = match message.role() {
        Role::User => "user",
        Role::Assistant => "gemini",
        _ => return Err(form("a new message of this role")),
    };
    Ok(format!(r#"{{"type":"{kind}","content":{}}}"#, quote(text)))
}

/// Writes the line that replaces all earlier records by `records`. New records get an id. A result with a record of its
/// own is removed from its call.
pub(super) fn checkpoint(records: &[Cow<'_, str>]) -> Result<String, WireError> {
    let (mut names, mut answered) = (HashSet::new(), HashSet::new());
    for text in records {
        names.extend(json::field(text, "id")?.map(json::decode));
        let messages = read(text)?.messages;
        if messages.first().is_some_and(|first| first.role() != Role::Assistant) {
            answered.extend(messages.iter().flat_map(results).cloned());
        }
    }
    let mut free =
        (1_usize..).map(|number| format!("epitome-{number}")).filter(|name| !names.contains(name.as_str()));
    let mut written = Vec::with_capacity(records.len());
    for text in records {
        let text = told_once(text, &answered)?;
        written.push(match json::field(&text, "id")? {
            Some(_) => text,
            None => patch(&text, &[("id", free.next().as_deref().map(quote))])?,
        });
    }
    Ok(format!(r#"{{"$set":{{"messages":[{}]}}}}"#, written.join(",")))
}

/// Writes the record without those results of its calls that have a record of their own.
fn told_once(record: &str, answered: &HashSet<Str>) -> Result<String, WireError> {
    let [kind, calls] = json::fields(record, &["type", "toolCalls"])?;
    if answered.is_empty()
        || kind != Some("\"gemini\"")
        || calls.is_none_or(|calls| ValueKind::of(calls) != ValueKind::Array)
    {
        return Ok(record.to_owned());
    }
    each_call(record, |call| {
        let id = json::field(call, "id")?.map(json::decode);
        match id.is_some_and(|id| answered.contains(&Str::from(&*id))) {
            true => patch(call, &[("result", None)]),
            false => Ok(call.to_owned()),
        }
    })
}
