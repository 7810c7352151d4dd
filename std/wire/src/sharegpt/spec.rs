//! Recognises, reads and writes dialogues.

use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, ToolCall};

use super::FORMAT;
use crate::body::Body;
use crate::expect::{expect_object, share};
use crate::exports;
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::rewrite::{form, with_quoted_arguments};
use crate::slots::{self, RecordMessage, RecordPart, SlotForm};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of ShareGPT in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::ShareGpt, &["conversations", "system"], (sign, read), Writer::Own(write))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    exports::fit(body, "its `conversations` have messages with `from` and `value`", |raw| {
        let list = exports::value_of(raw, "conversations", ValueKind::Array).ok().flatten()?;
        let sample = crate::body::first_of(list)?;
        sample.iter().all(|message| is_message(message)).then_some(!sample.is_empty())
    })
}

fn is_message(raw: &str) -> bool {
    let found = match ValueKind::of(raw) {
        ValueKind::Object => json::fields(raw, &["from", "value", "role"]).ok(),
        _ => None,
    };
    matches!(found, Some([Some(_), Some(_), None]))
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    exports::for_each(transcript, body, |transcript, path, raw| {
        let list = exports::messages_of(raw, "conversations", ValueKind::Array)?;
        let mut conversation = Conversation::new(Format::ShareGpt, format!("{path}/conversations"));
        conversation.id = exports::name(&transcript.source, raw, "id")?;
        if let Some(system) = exports::value_of(raw, "system", ValueKind::Text)? {
            let source = Arc::clone(&transcript.source);
            let said = json::nested(raw, system, "/system", |system| {
                slots::messages(&source, system, Format::ShareGpt, pieces)
            })?;
            let record = transcript.value(system, said.len());
            conversation.extend(record, said);
        }
        let number = json::nested(raw, list, "/conversations", |list| transcript.array(list))?;
        let mut open = 0_usize;
        transcript.extend(&mut conversation, number, (raw, "/conversations"), |source, message| {
            let text = message.text();
            let mut said = slots::messages(source, text, Format::ShareGpt, pieces)?;
            let parts = || said.iter().flat_map(Message::parts);
            let calls = parts().filter(|part| matches!(part, Part::ToolCall(_))).count();
            let is_result = parts().any(|part| matches!(part, Part::ToolResult(_)));
            if is_result && open == 0 {
                said = slots::messages(source, text, Format::ShareGpt, observed)?;
            }
            open = open.saturating_sub(usize::from(is_result)).saturating_add(calls);
            Ok((said, None))
        })?;
        let is_leaf = body.leaf().is_some_and(|leaf| *conversation.id == *leaf);
        transcript.push(conversation);
        Ok(is_leaf)
    })
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (_, text) = slots::fresh_text(message, &[Role::User, Role::Assistant, Role::System])?;
    let from = match message.role() {
        Role::Assistant => "gpt",
        Role::System => "system",
        _ => "human",
    };
    Ok(format!(r#"{{"from":"{from}","value":{text}}}"#))
}

/// Writes a record. An observation without a call stays an observation.
fn write(record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
    if let (Some(record), [message]) = (record, now)
        && message.parts().iter().any(|part| matches!(part, Part::ToolCall(_)))
    {
        return with_calls(record, message.parts()).map(Some);
    }
    let is_observed = now.iter().any(|message| message.attribution().source == SourceKind::Tool);
    slots::write(record, now, if is_observed { observed } else { pieces })
}

/// Writes the record with these calls: the calls of its JSON with other arguments.
fn with_calls(record: &str, now: &[Part]) -> Result<String, WireError> {
    let said = json::field(record, "value")?.map(json::decode).unwrap_or_default();
    let was = calls(&said);
    let is_same = |(was, now): (&ToolCall, &Part)| matches!(now, Part::ToolCall(now) if was.name == now.name);
    if was.len() != now.len() || !was.iter().zip(now).all(is_same) {
        return Err(form("a message with other calls than it had"));
    }
    let changed = |at: usize, raw: &str| match (was.get(at), now.get(at)) {
        (Some(was), Some(Part::ToolCall(now))) if was != now => with_quoted_arguments(raw, "arguments", now),
        _ => Ok(raw.to_owned()),
    };
    let now = match ValueKind::of(&said) {
        ValueKind::Array => json::map_items(&said, changed)?,
        _ => changed(0, &said)?,
    };
    json::patch(record, &[("value", Some(json::quote(&now)))])
}

/// The message of a record: an element of the list, or the text of `system`, a field next to the list.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    if ValueKind::of(raw) == ValueKind::Text {
        return Ok(vec![
            RecordMessage::new(Role::System, raw).with_parts(RecordPart::text(whole, Some(raw))),
        ]);
    }
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["from", "value"]);
    let value = found.get("value")?;
    let from = found.text(whole, "from")?;
    let role = match &*from {
        "human" | "user" => Role::User,
        "system" => Role::System,
        "observation" | "tool" | "function_response" => {
            let result = RecordPart::tool_result(whole, CALL, value);
            return Ok(vec![RecordMessage::new(Role::Tool, raw).with_parts([result])]);
        }
        "gpt" | "assistant" | "function_call" | "chatgpt" | "bing" | "bard" | "model" => Role::Assistant,
        _ => {
            return Err(WireError::shape(
                "expected a `from` of `human`, `gpt`, `system`, `function_call` or `observation`",
            ));
        }
    };
    // Fails if the value is no text.
    let said = found.text(whole, "value")?;
    let calls = if from == "function_call" { calls(&said) } else { Vec::new() };
    let message = RecordMessage::new(role, raw);
    Ok(vec![match calls.is_empty() {
        true => message.with_parts(RecordPart::text(whole, value)),
        false => message.with_parts(calls.into_iter().map(|call| RecordPart::new(Part::ToolCall(call)))),
    }])
}

