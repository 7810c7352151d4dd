//! Writes messages.

use std::collections::HashMap;

use epitome_core::attribution::SourceKind;
use epitome_message::{Message, Part, ToolCall};
use serde_json::{Map, Value, json};

use super::content::{self, Calls};
use super::hosted;
use super::{FORMAT, PIECE};

/// Writes messages. An unchanged message of this format is written unchanged, and successive pieces of one message are
/// joined again.
#[must_use]
pub fn write_messages(messages: &[Message]) -> Vec<Value> {
    write_with_sources(messages).into_iter().map(|(value, _)| value).collect()
}

/// Writes messages, each with the number of messages that it was written from.
#[must_use]
pub fn write_with_sources(messages: &[Message]) -> Vec<(Value, usize)> {
    let by_id = calls_by_id(messages);
    let calls = |id: &str| by_id.get(id).copied();
    let mut written = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, others)) = rest.split_first() {
        if let Some((whole, count)) = joined(rest) {
            written.push((whole, count));
            rest = rest.get(count..).unwrap_or_default();
            continue;
        }
        written.push((write_one(message, &calls), 1));
        rest = others;
    }
    written
}

/// Writes `message` without its neighbours: the call of an approval is then unknown.
pub(super) fn write_alone(message: &Message) -> Value {
    write_one(message, &|_| None)
}

fn write_one(message: &Message, calls: Calls<'_>) -> Value {
    let Some((mut object, touched)) = theirs(message) else { return Value::Object(made(message, calls)) };
    object.remove(PIECE);
    // A piece of a message of the model may be a tool message.
    if object.get("role").and_then(Value::as_str).is_some_and(|role| role != message.role().as_str()) {
        object.insert("role".to_owned(), Value::from(message.role().as_str()));
    }
    if touched {
        let before = object.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let tools = Tools::of(before);
        let written = message
            .parts()
            .iter()
            .filter_map(|part| tools.patched(part).or_else(|| content::write(part, calls)));
        let contents = written.collect();
        object.insert("contents".to_owned(), contents);
    }
    Value::Object(object)
}

/// The contents of tools that are no functions, by the id of their call: they are patched.
struct Tools<'a>(HashMap<&'a str, Vec<&'a Value>>);

impl<'a> Tools<'a> {
    fn of(contents: &'a [Value]) -> Self {
        let is_tool = |kind: &str| kind.ends_with("_tool_call") || kind.ends_with("_tool_result");
        let mut tools: HashMap<&str, Vec<&Value>> = HashMap::new();
        for content in contents {
            let text = |key: &str| content.get(key).and_then(Value::as_str);
            if let Some(id) = text("call_id").filter(|_| text("type").is_some_and(is_tool)) {
                tools.entry(id).or_default().push(content);
            }
        }
        Self(tools)
    }

    fn patched(&self, part: &Part) -> Option<Value> {
        let id = match part {
            Part::ToolCall(call) => &call.id,
            Part::ToolResult(result) => &result.call_id,
            _ => return None,
        };
        let own = self.0.get(id.as_str())?;
        let text =
            own.iter().find_map(|content| hosted::patched(&content.to_string(), part).ok().flatten())?;
        serde_json::from_str(&text).ok()
    }
}

fn made(message: &Message, calls: Calls<'_>) -> Map<String, Value> {
    let contents: Vec<Value> =
        message.parts().iter().filter_map(|part| content::write(part, calls)).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), Value::from("message"));
    object.insert("role".to_owned(), Value::from(message.role().as_str()));
    object.insert("contents".to_owned(), Value::Array(contents));
    if let Some(name) = message.name() {
        object.insert("author_name".to_owned(), Value::from(name));
    }
    if let Some(id) = message.id() {
        object.insert("message_id".to_owned(), Value::from(id));
    }
    let attribution = message.attribution();
    let properties = match attribution.source {
        SourceKind::Context if !attribution.source_id.is_empty() => {
            json!({"_attribution": {"source_id": attribution.source_id.as_str()}})
        }
        _ => json!({}),
    };
    object.insert("additional_properties".to_owned(), properties);
    object
}

/// The message's source text as an object, and whether the message was changed since. `None` if it comes from another
/// format.
fn theirs(message: &Message) -> Option<(Map<String, Value>, bool)> {
    let wire = message.wire().filter(|wire| wire.format == FORMAT)?;
    Some((serde_json::from_str(&wire.text).ok()?, wire.touched))
}

/// The message whose unchanged and complete pieces are at the beginning of `messages`, and the number of the pieces.
fn joined(messages: &[Message]) -> Option<(Value, usize)> {
    let first = messages.first()?;
    // A search without parsing: hardly any message is a piece.
    if !first.wire()?.text.contains(PIECE) {
        return None;
    }
    let (mut whole, touched) = theirs(first)?;
    let count = whole.remove(PIECE).and_then(|piece| piece_of(&piece, 0)).filter(|_| !touched)?;
    let mut contents = Vec::new();
    for (at, message) in messages.get(..count)?.iter().enumerate() {
        let (mut piece, touched) = theirs(message)?;
        let same = piece.remove(PIECE).and_then(|piece| piece_of(&piece, at)) == Some(count);
        let Some(Value::Array(part)) = piece.remove("contents") else { return None };
        // Pieces of one message differ only in their contents.
        if touched || !same || piece.iter().any(|(key, value)| whole.get(key) != Some(value)) {
            return None;
        }
        contents.extend(part);
    }
    whole.insert("contents".to_owned(), Value::Array(contents));
    Some((Value::Object(whole), count))
}

/// Number of the pieces of the message, if `piece` has the number `at`.
fn piece_of(piece: &Value, at: usize) -> Option<usize> {
    let number = |index: usize| piece.get(index)?.as_u64().and_then(|number| usize::try_from(number).ok());
    (number(0)? == at).then(|| number(1)).flatten()
}

fn calls_by_id(messages: &[Message]) -> HashMap<&str, &ToolCall> {
    let parts = messages.iter().flat_map(Message::parts);
    let calls = parts.filter_map(|part| match part {
        Part::ToolCall(call) => Some((call.id.as_str(), call)),
        _ => None,
    });
    calls.collect()
}
