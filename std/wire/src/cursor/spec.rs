//! Recognises and reads transcripts.

use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Message, Part, Str, UnknownPart};

use super::FORMAT;
use crate::blocks::block;
use crate::body::Body;
use crate::document::Foreign;
use crate::expect::{expect_object, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{self, RecordMessage, RecordMessages, RecordPart, blocks};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Cursor in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::Cursor, &["messages"], (sign, read), Writer::Slots(pieces))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    match body.sample("messages").is_some_and(|sample| Foreign::Cursor.is_of(&sample)) {
        true => Fit::Certain("its records have `role` beside a `message` with `content`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let mut conversation = Conversation::new(Format::Cursor, "");
    slots::read_list(transcript, body, &mut conversation, "messages", pieces)?;
    unanswered(&mut conversation);
    transcript.push(conversation);
    Ok(())
}

/// Marks calls without a result as hosted calls, which wait for no result.
fn unanswered(conversation: &mut Conversation) {
    let parts = conversation.messages().flat_map(Message::parts);
    let answered: HashSet<Str> = parts
        .filter_map(
            |part| if let Part::ToolResult(result) = part { Some(result.call_id.clone()) } else { None },
        )
        .collect();
    for part in conversation.entries.iter_mut().flat_map(|entry| entry.parts_mut()) {
        if let Part::ToolCall(call) = part
            && (call.id.is_empty() || !answered.contains(&call.id))
        {
            call.kind = CallKind::Hosted;
        }
    }
}

fn fresh(message: &Message, _like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    Ok(format!(r#"{{"role":{role},"message":{{"content":[{{"type":"text","text":{text}}}]}}}}"#))
}

/// The messages of a line.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a record")?;
    let found = Members::of(raw, &["role", "message"]);
    let role = match &*found.text(whole, "role")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "" => return Ok(Vec::new()),
        _ => return Err(WireError::shape("expected a `role` of `user` or `assistant`")),
    };
    let Some(message) = found.get("message")?.filter(|message| ValueKind::of(message) == ValueKind::Object)
    else {
        let found = json::describe(raw);
        return Err(WireError::shape(format!("expected a record with `message`, found {found}")));
    };
    json::nested(raw, message, "/message", |message| {
        let mut pieces = RecordMessages::new(role);
        match json::known::field(message, "content")? {
            Some(said) if ValueKind::of(said) == ValueKind::Text => {
                pieces.extend(raw, RecordPart::text(whole, Some(said)))
            }
            Some(list) if ValueKind::of(list) == ValueKind::Array => {
                json::nested(message, list, "/content", |list| {
                    blocks(list, |raw| {
                        let noted = block(whole, raw)?;
                        let unknown = |kind| {
                            RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, raw))))
                        };
                        let noted = noted.unwrap_or_else(|kind| Some(unknown(kind)));
                        pieces.extend(raw, noted.map(|noted| noted.with_element(list, raw)));
                        Ok(())
                    })
                })?;
            }
            _ => {
                return Err(WireError::shape(
                    "expected a message with `content`, a text or a list of blocks",
                ));
            }
        }
        Ok(pieces.into_list())
    })
}
