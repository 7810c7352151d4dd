//! Reads the messages of a record: each step of the model, and the results of its calls.

use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_core::{AnthropicTokens, Usage};
use epitome_message::{Attribution, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart};

use super::FORMAT;
use crate::expect::{expect_object, linked_media, member_text, number, optional_text, share};
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordPart, SlotForm, blocks};
use crate::{Format, WireError};

/// The messages of `raw`, a slice of `whole`.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a message")?;
    let [info, parts] = json::fields(raw, &["info", "parts"])?;
    let Some(info) = info.filter(|info| ValueKind::of(info) == ValueKind::Object) else {
        return Err(WireError::shape("expected `info`, an object"));
    };
    let Some(parts) = parts.filter(|parts| ValueKind::of(parts) == ValueKind::Array) else {
        return Err(WireError::shape("expected `parts`, a list"));
    };
    let [role, error] = json::fields(info, &["role", "error"])?;
    let role = match role {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        _ => return Ok(Vec::new()),
    };
    if let Some(error) = error.filter(|error| *error != "null")
        && !(is_abort(error)? && says_something(parts)?)
    {
        return Ok(Vec::new());
    }
    let mut steps = Steps { role, done: Vec::new(), said: None, results: Vec::new(), is_synthetic: true };
    json::nested(raw, parts, "/parts", |parts| {
        blocks(parts, |block| {
            expect_object(block, "a part")?;
            steps.add(whole, parts, block)
        })
    })?;
    steps.end();
    Ok(steps.done)
}

/// Whether the user has stopped the model.
fn is_abort(error: &str) -> Result<bool, WireError> {
    let name = if ValueKind::of(error) == ValueKind::Object { json::field(error, "name")? } else { None };
    Ok(name == Some("\"MessageAbortedError\""))
}

/// Whether a stopped message is sent: not if it has only thoughts.
fn says_something(parts: &str) -> Result<bool, WireError> {
    let mut found = false;
    json::items(parts, |part| {
        let kind = if ValueKind::of(part) == ValueKind::Object { json::field(part, "type")? } else { None };
        found |= !matches!(kind, Some("\"step-start\"" | "\"reasoning\""));
        Ok(())
    })?;
    Ok(found)
}

/// The steps of a message. Each has one message of the model, followed by the results of its calls.
struct Steps<'a> {
    role: Role,
    done: Vec<RecordMessage<'a>>,
    /// The message of the current step, and the results of its calls.
    said: Option<RecordMessage<'a>>,
    results: Vec<RecordMessage<'a>>,
    /// Whether OpenCode has written all texts of the user's message.
    is_synthetic: bool,
}

