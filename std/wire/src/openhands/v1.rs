//! Events of the software agent SDK, which OpenHands uses since its version 1.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult};

use super::event::Event;
use crate::expect::{expect_object, linked_media, member_text, share};
use crate::json::{self, ValueKind, quote};
use crate::openai_chat::split_data_url;
use crate::rewrite::{form, only_text};
use crate::slots::{RecordMessage, RecordPart, SlotForm, blocks, messages};
use crate::transcript::{Chain, NewRecord, NewRecords, uuid};
use crate::{Format, WireError, WireErrorKind};

/// The members that link events.
pub(super) const CHAIN: Chain = Chain {
    keys: ["id", "parent_id"],
    first_kept: None,
    by_last: false,
    aside: None,
    new: Some(NewRecords { name: uuid, write: new_event, unnamed: false }),
};

/// The number of each event that was read, by its id. Later events name the ids of forgotten events.
pub(super) type Numbers = HashMap<Str, u64>;

/// Whether `raw` is an event of this form. An event with a repeated `kind` or `id` counts, so that its reader refuses
/// it.
pub(super) fn is_event(raw: &str) -> bool {
    match ValueKind::of(raw) {
        ValueKind::Object => match json::fields(raw, &["kind", "id"]) {
            Ok([Some(kind), Some(id)]) => {
                ValueKind::of(kind) == ValueKind::Text && ValueKind::of(id) == ValueKind::Text
            }
            Ok(_) => false,
            Err(error) => error.kind() == WireErrorKind::DuplicateKey,
        },
        _ => false,
    }
}

/// Whether `raw` is an event of a kind that only this form has.
pub(super) fn is_known(raw: &str) -> bool {
    let found = json::fields(raw, &["kind", "source", "role"]);
    matches!(found, Ok([Some(kind), Some(_), None]) if KINDS.contains(&kind))
}

/// The event `raw`, a slice of `whole`, and its number.
pub(super) fn event(
    whole: &Arc<str>,
    raw: &str,
    numbers: &mut Numbers,
) -> Result<(Option<u64>, Event), WireError> {
    let number = numbers.len() as u64;
    let id = member_text(whole, raw, "id")?.unwrap_or_default();
    let kind = json::field(raw, "kind")?.unwrap_or_default();
    let message = messages(whole, raw, Format::OpenHands, pieces)?.pop();
    let event = match (kind, message) {
        ("\"Condensation\"", summary) => {
            let others = forgotten(raw, numbers)?;
            numbers.insert(Str::from([&*id, "-summary"].concat()), number);
            Event::Condensation { first: None, last: None, others, summary }
        }
        (_, None) => Event::Note,
        ("\"ActionEvent\"", Some(call)) => {
            let response = member_text(whole, raw, "llm_response_id")?;
            let call = match response.filter(|response| !response.is_empty()) {
                Some(response) => call.with_response_id(response),
                None => call,
            };
            Event::Call { call, said: None, usage: None, causes: None }
        }
        (_, Some(message)) => Event::Message(message),
    };
    numbers.insert(id, number);
    Ok((Some(number), event))
}

/// The numbers of the events that a condensation removes.
fn forgotten(raw: &str, numbers: &Numbers) -> Result<Vec<u64>, WireError> {
    let mut found = Vec::new();
    let ids = json::field(raw, "forgotten_event_ids")?.filter(|ids| ValueKind::of(ids) == ValueKind::Array);
    json::items(ids.unwrap_or("[]"), |id| {
        found.extend(
            numbers.get(&*json::decode(id)).copied().filter(|_| ValueKind::of(id) == ValueKind::Text),
        );
        Ok(())
    })?;
    Ok(found)
}

