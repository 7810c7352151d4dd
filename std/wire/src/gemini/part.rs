//! Reads parts of the wire as parts of a message.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use epitome_core::message::CallKind;
use epitome_message::{Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, expect_text, kind_of_mime, new_media, optional_text, present, share};
use crate::json::{self, ValueKind};

/// The content of one part of the wire: a part, or sealed reasoning and a part, or neither.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Unit {
    pub(crate) parts: Vec<Part>,
    /// The name of the function of a response; [`CODE_RESULT`] for the output of the provider's own code.
    pub(crate) name: Option<Str>,
}

/// The member with the output of the provider's own code.
pub(super) const CODE_RESULT: &str = "codeExecutionResult";

/// The members of a part, in either spelling.
struct Members<'a> {
    text: Option<&'a str>,
    thought: bool,
    signature: Option<&'a str>,
    /// The member with the kind and the content of the part, and its name in camel case.
    body: Option<(&'static str, &'a str)>,
}

impl<'a> Members<'a> {
    fn of(raw: &'a str) -> Result<Self, WireError> {
        Self::new(raw, json::known::fields(raw, &MEMBERS))
    }

    fn new(raw: &'a str, values: Result<[Option<&'a str>; 20], WireError>) -> Result<Self, WireError> {
        expect_object(raw, "a part")?;
        let given = |value: &&str| *value != "null";
        let [text, thought, camel, snake, bodies @ ..] = values?;
        let bodies = bodies.iter().enumerate().filter_map(|(at, value)| {
            Some((*MEMBERS.get(BODY.saturating_add(at & !1))?, value.filter(given)?))
        });
        Ok(Self {
            text: text.filter(given),
            thought: thought == Some("true"),
            signature: camel.or(snake).filter(given),
            body: bodies.min_by_key(|(_, value)| json::offset_of(raw, value)),
        })
    }
}

