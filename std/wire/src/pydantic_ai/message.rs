//! Reads the messages of a request or a response.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_core::{OpenAiTokens, Usage};
use epitome_message::{
    Attribution, CompactionPart, Media, MediaSource, Part, Reasoning, Str, ToolResult, UnknownPart,
};

use super::FORMAT;
use crate::expect::{
    expect_object, kind_of_mime, member_text, new_media, number, optional_text, present, share,
};
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordMessages, RecordPart, SlotForm, blocks};
use crate::{Format, WireError};

/// The messages of `raw`, a slice of `whole`, without instructions.
pub(super) fn pieces<'a>(whole: &Arc<str>, raw: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    expect_object(raw, "a message")?;
    let [kind, parts] = json::fields(raw, &["kind", "parts"])?;
    let role = match kind {
        Some("\"request\"") => Role::User,
        Some("\"response\"") => Role::Assistant,
        _ => return Err(WireError::shape("expected `kind`, a request or a response")),
    };
    let Some(parts) = parts.filter(|parts| ValueKind::of(parts) == ValueKind::Array) else {
        return Err(WireError::shape("expected `parts`, a list"));
    };
    let mut pieces = RecordMessages::new(role);
    json::nested(raw, parts, "/parts", |parts| {
        blocks(parts, |block| {
            expect_object(block, "a part")?;
            let block = Block { whole, list: parts, raw: block };
            if role == Role::User { block.asked(&mut pieces) } else { block.answered(&mut pieces) }
        })
    })?;
    Ok(pieces.into_list())
}

/// The messages of `raw`, a slice of `whole`, with its instructions behind the results at its beginning: nothing stands
/// between a call and its result.
pub(super) fn pieces_and_instructions<'a>(
    whole: &Arc<str>,
    raw: &'a str,
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let mut found = pieces(whole, raw)?;
    if let Some(value) = instructions(raw)? {
        let said = optional_text(raw, Some(value), "instructions")?.unwrap_or_default();
        let mut piece = RecordMessage::new(Role::System, value);
        piece
            .parts
            .push(RecordPart::new(Part::Text(share(whole, &said))).with_slot(Some(value), SlotForm::Text));
        let behind = found.iter().take_while(|piece| piece.role == Role::Tool).count();
        found.insert(behind, piece);
    }
    Ok(found)
}

/// The instructions of a request as JSON, if it has any.
pub(super) fn instructions(raw: &str) -> Result<Option<&str>, WireError> {
    let [kind, value] = json::fields(raw, &["kind", "instructions"])?;
    Ok(value.filter(|value| kind == Some("\"request\"") && !matches!(*value, "null" | "\"\"")))
}

/// A part of a request or a response.
#[derive(Clone, Copy)]
struct Block<'w, 'a> {
    whole: &'w Arc<str>,
    list: &'a str,
    raw: &'a str,
}