impl<'a> Steps<'a> {
    fn add(&mut self, whole: &Arc<str>, list: &'a str, block: &'a str) -> Result<(), WireError> {
        let text = |key| Ok::<_, WireError>(member_text(whole, block, key)?.unwrap_or_default());
        let kind = text("type")?;
        let is_user = self.role == Role::User;
        let noted = match &*kind {
            "text" => {
                let [said, ignored, synthetic] = json::fields(block, &["text", "ignored", "synthetic"])?;
                let part = text("text")?;
                if part.is_empty() || (is_user && ignored == Some("true")) {
                    return Ok(());
                }
                self.is_synthetic &= synthetic == Some("true");
                RecordPart::new(Part::Text(part)).with_slot(said, SlotForm::Text)
            }
            "reasoning" if !is_user => thought(whole, block)?,
            "tool" if !is_user => return self.tool(whole, list, block),
            "file" if is_user => match file(whole, block, text("mime")?)? {
                Some(file) => {
                    self.is_synthetic = false;
                    file
                }
                None => return Ok(()),
            },
            "compaction" if is_user => RecordPart::new(Part::Text(Str::from(COMPACTED))),
            "subtask" if is_user => RecordPart::new(Part::Text(Str::from(RAN))),
            "step-start" => {
                self.end();
                return Ok(());
            }
            kind if SILENT.contains(&kind) => return Ok(()),
            _ => RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), share(whole, block)))),
        };
        self.say(block, noted.with_element(list, block));
        Ok(())
    }

    fn say(&mut self, block: &'a str, noted: RecordPart<'a>) {
        self.said.get_or_insert_with(|| RecordMessage::new(self.role, block)).parts.push(noted);
    }

    fn tool(&mut self, whole: &Arc<str>, list: &'a str, block: &'a str) -> Result<(), WireError> {
        let [id, name, state, metadata] = json::fields(block, &["callID", "tool", "state", "metadata"])?;
        let text = |value, key| {
            let text = optional_text(block, value, key)?;
            Ok::<_, WireError>(text.map(|text| share(whole, &text)).unwrap_or_default())
        };
        let Some(state) = state.filter(|state| ValueKind::of(state) == ValueKind::Object) else {
            return Err(WireError::shape("expected `state`, an object"));
        };
        let metadata =
            metadata.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object).unwrap_or("{}");
        let is_hosted = json::field(metadata, "providerExecuted")? == Some("true");
        let input = json::field(state, "input")?.filter(|input| *input != "null");
        let id = text(id, "callID")?;
        let mut call = ToolCall::new(id.clone(), text(name, "tool")?, share(whole, input.unwrap_or("{}")));
        if is_hosted {
            call.kind = CallKind::Hosted;
        }
        let call = RecordPart::new(Part::ToolCall(call)).with_slot(input, SlotForm::Arguments);
        let result = json::nested(block, state, "/state", |state| result(whole, state, id))?;
        self.say(block, call.with_element(list, block));
        let result = result.with_element(list, block);
        match is_hosted {
            true => self.say(block, result),
            false => {
                let mut piece = RecordMessage::new(Role::Tool, block);
                piece.parts.push(result);
                self.results.push(piece);
            }
        }
        Ok(())
    }

    /// Ends a step.
    fn end(&mut self) {
        if let Some(mut said) = self.said.take() {
            if self.role == Role::User && self.is_synthetic {
                let name = Format::OpenCode.shared_name();
                said.attribution = Some(Attribution::new(name, SourceKind::Context, Authority::User));
            }
            self.done.push(said);
        }
        self.done.append(&mut self.results);
    }
}

/// A thought. Metadata of the provider, for example a signature, seals it.
fn thought<'a>(whole: &Arc<str>, block: &'a str) -> Result<RecordPart<'a>, WireError> {
    let [text, metadata] = json::fields(block, &["text", "metadata"])?;
    let said = optional_text(block, text, "text")?.unwrap_or_default();
    let mut reasoning = Reasoning::new(share(whole, &said));
    let sealed =
        metadata.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object && !is_empty(metadata));
    reasoning.opaque = sealed.map(|sealed| share(whole, sealed));
    Ok(RecordPart::new(Part::Reasoning(reasoning)).with_slot(text, SlotForm::Text))
}

fn is_empty(object: &str) -> bool {
    object.bytes().all(|byte| matches!(byte, b'{' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))
}

/// A file that the user has attached; none if the message has its text too.
fn file<'a>(whole: &Arc<str>, block: &'a str, mime: Str) -> Result<Option<RecordPart<'a>>, WireError> {
    let url = member_text(whole, block, "url")?.unwrap_or_default();
    if matches!(&*mime, "text/plain" | "application/x-directory") {
        return Ok(None);
    }
    let media = RecordPart::new(Part::Media(linked_media(whole, mime, &url)));
    let media = media.with_slot(json::field(block, "type")?, SlotForm::Constant("\"text\""));
    Ok(Some(media.with_slot(json::member(block, "url")?, SlotForm::Around("\"text\":", ""))))
}

