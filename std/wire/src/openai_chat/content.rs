//! The `content` of a message: a text, or a list of parts.

use std::borrow::Cow;

use epitome_core::message::{MediaExtent, MediaKind, MediaView, PartView, Parts, UnknownView};
use epitome_message::media::pixels_of_base64;

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, expect_text, optional_text, present};
use crate::json::{self, ValueKind};

/// The content of a message or of a tool result. Empty texts are no parts.
#[derive(Debug, Clone, Default)]
pub(super) enum Content<'a> {
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<ChatPart<'a>>),
}

/// One part of a content list.
#[derive(Debug, Clone)]
pub(super) enum ChatPart<'a> {
    Text(Cow<'a, str>),
    Media(ChatMedia<'a>),
    Unknown { kind: Cow<'a, str>, raw: &'a str },
}

/// An image, a sound or a file.
#[derive(Debug, Clone)]
pub(super) struct ChatMedia<'a> {
    pub(super) kind: MediaKind,
    pub(super) mime: Cow<'a, str>,
    pub(super) source: ChatSource<'a>,
    pub(super) low_detail: bool,
    /// Width and height of an image, if the message contains its bytes.
    pub(super) pixels: Option<(u32, u32)>,
}

/// The bytes of a media part, or their location.
#[derive(Debug, Clone)]
pub(super) enum ChatSource<'a> {
    Base64(Cow<'a, str>),
    Uri(Cow<'a, str>),
}

impl<'a> Content<'a> {
    pub(super) fn parse(raw: &'a str) -> Result<Self, WireError> {
        match ValueKind::of(raw) {
            ValueKind::Text => Ok(match json::decode(raw) {
                text if text.is_empty() => Self::None,
                text => Self::Text(text),
            }),
            ValueKind::Array => {
                let mut parts = Vec::new();
                for_each_item(raw, |part, _| parts.extend(part))?;
                Ok(Self::Parts(parts))
            }
            _ => {
                let found = json::describe(raw);
                Err(WireError::shape(format!("expected a text, a list of parts or null, found {found}")))
            }
        }
    }
}

/// Calls `visit` with every element of the content list `raw`: its part, unless the element is an empty text, and its
/// JSON text.
pub(super) fn for_each_item<'a>(
    raw: &'a str,
    mut visit: impl FnMut(Option<ChatPart<'a>>, &'a str),
) -> Result<(), WireError> {
    let mut index = 0_usize;
    json::known::items(raw, |item| {
        let part = json::nested(raw, item, format_args!("/{index}"), ChatPart::parse)?;
        index = index.saturating_add(1);
        visit(Some(part).filter(|part| !matches!(part, ChatPart::Text(text) if text.is_empty())), item);
        Ok(())
    })
}

impl<'a> ChatPart<'a> {
    fn parse(raw: &'a str) -> Result<Self, WireError> {
        if ValueKind::of(raw) == ValueKind::Text {
            return Ok(Self::Text(json::decode(raw)));
        }
        expect_object(raw, "a part")?;
        let names = &["type", "text", "refusal", "image_url", "input_audio", "file"];
        let [kind, text, refusal, image_url, input_audio, file] = json::known::fields(raw, names)?;
        let kind = optional_text(raw, kind, "type")?.unwrap_or_default();
        let known = match &*kind {
            "text" => present(raw, text, "text", expect_text)?.map(Self::Text),
            "refusal" => present(raw, refusal, "refusal", expect_text)?.map(Self::Text),
            "image_url" => present(raw, image_url, "image_url", ChatMedia::image)?.map(Self::Media),
            "input_audio" => present(raw, input_audio, "input_audio", ChatMedia::audio)?.map(Self::Media),
            "file" => present(raw, file, "file", ChatMedia::file)?.map(Self::Media),
            _ => return Ok(Self::Unknown { kind, raw }),
        };
        known.ok_or_else(|| WireError::shape(format!("a part of type `{kind}` needs `{kind}`")))
    }
}

impl<'a> ChatMedia<'a> {
    /// An image: `{"url", "detail"}`, or the URL alone.
    fn image(raw: &'a str) -> Result<Self, WireError> {
        if ValueKind::of(raw) == ValueKind::Text {
            return Ok(Self::of_url(MediaKind::Image, json::decode(raw)));
        }
        expect_object(raw, "an image")?;
        let [url, detail] = json::known::fields(raw, &["url", "detail"])?;
        let Some(url) = optional_text(raw, url, "url")? else {
            return Err(WireError::shape("an image needs `url`"));
        };
        let low_detail = optional_text(raw, detail, "detail")?.is_some_and(|detail| detail == "low");
        Ok(Self { low_detail, ..Self::of_url(MediaKind::Image, url) })
    }

