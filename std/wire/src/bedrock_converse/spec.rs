//! Recognises and reads requests, responses and lists of messages.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part};

use super::block::part;
use crate::body::Body;
use crate::document::Foreign;
use crate::expect::expect_object;
use crate::json::known::Members;
use crate::json::{self, ValueKind, quote};
use crate::rewrite::form;
use crate::slots::{self, RecordMessage, RecordMessages, RecordPart, read_list};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript, UsageEntry};
use crate::{Format, WireError, usage};

/// The row of Converse in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::BedrockConverse,
    &["messages", "system", "output", "usage"],
    (sign, read),
    Writer::Turns(pieces),
)
.with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    let is_one = |message: &&str| Foreign::of(message) == Some(Foreign::Converse);
    let is_list = body.sample("messages").is_some_and(|sample| Foreign::Converse.is_of(&sample));
    let is_alone = || body.value().is_some_and(|text| is_one(&text));
    let is_answer = || matches!(answer(body), Ok(Some(message)) if is_one(&message));
    match is_list || is_answer() || is_alone() {
        true => Fit::Certain("its blocks of content have no `type`, but the names of Bedrock's Converse"),
        false => Fit::No,
    }
}

/// The message of a response.
fn answer<'a>(body: &Body<'a>) -> Result<Option<&'a str>, WireError> {
    match body.field("output").filter(|output| ValueKind::of(output) == ValueKind::Object) {
        Some(output) => json::nested(body.text(), output, "/output", |output| json::field(output, "message")),
        None => Ok(None),
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    if let Some(message) = answer(body)? {
        return read_one(transcript, body, (message, "/output/message"));
    }
    if let Some(text) = body.value().filter(|_| body.is_message()) {
        return read_one(transcript, body, (text, ""));
    }
    let mut conversation = Conversation::new(Format::BedrockConverse, "");
    if let Some(system) = body.field("system") {
        let whole = body.value().unwrap_or_default();
        let said = json::nested(whole, system, "/system", |system| messages(body, system))?;
        let record = transcript.field(&body.members, "system", said.len());
        conversation.extend(record, said);
    }
    read_list(transcript, body, &mut conversation, "messages", pieces)?;
    transcript.push(conversation);
    Ok(())
}

/// Reads a single message at a place in the body.
fn read_one(
    transcript: &mut Transcript,
    body: &Body<'_>,
    (message, path): (&str, &str),
) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let said = json::nested(whole, message, path, |message| messages(body, message))?;
    let mut conversation = Conversation::new(Format::BedrockConverse, format!("{}{path}", body.path()));
    let record = transcript.value(message, said.len());
    conversation.extend(record, said);
    let last = conversation.entries.len().saturating_sub(1);
    if let Some(report) = body.field("usage").filter(|report| ValueKind::of(report) == ValueKind::Object) {
        let usage = json::nested(whole, report, "/usage", usage::of)?;
        conversation.usage.extend([UsageEntry::new(last, usage)]);
    }
    transcript.push(conversation);
    Ok(())
}

fn messages(body: &Body<'_>, text: &str) -> Result<Vec<Message>, WireError> {
    slots::messages(body.source, text, Format::BedrockConverse, pieces)
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    if let (Role::Tool, [Part::ToolResult(result)]) = (message.role(), message.parts()) {
        let [Part::Text(text)] = result.parts.as_slice() else {
            return Err(form("a new result that is no text"));
        };
        let (id, text) = (quote(&result.call_id), quote(text));
        let status = if result.is_error { "error" } else { "success" };
        return Ok(format!(
            r#"{{"role":"user","content":[{{"toolResult":{{"toolUseId":{id},"content":[{{"text":{text}}}],"status":"{status}"}}}}]}}"#
        ));
    }
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    Ok(format!(r#"{{"role":{role},"content":[{{"text":{text}}}]}}"#))
}

/// The messages of a record: a message, or the list of instructions, a field next to the messages.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    match ValueKind::of(raw) {
        ValueKind::Array => return slots::list(whole, (raw, raw), ("", Role::System), part),
        // Some libraries accept a text.
        ValueKind::Text => {
            let mut pieces = RecordMessages::new(Role::System);
            pieces.extend(raw, RecordPart::text(whole, Some(raw)));
            return Ok(pieces.into_list());
        }
        _ => {}
    }
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["role", "content"]);
    let role = match &*found.text(whole, "role")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(WireError::shape("expected a `role` of `user` or `assistant`")),
    };
    match found.get("content")?.filter(|content| ValueKind::of(content) == ValueKind::Array) {
        Some(content) => slots::list(whole, (raw, content), ("/content", role), part),
        None => {
            let found = json::describe(raw);
            Err(WireError::shape(format!(
                "expected a message with `content`, a list of blocks, found {found}"
            )))
        }
    }
}
