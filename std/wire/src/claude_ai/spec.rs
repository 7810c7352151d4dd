//! Recognises and reads exports.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Part, Str, UnknownPart};

use super::FORMAT;
use crate::blocks::block;
use crate::body::Body;
use crate::branches::{Branches, Ordered, parents_first};
use crate::expect::{expect_object, member_text, share};
use crate::exports;
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{self, RecordMessage, RecordMessages, RecordPart, blocks};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::Transcript;
use crate::{Format, WireError, WireErrorKind};

/// The row of claude.ai in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::ClaudeAi, &["chat_messages"], (sign, read), Writer::ReadOnly);

fn sign(body: &Body<'_>) -> Fit {
    exports::fit(body, "its conversations have `chat_messages`", |raw| {
        let list = exports::value_of(raw, "chat_messages", ValueKind::Array).ok().flatten()?;
        let has_sender = |raw: &&str| {
            ValueKind::of(raw) == ValueKind::Object && matches!(json::field(raw, "sender"), Ok(Some(_)))
        };
        let sample = crate::body::first_of(list)?;
        sample.iter().all(has_sender).then_some(!sample.is_empty())
    })
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    exports::for_each(transcript, body, |transcript, path, raw| {
        conversation(transcript, (path, raw), body.leaf())
    })
}

/// Adds the conversation `raw` at `path`, and its branches. Returns whether `leaf` is its id, or the id of one of its
/// messages.
fn conversation(
    transcript: &mut Transcript,
    (path, raw): (&str, &str),
    leaf: Option<&str>,
) -> Result<bool, WireError> {
    let list = exports::messages_of(raw, "chat_messages", ValueKind::Array)?;
    let source = Arc::clone(&transcript.source);
    let mut found = Vec::new();
    json::nested(raw, list, "/chat_messages", |list| {
        blocks(list, |raw| {
            let messages = slots::messages(&source, raw, Format::ClaudeAi, pieces)?;
            let name = member_text(&source, raw, "uuid")?.unwrap_or_default();
            found.push((name, member_text(&source, raw, "parent_message_uuid")?, raw, messages));
            Ok(())
        })
    })?;
    let named = found.iter().zip(0_usize..).filter(|((name, ..), _)| !name.is_empty());
    let mut numbers = HashMap::new();
    let is_twice = named
        .fold(false, |is_twice, ((name, ..), at)| numbers.insert(name.clone(), at).is_some() || is_twice);
    let known = |parent: &Option<Str>| parent.as_ref().and_then(|parent| numbers.get(parent).copied());
    let has_parents = found.iter().any(|(_, parent, ..)| known(parent).is_some());
    if has_parents && is_twice {
        return Err(WireError::new(WireErrorKind::DuplicateKey, "two messages have the same `uuid`"));
    }
    let nodes = found.iter().enumerate().map(|(at, (_, parent, ..))| {
        // In exports without parents, the message before a message is its parent.
        if has_parents { known(parent) } else { at.checked_sub(1) }
    });
    let parents: Vec<_> = nodes.collect();
    let mut branches = Branches::default();
    for Ordered { at, parent, node } in parents_first(parents.into_iter().zip(found).collect())? {
        let (name, _, raw, messages) = node;
        let record = transcript.value(raw, messages.len());
        branches.push((at, parent), name, Some((record, messages)));
    }
    let (id, label) = (exports::name(&source, raw, "uuid")?, exports::name(&source, raw, "name")?);
    let current = member_text(&source, raw, "current_leaf_message_uuid")?;
    Ok(branches.add_to(transcript, (Format::ClaudeAi, path), (id, label), (leaf, current)))
}

/// The messages of an element of `chat_messages`.
fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a message")?;
    let found = Members::of(raw, &["sender", "text", "content", "attachments", "files"]);
    let role = match &*found.text(whole, "sender")? {
        "human" | "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(WireError::shape("expected a `sender` of `human` or `assistant`")),
    };
    let list = |key: &'static str| {
        Ok::<_, WireError>(found.get(key)?.filter(|list| ValueKind::of(list) == ValueKind::Array))
    };
    let mut said = Vec::new();
    if let Some(content) = list("content")? {
        json::nested(raw, content, "/content", |content| {
            blocks(content, |raw| {
                let unknown =
                    |kind| RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, raw))));
                let part = match block(whole, raw)? {
                    Ok(part) => part,
                    // The token budget of the model, as claude.ai counts it.
                    Err(kind) if kind == "token_budget" => None,
                    Err(kind) => Some(unknown(kind)),
                };
                said.extend(part.map(|part| (raw, part)));
                Ok(())
            })
        })?;
    }
    // In a message with blocks that are no text, the text is a note for people who cannot see the blocks.
    if said.is_empty() {
        said.extend(RecordPart::text(whole, found.get("text")?).map(|text| (raw, text)));
    }
    let mut also =
        |key: &'static str, read: &mut dyn FnMut(&'a str) -> Result<Option<RecordPart<'a>>, WireError>| {
            let Some(list) = list(key)? else { return Ok(()) };
            json::nested(raw, list, format_args!("/{key}"), |list| {
                blocks(list, |raw| {
                    said.extend(read(raw)?.map(|part| (raw, part)));
                    Ok(())
                })
            })
        };
    also("attachments", &mut |raw| {
        expect_object(raw, "an attachment")?;
        Ok(RecordPart::text(whole, Members::of(raw, &["extracted_content"]).get("extracted_content")?))
    })?;
    also("files", &mut |raw| {
        Ok(Some(RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, "file", share(whole, raw))))))
    })?;
    Ok(spoken(role, said))
}

/// The messages of these parts. A call with a result among them is a function call, and its result is a tool message.
fn spoken<'a>(role: Role, said: Vec<(&'a str, RecordPart<'a>)>) -> Vec<RecordMessage<'a>> {
    let id = |part: &Part, is_call: bool| match part {
        Part::ToolCall(call) if is_call => Some(call.id.clone()),
        Part::ToolResult(result) if !is_call => Some(result.call_id.clone()),
        _ => None,
    };
    let ids = |is_call| -> HashSet<Str> {
        said.iter().filter_map(|(_, part)| id(&part.part, is_call)).filter(|id| !id.is_empty()).collect()
    };
    let (called, answered) = (ids(true), ids(false));
    let mut messages = RecordMessages::new(role);
    for (raw, part) in said {
        let is_pair = match &part.part {
            Part::ToolCall(call) => answered.contains(&call.id),
            Part::ToolResult(result) => called.contains(&result.call_id),
            _ => false,
        };
        match &part.part {
            Part::ToolCall(_) if !is_pair => messages.extend_own(raw, [part.with_kind(CallKind::Hosted)]),
            Part::ToolResult(_) if !is_pair => messages.extend_own(raw, [part]),
            _ => messages.extend(raw, [part]),
        }
    }
    messages.into_list()
}
