//! Content parts of messages and outputs.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use epitome_core::message::MediaKind;
use epitome_message::{Media, MediaSource, Part, Str, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, expect_text, new_media, optional_text, present, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::openai_chat::split_data_url;

/// The parts of `content`, a text, a list or one object, each with its own text. Empty texts are no parts.
pub(super) fn parts<'a>(
    whole: &Arc<str>,
    content: impl Into<Value<'a>>,
) -> Result<Vec<(Option<Part>, &'a str)>, WireError> {
    let value = content.into();
    let content = value.text();
    match ValueKind::of(content) {
        ValueKind::Text => Ok(vec![(text_part(whole, json::decode(content)), content)]),
        ValueKind::Object => Ok(vec![(part(whole, content)?, content)]),
        ValueKind::Array => {
            let mut found = Vec::new();
            json::known::items_and_fields(value, &FIELDS, |item, fields| {
                let path = format_args!("/{}", found.len());
                found.push((json::nested(content, item, path, |item| part_of(whole, item, fields))?, item));
                Ok(())
            })?;
            Ok(found)
        }
        ValueKind::Null => Ok(Vec::new()),
        _ => {
            let found = json::describe(content);
            Err(WireError::shape(format!("expected a text or a list of parts, found {found}")))
        }
    }
}

/// Reads `raw` as a part; none for an empty text.
pub(super) fn part(whole: &Arc<str>, raw: &str) -> Result<Option<Part>, WireError> {
    expect_object(raw, "a part")?;
    part_of(whole, raw, json::known::fields(raw, &FIELDS))
}

/// The keys of most parts.
const FIELDS: [&str; 3] = ["type", "text", "refusal"];

/// The part with these values of [`FIELDS`].
fn part_of(
    whole: &Arc<str>,
    raw: &str,
    fields: Result<[Option<&str>; FIELDS.len()], WireError>,
) -> Result<Option<Part>, WireError> {
    expect_object(raw, "a part")?;
    let [kind, text, refusal] = fields?;
    let kind = optional_text(raw, kind, "type")?.unwrap_or_default();
    let known = match &*kind {
        "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text" => {
            let text = present(raw, text, "text", expect_text)?;
            return text.map(|text| text_part(whole, text)).ok_or_else(|| lacks(raw, "text"));
        }
        "refusal" => {
            let text = present(raw, refusal, "refusal", expect_text)?;
            return text.map(|text| text_part(whole, text)).ok_or_else(|| lacks(raw, "refusal"));
        }
        "input_image" | "computer_screenshot" => image(whole, raw)?,
        "input_file" => file(whole, raw)?,
        _ => None,
    };
    Ok(Some(match known {
        Some(media) => Part::Media(media),
        None => Part::Unknown(UnknownPart::new(NAME.clone(), share(whole, &kind), share(whole, raw))),
    }))
}

fn text_part(whole: &Arc<str>, text: Cow<'_, str>) -> Option<Part> {
    if text.is_empty() { None } else { Some(Part::Text(share(whole, &text))) }
}

fn lacks(raw: &str, key: &str) -> WireError {
    WireError::shape(format!("expected a part with `{key}`, found {}", json::describe(raw)))
}

fn image(whole: &Arc<str>, raw: &str) -> Result<Option<Media>, WireError> {
    let [url, id, detail] = json::known::fields(raw, &["image_url", "file_id", "detail"])?;
    let mut media = match optional_text(raw, url, "image_url")? {
        Some(url) => Some(of_url(whole, MediaKind::Image, &url)),
        None => optional_text(raw, id, "file_id")?
            .map(|id| new_media(MediaKind::Image, Str::default(), MediaSource::Uri(share(whole, &id)))),
    };
    if let Some(media) = &mut media {
        media.extent.low_detail = detail == Some("\"low\"");
    }
    Ok(media)
}

fn file(whole: &Arc<str>, raw: &str) -> Result<Option<Media>, WireError> {
    let [data, url, id] = json::known::fields(raw, &["file_data", "file_url", "file_id"])?;
    if let Some(data) = optional_text(raw, data, "file_data")? {
        return Ok(Some(match data.starts_with("data:") {
            true => of_url(whole, MediaKind::Document, &data),
            false => new_media(MediaKind::Document, Str::default(), MediaSource::Base64(share(whole, &data))),
        }));
    }
    let place = match optional_text(raw, url, "file_url")? {
        Some(url) => Some(url),
        None => optional_text(raw, id, "file_id")?,
    };
    Ok(place
        .map(|place| new_media(MediaKind::Document, Str::default(), MediaSource::Uri(share(whole, &place)))))
}

fn of_url(whole: &Arc<str>, kind: MediaKind, url: &str) -> Media {
    match split_data_url(url) {
        Some((mime, data)) => new_media(kind, share(whole, mime), MediaSource::Base64(share(whole, data))),
        None => new_media(kind, Str::default(), MediaSource::Uri(share(whole, url))),
    }
}

/// The format's name, shared by all messages.
pub(super) static NAME: LazyLock<Str> = LazyLock::new(|| Str::from(FORMAT));