    /// A sound: `{"data", "format"}`.
    fn audio(raw: &'a str) -> Result<Self, WireError> {
        expect_object(raw, "a sound")?;
        let [data, format] = json::known::fields(raw, &["data", "format"])?;
        let Some(data) = optional_text(raw, data, "data")? else {
            return Err(WireError::shape("a sound needs `data`"));
        };
        let mime = match optional_text(raw, format, "format")?.as_deref() {
            None | Some("") => Cow::Borrowed(""),
            Some("wav") => Cow::Borrowed("audio/wav"),
            Some("mp3") => Cow::Borrowed("audio/mpeg"),
            Some(other) => Cow::Owned(format!("audio/{other}")),
        };
        Ok(match data.starts_with("data:") {
            true => Self::of_url(MediaKind::Audio, data),
            false => Self {
                kind: MediaKind::Audio,
                mime,
                source: ChatSource::Base64(data),
                low_detail: false,
                pixels: None,
            },
        })
    }

    /// A file: `{"file_data"}` or `{"file_id"}`.
    fn file(raw: &'a str) -> Result<Self, WireError> {
        expect_object(raw, "a file")?;
        let [data, id] = json::known::fields(raw, &["file_data", "file_id"])?;
        let source = match optional_text(raw, data, "file_data")? {
            Some(data) if data.starts_with("data:") => return Ok(Self::of_url(MediaKind::Document, data)),
            Some(data) => ChatSource::Base64(data),
            None => match optional_text(raw, id, "file_id")? {
                Some(id) => ChatSource::Uri(id),
                None => return Err(WireError::shape("a file needs `file_data` or `file_id`")),
            },
        };
        Ok(Self {
            kind: MediaKind::Document,
            mime: Cow::Borrowed(""),
            source,
            low_detail: false,
            pixels: None,
        })
    }

    /// Media at `url`, or in it.
    fn of_url(kind: MediaKind, url: Cow<'a, str>) -> Self {
        let (mime, source) = match url {
            Cow::Borrowed(url) => match split_data_url(url) {
                Some((mime, data)) => (Cow::Borrowed(mime), ChatSource::Base64(Cow::Borrowed(data))),
                None => (Cow::Borrowed(mime_of(url)), ChatSource::Uri(Cow::Borrowed(url))),
            },
            Cow::Owned(url) => match split_data_url(&url) {
                Some((mime, data)) => {
                    (Cow::Owned(mime.to_owned()), ChatSource::Base64(Cow::Owned(data.to_owned())))
                }
                None => (Cow::Owned(mime_of(&url).to_owned()), ChatSource::Uri(Cow::Owned(url))),
            },
        };
        let pixels = Self::pixels_of(kind, &source);
        Self { kind, mime, source, low_detail: false, pixels }
    }

    pub(super) const fn extent(&self) -> MediaExtent {
        let mut extent = MediaExtent::UNKNOWN;
        extent.low_detail = self.low_detail;
        extent.pixels = self.pixels;
        extent
    }

    /// The size of an image in the message, from its first bytes.
    fn pixels_of(kind: MediaKind, source: &ChatSource<'_>) -> Option<(u32, u32)> {
        match (kind, source) {
            (MediaKind::Image, ChatSource::Base64(data)) => pixels_of_base64(data),
            _ => None,
        }
    }
}

/// Media type and base64 of `data:image/png;base64,..`.
pub(crate) fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.strip_suffix(";base64")?;
    // A URL with parameters, such as a charset, stays a URL, because the writer would lose them.
    if mime.contains(';') { None } else { Some((mime, data)) }
}

/// The media type of a data URL; empty for any other URL.
fn mime_of(url: &str) -> &str {
    let head = url.strip_prefix("data:").and_then(|rest| rest.split(',').next()).unwrap_or_default();
    head.split(';').next().unwrap_or_default()
}

impl Parts for Content<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match self {
            Self::None => {}
            Self::Text(text) => visit(PartView::Text(text)),
            Self::Parts(parts) => {
                for part in parts {
                    visit(part.view());
                }
            }
        }
    }
}

impl ChatPart<'_> {
    fn view(&self) -> PartView<'_> {
        match self {
            Self::Text(text) => PartView::Text(text),
            Self::Media(media) => {
                PartView::Media(MediaView::new(media.kind, &media.mime).with_extent(media.extent()))
            }
            Self::Unknown { kind, raw } => PartView::Unknown(UnknownView::new(FORMAT, kind, raw)),
        }
    }
}