impl<'a> Block<'_, 'a> {
    fn text(&self, key: &'static str) -> Result<Str, WireError> {
        Ok(member_text(self.whole, self.raw, key)?.unwrap_or_default())
    }

    fn content(&self) -> Result<Option<&'a str>, WireError> {
        Ok(json::field(self.raw, "content")?.filter(|content| *content != "null"))
    }

    /// A text under `key`; none, if it is empty.
    fn said(&self, key: &'static str) -> Result<Option<RecordPart<'a>>, WireError> {
        let value = json::field(self.raw, key)?;
        let said = self.text(key)?;
        let noted =
            (!said.is_empty()).then(|| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text));
        Ok(noted.map(|noted| self.element(noted)))
    }

    const fn element(&self, noted: RecordPart<'a>) -> RecordPart<'a> {
        noted.with_element(self.list, self.raw)
    }

    fn unknown(&self, kind: Str) -> RecordPart<'a> {
        self.element(RecordPart::new(Part::Unknown(UnknownPart::new(
            FORMAT,
            kind,
            share(self.whole, self.raw),
        ))))
    }

    /// Adds a part of a request.
    fn asked(&self, pieces: &mut RecordMessages<'a>) -> Result<(), WireError> {
        let kind = self.text("part_kind")?;
        match &*kind {
            "system-prompt" | "instruction" => {
                let said = self.said("content")?;
                said.into_iter().for_each(|said| pieces.push(Role::System, self.raw, said));
            }
            "user-prompt" => {
                let said = self.prompt()?;
                said.into_iter().for_each(|said| pieces.push(Role::User, self.raw, said));
            }
            "speech" => {
                let said = self.said("transcript")?;
                said.into_iter().for_each(|said| pieces.push(Role::User, self.raw, said));
            }
            "tool-return" => pieces.push(Role::Tool, self.raw, self.result()?),
            // Newer versions have a separate part for feedback on a response.
            "retry-prompt" | "retry-feedback" => match json::field(self.raw, "tool_name")? {
                Some(name) if name != "null" => pieces.push(Role::Tool, self.raw, self.result()?),
                _ => {
                    let name = Format::PydanticAi.shared_name();
                    let from = Attribution::new(name, SourceKind::Context, Authority::User);
                    for noted in self.returned()?.into_iter().map(|noted| self.element(noted)) {
                        pieces.push_from(Role::User, self.raw, noted, from.clone());
                    }
                }
            },
            "tool-availability-delta" => {}
            _ => pieces.push(Role::User, self.raw, self.unknown(kind.clone())),
        }
        Ok(())
    }

    /// Adds a part of a response.
    fn answered(&self, pieces: &mut RecordMessages<'a>) -> Result<(), WireError> {
        let kind = self.text("part_kind")?;
        let noted = match &*kind {
            "text" => self.said("content")?,
            "speech" => self.said("transcript")?,
            "thinking" => self.thought()?,
            "tool-call" => Some(self.call(CallKind::Function)?),
            "builtin-tool-call" => Some(self.call(CallKind::Hosted)?),
            "builtin-tool-return" => Some(self.result()?),
            "compaction" => {
                let sealed = json::field(self.raw, "provider_details")?.filter(|sealed| *sealed != "null");
                let sealed = sealed.map(|sealed| share(self.whole, sealed));
                let left = CompactionPart::new(self.text("provider_name")?, self.text("content")?, sealed);
                Some(self.element(RecordPart::new(Part::Compaction(left))))
            }
            "file" => match self.content()?.filter(|file| ValueKind::of(file) == ValueKind::Object) {
                Some(file) => media(self.whole, file)?.map(|media| self.element(RecordPart::new(media))),
                None => None,
            },
            _ => Some(self.unknown(kind.clone())),
        };
        noted.into_iter().for_each(|noted| pieces.push(Role::Assistant, self.raw, noted));
        Ok(())
    }

    fn thought(&self) -> Result<Option<RecordPart<'a>>, WireError> {
        let [said, sealed, details] = json::fields(self.raw, &["content", "signature", "provider_details"])?;
        let mut reasoning = Reasoning::new(self.text("content")?);
        reasoning.id = Some(self.text("id")?).filter(|id| !id.is_empty());
        reasoning.opaque = optional_text(self.raw, sealed, "signature")?
            .map(|sealed| share(self.whole, &sealed))
            .or_else(|| details.filter(|details| *details != "null").map(|raw| share(self.whole, raw)));
        if reasoning.text.is_empty() && reasoning.opaque.is_none() {
            return Ok(None);
        }
        Ok(Some(self.element(RecordPart::new(Part::Reasoning(reasoning)).with_slot(said, SlotForm::Text))))
    }

    /// A call. Its arguments are an object, or the text of an object.
    fn call(&self, kind: CallKind) -> Result<RecordPart<'a>, WireError> {
        let args = json::field(self.raw, "args")?.filter(|args| *args != "null");
        let (id, name) = (self.text("tool_call_id")?, self.text("tool_name")?);
        Ok(self.element(RecordPart::tool_call(self.whole, (id, name), args).with_kind(kind)))
    }

    fn result(&self) -> Result<RecordPart<'a>, WireError> {
        let mut result = ToolResult::new(self.text("tool_call_id")?, Vec::new());
        let is_retry = self.text("part_kind")? == "retry-prompt";
        let outcome = json::field(self.raw, "outcome")?;
        result.is_error = is_retry || matches!(outcome, Some("\"failed\"" | "\"retried\""));
        let noted = RecordPart::result(result, self.returned()?).with_slot(self.content()?, SlotForm::Text);
        Ok(self.element(noted))
    }

    /// The output of a tool: a text, a file, a list with files, or any JSON.
    fn returned(&self) -> Result<Vec<RecordPart<'a>>, WireError> {
        let Some(content) = self.content()? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut has_files = false;
        if ValueKind::of(content) == ValueKind::Array {
            json::nested(self.raw, content, "/content", |content| {
                blocks(content, |item| {
                    let file = media(self.whole, item)?;
                    has_files |= file.is_some();
                    let part = file.unwrap_or_else(|| Part::Text(json_text(self.whole, item)));
                    found.push(RecordPart::new(part).with_slot(Some(item), SlotForm::Text));
                    Ok(())
                })
            })?;
        }
        if !has_files {
            let file = json::nested(self.raw, content, "/content", |content| media(self.whole, content))?;
            let part = file.unwrap_or_else(|| Part::Text(json_text(self.whole, content)));
            let noted = RecordPart::new(part).with_slot(Some(content), SlotForm::Text);
            found = if content == "\"\"" { Vec::new() } else { vec![noted] };
        }
        Ok(found)
    }

    /// The user's prompt: a text, or a list of texts and files.
    fn prompt(&self) -> Result<Vec<RecordPart<'a>>, WireError> {
        let Some(content) = self.content()?.filter(|content| ValueKind::of(content) == ValueKind::Array)
        else {
            return Ok(self.said("content")?.into_iter().collect());
        };
        let is_only = json::count(content) == 1;
        let mut found = Vec::new();
        json::nested(self.raw, content, "/content", |content| {
            blocks(content, |item| {
                let noted = self.item(item)?.map(|noted| match is_only {
                    true => self.element(noted),
                    false => noted.with_element(content, item),
                });
                found.extend(noted);
                Ok(())
            })
        })?;
        Ok(found)
    }

    /// An item of the user's prompt; none if no model sees it.
    fn item(&self, item: &'a str) -> Result<Option<RecordPart<'a>>, WireError> {
        if ValueKind::of(item) == ValueKind::Text {
            let said = json_text(self.whole, item);
            let noted = RecordPart::new(Part::Text(said)).with_slot(Some(item), SlotForm::Text);
            return Ok(Some(noted).filter(|_| item != "\"\""));
        }
        expect_object(item, "a text or an item of a prompt")?;
        let kind = member_text(self.whole, item, "kind")?.unwrap_or_default();
        Ok(match &*kind {
            "cache-point" => None,
            "text-content" => {
                let said = member_text(self.whole, item, "content")?.filter(|said| !said.is_empty());
                let value = json::field(item, "content")?;
                said.map(|said| RecordPart::new(Part::Text(said)).with_slot(value, SlotForm::Text))
            }
            _ => Some(match media(self.whole, item)? {
                Some(media) => RecordPart::new(media).with_slot(Some(item), SlotForm::Text),
                None => {
                    let raw = share(self.whole, item);
                    RecordPart::new(Part::Unknown(UnknownPart::new(FORMAT, kind.clone(), raw)))
                }
            }),
        })
    }
}