/// The unit of the part `raw`. `id` returns the id of a call or response with this name, if the wire has none.
pub(crate) fn unit(
    whole: &Arc<str>,
    raw: &str,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<Unit, WireError> {
    unit_of(whole, raw, json::known::fields(raw, &MEMBERS), id)
}

/// The unit of a part whose [`MEMBERS`] are known.
pub(super) fn unit_of(
    whole: &Arc<str>,
    raw: &str,
    values: Result<[Option<&str>; 20], WireError>,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<Unit, WireError> {
    let members = Members::new(raw, values)?;
    let signature = present(raw, members.signature, "thoughtSignature", expect_text)?;
    let mut signature = signature.filter(|text| !text.is_empty()).map(|text| share(whole, &text));
    let mut unit = Unit::default();
    let text = present(raw, members.text, "text", expect_text)?;
    let part = match (members.body, text) {
        (None, Some(text)) if members.thought => {
            let mut reasoning = Reasoning::new(share(whole, &text));
            reasoning.opaque = signature.take();
            let says_nothing = text.is_empty() && reasoning.opaque.is_none();
            Some(Part::Reasoning(reasoning)).filter(|_| !says_nothing)
        }
        (None, Some(text)) if text.is_empty() => None,
        (None, Some(text)) => Some(Part::Text(share(whole, &text))),
        (Some((name, body)), _) => {
            let path = format!("/{name}");
            let (part, name) = json::nested(raw, body, path, |body| of_body(whole, (name, body), raw, id))?;
            unit.name = name;
            Some(part)
        }
        (None, None) if signature.is_some() => None,
        (None, None) => Some(unknown(whole, "", raw)),
    };
    // A part of unknown kind stays unchanged, and contains its signature.
    if let Some(signature) = signature.filter(|_| !matches!(part, Some(Part::Unknown(_)))) {
        let mut sealed = Reasoning::new(Str::default());
        sealed.opaque = Some(signature);
        unit.parts.push(Part::Reasoning(sealed));
    }
    unit.parts.extend(part);
    Ok(unit)
}

fn of_body(
    whole: &Arc<str>,
    (name, body): (&'static str, &str),
    raw: &str,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<(Part, Option<Str>), WireError> {
    Ok(match name {
        "functionCall" => (call(whole, body, id)?, None),
        "functionResponse" => response(whole, body, id)?,
        "inlineData" | "fileData" => match media(whole, body)? {
            Some(media) => (Part::Media(media), None),
            None => (unknown(whole, name, raw), None),
        },
        "executableCode" | "toolCall" => {
            let call_id = text(whole, body, "id")?;
            let mut call = ToolCall::new(call_id, name, share(whole, body));
            call.kind = CallKind::Hosted;
            (Part::ToolCall(call), None)
        }
        "codeExecutionResult" | "toolResponse" => {
            let call_id = text(whole, body, "id")?;
            let said = if name == CODE_RESULT { printed(whole, body)? } else { None };
            let failed = said.as_ref().is_some_and(|(_, failed)| *failed);
            let parts = said.map_or_else(|| vec![unknown(whole, name, body)], |(parts, _)| parts);
            let name = Some(Str::from(CODE_RESULT)).filter(|_| name == CODE_RESULT);
            let mut result = ToolResult::new(call_id, parts);
            result.is_error = failed;
            (Part::ToolResult(result), name)
        }
        _ => (unknown(whole, name, raw), None),
    })
}

/// The printed text of code, and whether it failed.
fn printed(whole: &Arc<str>, body: &str) -> Result<Option<(Vec<Part>, bool)>, WireError> {
    if ValueKind::of(body) != ValueKind::Object {
        return Ok(None);
    }
    let [outcome, output] = json::known::fields(body, &["outcome", "output"])?;
    let output = output.filter(|output| ValueKind::of(output) == ValueKind::Text);
    let failed = outcome.is_some_and(|outcome| outcome != "\"OUTCOME_OK\"");
    Ok(output.map(|output| (vec![Part::Text(share(whole, &json::decode(output)))], failed)))
}

fn unknown(whole: &Arc<str>, kind: &str, raw: &str) -> Part {
    Part::Unknown(UnknownPart::new(NAME.clone(), kind, share(whole, raw)))
}

fn call(whole: &Arc<str>, body: &str, id: &mut dyn FnMut(bool, &str) -> Str) -> Result<Part, WireError> {
    expect_object(body, "a call")?;
    let [name, args, own] = json::known::fields(body, &["name", "args", "id"])?;
    let (name, own) = (given(whole, body, name, "name")?, given(whole, body, own, "id")?);
    let args = args.filter(|args| *args != "null").unwrap_or("{}");
    let own = if own.is_empty() { id(true, &name) } else { own };
    Ok(Part::ToolCall(ToolCall::new(own, name, share(whole, args))))
}

fn response(
    whole: &Arc<str>,
    body: &str,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<(Part, Option<Str>), WireError> {
    expect_object(body, "a response")?;
    let [name, own, response, parts] = json::known::fields(body, &["name", "id", "response", "parts"])?;
    let (name, own) = (given(whole, body, name, "name")?, given(whole, body, own, "id")?);
    let own = if own.is_empty() { id(false, &name) } else { own };
    let mut result = ToolResult::new(own, Vec::new());
    if let Some(response) = response.filter(|response| *response != "null") {
        let (said, failed) = said(response)?;
        result.is_error = failed;
        result
            .parts
            .extend(Some(said).filter(|said| !said.is_empty()).map(|said| Part::Text(share(whole, &said))));
    }
    if let Some(parts) = parts.filter(|parts| ValueKind::of(parts) == ValueKind::Array) {
        json::known::items(parts, |part| {
            // Only media are known there: a response within a response would make the reader recurse.
            let members = Members::of(part)?;
            let media = match members.body {
                Some(("inlineData" | "fileData", body)) => media(whole, body)?.map(Part::Media),
                _ => None,
            };
            result.parts.push(media.unwrap_or_else(|| unknown(whole, "", part)));
            Ok(())
        })?;
    }
    Ok((Part::ToolResult(result), Some(name).filter(|name| !name.is_empty())))
}

/// The text of a response, and whether it is a failure.
pub(super) fn said(response: &str) -> Result<(Cow<'_, str>, bool), WireError> {
    match only_text(response)? {
        Some((key, text)) => Ok((text, key == "error")),
        None if ValueKind::of(response) == ValueKind::Object => {
            let [output, result, error] = json::known::fields(response, &["output", "result", "error"])?;
            Ok((Cow::Borrowed(response), error.is_some() && output.is_none() && result.is_none()))
        }
        None => Ok((Cow::Borrowed(response), false)),
    }
}

/// The text of a response's only member, with its key, if the key is one for texts.
pub(super) fn only_text(response: &str) -> Result<Option<(&'static str, Cow<'_, str>)>, WireError> {
    if ValueKind::of(response) != ValueKind::Object {
        return Ok(None);
    }
    let (mut members, mut found) = (0_usize, None);
    json::members(response, |key, value| {
        members = members.saturating_add(1);
        if let Some(key) = ["output", "result", "error"].into_iter().find(|known| *known == key)
            && ValueKind::of(value) == ValueKind::Text
        {
            found = Some((key, json::decode(value)));
        }
        Ok(())
    })?;
    Ok(found.filter(|_| members == 1))
}

fn media(whole: &Arc<str>, body: &str) -> Result<Option<Media>, WireError> {
    expect_object(body, "media")?;
    let names = &["mimeType", "mime_type", "data", "fileUri", "file_uri"];
    let [camel, snake, data, uri, snake_uri] = json::known::fields(body, names)?;
    let mime = optional_text(body, camel.or(snake), "mimeType")?.unwrap_or_default();
    let source = match optional_text(body, data, "data")? {
        Some(data) => Some(MediaSource::Base64(share(whole, &data))),
        None => {
            optional_text(body, uri.or(snake_uri), "fileUri")?.map(|uri| MediaSource::Uri(share(whole, &uri)))
        }
    };
    let kind = kind_of_mime(&mime);
    Ok(source.map(|source| new_media(kind, share(whole, &mime), source)))
}

/// The text of a member; empty if there is none.
fn text(whole: &Arc<str>, raw: &str, key: &'static str) -> Result<Str, WireError> {
    let [value] = json::known::fields(raw, &[key])?;
    given(whole, raw, value, key)
}

/// The text of this value of a member; empty if there is none.
fn given(whole: &Arc<str>, raw: &str, value: Option<&str>, key: &str) -> Result<Str, WireError> {
    Ok(optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default())
}

/// The members of a part that are read. From [`BODY`] on, the members with the kind of the part, each in camel case and
/// then in snake case.
pub(super) const MEMBERS: [&str; 20] = [
    "text",
    "thought",
    "thoughtSignature",
    "thought_signature",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
];

/// Number of [`MEMBERS`] that do not determine the kind of a part.
const BODY: usize = 4;

/// The format's name, shared by all messages.
pub(super) static NAME: LazyLock<Str> = LazyLock::new(|| Str::from(FORMAT));
