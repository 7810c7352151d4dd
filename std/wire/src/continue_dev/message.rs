//! Reads the messages of an item.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_core::{OpenAiTokens, Usage};
use epitome_message::{Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, linked_media, member_text, number, share};
use crate::json::{self, ValueKind};
use crate::openai_chat::split_data_url;
use crate::slots::{RecordMessage, RecordPart, SlotForm, blocks};

/// The messages of `raw`, a slice of `whole`, without a summary.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "an item")?;
    let [message, context, states] = json::fields(raw, &["message", "contextItems", "toolCallStates"])?;
    let Some(message) = message.filter(|message| ValueKind::of(message) == ValueKind::Object) else {
        return Err(WireError::shape("expected `message`, an object"));
    };
    let list =
        |list: Option<&'a str>| list.filter(|list| ValueKind::of(list) == ValueKind::Array).unwrap_or("[]");
    let mut found = Vec::new();
    match json::field(message, "role")? {
        Some("\"user\"") => {
            let mut piece = RecordMessage::new(Role::User, message);
            json::nested(raw, list(context), "/contextItems", |list| {
                piece.parts.extend(items(whole, list)?);
                Ok(())
            })?;
            piece.parts.extend(json::nested(raw, message, "/message", |raw| content(whole, raw))?);
            found.push(piece);
        }
        Some("\"thinking\"") => {
            let mut piece = RecordMessage::new(Role::Assistant, message);
            piece.parts.extend(json::nested(raw, message, "/message", |raw| thought(whole, raw))?);
            found.push(piece);
        }
        Some("\"assistant\"") => {
            let mut piece = RecordMessage::new(Role::Assistant, message);
            let states = self::states(raw, list(states))?;
            json::nested(raw, message, "/message", |message| {
                piece.parts.extend(content(whole, message)?);
                piece.parts.extend(calls(whole, message, &states)?);
                Ok(())
            })?;
            found.push(piece);
            for state in &states {
                let mut piece = RecordMessage::new(Role::Tool, state.raw);
                let result = json::nested(raw, state.raw, "/toolCallStates", |_| state.result(whole))?;
                piece.parts.push(result.with_element(state.list, state.raw));
                found.push(piece);
            }
        }
        Some("\"tool\"") => {
            let id = member_text(whole, message, "toolCallId")?.unwrap_or_default();
            let said = json::nested(raw, message, "/message", |message| content(whole, message))?;
            let result = RecordPart::result(ToolResult::new(id, Vec::new()), said);
            let mut piece = RecordMessage::new(Role::Tool, message);
            piece.parts.push(result.with_slot(json::field(message, "content")?, SlotForm::Text));
            found.push(piece);
        }
        _ => {}
    }
    found.retain(|piece| !piece.parts.is_empty());
    Ok(found)
}

/// The summary at the end of an item.
pub(super) fn summary<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let Some(value) = summary_of(raw)? else { return Ok(Vec::new()) };
    let mut piece = RecordMessage::new(Role::System, value);
    let said = share(whole, &json::decode(value));
    piece.parts.push(RecordPart::new(Part::Text(said)).with_slot(Some(value), SlotForm::Text));
    Ok(vec![piece])
}

/// The summary of an item, as JSON.
pub(super) fn summary_of(raw: &str) -> Result<Option<&str>, WireError> {
    let value =
        if ValueKind::of(raw) == ValueKind::Object { json::field(raw, "conversationSummary")? } else { None };
    Ok(value.filter(|value| ValueKind::of(value) == ValueKind::Text && *value != "\"\""))
}

/// The state of a tool call.
struct State<'a> {
    list: &'a str,
    raw: &'a str,
    id: String,
}