/// The text of a value; for any other value, its JSON.
fn json_text(whole: &Arc<str>, value: &str) -> Str {
    match ValueKind::of(value) {
        ValueKind::Text => share(whole, &json::decode(value)),
        _ => share(whole, value),
    }
}

/// Reads `raw` as a file, if it is one.
fn media(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    if ValueKind::of(raw) != ValueKind::Object {
        return Ok(None);
    }
    let [kind, data, url, file_id] = json::fields(raw, &["kind", "data", "url", "file_id"])?;
    let mime = || {
        let mime = json::field(raw, "media_type")?.filter(|mime| ValueKind::of(mime) == ValueKind::Text);
        Ok::<_, WireError>(mime.map(json::decode).unwrap_or_default())
    };
    let text = |value, key| {
        present(raw, value, key, |value| match ValueKind::of(value) {
            ValueKind::Text => Ok(share(whole, &json::decode(value))),
            _ => Err(WireError::shape(format!("expected a text, found {}", json::describe(value)))),
        })
    };
    let kind =
        kind.filter(|kind| ValueKind::of(kind) == ValueKind::Text).map_or(Cow::Borrowed(""), json::decode);
    let named = match &*kind {
        "binary" => match text(data, "data")? {
            Some(data) => {
                let mime = mime()?;
                let source = MediaSource::Base64(data);
                return Ok(Some(Part::Media(new_media(kind_of_mime(&mime), share(whole, &mime), source))));
            }
            None => return Ok(None),
        },
        "image-url" => (Some("image/"), text(url, "url")?),
        "audio-url" => (Some("audio/"), text(url, "url")?),
        "video-url" => (Some("video/"), text(url, "url")?),
        "document-url" => (Some("application/"), text(url, "url")?),
        "uploaded-file" => (None, text(file_id, "file_id")?),
        _ => return Ok(None),
    };
    let (Some(place), mime) = (named.1, mime()?) else { return Ok(None) };
    let kind = kind_of_mime(named.0.unwrap_or(&mime));
    Ok(Some(Part::Media(Media::new(kind, share(whole, &mime), MediaSource::Uri(place)))))
}

/// The usage in a response. Its input includes the tokens that were read from and written to the cache.
pub(super) fn reported(raw: &str) -> Result<Option<Usage>, WireError> {
    let usage = json::field(raw, "usage")?.filter(|usage| ValueKind::of(usage) == ValueKind::Object);
    let Some(usage) = usage else { return Ok(None) };
    let names = &[
        "input_tokens",
        "request_tokens",
        "output_tokens",
        "response_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "details",
    ];
    let [input, old_input, output, old_output, read, written, details] = json::fields(usage, names)?;
    let details = details.filter(|details| ValueKind::of(details) == ValueKind::Object).unwrap_or("{}");
    let reasoning = number(json::field(details, "reasoning_tokens")?);
    let (input, output) = (number(input).or(number(old_input)), number(output).or(number(old_output)));
    let total = input.zip(output).map(|(input, output)| input.saturating_add(output));
    let mut report = Usage::openai(OpenAiTokens { input, output, total, cached: number(read), reasoning });
    report.cache_creation = number(written);
    Ok(Some(report).filter(|report| report.total.is_some_and(|total| total > 0)))
}
