//! Recognises, reads and writes sessions.

use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, Str};

use super::message::{pieces, reported, summary, summary_of};
use crate::body::Body;
use crate::json::{self, ValueKind};
use crate::rewrite::form;
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, ToolCompaction, Transcript, UsageEntry};
use crate::{Format, WireError};

/// The row of Continue in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::Continue,
    &["history", "sessionId", "title"],
    (sign, read),
    Writer::Own(write_record),
)
.with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    let has_list = body.field("history").is_some_and(|list| ValueKind::of(list) == ValueKind::Array);
    if !has_list || body.field("sessionId").is_none() {
        return Fit::No;
    }
    let sample = body.sample("history").unwrap_or_default();
    let is_item = |item: &&str| {
        let message = match ValueKind::of(item) {
            ValueKind::Object => json::field(item, "message").ok().flatten(),
            _ => None,
        };
        let message = message.filter(|message| ValueKind::of(message) == ValueKind::Object);
        message.is_some_and(|message| matches!(json::field(message, "role"), Ok(Some(_))))
    };
    match !sample.is_empty() && sample.iter().all(is_item) {
        true => Fit::Certain("it has `sessionId` beside a `history` of items with a `message`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let whole = body.value().unwrap_or_default();
    let Some(list) = body.field("history") else {
        return Err(WireError::shape(format!("expected `history`, found {}", json::describe(body.text()))));
    };
    let list = json::nested(whole, list, "/history", |list| transcript.array(list))?;
    let mut conversation = Conversation::new(Format::Continue, format!("{}/history", body.path()));
    (conversation.id, conversation.label) = (body.text_of("sessionId")?, body.text_of("title")?);
    let place = |transcript: &Transcript, at| transcript.place(list, at);
    let mut last = None;
    for at in 0..transcript.count(list) {
        let raw = source.get(place(transcript, at)).unwrap_or_default();
        let path = format_args!("/history/{at}");
        if json::nested(whole, raw, path, summary_of)?.is_some() {
            last = Some(at);
        }
    }
    let (mut hidden, mut answered) = (0_u64, HashSet::new());
    for at in 0..transcript.count(list) {
        let raw = source.get(place(transcript, at)).unwrap_or_default();
        json::nested(whole, raw, format_args!("/history/{at}"), |raw| {
            let mut messages = slots::messages(&source, raw, Format::Continue, pieces)?;
            if last.is_some_and(|last| at <= last) {
                hidden = hidden.saturating_add(messages.len() as u64);
                if last != Some(at) {
                    return Ok(());
                }
                messages = slots::messages(&source, raw, Format::Continue, summary)?;
                let mut compaction = ToolCompaction::new(0);
                compaction.dropped = Some(hidden);
                conversation.compactions = vec![compaction].into();
            }
            add(transcript, &mut conversation, (list, at), (raw, messages), &mut answered)
        })?;
    }
    transcript.push(conversation);
    Ok(())
}

/// Adds the messages of an item, except a result that was read with its call.
fn add(
    transcript: &mut Transcript,
    conversation: &mut Conversation,
    (list, at): (u32, usize),
    (raw, messages): (&str, Vec<Message>),
    answered: &mut HashSet<Str>,
) -> Result<(), WireError> {
    let results: Vec<_> = messages.iter().filter_map(answers).cloned().collect();
    let is_result = messages.first().is_some_and(|first| first.role() == Role::Tool);
    let is_again = results.iter().any(|id| answered.contains(id));
    if messages.is_empty() || (is_result && is_again) {
        return Ok(());
    }
    answered.extend(results);
    let first = conversation.entries.len();
    let is_summary = messages.first().is_some_and(|first| first.role() == Role::System);
    if !is_summary {
        let usage = reported(raw)?;
        conversation.usage.extend(usage.map(|usage| UsageEntry::new(first, usage)));
    }
    let record = transcript.element(list, at, messages.len());
    if is_summary {
        transcript.must_stay(record);
        transcript.begin_with(record);
    }
    conversation.extend(record, messages);
    Ok(())
}

/// The id of the call that a tool message answers.
fn answers(message: &Message) -> Option<&Str> {
    message.parts().iter().find_map(|part| match part {
        Part::ToolResult(result) => Some(&result.call_id),
        _ => None,
    })
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    Ok(format!(r#"{{"message":{{"role":{role},"content":{text}}},"contextItems":[]}}"#))
}

fn write_record(record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
    let record = record.ok_or_else(|| form("a new message"))?;
    // Only a summary is a system message.
    match now.first().is_some_and(|first| first.role() == Role::System) {
        true => slots::write(Some(record), now, summary),
        false => slots::write(Some(record), now, pieces),
    }
}