fn states<'a>(item: &'a str, list: &'a str) -> Result<Vec<State<'a>>, WireError> {
    let mut found = Vec::new();
    json::nested(item, list, "/toolCallStates", |list| {
        blocks(list, |raw| {
            expect_object(raw, "a state of a call")?;
            let id = json::field(raw, "toolCallId")?.filter(|id| ValueKind::of(id) == ValueKind::Text);
            found.push(State { list, raw, id: id.map(json::decode).unwrap_or_default().into_owned() });
            Ok(())
        })
    })?;
    Ok(found)
}

impl<'a> State<'a> {
    /// The values that repeat the arguments of the call.
    fn arguments(&self) -> Result<[Option<&'a str>; 2], WireError> {
        let [call, parsed] = json::fields(self.raw, &["toolCall", "parsedArgs"])?;
        let object = |value: Option<&'a str>| value.filter(|value| ValueKind::of(value) == ValueKind::Object);
        let function = match object(call) {
            Some(call) => object(json::field(call, "function")?),
            None => None,
        };
        let arguments = function.map(|function| json::field(function, "arguments")).transpose()?.flatten();
        Ok([arguments.filter(|raw| ValueKind::of(raw) == ValueKind::Text), parsed])
    }

    fn result(&self, whole: &Arc<str>) -> Result<RecordPart<'a>, WireError> {
        let [status, output] = json::fields(self.raw, &["status", "output"])?;
        let mut result = ToolResult::new(share(whole, &self.id), Vec::new());
        result.is_error = matches!(status, Some("\"errored\"" | "\"canceled\""));
        let output = output.filter(|output| ValueKind::of(output) == ValueKind::Array);
        match output.filter(|_| status != Some("\"canceled\"")) {
            Some(output) => {
                let inner = json::nested(self.raw, output, "/output", |output| items(whole, output))?;
                Ok(RecordPart::result(result, inner).with_slot(Some(output), ITEMS))
            }
            None => Ok(RecordPart::new(Part::ToolResult(result)).with_slot(output, ITEMS)),
        }
    }
}

/// The texts of items of context.
fn items<'a>(whole: &Arc<str>, list: &'a str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let mut found = Vec::new();
    blocks(list, |item| {
        expect_object(item, "an item of context")?;
        let said = member_text(whole, item, "content")?.filter(|said| !said.is_empty());
        let value = json::field(item, "content")?;
        let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
        found.extend(said.map(|said| said.with_element(list, item)));
        Ok(())
    })?;
    Ok(found)
}

/// The content of a message: a text, or a list of texts and images.
fn content<'a>(whole: &Arc<str>, message: &'a str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let Some(list) =
        json::field(message, "content")?.filter(|content| ValueKind::of(content) == ValueKind::Array)
    else {
        let value = json::field(message, "content")?;
        let said = member_text(whole, message, "content")?.filter(|said| !said.is_empty());
        let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
        return Ok(said.map(|said| said.with_absence(value, "\"\"")).into_iter().collect());
    };
    let mut found = Vec::new();
    json::nested(message, list, "/content", |list| {
        blocks(list, |block| {
            expect_object(block, "a part of a message")?;
            let kind = member_text(whole, block, "type")?.unwrap_or_default();
            let noted = match &*kind {
                "text" => {
                    let said = member_text(whole, block, "text")?.filter(|said| !said.is_empty());
                    let value = json::field(block, "text")?;
                    said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text))
                }
                "imageUrl" => Some(image(whole, block)?.with_slot(Some(block), TEXT_PART)),
                _ => {
                    Some(RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind, share(whole, block)))))
                }
            };
            found.extend(noted.map(|noted| noted.with_element(list, block)));
            Ok(())
        })
    })?;
    Ok(found)
}

fn image<'a>(whole: &Arc<str>, block: &str) -> Result<RecordPart<'a>, WireError> {
    let place = json::field(block, "imageUrl")?.filter(|place| ValueKind::of(place) == ValueKind::Object);
    let url = member_text(whole, place.unwrap_or("{}"), "url")?.unwrap_or_default();
    let media = match split_data_url(&url) {
        Some((mime, _)) => linked_media(whole, Str::from(mime), &url),
        None => Media::new(MediaKind::Image, Str::default(), MediaSource::Uri(url)),
    };
    Ok(RecordPart::new(Part::Media(media)))
}

