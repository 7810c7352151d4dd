//! Reads values of the expected kind, and shares their text.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::message::MediaKind;
use epitome_message::media::pixels_of_base64;
use epitome_message::{Media, MediaSource, Str};

use super::WireError;
use super::json::known::Members;
use super::json::{self, ValueKind};
use super::openai_chat::split_data_url;

/// Reads the value of `key` in the object `text` with `read`, if it is present and not null.
pub(crate) fn present<'a, T>(
    text: &str,
    value: Option<&'a str>,
    key: &str,
    read: impl FnOnce(&'a str) -> Result<T, WireError>,
) -> Result<Option<T>, WireError> {
    match value.filter(|value| *value != "null") {
        Some(value) => json::nested(text, value, format_args!("/{key}"), read).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn optional_text<'a>(
    text: &str,
    value: Option<&'a str>,
    key: &str,
) -> Result<Option<Cow<'a, str>>, WireError> {
    present(text, value, key, expect_text)
}

pub(crate) fn expect_text(raw: &str) -> Result<Cow<'_, str>, WireError> {
    match ValueKind::of(raw) {
        ValueKind::Text => Ok(json::decode(raw)),
        _ => Err(WireError::shape(format!("expected a text, found {}", json::describe(raw)))),
    }
}

/// The text of the member `key` of the object `raw`, if it is present and not null.
pub(crate) fn member_text(whole: &Arc<str>, raw: &str, key: &'static str) -> Result<Option<Str>, WireError> {
    let [value] = json::known::fields(raw, &[key])?;
    Ok(optional_text(raw, value, key)?.map(|text| share(whole, &text)))
}

impl<const N: usize> Members<'_, N> {
    /// The text under one of the keys; empty if the key is missing.
    ///
    /// # Errors
    /// `Shape` for a value that is no text.
    pub(crate) fn text(&self, whole: &Arc<str>, key: &'static str) -> Result<Str, WireError> {
        let text = optional_text(self.object(), self.get(key)?, key)?;
        Ok(text.map(|text| share(whole, &text)).unwrap_or_default())
    }
}

/// Parses `raw` as a whole number.
pub(crate) fn number(raw: Option<&str>) -> Option<u64> {
    raw.and_then(|raw| raw.parse().ok())
}

pub(crate) fn expect_object(raw: &str, what: &str) -> Result<(), WireError> {
    match ValueKind::of(raw) {
        ValueKind::Object => Ok(()),
        _ => Err(WireError::shape(format!("expected {what} (an object), found {}", json::describe(raw)))),
    }
}

/// The kind of media with this MIME type.
pub(crate) fn kind_of_mime(mime: &str) -> MediaKind {
    match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some("video") => MediaKind::Video,
        _ => MediaKind::Document,
    }
}

/// Media with this MIME type at `url`. A data URL contains the media itself.
pub(crate) fn linked_media(whole: &Arc<str>, mime: Str, url: &str) -> Media {
    match split_data_url(url) {
        Some((own, data)) => {
            let mime = if own.is_empty() { mime } else { share(whole, own) };
            new_media(kind_of_mime(&mime), mime, MediaSource::Base64(share(whole, data)))
        }
        None => new_media(kind_of_mime(&mime), mime, MediaSource::Uri(share(whole, url))),
    }
}

/// Media of this kind. An image in the text has its size from its first bytes.
pub(crate) fn new_media(kind: MediaKind, mime: impl Into<Str>, source: MediaSource) -> Media {
    let mut media = Media::new(kind, mime, source);
    if let (MediaKind::Image, MediaSource::Base64(data)) = (kind, &media.source) {
        media.extent.pixels = pixels_of_base64(data);
    }
    media
}

/// `text` as a slice of `whole` if it is one, otherwise a copy.
pub(crate) fn share(whole: &Arc<str>, text: &str) -> Str {
    let slice = match whole.as_bytes().as_ptr_range().contains(&text.as_ptr()) {
        true => Str::slice_of(whole, json::range_of(whole, text)),
        false if text.is_empty() => Str::slice_of(whole, 0..0),
        false => None,
    };
    slice.unwrap_or_else(|| Str::from(text))
}
