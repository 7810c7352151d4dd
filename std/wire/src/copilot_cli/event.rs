//! Reads events as messages.

use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{MediaKind, Role};
use epitome_message::{Attribution, Media, MediaSource, Part, Reasoning, Str, ToolResult};

use crate::expect::{expect_object, kind_of_mime, member_text, new_media, number, share};
use crate::json::{self, ValueKind, quote};
use crate::rewrite::{form, only_text};
use crate::slots::{RecordMessage, RecordPart, SlotForm, blocks};
use crate::transcript::{Chain, NewRecord, NewRecords, ToolCompaction, uuid};
use crate::{Format, WireError};

/// The members that link events.
pub(super) const CHAIN: Chain = Chain {
    keys: ["id", "parentId"],
    first_kept: None,
    by_last: false,
    aside: None,
    new: Some(NewRecords { name: uuid, write: new_event, unnamed: false }),
};

/// The effect of an event on the conversation.
#[derive(Debug)]
pub(super) enum Change {
    None,
    /// The compaction replaces the messages before this event, and not the messages after it.
    CompactionBegins,
    Compacted(ToolCompaction),
    Truncated(ToolCompaction),
    Cleared,
}

/// The type of an event as JSON, and its data.
pub(super) fn body(raw: &str) -> Result<(&str, &str), WireError> {
    expect_object(raw, "an event")?;
    let [kind, data, ephemeral] = json::fields(raw, &["type", "data", "ephemeral"])?;
    let data = data.filter(|data| ValueKind::of(data) == ValueKind::Object).unwrap_or("{}");
    Ok((kind.filter(|_| ephemeral != Some("true")).unwrap_or_default(), data))
}

/// The id of the sub-agent of an event; none for the session's own events.
pub(super) fn agent(whole: &Arc<str>, raw: &str) -> Result<Option<Str>, WireError> {
    let (_, data) = body(raw)?;
    let agent = member_text(whole, raw, "agentId")?.filter(|agent| !agent.is_empty());
    match agent {
        Some(agent) => Ok(Some(agent)),
        None => Ok(member_text(whole, data, "parentToolCallId")?.filter(|agent| !agent.is_empty())),
    }
}

pub(super) fn change(whole: &Arc<str>, raw: &str) -> Result<Change, WireError> {
    let (kind, data) = body(raw)?;
    let mut compaction = ToolCompaction::new(0);
    Ok(match kind {
        "\"session.compaction_start\"" => Change::CompactionBegins,
        "\"session.compaction_complete\"" if json::field(data, "success")? == Some("true") => {
            let [before, after] = json::fields(data, &["preCompactionTokens", "postCompactionTokens"])?;
            (compaction.tokens_before, compaction.tokens_after) = (number(before), number(after));
            let trigger =
                json::field(data, "trigger")?.filter(|trigger| ValueKind::of(trigger) == ValueKind::Text);
            compaction.trigger = trigger.map(|it| share(whole, &json::decode(it))).unwrap_or_default();
            Change::Compacted(compaction)
        }
        "\"session.truncation\"" => {
            let names = &["preTruncationTokensInMessages", "postTruncationTokensInMessages"];
            let [before, after] = json::fields(data, names)?;
            (compaction.tokens_before, compaction.tokens_after) = (number(before), number(after));
            compaction.trigger = Str::from("truncation");
            Change::Truncated(compaction)
        }
        "\"session.context_cleared\"" => Change::Cleared,
        _ => Change::None,
    })
}

/// The message in the event `raw`, a slice of `whole`, if there is one.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let (kind, data) = body(raw)?;
    let piece = json::nested(raw, data, "/data", |data| {
        Ok(Some(match kind {
            "\"user.message\"" => user(whole, raw, data)?,
            "\"assistant.message\"" => assistant(whole, raw, data)?,
            "\"tool.execution_complete\"" => result(whole, raw, data)?,
            "\"system.message\"" => {
                let is_developer = json::field(data, "role")? == Some("\"developer\"");
                let role = if is_developer { Role::Developer } else { Role::System };
                said(whole, RecordMessage::new(role, raw), data, "content")?
            }
            "\"session.compaction_complete\"" if json::field(data, "success")? == Some("true") => {
                said(whole, RecordMessage::new(Role::User, raw), data, "summaryContent")?
            }
            "\"session.context_cleared\"" => {
                said(whole, RecordMessage::new(Role::User, raw), data, "initialMessage")?
            }
            _ => return Ok(None),
        }))
    })?;
    Ok(piece.filter(|piece| !piece.parts.is_empty()).into_iter().collect())
}

/// Adds the text under `key` to the piece.
fn said<'a>(
    whole: &Arc<str>,
    mut piece: RecordMessage<'a>,
    data: &'a str,
    key: &'static str,
) -> Result<RecordMessage<'a>, WireError> {
    let said = member_text(whole, data, key)?.filter(|said| !said.is_empty());
    let value = json::field(data, key)?;
    piece.parts.extend(said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text)));
    Ok(piece)
}

fn user<'a>(whole: &Arc<str>, raw: &'a str, data: &'a str) -> Result<RecordMessage<'a>, WireError> {
    let names = &["transformedContent", "source", "isAutopilotContinuation"];
    let [sent, source, autopilot] = json::fields(data, names)?;
    let key = match sent.filter(|sent| !matches!(*sent, "null" | "\"\"")) {
        Some(_) => "transformedContent",
        None => "content",
    };
    let mut piece = said(whole, RecordMessage::new(Role::User, raw), data, key)?;
    let is_other = source.is_some_and(|source| !matches!(source, "null" | "\"\"" | "\"user\""));
    if is_other || autopilot == Some("true") {
        let name = Format::CopilotCli.shared_name();
        piece.attribution = Some(Attribution::new(name, SourceKind::Context, Authority::User));
    }
    Ok(piece)
}