/// The message of the event `raw`, a slice of `whole`, if it has one.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "an event")?;
    let piece = match json::field(raw, "kind")?.unwrap_or_default() {
        "\"SystemPromptEvent\"" => {
            let mut piece = RecordMessage::new(Role::System, raw);
            for key in ["system_prompt", "dynamic_context"] {
                if let Some(text) = object(raw, key)? {
                    piece.parts.extend(text_of(whole, text)?);
                }
            }
            piece
        }
        "\"MessageEvent\"" => message(whole, raw)?,
        "\"ActionEvent\"" => {
            let mut piece = RecordMessage::new(Role::Assistant, raw);
            piece.parts.extend(thoughts(whole, raw)?);
            piece.parts.extend(content(whole, raw, "thought")?);
            piece.parts.push(call(whole, raw)?);
            piece
        }
        "\"ObservationEvent\"" => tool(raw, observed(whole, raw)?),
        "\"UserRejectObservation\"" => tool(raw, told(whole, raw, "rejection_reason", false)?),
        "\"AgentErrorEvent\"" => tool(raw, told(whole, raw, "error", true)?),
        "\"CondensationSummaryEvent\"" => summary(whole, raw)?,
        "\"Condensation\"" if json::field(raw, "summary_offset")?.is_some_and(|at| at != "null") => {
            summary(whole, raw)?
        }
        _ => return Ok(Vec::new()),
    };
    Ok(if piece.parts.is_empty() { Vec::new() } else { vec![piece] })
}

/// Writes the event of a new message, which is a text.
fn new_event(new: &NewRecord<'_>) -> Result<String, WireError> {
    let (message, text) = only_text(&[new.message])?;
    let (source, role) = match message.role() {
        Role::User => ("user", "user"),
        Role::Assistant => ("agent", "assistant"),
        _ => return Err(form("a new message of this role")),
    };
    let [time, parent] = json::fields(new.like, &["timestamp", "parent_id"])?;
    // Events of earlier versions do not name the event before them.
    let parent = parent.map(|_| new.parent.map_or_else(|| "null".to_owned(), quote));
    let said = format!(r#"{{"role":"{role}","content":[{{"type":"text","text":{}}}]}}"#, quote(text));
    json::patch(
        "{}",
        &[
            ("id", Some(quote(new.name.unwrap_or_default()))),
            ("timestamp", time.map(str::to_owned)),
            ("source", Some(quote(source))),
            ("parent_id", parent),
            ("llm_message", Some(said)),
            ("kind", Some(quote("MessageEvent"))),
        ],
    )
}

fn object<'a>(raw: &'a str, key: &'static str) -> Result<Option<&'a str>, WireError> {
    Ok(json::field(raw, key)?.filter(|value| ValueKind::of(value) == ValueKind::Object))
}

fn tool<'a>(raw: &'a str, result: RecordPart<'a>) -> RecordMessage<'a> {
    let mut piece = RecordMessage::new(Role::Tool, raw);
    piece.parts.push(result);
    piece
}

fn summary<'a>(whole: &Arc<str>, raw: &'a str) -> Result<RecordMessage<'a>, WireError> {
    let mut piece = RecordMessage::new(Role::User, raw);
    let said = member_text(whole, raw, "summary")?.filter(|said| !said.is_empty());
    let value = json::field(raw, "summary")?;
    piece.parts.extend(said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text)));
    Ok(piece)
}

fn message<'a>(whole: &Arc<str>, raw: &'a str) -> Result<RecordMessage<'a>, WireError> {
    let Some(said) = object(raw, "llm_message")? else {
        return Err(WireError::shape("expected `llm_message`, an object"));
    };
    let role = match json::field(said, "role")? {
        Some("\"assistant\"") => Role::Assistant,
        Some("\"system\"") => Role::System,
        _ => Role::User,
    };
    let mut piece = RecordMessage::new(role, raw);
    json::nested(raw, said, "/llm_message", |said| {
        piece.parts.extend(thoughts(whole, said)?);
        piece.parts.extend(content(whole, said, "content")?);
        Ok(())
    })?;
    piece.parts.extend(content(whole, raw, "extended_content")?);
    Ok(piece)
}