fn thought<'a>(whole: &Arc<str>, message: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    let mut said = String::new();
    for noted in content(whole, message)? {
        if let Part::Text(text) = &noted.part {
            said.push_str(text);
        }
    }
    let mut reasoning = Reasoning::new(share(whole, &said));
    if let Some(text) =
        json::field(message, "content")?.filter(|content| ValueKind::of(content) == ValueKind::Text)
    {
        reasoning.text = share(whole, &json::decode(text));
    }
    for key in ["signature", "redactedThinking"] {
        reasoning.opaque =
            member_text(whole, message, key)?.filter(|text| !text.is_empty()).or(reasoning.opaque);
    }
    let is_there = !reasoning.text.is_empty() || reasoning.opaque.is_some();
    let value = json::field(message, "content")?;
    Ok(is_there.then(|| RecordPart::new(Part::Reasoning(reasoning)).with_slot(value, SlotForm::Text)))
}

fn calls<'a>(
    whole: &Arc<str>,
    message: &'a str,
    states: &[State<'a>],
) -> Result<Vec<RecordPart<'a>>, WireError> {
    let list = json::field(message, "toolCalls")?.filter(|list| ValueKind::of(list) == ValueKind::Array);
    let states: HashMap<&str, &State<'a>> = states.iter().map(|state| (&*state.id, state)).collect();
    let mut found = Vec::new();
    json::nested(message, list.unwrap_or("[]"), "/toolCalls", |list| {
        blocks(list, |block| {
            expect_object(block, "a call")?;
            let id = member_text(whole, block, "id")?.unwrap_or_default();
            let function =
                json::field(block, "function")?.filter(|call| ValueKind::of(call) == ValueKind::Object);
            let function = function.unwrap_or("{}");
            let text = |key| Ok::<_, WireError>(member_text(whole, function, key)?.unwrap_or_default());
            let call = ToolCall::new(id.clone(), text("name")?, text("arguments")?);
            let arguments = json::field(function, "arguments")?;
            let mut noted = RecordPart::new(Part::ToolCall(call)).with_slot(arguments, SlotForm::Text);
            if let Some(state) = states.get(&*id) {
                let [again, parsed] = state.arguments()?;
                noted = noted.with_slot(again, SlotForm::Text).with_slot(parsed, SlotForm::Arguments);
            }
            found.push(noted.with_element(list, block));
            Ok(())
        })
    })?;
    Ok(found)
}

/// The usage that the provider reported for an answer.
pub(super) fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let message = json::field(raw, "message")?.filter(|message| ValueKind::of(message) == ValueKind::Object);
    let usage = json::field(message.unwrap_or("{}"), "usage")?;
    let Some(usage) = usage.filter(|usage| ValueKind::of(usage) == ValueKind::Object) else {
        return Ok(None);
    };
    let [input, output, details] =
        json::fields(usage, &["promptTokens", "completionTokens", "promptTokensDetails"])?;
    let details = details.filter(|details| ValueKind::of(details) == ValueKind::Object).unwrap_or("{}");
    let [cached, written] = json::fields(details, &["cachedTokens", "cacheWriteTokens"])?.map(number);
    let (input, output) = (number(input), number(output));
    let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
    let mut report = Usage::openai(OpenAiTokens { input, output, total, cached, reasoning: None });
    report.cache_creation = written;
    Ok(Some(report).filter(|report| report.total.is_some_and(|total| total > 0)))
}

/// The form of a result with a single text.
const ITEMS: SlotForm = SlotForm::Around(r#"[{"name":"Output","description":"","content":"#, "}]");
const TEXT_PART: SlotForm = SlotForm::Around(r#"{"type":"text","text":"#, "}");