/// The message of an observation without a call.
fn observed<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let value = Members::of(raw, &["value"]).get("value")?.filter(|value| *value != "null");
    let part = RecordPart::text(whole, value).or_else(|| {
        let value = value.filter(|value| ValueKind::of(value) != ValueKind::Text)?;
        Some(RecordPart::new(Part::Text(share(whole, value))).with_slot(Some(value), SlotForm::Value))
    });
    let from = Attribution::new(FORMAT, SourceKind::Tool, Authority::Retrieved);
    Ok(vec![RecordMessage::new(Role::User, raw).with_parts(part).with_attribution(from)])
}

/// The calls in `said` as JSON: one call, or a list of calls; none for any other text.
fn calls(said: &str) -> Vec<ToolCall> {
    if json::check(said).is_err() {
        return Vec::new();
    }
    let mut all = Some(Vec::new());
    let mut add = |raw: &str| {
        all = all.take().zip(call(raw)).map(|(mut all, call)| {
            all.push(call);
            all
        });
        Ok(())
    };
    let read = match ValueKind::of(said) {
        ValueKind::Array => json::items(said, add),
        _ => add(said),
    };
    all.filter(|_| read.is_ok()).unwrap_or_default()
}

/// The call in the object `raw`. Its arguments are an object, or the text of an object.
fn call(raw: &str) -> Option<ToolCall> {
    let object = Some(raw).filter(|raw| ValueKind::of(raw) == ValueKind::Object)?;
    let [name, arguments] = json::fields(object, &["name", "arguments"]).ok()?;
    let name = json::decode(name.filter(|name| ValueKind::of(name) == ValueKind::Text)?);
    let arguments = match arguments.map(ValueKind::of) {
        None => "{}".into(),
        Some(ValueKind::Object) => arguments.unwrap_or_default().into(),
        Some(ValueKind::Text) => json::decode(arguments.unwrap_or_default()),
        Some(_) => return None,
    };
    Some(ToolCall::new(CALL, &*name, &*arguments))
}

/// The id of every call, because a dataset has none.
const CALL: &str = "call";
