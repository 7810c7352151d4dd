//! The fields of a message, and the calls in them.

use std::borrow::Cow;

use epitome_core::message::Role;

use crate::error::quoted;
use crate::expect::{expect_object, expect_text, optional_text, present};
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind};

/// The fields of a message that are read, unchanged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) role: Option<&'a str>,
    pub(super) content: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) reasoning_content: Option<&'a str>,
    pub(super) reasoning: Option<&'a str>,
    pub(super) refusal: Option<&'a str>,
    pub(super) tool_calls: Option<&'a str>,
    pub(super) function_call: Option<&'a str>,
    pub(super) tool_call_id: Option<&'a str>,
    pub(super) tool_call_ids: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, WireError> {
        json::fields(text, &NAMES).map(Self::new)
    }

    /// The fields from the values of [`NAMES`].
    pub(super) fn new(found: [Option<&'a str>; NAMES.len()]) -> Self {
        let [
            role,
            content,
            name,
            reasoning_content,
            reasoning,
            refusal,
            tool_calls,
            function_call,
            tool_call_id,
            tool_call_ids,
        ] = found.map(|value| value.filter(|value| *value != "null"));
        Self {
            role,
            content,
            name,
            reasoning_content,
            reasoning,
            refusal,
            tool_calls,
            function_call,
            tool_call_id,
            tool_call_ids,
        }
    }

    pub(super) fn role(&self, text: &str) -> Result<Role, WireError> {
        let Some(role) = self.role else {
            let found = json::describe(text);
            return Err(WireError::shape(format!(
                "expected a message (an object with `role`), found {found}"
            )));
        };
        json::nested(text, role, "/role", |role| match &*expect_text(role)? {
            "system" => Ok(Role::System),
            "developer" => Ok(Role::Developer),
            "user" => Ok(Role::User),
            "assistant" => Ok(Role::Assistant),
            "tool" | "function" => Ok(Role::Tool),
            other => Err(WireError::new(
                WireErrorKind::UnknownRole,
                format!("unknown role {}: expected {ROLES}", quoted(other)),
            )),
        })
    }

    /// The key and the text of the reasoning. A value that is no text has an unknown form, and stays raw.
    pub(super) fn reasoning(&self) -> Option<(&'static str, Cow<'a, str>)> {
        [("reasoning_content", self.reasoning_content), ("reasoning", self.reasoning)]
            .into_iter()
            .filter_map(|(key, value)| {
                value.filter(|value| ValueKind::of(value) == ValueKind::Text).map(|raw| (key, raw))
            })
            .map(|(key, raw)| (key, json::decode(raw)))
            .find(|(_, text)| !text.is_empty())
    }

    pub(super) fn no_calls(&self, text: &str, role: Role) -> Result<(), WireError> {
        for (key, value) in [("tool_calls", self.tool_calls), ("function_call", self.function_call)] {
            let Some(value) = value else { continue };
            if ValueKind::of(value) != ValueKind::Array || json::count(value) > 0 {
                let what = format!("calls in a message of role {}: only an assistant calls", role.as_str());
                return Err(
                    WireError::shape(what).inside(format_args!("/{key}"), json::offset_of(text, value))
                );
            }
        }
        Ok(())
    }
}

/// A call in the form of the assistant's message.
#[derive(Debug, Clone)]
pub(super) struct ChatCall<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Cow<'a, str>,
}

pub(super) fn call_id<'a>(text: &'a str, fields: &Fields<'a>) -> Result<Cow<'a, str>, WireError> {
    if let Some(id) = optional_text(text, fields.tool_call_id, "tool_call_id")? {
        return Ok(id);
    }
    let one = present(text, fields.tool_call_ids, "tool_call_ids", |list| {
        if ValueKind::of(list) != ValueKind::Array {
            return Err(WireError::shape(format!(
                "expected a list of one id, found {}",
                json::describe(list)
            )));
        }
        let mut ids = Vec::new();
        json::known::items(list, |id| {
            ids.push(json::nested(list, id, format_args!("/{}", ids.len()), expect_text)?);
            Ok(())
        })?;
        match ids.len() {
            0 | 1 => Ok(ids.pop()),
            count => Err(WireError::shape(format!("a tool message answers one call, found {count} ids"))),
        }
    })?;
    Ok(one.flatten().unwrap_or_default())
}

pub(super) fn calls<'a>(text: &'a str, fields: &Fields<'a>) -> Result<Vec<ChatCall<'a>>, WireError> {
    let mut calls = Vec::new();
    present(text, fields.tool_calls, "tool_calls", |list| {
        if ValueKind::of(list) != ValueKind::Array {
            return Err(WireError::shape(format!(
                "expected a list of calls, found {}",
                json::describe(list)
            )));
        }
        json::known::items_and_fields(list, &["id", "function", "custom"], |item, fields| {
            let path = format_args!("/{}", calls.len());
            calls.push(json::nested(list, item, path, |item| ChatCall::of_fields(item, fields))?);
            Ok(())
        })
    })?;
    let legacy = present(text, fields.function_call, "function_call", |call| {
        ChatCall::parse_function(call, Cow::Borrowed(""), "arguments")
    })?;
    calls.extend(legacy);
    Ok(calls)
}

impl<'a> ChatCall<'a> {
    fn of_fields(text: &'a str, fields: Result<[Option<&'a str>; 3], WireError>) -> Result<Self, WireError> {
        expect_object(text, "a call")?;
        let [id, function, custom] = fields?;
        let id = optional_text(text, id, "id")?.unwrap_or_default();
        let function =
            present(text, function, "function", |call| Self::parse_function(call, id.clone(), "arguments"))?;
        let call = match function {
            Some(call) => Some(call),
            None => present(text, custom, "custom", |call| Self::parse_function(call, id, "input"))?,
        };
        call.ok_or_else(|| {
            WireError::shape(format!(
                "expected a call (with `function` or `custom`), found {}",
                json::describe(text)
            ))
        })
    }

    /// The call in `text`, an object with `name` and the call's input under the key `input`.
    fn parse_function(text: &'a str, id: Cow<'a, str>, input: &'static str) -> Result<Self, WireError> {
        expect_object(text, "a call")?;
        let [name, arguments] = json::known::fields(text, &["name", input])?;
        let Some(name) = optional_text(text, name, "name")? else {
            let found = json::describe(text);
            return Err(WireError::shape(format!("expected a call with `name`, found {found}")));
        };
        let arguments = arguments.filter(|raw| *raw != "null").map_or(Cow::Borrowed(""), |raw| {
            if ValueKind::of(raw) == ValueKind::Text { json::decode(raw) } else { Cow::Borrowed(raw) }
        });
        Ok(Self { id, name, arguments })
    }
}

/// The keys of [`Fields`], in their order.
pub(super) const NAMES: [&str; 10] = [
    "role",
    "content",
    "name",
    "reasoning_content",
    "reasoning",
    "refusal",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "tool_call_ids",
];

/// Values of a message's `role`, for errors.
const ROLES: &str = "system, developer, user, assistant, tool or function";
