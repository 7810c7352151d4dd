//! Session files, told and read.

use std::sync::Arc;

use super::message::{messages, reported};
use super::write::write_record;
use crate::wire::expect::member_text;
use crate::wire::json::{self, Kind};
use crate::wire::room::{Body, Fit, Room};
use crate::wire::transcript::{Conversation, Transcript};
use crate::wire::{Format, WireError};

/// The row of Gemini CLI.
pub(crate) const ROOM: Room = Room {
    format: Format::GeminiCli,
    keys: &["messages", "sessionId"],
    sign,
    read,
    write: write_record,
    chain: None,
};

fn sign(body: &Body<'_>) -> Fit {
    let has = |key, kind| body.field(key).is_some_and(|value| Kind::of(value) == kind);
    match has("sessionId", Kind::Text) && has("projectHash", Kind::Text) && has("messages", Kind::Array) {
        true => Fit::Certain("it has `sessionId`, `projectHash` and `messages`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let Some(list) = body.field("messages") else {
        return Err(WireError::shape(format!("expected `messages`, found {}", json::describe(whole))));
    };
    let mut conversation = Conversation::new(Format::GeminiCli, format!("{}/messages", body.path()));
    let source = Arc::clone(body.source);
    conversation.id = member_text(&source, whole, "sessionId")?.unwrap_or_default();
    let list = json::nested(whole, list, "/messages", |list| transcript.array(list))?;
    transcript.extend(&mut conversation, list, (whole, "/messages"), |source, text| {
        Ok((messages(source, text)?, reported(text)?))
    })?;
    transcript.push(conversation);
    Ok(())
}
