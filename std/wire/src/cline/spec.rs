//! Recognises and reads histories and sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_core::{AnthropicTokens, Usage};
use epitome_message::{Message, Part, Reasoning, UnknownPart};

use super::FORMAT;
use super::history::{Effective, sign_of};
use crate::blocks::block;
use crate::body::Body;
use crate::expect::{expect_object, number, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{self, RecordMessage, RecordMessages, RecordPart, blocks};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, ToolCompaction, Transcript, UsageEntry};
use crate::{Format, WireError, injected};

/// The row of Cline and Roo Code in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::Cline,
    &["messages", "sessionId", "system_prompt"],
    (sign, read),
    Writer::Slots(pieces),
)
.with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    sign_of(body).map_or(Fit::No, Fit::Certain)
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let mut conversation = Conversation::new(Format::Cline, body.path());
    conversation.id = body.text_of("sessionId")?;
    let (whole, path, list) = match body.field("messages") {
        Some(list) => (body.text(), "/messages", list),
        None => (body.text(), "", body.text()),
    };
    if ValueKind::of(list) != ValueKind::Array {
        let found = json::describe(list);
        return Err(WireError::shape(format!("expected a list of messages, found {found}")));
    }
    conversation.path = format!("{}{path}", body.path());
    if let Some(system) = body.field("system_prompt").filter(|system| *system != "\"\"") {
        let said = json::nested(whole, system, "/system_prompt", |system| messages(&source, system))?;
        let record = transcript.field(&body.members, "system_prompt", said.len());
        conversation.extend(record, said);
    }
    let list = json::nested(whole, list, path, |list| transcript.array(list))?;
    let record = |transcript: &Transcript, at| source.get(transcript.place(list, at)).unwrap_or_default();
    let count = transcript.count(list);
    let effective = Effective::of(&source, (0..count).map(|at| record(transcript, at)))?;
    let (mut hidden, mut compactions) = (BTreeMap::<usize, (u64, Vec<usize>)>::new(), Vec::new());
    let mut records = Vec::new();
    for at in 0..count {
        let raw = record(transcript, at);
        let said = json::nested(whole, raw, format_args!("{path}/{at}"), |raw| messages(&source, raw))?;
        if let Some(by) = effective.hidden_by(at) {
            let (count, places) = hidden.entry(by).or_default();
            *count = count.saturating_add(said.len() as u64);
            places.push(at);
        } else if !said.is_empty() {
            let first = conversation.entries.len();
            conversation.usage.extend(reported(raw)?.map(|usage| UsageEntry::new(first, usage)));
            let id = transcript.element(list, at, said.len());
            conversation.extend(id, said);
            records.push((at, first, id));
            if effective.summary == Some(at) {
                transcript.begin_with(id);
            }
        }
    }
    for (at, first, id) in records {
        let Some((count, places)) = hidden.remove(&at) else { continue };
        let mut compaction = ToolCompaction::new(first);
        compaction.dropped = Some(count);
        compactions.push(compaction);
        places.into_iter().for_each(|place| transcript.hide(list, place, id));
    }
    conversation.compactions = compactions.into();
    transcript.push(conversation);
    Ok(())
}

fn messages(whole: &Arc<str>, raw: &str) -> Result<Vec<Message>, WireError> {
    let said = slots::messages(whole, raw, Format::Cline, pieces)?;
    Ok(said.into_iter().map(|message| injected::marked(message, Format::Cline)).collect())
}

fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    let content = format!(r#"[{{"type":"text","text":{text}}}]"#);
    let ts = json::field(like.unwrap_or("{}"), "ts")?.map(|ts| format!(r#","ts":{ts}"#)).unwrap_or_default();
    Ok(format!(r#"{{"role":{role},"content":{content}{ts}}}"#))
}

/// The messages of a record: a message, or the instructions of a session.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    if ValueKind::of(raw) == ValueKind::Text {
        let mut pieces = RecordMessages::new(Role::System);
        pieces.extend(raw, RecordPart::text(whole, Some(raw)));
        return Ok(pieces.into_list());
    }
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["role", "content", "type", "encrypted_content", "text"]);
    let role = match &*found.text(whole, "role")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        // Reasoning of the Responses API, in a record of its own.
        "" if found.get("type")? == Some("\"reasoning\"") => Role::Assistant,
        _ => return Err(WireError::shape("expected a `role` of `user` or `assistant`")),
    };
    let mut pieces = RecordMessages::new(role);
    if found.get("type")? == Some("\"reasoning\"") {
        let mut reasoning = Reasoning::new(found.text(whole, "text")?);
        reasoning.opaque = Some(found.text(whole, "encrypted_content")?).filter(|sealed| !sealed.is_empty());
        pieces.extend(raw, [RecordPart::new(Part::Reasoning(reasoning))]);
        return Ok(pieces.into_list());
    }
    match found.get("content")? {
        Some(said) if ValueKind::of(said) == ValueKind::Text => {
            pieces.extend(raw, RecordPart::text(whole, Some(said)))
        }
        Some(list) if ValueKind::of(list) == ValueKind::Array => {
            json::nested(raw, list, "/content", |list| {
                blocks(list, |raw| {
                    let unknown = |kind| UnknownPart::new(FORMAT, kind, share(whole, raw));
                    let noted = block(whole, raw)?
                        .unwrap_or_else(|kind| Some(RecordPart::new(Part::Unknown(unknown(kind)))));
                    pieces.extend(raw, noted.map(|noted| noted.with_element(list, raw)));
                    Ok(())
                })
            })?;
        }
        _ => {
            let found = json::describe(raw);
            let what =
                format!("expected a message with `content`, a text or a list of blocks, found {found}");
            return Err(WireError::shape(what));
        }
    }
    Ok(pieces.into_list())
}

/// The usage of a message's request.
fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let metrics =
        json::known::field(raw, "metrics")?.filter(|metrics| ValueKind::of(metrics) == ValueKind::Object);
    let Some(metrics) = metrics else { return Ok(None) };
    let names = &["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];
    let [input, output, read, written] = json::known::fields(metrics, names)?.map(number);
    // The input includes the tokens from the cache.
    let input = input.map(|all| all.saturating_sub(read.unwrap_or(0)).saturating_sub(written.unwrap_or(0)));
    let tokens = AnthropicTokens { input, cache_read: read, cache_creation: written, output };
    Ok(Some(Usage::anthropic(tokens)).filter(|usage| usage.total.is_some_and(|total| total > 0)))
}
