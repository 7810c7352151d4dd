//! Requests, responses, arrays and JSONL of Anthropic's Messages.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::Message;

use super::record::{instructions, messages};
use super::write::write_record;
use crate::body::{Body, Content};
use crate::document::{self, Foreign};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError, cline};

/// The row of Anthropic's Messages in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Anthropic, &["messages", "system"], (sign, read), Writer::Own(write_record));

fn sign(body: &Body<'_>) -> Fit {
    if body.value().is_some_and(document::is_message) {
        // A single message is a response, with a certain sign. Files hold no other single messages.
        return body.value().map(sign_of).filter(|fit| matches!(fit, Fit::Certain(_))).unwrap_or(Fit::No);
    }
    let Some(sample) = body.sample("messages").filter(|_| cline::sign_of(body).is_none()) else {
        return Fit::No;
    };
    let mut fit = match body.field("messages") {
        Some(_) if body.field("system").is_some() => Fit::Certain("it has `system` beside `messages`"),
        Some(_) if body.field("anthropic_version").is_some() => Fit::Certain("it has `anthropic_version`"),
        Some(_) if has_schemas(body) => Fit::Certain("its tools have `input_schema`"),
        _ => Fit::Possible("its messages have `role` and `content`"),
    };
    for message in sample {
        match sign_of(message) {
            Fit::Possible(_) => {}
            Fit::Certain(why) => fit = Fit::Certain(why),
            Fit::Likely(_) | Fit::No => return Fit::No,
        }
    }
    fit
}

fn has_schemas(body: &Body<'_>) -> bool {
    let mut found = false;
    if let Some(tools) = body.field("tools").filter(|tools| ValueKind::of(tools) == ValueKind::Array) {
        let _ = json::items(tools, |tool| {
            found |= ValueKind::of(tool) == ValueKind::Object && json::field(tool, "input_schema")?.is_some();
            Ok(())
        });
    }
    found
}

/// The fit of one message.
fn sign_of(message: &str) -> Fit {
    if Foreign::of(message).is_some() {
        return Fit::No;
    }
    let names = &["role", "content", "type", "tool_calls", "tool_call_id", "function_call", "parts"];
    let Some(Ok([Some(role), Some(content), kind, None, None, None, None])) =
        (ValueKind::of(message) == ValueKind::Object).then(|| json::fields(message, names))
    else {
        return Fit::No;
    };
    if !matches!(role, "\"user\"" | "\"assistant\"" | "\"system\"") {
        return Fit::No;
    }
    let blocks = match ValueKind::of(content) {
        ValueKind::Array => sign_of_blocks(content),
        ValueKind::Text => Fit::Possible(""),
        _ => Fit::No,
    };
    match (blocks, kind) {
        (Fit::Possible(_), Some("\"message\""))
            if json::field(message, "stop_reason").is_ok_and(|r| r.is_some()) =>
        {
            Fit::Certain("it is a `message` with `stop_reason`")
        }
        (blocks, _) => blocks,
    }
}

fn sign_of_blocks(content: &str) -> Fit {
    let mut fit = Fit::Possible("");
    let done = json::items(content, |block| {
        let kind = if ValueKind::of(block) == ValueKind::Object { json::field(block, "type")? } else { None };
        let source = || json::field(block, "source").is_ok_and(|source| source.is_some());
        let thinking = || {
            json::field(block, "thinking")
                .is_ok_and(|raw| raw.is_some_and(|raw| ValueKind::of(raw) == ValueKind::Text))
        };
        match kind {
            Some("\"tool_use\"" | "\"tool_result\"" | "\"server_tool_use\"" | "\"mcp_tool_use\"") => {
                fit = Fit::Certain("its blocks are of type `tool_use` or `tool_result`");
            }
            Some("\"redacted_thinking\"") => fit = Fit::Certain("its blocks are of type `redacted_thinking`"),
            Some("\"thinking\"") if thinking() => fit = Fit::Certain("its blocks are of type `thinking`"),
            Some("\"image\"" | "\"document\"") if source() => {
                fit = Fit::Certain("its images and documents have a `source`");
            }
            Some("\"tool-call\"" | "\"tool-result\"") => {
                return Err(WireError::shape("a block of another format"));
            }
            Some("\"compaction\"") => fit = Fit::Certain("its blocks are of type `compaction`"),
            Some(_) => {}
            None => return Err(WireError::shape("a block without a type")),
        }
        Ok(())
    });
    if done.is_ok() { fit } else { Fit::No }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    match &body.content {
        Content::Lines(text) => {
            let list = transcript.lines(text);
            let mut conversation = Conversation::new(Format::Anthropic, "");
            transcript.extend(&mut conversation, list, (text, ""), read_element)?;
            transcript.push(conversation);
            Ok(())
        }
        Content::Value(_) if body.is_message() => read_one(transcript, body),
        Content::Value(_) => read_messages(transcript, body),
    }
}

/// Reads a response, or another single message.
fn read_one(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let text = body.value().unwrap_or_default();
    let messages = messages(body.source, text)?;
    let mut conversation = Conversation::new(Format::Anthropic, body.path());
    let record = transcript.value(text, messages.len());
    conversation.extend(record, messages);
    transcript.push(conversation);
    Ok(())
}

fn read_messages(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let (array, key) = match body.field("messages") {
        Some(array) => (array, "/messages"),
        None => (whole, ""),
    };
    if ValueKind::of(array) != ValueKind::Array {
        let found = json::describe(array);
        return Err(WireError::shape(format!("expected an array of messages, found {found}")));
    }
    let mut conversation = Conversation::new(Format::Anthropic, format!("{}{key}", body.path()));
    if let Some(system) = body.field("system") {
        let message = json::nested(whole, system, "/system", |system| instructions(body.source, system))?;
        let record = transcript.field(&body.members, "system", 1);
        conversation.extend(record, [message]);
    }
    let list = transcript.array(array)?;
    transcript.extend(&mut conversation, list, (whole, key), read_element)?;
    transcript.push(conversation);
    Ok(())
}

/// The messages of an element. A request has no report of usage.
fn read_element(source: &Arc<str>, text: Value<'_>) -> Result<(Vec<Message>, Option<Usage>), WireError> {
    Ok((messages(source, text)?, None))
}
