//! Reads the messages of a request.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Part, Reasoning, ToolCall, ToolResult};

use crate::WireError;
use crate::expect::{expect_object, member_text, share};
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordPart, SlotForm, blocks};

/// The messages of `raw`, a slice of `whole`.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a request")?;
    let names = &["message", "response", "result", "isHidden", "shouldBeRemovedOnSend"];
    let [message, response, result, hidden, removed] = json::fields(raw, names)?;
    if hidden == Some("true") || removed.is_some_and(|removed| !matches!(removed, "null" | "false")) {
        return Ok(Vec::new());
    }
    let Some(message) = message else { return Err(WireError::shape("expected `message`")) };
    let mut found = Vec::new();
    let mut asked = RecordMessage::new(Role::User, message);
    asked.parts.extend(match ValueKind::of(message) {
        ValueKind::Object => json::nested(raw, message, "/message", |message| said(whole, message, "text"))?,
        _ => said(whole, raw, "message")?,
    });
    found.push(asked);
    let metadata = match object(result) {
        Some(result) => object(json::field(result, "metadata")?),
        None => None,
    };
    let [rounds, results] = json::fields(metadata.unwrap_or("{}"), &["toolCallRounds", "toolCallResults"])?;
    match rounds.filter(|rounds| ValueKind::of(rounds) == ValueKind::Array && json::count(rounds) > 0) {
        Some(rounds) => {
            let results = by_call(object(results))?;
            json::nested(raw, rounds, "/result/metadata/toolCallRounds", |rounds| {
                blocks(rounds, |round| {
                    found.extend(self::round(whole, round, &results)?);
                    Ok(())
                })
            })?;
        }
        None => {
            let list = response.filter(|list| ValueKind::of(list) == ValueKind::Array).unwrap_or("[]");
            let mut answer = RecordMessage::new(Role::Assistant, list);
            answer.parts = json::nested(raw, list, "/response", |list| shown(whole, list))?;
            found.push(answer);
        }
    }
    found.retain(|piece| !piece.parts.is_empty());
    Ok(found)
}

fn object(value: Option<&str>) -> Option<&str> {
    value.filter(|value| ValueKind::of(value) == ValueKind::Object)
}

/// The text under `key`, if there is one.
fn said<'a>(whole: &Arc<str>, raw: &'a str, key: &'static str) -> Result<Option<RecordPart<'a>>, WireError> {
    let said = member_text(whole, raw, key)?.filter(|said| !said.is_empty());
    let value = json::field(raw, key)?;
    let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
    Ok(said.map(|said| said.with_absence(value, "\"\"")))
}

/// The results of calls, by the ids of the calls.
fn by_call(results: Option<&str>) -> Result<HashMap<String, &str>, WireError> {
    let mut found = HashMap::new();
    json::members(results.unwrap_or("{}"), |id, result| {
        found.insert(id.into_owned(), result);
        Ok(())
    })?;
    Ok(found)
}

/// The messages of a round: the message of the model, and the results of its calls.
fn round<'a>(
    whole: &Arc<str>,
    round: &'a str,
    results: &HashMap<String, &'a str>,
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(round, "a round")?;
    let [thinking, calls] = json::fields(round, &["thinking", "toolCalls"])?;
    let mut piece = RecordMessage::new(Role::Assistant, round);
    if let Some(thinking) = object(thinking) {
        let mut reasoning = Reasoning::new(thought(thinking)?);
        reasoning.opaque = member_text(whole, thinking, "encrypted")?.filter(|text| !text.is_empty());
        if !reasoning.text.is_empty() || reasoning.opaque.is_some() {
            let noted = RecordPart::new(Part::Reasoning(reasoning));
            piece.parts.push(noted.with_absence(Some(thinking), "null"));
        }
    }
    piece.parts.extend(said(whole, round, "response")?);
    let mut answers = Vec::new();
    let calls = calls.filter(|calls| ValueKind::of(calls) == ValueKind::Array).unwrap_or("[]");
    json::nested(round, calls, "/toolCalls", |list| {
        blocks(list, |block| {
            expect_object(block, "a call")?;
            let text = |key| Ok::<_, WireError>(member_text(whole, block, key)?.unwrap_or_default());
            let id = text("id")?;
            let call = ToolCall::new(id.clone(), text("name")?, text("arguments")?);
            let call = RecordPart::new(Part::ToolCall(call))
                .with_slot(json::field(block, "arguments")?, SlotForm::Text);
            piece.parts.push(call.with_element(list, block));
            if let Some(result) = results.get(&*id) {
                let mut answer = RecordMessage::new(Role::Tool, block);
                let result = returned(whole, result, ToolResult::new(id, Vec::new()))?;
                answer.parts.push(result.with_element(list, block));
                answers.push(answer);
            }
            Ok(())
        })
    })?;
    Ok(core::iter::once(piece).chain(answers).collect())
}