/// The result of a call, by the state of the call.
fn result<'a>(whole: &Arc<str>, state: &'a str, id: Str) -> Result<RecordPart<'a>, WireError> {
    let names = &["status", "output", "error", "time", "attachments", "metadata"];
    let [status, output, error, time, attachments, metadata] = json::fields(state, names)?;
    let mut result = ToolResult::new(id, Vec::new());
    let text = |value, key| {
        let text = optional_text(state, value, key)?;
        Ok::<_, WireError>(text.map(|text| share(whole, &text)).filter(|text| !text.is_empty()))
    };
    let returned = |result, value: Option<&'a str>, said: Option<Str>| {
        let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
        RecordPart::result(result, said.into_iter().collect()).with_slot(value, SlotForm::Text)
    };
    match status {
        Some("\"completed\"") => {}
        Some("\"error\"") => {
            let metadata =
                metadata.filter(|metadata| ValueKind::of(metadata) == ValueKind::Object).unwrap_or("{}");
            if let [Some("true"), Some(printed)] = json::fields(metadata, &["interrupted", "output"])?
                && ValueKind::of(printed) == ValueKind::Text
            {
                let said = Some(share(whole, &json::decode(printed))).filter(|said| !said.is_empty());
                return Ok(returned(result, Some(printed), said));
            }
            result.is_error = true;
            return Ok(returned(result, error, text(error, "error")?));
        }
        _ => {
            result.is_error = true;
            result.parts.push(Part::Text(Str::from(INTERRUPTED)));
            // To change the text, the state becomes that of a failed call.
            let failed = match time {
                Some(_) => SlotForm::Around(r#""error","error":"#, ""),
                None => SlotForm::Around(r#""error","time":{"start":0,"end":0},"error":"#, ""),
            };
            let noted = RecordPart::new(Part::ToolResult(result)).with_slot(status, failed);
            return Ok(noted.with_slot(time, SlotForm::Constant(r#"{"start":0,"end":0}"#)));
        }
    }
    let attachments = attachments.filter(|attachments| ValueKind::of(attachments) == ValueKind::Array);
    let time = time.filter(|time| ValueKind::of(time) == ValueKind::Object).unwrap_or("{}");
    let pruned = json::field(time, "compacted")?.filter(|time| number(Some(time)).is_some_and(|at| at > 0));
    if pruned.is_some() {
        result.parts.push(Part::Text(Str::from(PRUNED)));
        let noted = RecordPart::new(Part::ToolResult(result)).with_slot(output, SlotForm::Text);
        let noted = noted.with_slot(pruned, SlotForm::Constant("0"));
        return Ok(noted.with_slot(attachments, SlotForm::Gone("[]")));
    }
    let said = text(output, "output")?;
    let said = said.map(|said| RecordPart::new(Part::Text(said)).with_slot(output, SlotForm::Text));
    let mut inner: Vec<_> = said.into_iter().collect();
    json::items(attachments.unwrap_or("[]"), |file| {
        expect_object(file, "an attachment")?;
        let url = member_text(whole, file, "url")?.unwrap_or_default();
        let mime = member_text(whole, file, "mime")?.unwrap_or_default();
        inner.push(RecordPart::new(Part::Media(linked_media(whole, mime, &url))));
        Ok(())
    })?;
    Ok(RecordPart::result(result, inner)
        .with_slot(output, SlotForm::Text)
        .with_slot(attachments, SlotForm::Gone("[]")))
}

/// The usage in `info`, which belongs to the last step of a message.
pub(super) fn reported(info: &str) -> Result<Option<Usage>, WireError> {
    let tokens = json::field(info, "tokens")?.filter(|tokens| ValueKind::of(tokens) == ValueKind::Object);
    let Some(tokens) = tokens else { return Ok(None) };
    let [input, output, reasoning, cache, total] =
        json::fields(tokens, &["input", "output", "reasoning", "cache", "total"])?;
    let cache = cache.filter(|cache| ValueKind::of(cache) == ValueKind::Object).unwrap_or("{}");
    let [read, written] = json::fields(cache, &["read", "write"])?.map(number);
    let (input, output, reasoning) = (number(input), number(output), number(reasoning).unwrap_or_default());
    let with_reasoning = output.map(|output| output.saturating_add(reasoning));
    let all = [input, read, written, with_reasoning].into_iter().flatten().fold(0, u64::saturating_add);
    // Newer versions count the thoughts separately from the output, and have a total to recognize this.
    let output = if number(total) == Some(all) { with_reasoning } else { output };
    let report =
        Usage::anthropic(AnthropicTokens { input, cache_read: read, cache_creation: written, output });
    Ok(Some(report).filter(|report| report.total.is_some_and(|total| total > 0)))
}

/// Parts that no model sees.
const SILENT: &[&str] = &[
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "retry",
    "file",
    "compaction",
    "subtask",
    "reasoning",
    "tool",
];

/// Texts of OpenCode to the model in the place of other content.
const COMPACTED: &str = "What did we do so far?";
const RAN: &str = "The following tool was executed by the user";
const PRUNED: &str = "[Old tool result content cleared]";
const INTERRUPTED: &str = "[Tool execution was interrupted]";