/// The thoughts of the model. If there are Anthropic's blocks, the readable text only repeats them.
fn thoughts<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let [said, list, item] =
        json::fields(raw, &["reasoning_content", "thinking_blocks", "responses_reasoning_item"])?;
    let mut found = Vec::new();
    if let Some(list) = list.filter(|list| ValueKind::of(list) == ValueKind::Array) {
        json::nested(raw, list, "/thinking_blocks", |list| {
            blocks(list, |block| {
                expect_object(block, "a block")?;
                let text = |key| Ok::<_, WireError>(member_text(whole, block, key)?.unwrap_or_default());
                let mut reasoning = Reasoning::new(text("thinking")?);
                let sealed = [text("signature")?, text("data")?];
                reasoning.opaque = sealed.into_iter().find(|sealed| !sealed.is_empty());
                let noted = RecordPart::new(Part::Reasoning(reasoning)).with_element(list, block);
                found.push(noted.with_absence(said, "null"));
                Ok(())
            })
        })?;
    }
    if let Some(item) = item.filter(|item| ValueKind::of(item) == ValueKind::Object) {
        let mut reasoning = Reasoning::new(text_of_summary(item)?);
        reasoning.id = member_text(whole, item, "id")?;
        reasoning.opaque = member_text(whole, item, "encrypted_content")?.filter(|text| !text.is_empty());
        if !reasoning.text.is_empty() || reasoning.opaque.is_some() {
            found.push(RecordPart::new(Part::Reasoning(reasoning)).with_absence(Some(item), "null"));
        }
    }
    let text = member_text(whole, raw, "reasoning_content")?.filter(|text| !text.is_empty());
    if let Some(text) = text.filter(|_| found.is_empty()) {
        let noted = RecordPart::new(Part::Reasoning(Reasoning::new(text))).with_slot(said, SlotForm::Text);
        found.push(noted.with_absence(said, "null"));
    }
    Ok(found)
}

/// The summary of an item of reasoning, a paragraph for each of its texts.
fn text_of_summary(item: &str) -> Result<String, WireError> {
    let list = json::field(item, "summary")?.filter(|list| ValueKind::of(list) == ValueKind::Array);
    let mut texts = Vec::new();
    json::items(list.unwrap_or("[]"), |text| {
        texts.extend((ValueKind::of(text) == ValueKind::Text).then(|| json::decode(text)));
        Ok(())
    })?;
    Ok(texts.join("\n\n"))
}

fn call<'a>(whole: &Arc<str>, raw: &'a str) -> Result<RecordPart<'a>, WireError> {
    let Some(call) = object(raw, "tool_call")? else {
        return Err(WireError::shape("expected `tool_call`, an object"));
    };
    let text = |key| {
        let text = json::nested(raw, call, "/tool_call", |call| member_text(whole, call, key))?;
        Ok::<_, WireError>(text.unwrap_or_default())
    };
    let made = ToolCall::new(text("id")?, text("name")?, text("arguments")?);
    // The `action` member is the action that ran. OpenHands makes a request to the model from the call.
    Ok(RecordPart::new(Part::ToolCall(made)).with_slot(json::field(call, "arguments")?, SlotForm::Text))
}

fn observed<'a>(whole: &Arc<str>, raw: &'a str) -> Result<RecordPart<'a>, WireError> {
    let mut result =
        ToolResult::new(member_text(whole, raw, "tool_call_id")?.unwrap_or_default(), Vec::new());
    let observation = object(raw, "observation")?.unwrap_or("{}");
    let [list, failed] = json::fields(observation, &["content", "is_error"])?;
    result.is_error = failed == Some("true");
    let mut inner = Vec::new();
    if list.is_some() {
        let read = |observation| content(whole, observation, "content");
        inner.extend(json::nested(raw, observation, "/observation", read)?);
    }
    inner.extend(content(whole, raw, "extended_content")?);
    let added = json::field(raw, "extended_content")?.filter(|list| ValueKind::of(list) == ValueKind::Array);
    let form = if list.map(ValueKind::of) == Some(ValueKind::Text) { SlotForm::Text } else { TEXT_BLOCKS };
    Ok(RecordPart::result(result, inner).with_slot(list, form).with_slot(added, SlotForm::Gone("[]")))
}