/// A thought, which may consist of several texts.
fn thought(thinking: &str) -> Result<String, WireError> {
    let mut found = String::new();
    let mut add = |text: &str| {
        if ValueKind::of(text) == ValueKind::Text {
            found.push_str(&json::decode(text));
        }
        Ok(())
    };
    match json::field(thinking, "text")? {
        Some(list) if ValueKind::of(list) == ValueKind::Array => json::items(list, add)?,
        Some(text) => add(text)?,
        None => {}
    }
    Ok(found)
}

/// The output of a tool: texts, and trees to be rendered.
fn returned<'a>(whole: &Arc<str>, raw: &'a str, result: ToolResult) -> Result<RecordPart<'a>, WireError> {
    let content = match object(Some(raw)) {
        Some(raw) => {
            json::field(raw, "content")?.filter(|content| ValueKind::of(content) == ValueKind::Array)
        }
        None => None,
    };
    let mut inner = Vec::new();
    json::items(content.unwrap_or("[]"), |item| {
        let Some(value) = object(Some(item)).map(|item| json::field(item, "value")).transpose()?.flatten()
        else {
            return Ok(());
        };
        if ValueKind::of(value) == ValueKind::Text {
            let said = share(whole, &json::decode(value));
            inner.push(RecordPart::new(Part::Text(said)).with_slot(Some(value), SlotForm::Text));
        } else if let Some(node) =
            object(Some(value)).map(|it| json::field(it, "node")).transpose()?.flatten()
        {
            inner.push(RecordPart::new(Part::Text(share(whole, &rendered(node)?))));
        }
        Ok(())
    })?;
    inner.retain(|noted| !matches!(&noted.part, Part::Text(text) if text.is_empty()));
    Ok(RecordPart::result(result, inner).with_slot(content, TEXT))
}

/// The texts of a tree, in order.
fn rendered(node: &str) -> Result<String, WireError> {
    let (mut found, mut open) = (String::new(), vec![node]);
    while let Some(node) = open.pop() {
        if ValueKind::of(node) != ValueKind::Object {
            continue;
        }
        let [text, children, breaks] = json::fields(node, &["text", "children", "lineBreakBefore"])?;
        if let Some(text) = text.filter(|text| ValueKind::of(text) == ValueKind::Text) {
            if !found.is_empty() && breaks.is_some_and(|breaks| !matches!(breaks, "false" | "null" | "0")) {
                found.push('\n');
            }
            found.push_str(&json::decode(text));
        }
        let first = open.len();
        json::items(
            children.filter(|list| ValueKind::of(list) == ValueKind::Array).unwrap_or("[]"),
            |child| {
                open.push(child);
                Ok(())
            },
        )?;
        if let Some(children) = open.get_mut(first..) {
            children.reverse();
        }
    }
    Ok(found)
}

/// The texts of an answer in the form that people see.
fn shown<'a>(whole: &Arc<str>, list: &'a str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let mut found = Vec::new();
    blocks(list, |part| {
        expect_object(part, "a part of an answer")?;
        let [kind, content] = json::fields(part, &["kind", "content"])?;
        let noted = match kind {
            None | Some("null") => said(whole, part, "value")?,
            Some("\"markdownContent\"") => match object(content) {
                Some(content) => said(whole, content, "value")?,
                None => None,
            },
            _ => None,
        };
        found.extend(noted.map(|noted| noted.with_element(list, part)));
        Ok(())
    })?;
    Ok(found)
}

/// The form of a result with a single text.
const TEXT: SlotForm = SlotForm::Around(r#"[{"$mid":21,"value":"#, "}]");
