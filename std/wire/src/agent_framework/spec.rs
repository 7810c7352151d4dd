//! Recognises, reads and writes lists of messages and serialized sessions.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::{Message, Part, Str, WireText};

use super::content;
use super::hosted;
use super::message::{items, pieces, role};
use super::write::write_alone;
use crate::body::{Body, Content};
use crate::document::Pointer;
use crate::expect::share;
use crate::json::known::Value;
use crate::json::{self, ValueKind, patch, quote};
use crate::patch_parts::Elements;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Agent Framework in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::AgentFramework,
    &["type", "session_id", "state", "messages"],
    (sign, read),
    Writer::Own(write_record),
);

fn sign(body: &Body<'_>) -> Fit {
    if is_session(body) {
        return Fit::Certain("it is a `session` with `session_id` and `state`");
    }
    let Some(sample) = body.sample("messages") else { return Fit::No };
    match !sample.is_empty() && sample.iter().all(|message| is_message(message)) {
        true => Fit::Certain("its messages have `contents`"),
        false => Fit::No,
    }
}

fn is_session(body: &Body<'_>) -> bool {
    body.field("type") == Some("\"session\"")
        && body.field("session_id").is_some_and(|id| ValueKind::of(id) == ValueKind::Text)
        && body.field("state").is_some_and(|state| ValueKind::of(state) == ValueKind::Object)
}

/// Whether the message has a role and a list of contents. Gemini's contents have parts.
fn is_message(message: &str) -> bool {
    let found = if ValueKind::of(message) == ValueKind::Object {
        json::fields(message, &["role", "contents", "content", "parts"]).ok()
    } else {
        None
    };
    match found {
        Some([Some(role), Some(contents), None, None]) => {
            self::role(Some(role)).is_ok() && ValueKind::of(contents) == ValueKind::Array
        }
        _ => false,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    if let Content::Lines(text) = &body.content {
        let list = transcript.lines(text);
        let mut conversation = Conversation::new(Format::AgentFramework, "");
        transcript.extend(&mut conversation, list, (text, ""), read_element)?;
        transcript.push(conversation);
        return Ok(());
    }
    let whole = body.value().unwrap_or_default();
    if is_session(body) {
        let state = body.field("state").unwrap_or_default();
        return json::nested(whole, state, "/state", |state| read_state(transcript, body, state));
    }
    let (list, path) = match body.field("messages") {
        Some(list) => (list, "/messages"),
        None => (whole, ""),
    };
    if ValueKind::of(list) != ValueKind::Array {
        let found = json::describe(list);
        return Err(WireError::shape(format!("expected an array of messages or a session, found {found}")));
    }
    let mut conversation = Conversation::new(Format::AgentFramework, format!("{}{path}", body.path()));
    let list = transcript.array(list)?;
    transcript.extend(&mut conversation, list, (whole, path), read_element)?;
    transcript.push(conversation);
    Ok(())
}

/// Reads the messages of each source of a session as a conversation. The first one is active.
fn read_state(transcript: &mut Transcript, body: &Body<'_>, state: &str) -> Result<(), WireError> {
    let mut sources: Vec<(Str, &str, &str)> = Vec::new();
    json::members(state, |source, own| {
        if ValueKind::of(own) != ValueKind::Object {
            return Ok(());
        }
        let path = Pointer::default().join(&source).to_string();
        let list = json::nested(state, own, path, |own| json::field(own, "messages"))?;
        if let Some(list) = list.filter(|list| ValueKind::of(list) == ValueKind::Array) {
            if sources.iter().any(|(known, ..)| *known == *source) {
                return Err(json::duplicate(&source).with_offset(json::offset_of(state, own)));
            }
            sources.push((Str::from(&*source), own, list));
        }
        Ok(())
    })?;
    let id = body.text_of("session_id")?;
    for (at, (source, _, list)) in sources.into_iter().enumerate() {
        let path = Pointer::default().join(&source).join("messages").to_string();
        let mut conversation =
            Conversation::new(Format::AgentFramework, format!("{}/state{path}", body.path()));
        (conversation.id, conversation.label, conversation.active) = (id.clone(), source, at == 0);
        let list = transcript.array(list)?;
        transcript.extend(&mut conversation, list, (state, &path), read_element)?;
        transcript.push(conversation);
    }
    Ok(())
}

fn read_element(source: &Arc<str>, text: Value<'_>) -> Result<(Vec<Message>, Option<Usage>), WireError> {
    let mut messages = pieces(source, text)?;
    for (at, message) in messages.iter_mut().enumerate() {
        let wire = WireText::new(Format::AgentFramework.shared_name(), share(source, text.text()));
        let wire = wire.with_rejoin(at > 0);
        *message = core::mem::replace(message, Message::new(message.role(), Vec::new())).with_wire(wire);
    }
    Ok((messages, None))
}

/// Reads a text as one message, if it is a message without pieces.
#[must_use]
pub fn read_alone(text: &str) -> Option<Message> {
    json::check(text).ok()?;
    let source: Arc<str> = Arc::from(text);
    let (mut messages, _) = read_element(&source, Value::from(&*source)).ok()?;
    messages.pop().filter(|_| messages.is_empty())
}

/// Writes the message `source` with these pieces, or a new message.
fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let wanted: Vec<Part> = messages.iter().flat_map(|message| message.parts()).cloned().collect();
    let Some(source) = source else {
        let [message] = messages else { return Err(WireError::unsupported("a record has one message")) };
        return Ok(Some(write_alone(&(*message).clone().without_wire()).to_string()));
    };
    let whole: Arc<str> = Arc::from("");
    let known = items(&whole, source)?;
    if known.iter().map(|(part, _)| part).eq(&wanted) {
        return Ok(Some(source.to_owned()));
    }
    let list = json::field(source, "contents")?
        .filter(|list| ValueKind::of(list) == ValueKind::Array)
        .unwrap_or("[]");
    let known: Vec<_> = known.into_iter().map(|(part, raw)| (Some(part), raw)).collect();
    let contents = Elements { key, fresh, patched }.patch(list, &known, &wanted)?;
    patch(source, &[("contents", Some(contents))]).map(Some)
}

/// The identity of a content, which stays when the content changes: the id of the call that it makes or answers.
fn key(part: &Part) -> Option<(bool, &str)> {
    match part {
        Part::ToolCall(call) => Some((true, &call.id)),
        Part::ToolResult(result) => Some((false, &result.call_id)),
        _ => None,
    }
}

fn fresh(part: &Part) -> Result<String, WireError> {
    let content = content::write(part, &|_| None);
    let content =
        content.ok_or_else(|| WireError::unsupported("Agent Framework has no content for this part"))?;
    Ok(content.to_string())
}

/// Writes a changed call or result. Its other members stay.
fn patched(raw: &str, part: &Part) -> Result<String, WireError> {
    if let Some(patched) = hosted::patched(raw, part)? {
        return Ok(patched);
    }
    match part {
        Part::ToolCall(call) => {
            patch(raw, &[("name", Some(quote(&call.name))), ("arguments", Some(quote(&call.arguments)))])
        }
        Part::ToolResult(_) => {
            let new = fresh(part)?;
            let [result, items, failed] = json::fields(&new, &["result", "items", "exception"])?;
            let own = |value: Option<&str>| value.map(str::to_owned);
            patch(raw, &[("result", own(result)), ("items", own(items)), ("exception", own(failed))])
        }
        _ => fresh(part),
    }
}
