//! Recognises, reads and writes session files.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::Message;

use super::message::{Seen, pieces, seen};
use crate::body::{Body, Content};
use crate::expect::member_text;
use crate::json::{self, ValueKind};
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, ToolCompaction, Transcript};
use crate::{Format, WireError};

/// The row of goose in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Goose, &["conversation", "id", "name"], (sign, read), Writer::Slots(pieces))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    if body.value().is_some() {
        let is_list = body.field("conversation").is_some_and(|list| ValueKind::of(list) == ValueKind::Array);
        return match is_list && body.field("working_dir").is_some() {
            true => Fit::Certain("it has `working_dir` beside `conversation`"),
            false => Fit::No,
        };
    }
    let first = body.sample("").and_then(|sample| sample.first().copied());
    let Some(first) = first.filter(|line| ValueKind::of(line) == ValueKind::Object) else { return Fit::No };
    match json::fields(first, &["role", "working_dir", "message_count"]) {
        Ok([None, Some(_), Some(_)]) => Fit::Certain("its first line has `working_dir` and `message_count`"),
        _ => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let (whole, path, list) = match &body.content {
        Content::Lines(text) => (*text, "", transcript.lines(text)),
        Content::Value(document) => {
            let whole = document.text();
            let Some(list) = body.field("conversation") else {
                let found = json::describe(whole);
                return Err(WireError::shape(format!("expected `conversation`, found {found}")));
            };
            let list = json::nested(whole, list, "/conversation", |list| transcript.array(list))?;
            (whole, "/conversation", list)
        }
    };
    let mut conversation = Conversation::new(Format::Goose, format!("{}{path}", body.path()));
    if !path.is_empty() {
        (conversation.id, conversation.label) = (body.text_of("id")?, body.text_of("name")?);
    }
    let (mut hidden, mut compactions) = (0_u64, Vec::new());
    for at in 0..transcript.count(list) {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        let place = if path.is_empty() { String::new() } else { format!("{path}/{at}") };
        json::nested(whole, raw, place, |raw| {
            let messages = slots::messages(&source, raw, Format::Goose, pieces)?;
            if messages.is_empty() {
                if at == 0 && path.is_empty() {
                    conversation.label = member_text(&source, raw, "description")?.unwrap_or_default();
                }
                return Ok(());
            }
            match seen(raw)? {
                Seen::NotByModel => {
                    hidden = hidden.saturating_add(messages.len() as u64);
                    return Ok(());
                }
                Seen::ByModel if hidden > 0 => {
                    let mut compaction = ToolCompaction::new(conversation.entries.len());
                    compaction.dropped = Some(core::mem::take(&mut hidden));
                    compactions.push(compaction);
                }
                _ => {}
            }
            let record = transcript.element(list, at, messages.len());
            conversation.extend(record, messages);
            Ok(())
        })?;
    }
    conversation.compactions = compactions.into();
    transcript.push(conversation);
    Ok(())
}

fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    let content = format!(r#"[{{"type":"text","text":{text}}}]"#);
    let like = like.or(Some(r#"{"role":"","created":0,"content":[]}"#));
    slots::fresh(like, &[("role", Some(role)), ("content", Some(content)), ("id", None), ("metadata", None)])
}
