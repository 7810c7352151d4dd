//! One record, as the messages that it is.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_core::{GeminiTokens, Usage};

use super::FORMAT;
use crate::message::{Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText};
use crate::wire::expect::{expect_object, member_text, number, share};
use crate::wire::json::{self, Kind};
use crate::wire::{Format, WireError};

/// The messages that the record `raw`, a slice of `whole`, is; none if it is a note.
pub(super) fn messages(whole: &Arc<str>, raw: &str) -> Result<Vec<Message>, WireError> {
    expect_object(raw, "a record")?;
    let [kind, content, thoughts, calls] = json::fields(raw, &["type", "content", "thoughts", "toolCalls"])?;
    let role = match kind {
        Some("\"user\"") => Role::User,
        Some("\"gemini\"") => Role::Assistant,
        _ => return Ok(Vec::new()),
    };
    let mut parts = Vec::new();
    each(raw, thoughts, "/thoughts", |thought| {
        parts.push(self::thought(whole, thought)?);
        Ok(())
    })?;
    if let Some(content) = content {
        json::nested(raw, content, "/content", |content| said(whole, content, &mut parts))?;
    }
    let mut results = Vec::new();
    each(raw, calls, "/toolCalls", |call| {
        let (call, result) = self::call(whole, call)?;
        parts.push(Part::ToolCall(call));
        results.extend(result);
        Ok(())
    })?;
    let id = member_text(whole, raw, "id")?;
    let wire =
        |rejoin: bool| WireText::new(Format::GeminiCli.shared_name(), share(whole, raw)).with_rejoin(rejoin);
    let mut first = Message::new(role, parts);
    if let Some(id) = id {
        first = match role {
            Role::Assistant => first.with_response_id(id.clone()).with_id(id),
            _ => first.with_id(id),
        };
    }
    let mut messages = vec![first.with_wire(wire(false))];
    messages.extend(
        results
            .into_iter()
            .map(|result| Message::new(Role::Tool, vec![Part::ToolResult(result)]).with_wire(wire(true))),
    );
    Ok(messages)
}

fn each(
    raw: &str,
    list: Option<&str>,
    path: &str,
    mut visit: impl FnMut(&str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let Some(list) = list.filter(|list| Kind::of(list) == Kind::Array) else { return Ok(()) };
    let mut at = 0_usize;
    json::nested(raw, list, path, |list| {
        json::items(list, |item| {
            let path = format_args!("/{at}");
            let done = json::nested(list, item, path, &mut visit);
            at = at.saturating_add(1);
            done
        })
    })
}

fn thought(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    expect_object(raw, "a thought")?;
    let (subject, text) = (member_text(whole, raw, "subject")?, member_text(whole, raw, "description")?);
    let texts: Vec<_> = [subject, text].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    Ok(Part::Reasoning(Reasoning::new(texts.iter().map(Str::as_str).collect::<Vec<_>>().join("\n"))))
}

/// Adds what a text, a part or a list of both says.
fn said(whole: &Arc<str>, content: &str, parts: &mut Vec<Part>) -> Result<(), WireError> {
    match Kind::of(content) {
        Kind::Text if content == "\"\"" => Ok(()),
        Kind::Text => {
            parts.push(Part::Text(share(whole, &json::decode(content))));
            Ok(())
        }
        Kind::Array => json::items(content, |item| match Kind::of(item) {
            // A list within the list is none of this format, and would make this go deep.
            Kind::Array => Err(WireError::shape("expected a text or a part, found an array")),
            _ => said(whole, item, parts),
        }),
        Kind::Object => {
            let [text, thought] = json::fields(content, &["text", "thought"])?;
            parts.push(match text.filter(|text| Kind::of(text) == Kind::Text && thought.is_none()) {
                Some(text) => Part::Text(share(whole, &json::decode(text))),
                None => Part::Unknown(UnknownPart::new(FORMAT, "part", share(whole, content))),
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

fn call(whole: &Arc<str>, raw: &str) -> Result<(ToolCall, Option<ToolResult>), WireError> {
    expect_object(raw, "a call")?;
    let [args, status, result] = json::fields(raw, &["args", "status", "result"])?;
    let text = |key| Ok::<_, WireError>(member_text(whole, raw, key)?.unwrap_or_default());
    let id = text("id")?;
    let call = ToolCall::new(id.clone(), text("name")?, share(whole, args.unwrap_or("{}")));
    let Some(result) = result.filter(|result| !matches!(*result, "null" | "[]")) else {
        return Ok((call, None));
    };
    let mut answer = ToolResult::new(id, Vec::new());
    answer.is_error = matches!(status, Some("\"error\"" | "\"cancelled\""));
    let mut add = |part: &str| {
        answer.parts.push(returned(whole, part)?);
        Ok(())
    };
    match Kind::of(result) {
        Kind::Array => json::items(result, add)?,
        _ => add(result)?,
    }
    Ok((call, Some(answer)))
}

/// What a part of a result says: `output` of its response, or the response as it is written.
fn returned(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    let unknown = || Part::Unknown(UnknownPart::new(FORMAT, "part", share(whole, raw)));
    if Kind::of(raw) != Kind::Object {
        return Ok(unknown());
    }
    let object = |text: &&str| Kind::of(text) == Kind::Object;
    let Some(function) = json::field(raw, "functionResponse")?.filter(object) else { return Ok(unknown()) };
    let Some(response) = json::field(function, "response")?.filter(object) else { return Ok(unknown()) };
    let [output, error] = json::fields(response, &["output", "error"])?;
    Ok(Part::Text(match output.or(error).filter(|text| Kind::of(text) == Kind::Text) {
        Some(text) => share(whole, &json::decode(text)),
        None => share(whole, response),
    }))
}

/// What `tokens` reports.
pub(super) fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let tokens = json::field(raw, "tokens")?;
    let Some(tokens) = tokens.filter(|tokens| Kind::of(tokens) == Kind::Object) else { return Ok(None) };
    let names = &["input", "output", "cached", "thoughts", "tool", "total"];
    let [prompt, candidates, cached, thoughts, tool_use_prompt, total] =
        json::fields(tokens, names)?.map(number);
    Ok(Some(Usage::gemini(GeminiTokens { prompt, tool_use_prompt, candidates, thoughts, total, cached })))
}
