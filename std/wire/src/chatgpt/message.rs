//! Reads the messages of a conversation.

use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_message::{Attribution, Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind, quote};

/// The content of a message.
#[derive(Debug)]
pub(super) struct Said {
    role: Role,
    /// The name of the called tool.
    called: Option<Str>,
    parts: Vec<Part>,
    /// Whether ChatGPT wrote the content in the place of the user.
    is_context: bool,
}

/// The role of a message in the sequence of calls and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Nothing,
    Call,
    Result,
    Text,
}

impl Said {
    /// Reads the message `raw`, a slice of `source`.
    pub(super) fn of(source: &Arc<str>, raw: &str) -> Result<Self, WireError> {
        expect_object(raw, "a message")?;
        let found = Members::of(raw, &["author", "content", "recipient"]);
        let author = found.get("author")?.unwrap_or("{}");
        let role = json::nested(raw, author, "/author", |author| {
            expect_object(author, "an author")?;
            match &*Members::of(author, &["role"]).text(source, "role")? {
                "user" => Ok(Role::User),
                "assistant" => Ok(Role::Assistant),
                "system" => Ok(Role::System),
                "tool" => Ok(Role::Tool),
                _ => Err(WireError::shape("expected a `role` of `user`, `assistant`, `system` or `tool`")),
            }
        })?;
        let recipient = found.text(source, "recipient")?;
        let is_call = role == Role::Assistant && !matches!(&*recipient, "" | "all");
        let content = found.get("content")?.filter(|content| ValueKind::of(content) == ValueKind::Object);
        let (kind, parts) = match content {
            Some(content) => json::nested(raw, content, "/content", |content| parts(source, content))?,
            None => (Str::default(), Vec::new()),
        };
        // ChatGPT's knowledge of the user, and the model's notes about the user.
        let is_context = matches!(&*kind, "user_editable_context" | "model_editable_context");
        Ok(Self { role, called: is_call.then(|| tool_name(recipient)), parts, is_context })
    }

    pub(super) fn speech(&self) -> Speech {
        match self.role {
            _ if self.called.is_some() => Speech::Call,
            Role::Tool => Speech::Result,
            _ if self.parts.iter().all(|part| matches!(part, Part::Reasoning(_))) => Speech::Nothing,
            _ => Speech::Text,
        }
    }

    /// The message with this id. A result answers `call`. None if there is no content.
    pub(super) fn message(&self, name: &Str, call: Option<Str>, is_answered: bool) -> Option<Message> {
        let parts = self.parts.clone();
        let outside = |kind| Attribution::new(FORMAT, kind, Authority::Retrieved);
        let message = match (&self.called, call, self.role) {
            (Some(tool), ..) => {
                let mut call = ToolCall::new(name.clone(), tool.clone(), arguments(&parts));
                call.kind = if is_answered { CallKind::Function } else { CallKind::Hosted };
                let others = parts.into_iter().filter(|part| !matches!(part, Part::Text(_)));
                Message::new(Role::Assistant, others.chain([Part::ToolCall(call)]).collect())
            }
            (None, Some(call), _) => {
                Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::new(call, parts))])
            }
            _ if parts.is_empty() => return None,
            (None, None, Role::Tool) => {
                Message::new(Role::User, parts).with_attribution(outside(SourceKind::Tool))
            }
            _ if self.is_context => {
                Message::new(Role::User, parts).with_attribution(outside(SourceKind::Context))
            }
            _ => Message::new(self.role, parts),
        };
        Some(message.with_id(name.clone()))
    }
}

/// The name of a tool with allowed characters only: `web.run` becomes `web_run`.
fn tool_name(recipient: Str) -> Str {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match recipient.chars().all(is_allowed) {
        true => recipient,
        false => recipient.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect::<String>().into(),
    }
}

/// The arguments of a call: its text, if it is a JSON object, otherwise an object with its texts.
fn arguments(parts: &[Part]) -> Str {
    let texts: Vec<_> =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None }).collect();
    let is_object = |text: &Str| ValueKind::of(text) == ValueKind::Object && json::check(text).is_ok();
    match texts.as_slice() {
        [] => Str::from("{}"),
        [one] if is_object(one) => (*one).clone(),
        all => {
            let input: Vec<&str> = all.iter().map(|text| &***text).collect();
            Str::from(format!(r#"{{"input":{}}}"#, quote(&input.join("\n"))))
        }
    }
}

/// The kind of `content`, and its parts.
fn parts(source: &Arc<str>, content: &str) -> Result<(Str, Vec<Part>), WireError> {
    let found = Members::of(content, &CONTENT);
    let kind = found.text(source, "content_type")?;
    let mut parts = Vec::new();
    match &*kind {
        // The duration of the model's reasoning, for people.
        "reasoning_recap" => return Ok((kind, parts)),
        "thoughts" => {
            each(content, (found.get("thoughts")?, "thoughts"), |thought| {
                let thought = Members::of(thought, &["content", "summary"]);
                let said = thought.text(source, "content")?;
                let said = if said.is_empty() { thought.text(source, "summary")? } else { said };
                parts.extend(
                    Some(said)
                        .filter(|said| !said.is_empty())
                        .map(|said| Part::Reasoning(Reasoning::new(said))),
                );
                Ok(())
            })?;
            return Ok((kind, parts));
        }
        _ => {}
    }
    each(content, (found.get("parts")?, "parts"), |part| {
        parts.extend(one(source, part)?);
        Ok(())
    })?;
    for key in TEXTS {
        let said = found.get(key)?.filter(|said| ValueKind::of(said) == ValueKind::Text && *said != "\"\"");
        parts.extend(said.map(|said| Part::Text(share(source, &json::decode(said)))));
    }
    // An unknown kind of content.
    if parts.is_empty()
        && found.get("parts")?.is_none()
        && TEXTS.iter().all(|key| matches!(found.get(key), Ok(None)))
    {
        parts.push(Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(source, content))));
    }
    Ok((kind, parts))
}

/// The part of an element of `parts`: a text. Pictures and sounds are in other files, and are unknown parts.
fn one(source: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    match ValueKind::of(raw) {
        ValueKind::Text => {
            let said = share(source, &json::decode(raw));
            Ok(Some(said).filter(|said| !said.is_empty()).map(Part::Text))
        }
        ValueKind::Object => {
            let found = Members::of(raw, &["content_type", "text"]);
            let kind = found.text(source, "content_type")?;
            Ok(Some(match &*kind {
                "audio_transcription" => Part::Text(found.text(source, "text")?),
                _ => Part::Unknown(UnknownPart::new(FORMAT, kind, share(source, raw))),
            }))
        }
        _ => Ok(None),
    }
}

/// Calls `visit` with each element of the list under `key`, if there is one.
fn each<'a>(
    raw: &'a str,
    (list, key): (Option<&'a str>, &str),
    mut visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let Some(list) = list.filter(|list| ValueKind::of(list) == ValueKind::Array) else { return Ok(()) };
    json::nested(raw, list, format_args!("/{key}"), |list| crate::slots::blocks(list, &mut visit))
}

/// The keys of content with texts for the model.
const TEXTS: [&str; 5] = ["user_profile", "user_instructions", "model_set_context", "text", "result"];

const CONTENT: [&str; 8] = [
    "content_type",
    "parts",
    "thoughts",
    "user_profile",
    "user_instructions",
    "model_set_context",
    "text",
    "result",
];
