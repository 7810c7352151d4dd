//! Recognises and reads lists of messages.

use core::hash::{Hash, Hasher};
use std::hash::DefaultHasher;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::Message;

use super::{model, ui};
use crate::body::Body;
use crate::document::Foreign;
use crate::expect::expect_object;
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{self, RecordMessage};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of the Vercel AI SDK in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::AiSdk, &["messages", "id"], (sign, read), Writer::Slots(pieces))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    match body.sample("messages").is_some_and(|sample| Foreign::AiSdk.is_of(&sample)) {
        true => {
            Fit::Certain("its messages have `parts` of the Vercel AI SDK, or content of type `tool-call`")
        }
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let mut conversation = Conversation::new(Format::AiSdk, "");
    slots::read_list(transcript, body, &mut conversation, "messages", pieces)?;
    conversation.id = body.text_of("id")?;
    transcript.push(conversation);
    Ok(())
}

/// Writes a message of the same kind as the adjacent one: with `parts` and an id, or with `content`.
fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant, Role::System])?;
    let [parts, id] = json::fields(like.unwrap_or("{}"), &["parts", "id"])?;
    let new = match parts {
        None => [("role", Some(role)), ("content", Some(text)), ("providerOptions", None), ("id", None)],
        Some(_) => {
            let mut named = DefaultHasher::new();
            text.hash(&mut named);
            let id = id.map(|_| format!(r#""note-{:016x}""#, named.finish()));
            let parts = format!(r#"[{{"type":"text","text":{text}}}]"#);
            [("id", id), ("role", Some(role)), ("parts", Some(parts)), ("content", None)]
        }
    };
    let gone =
        ["metadata", "annotations", "toolInvocations", "experimental_attachments"].map(|key| (key, None));
    slots::fresh(like, &[new, gone].concat())
}

/// The messages of an element.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["role", "content", "parts", "toolInvocations"]);
    let role = match &*found.text(whole, "role")? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "tool" => Role::Tool,
        // Version 3 stored data of the application among the messages.
        "data" => return Ok(Vec::new()),
        _ => return Err(WireError::shape("expected a `role` of `user`, `assistant`, `system` or `tool`")),
    };
    let is_list = |list: &&str| ValueKind::of(list) == ValueKind::Array;
    match (found.get("parts")?.filter(is_list), found.get("content")?) {
        (Some(parts), content) => {
            let invocations = found.get("toolInvocations")?.filter(is_list);
            ui::pieces(whole, raw, role, (parts, content), invocations)
        }
        (None, Some(content)) if ValueKind::of(content) == ValueKind::Array => {
            model::pieces(whole, raw, role, content)
        }
        (None, Some(content)) if ValueKind::of(content) == ValueKind::Text => {
            ui::plain(whole, raw, role, (content, found.get("toolInvocations")?.filter(is_list)))
        }
        _ => {
            let found = json::describe(raw);
            Err(WireError::shape(format!("expected a message with `parts` or `content`, found {found}")))
        }
    }
}
