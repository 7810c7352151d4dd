//! Recognises, reads and writes histories.

use epitome_core::message::Role;
use epitome_message::Message;

use super::message::{instructions, pieces, pieces_and_instructions, reported};
use crate::body::{Body, Content};
use crate::json::{self, ValueKind};
use crate::rewrite::form;
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Pydantic AI in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::PydanticAi, &["messages"], (sign, read), Writer::Own(write_record))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    let sample = body.sample("messages").unwrap_or_default();
    let is_one = |message: &&str| {
        let found = match ValueKind::of(message) {
            ValueKind::Object => json::fields(message, &["kind", "parts"]).ok(),
            _ => None,
        };
        matches!(found, Some([Some("\"request\"" | "\"response\""), Some(parts)])
            if ValueKind::of(parts) == ValueKind::Array)
    };
    match !sample.is_empty() && sample.iter().all(is_one) {
        true => Fit::Certain("its messages have a `kind`, request or response, beside `parts`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let (whole, path, list) = match &body.content {
        Content::Lines(text) => (*text, "", transcript.lines(text)),
        Content::Value(document) => {
            let whole = document.text();
            let (list, path) = match body.field("messages") {
                Some(list) => (list, "/messages"),
                None => (whole, ""),
            };
            if ValueKind::of(list) != ValueKind::Array {
                let found = json::describe(list);
                return Err(WireError::shape(format!("expected a list of messages, found {found}")));
            }
            (whole, path, json::nested(whole, list, path, |list| transcript.array(list))?)
        }
    };
    let mut conversation = Conversation::new(Format::PydanticAi, format!("{}{path}", body.path()));
    let mut instructed = false;
    transcript.extend(&mut conversation, list, (whole, path), |source, message| {
        let raw = message.text();
        let read: slots::ReadRecord = if instructed { pieces } else { pieces_and_instructions };
        let messages = slots::messages(source, raw, Format::PydanticAi, read)?;
        instructed |= instructions(raw)?.is_some();
        Ok((messages, reported(raw)?))
    })?;
    transcript.push(conversation);
    Ok(())
}

/// Writes a request with a prompt, or a response with a text. The framework adds the times.
fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (_, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    let (kind, part) = match message.role() {
        Role::User => ("request", "user-prompt"),
        _ => ("response", "text"),
    };
    Ok(format!(r#"{{"parts":[{{"content":{text},"part_kind":"{part}"}}],"kind":"{kind}"}}"#))
}

fn write_record(record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
    let record = record.ok_or_else(|| form("a new message"))?;
    let instructions = instructions(record)?.unwrap_or_default();
    let is_it = |message: &&Message| {
        message.role() == Role::System && message.wire().is_some_and(|wire| *wire.text == *instructions)
    };
    // A record with only instructions has only their message.
    let is_alone = pieces(&record.into(), record)?.is_empty();
    match is_alone || now.iter().any(is_it) {
        true => slots::write(Some(record), now, pieces_and_instructions),
        false => slots::write(Some(record), now, pieces),
    }
}