fn assistant<'a>(whole: &Arc<str>, raw: &'a str, data: &'a str) -> Result<RecordMessage<'a>, WireError> {
    let mut piece = RecordMessage::new(Role::Assistant, raw);
    let names = &["reasoningText", "reasoningOpaque", "encryptedContent", "toolRequests", "content"];
    let [thought, opaque, encrypted, requests, content] = json::fields(data, names)?;
    let mut reasoning = Reasoning::new(member_text(whole, data, "reasoningText")?.unwrap_or_default());
    for key in ["encryptedContent", "reasoningOpaque"] {
        reasoning.opaque =
            member_text(whole, data, key)?.filter(|text| !text.is_empty()).or(reasoning.opaque);
    }
    if !reasoning.text.is_empty() || reasoning.opaque.is_some() {
        let mut noted = RecordPart::new(Part::Reasoning(reasoning)).with_slot(thought, SlotForm::Text);
        for value in [thought, opaque, encrypted] {
            noted = noted.with_absence(value, "null");
        }
        piece.parts.push(noted);
    }
    let said = member_text(whole, data, "content")?.filter(|said| !said.is_empty());
    let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(content, SlotForm::Text));
    piece.parts.extend(said.map(|said| said.with_absence(content, "\"\"")));
    let requests = requests.filter(|requests| ValueKind::of(requests) == ValueKind::Array).unwrap_or("[]");
    json::nested(data, requests, "/toolRequests", |list| {
        blocks(list, |request| {
            expect_object(request, "a call")?;
            let text = |key| Ok::<_, WireError>(member_text(whole, request, key)?.unwrap_or_default());
            let arguments = json::field(request, "arguments")?.filter(|arguments| *arguments != "null");
            let noted = RecordPart::tool_call(whole, (text("toolCallId")?, text("name")?), arguments);
            piece.parts.push(noted.with_element(list, request));
            Ok(())
        })
    })?;
    Ok(piece)
}

fn result<'a>(whole: &Arc<str>, raw: &'a str, data: &'a str) -> Result<RecordMessage<'a>, WireError> {
    let mut piece = RecordMessage::new(Role::Tool, raw);
    let [success, returned, error] = json::fields(data, &["success", "result", "error"])?;
    let mut result = ToolResult::new(member_text(whole, data, "toolCallId")?.unwrap_or_default(), Vec::new());
    result.is_error = success == Some("false");
    let object = |value: Option<&'a str>| value.filter(|value| ValueKind::of(value) == ValueKind::Object);
    let (returned, error) = (object(returned), object(error));
    let (path, holder, key) = match (returned, error) {
        (None, Some(error)) => ("/error", error, "message"),
        (returned, _) => ("/result", returned.unwrap_or("{}"), "content"),
    };
    piece.parts.push(json::nested(data, holder, path, |holder| {
        let said = member_text(whole, holder, key)?.filter(|said| !said.is_empty());
        let [value, binary] = match key {
            "content" => json::fields(holder, &["content", "binaryResultsForLlm"])?,
            _ => [json::field(holder, key)?, None],
        };
        let binary = binary.filter(|binary| ValueKind::of(binary) == ValueKind::Array);
        let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
        let mut inner: Vec<_> = said.into_iter().collect();
        json::items(binary.unwrap_or("[]"), |file| {
            inner.extend(media(whole, file)?.map(|media| RecordPart::new(Part::Media(media))));
            Ok(())
        })?;
        Ok(RecordPart::result(result, inner)
            .with_slot(value, SlotForm::Text)
            .with_slot(binary, SlotForm::Gone("[]")))
    })?);
    Ok(piece)
}

/// The medium in a tool's output, if its bytes are in the file.
fn media(whole: &Arc<str>, file: &str) -> Result<Option<Media>, WireError> {
    expect_object(file, "a file")?;
    let Some(data) = member_text(whole, file, "data")? else { return Ok(None) };
    let mime = member_text(whole, file, "mimeType")?.unwrap_or_default();
    let kind = if mime.is_empty() { MediaKind::Document } else { kind_of_mime(&mime) };
    Ok(Some(new_media(kind, mime, MediaSource::Base64(data))))
}

/// Writes the event of a new message, which is a text. It belongs to the agent of the adjacent event.
fn new_event(new: &NewRecord<'_>) -> Result<String, WireError> {
    let (message, text) = only_text(&[new.message])?;
    let (_, beside) = body(new.like)?;
    let [time, agent] = json::fields(new.like, &["timestamp", "agentId"])?;
    let caller = json::field(beside, "parentToolCallId")?;
    let name = quote(new.name.unwrap_or_default());
    let (kind, head, tail) = match message.role() {
        Role::User => ("user.message", String::new(), r#","attachments":[]"#),
        Role::Assistant => ("assistant.message", format!("\"messageId\":{name},"), r#","toolRequests":[]"#),
        _ => return Err(form("a new message of this role")),
    };
    let member =
        |key: &str, value: Option<&str>| value.map(|value| format!(",\"{key}\":{value}")).unwrap_or_default();
    let data = format!("{head}\"content\":{}{tail}{}", quote(text), member("parentToolCallId", caller));
    let parent = new.parent.map_or_else(|| "null".to_owned(), quote);
    let (agent, time) = (member("agentId", agent), member("timestamp", time));
    Ok(format!(
        "{{\"type\":\"{kind}\",\"data\":{{{data}}}{agent},\"id\":{name}{time},\"parentId\":{parent}}}"
    ))
}