/// A result with a single text.
fn told<'a>(
    whole: &Arc<str>,
    raw: &'a str,
    key: &'static str,
    is_error: bool,
) -> Result<RecordPart<'a>, WireError> {
    let mut result =
        ToolResult::new(member_text(whole, raw, "tool_call_id")?.unwrap_or_default(), Vec::new());
    result.is_error = is_error;
    let said = member_text(whole, raw, key)?.filter(|said| !said.is_empty());
    result.parts.extend(said.map(Part::Text));
    Ok(RecordPart::new(Part::ToolResult(result)).with_slot(json::field(raw, key)?, SlotForm::Text))
}

/// The texts and images under `key`.
fn content<'a>(whole: &Arc<str>, raw: &'a str, key: &'static str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let mut found = Vec::new();
    match json::field(raw, key)? {
        Some(list) if ValueKind::of(list) == ValueKind::Array => {
            json::nested(raw, list, format_args!("/{key}"), |list| {
                blocks(list, |block| {
                    expect_object(block, "a block")?;
                    match json::field(block, "type")? {
                        Some("\"image\"") => found.extend(images(whole, list, block)?),
                        _ => {
                            let said = text_of(whole, block)?;
                            found.extend(said.map(|said| said.with_element(list, block)));
                        }
                    }
                    Ok(())
                })
            })?;
        }
        value => {
            let said = member_text(whole, raw, key)?.filter(|said| !said.is_empty());
            found.extend(said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text)));
        }
    }
    Ok(found)
}

fn text_of<'a>(whole: &Arc<str>, block: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
    let said = member_text(whole, block, "text")?.filter(|said| !said.is_empty());
    let value = json::field(block, "text")?;
    Ok(said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text)))
}

fn images<'a>(whole: &Arc<str>, list: &'a str, block: &'a str) -> Result<Vec<RecordPart<'a>>, WireError> {
    let urls = json::field(block, "image_urls")?.filter(|urls| ValueKind::of(urls) == ValueKind::Array);
    let urls = urls.unwrap_or("[]");
    let is_only = json::count(urls) == 1;
    let mut found = Vec::new();
    json::items(urls, |raw| {
        if ValueKind::of(raw) != ValueKind::Text {
            return Err(WireError::shape(format!("expected a URL, found {}", json::describe(raw))));
        }
        let url = json::decode(raw);
        let media = match split_data_url(&url) {
            Some((mime, _)) => linked_media(whole, Str::from(mime), &url),
            None => Media::new(MediaKind::Image, Str::default(), MediaSource::Uri(share(whole, &url))),
        };
        let noted = RecordPart::new(Part::Media(media));
        found.push(match is_only {
            true => noted.with_slot(Some(block), TEXT_BLOCK).with_element(list, block),
            false => noted.with_element(urls, raw),
        });
        Ok(())
    })?;
    Ok(found)
}

const TEXT_BLOCK: SlotForm = SlotForm::Around(r#"{"type":"text","text":"#, "}");
const TEXT_BLOCKS: SlotForm = SlotForm::Around(r#"[{"type":"text","text":"#, "}]");

/// Kinds of events that identify the form, as JSON.
const KINDS: &[&str] = &[
    "\"MessageEvent\"",
    "\"ActionEvent\"",
    "\"ObservationEvent\"",
    "\"SystemPromptEvent\"",
    "\"AgentErrorEvent\"",
    "\"UserRejectObservation\"",
    "\"Condensation\"",
    "\"ConversationStateUpdateEvent\"",
];
