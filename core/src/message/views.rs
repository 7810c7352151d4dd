//! Borrowed content of a [`PartView`](super::PartView), by kind. The text of a text part is in the enum itself.

use super::Parts;
use crate::Tokens;

/// Reasoning: readable, or signed or encrypted.
///
/// ```
/// use epitome_core::message::ReasoningView;
///
/// let sealed = ReasoningView::new("").with_id(Some("rs_1")).with_opaque(Some("gAAAA"));
/// assert_eq!((sealed.text, sealed.opaque), ("", Some("gAAAA")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReasoningView<'a> {
    /// The provider's id of the item.
    pub id: Option<&'a str>,
    /// The readable part; empty when there is none.
    pub text: &'a str,
    /// The signed or encrypted part, to be sent back byte for byte.
    pub opaque: Option<&'a str>,
}

impl<'a> ReasoningView<'a> {
    /// Readable reasoning.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { id: None, text, opaque: None }
    }

    /// Sets the signed or encrypted payload.
    #[must_use]
    pub const fn with_opaque(mut self, opaque: Option<&'a str>) -> Self {
        self.opaque = opaque;
        self
    }

    /// Sets the provider's id.
    #[must_use]
    pub const fn with_id(mut self, id: Option<&'a str>) -> Self {
        self.id = id;
        self
    }
}

/// A call of a tool.
///
/// ```
/// use epitome_core::message::{CallKind, ToolCallView};
///
/// let call = ToolCallView::new("c1", "read_file", r#"{"path":"a.txt"}"#);
/// assert_eq!(call.kind, CallKind::Function);
/// let search = ToolCallView::new("ws_1", "web_search", "{}").with_kind(CallKind::Hosted);
/// assert_eq!(search.kind, CallKind::Hosted);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCallView<'a> {
    /// Pairs the call with its result. May repeat within a conversation; may be empty.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments, as the model wrote them.
    pub arguments: &'a str,
    /// The side that runs the tool.
    pub kind: CallKind,
}

impl<'a> ToolCallView<'a> {
    /// A call that the caller runs.
    #[must_use]
    pub const fn new(id: &'a str, name: &'a str, arguments: &'a str) -> Self {
        Self { id, name, arguments, kind: CallKind::Function }
    }

    /// Sets the kind of the call: the side that runs it.
    #[must_use]
    pub const fn with_kind(mut self, kind: CallKind) -> Self {
        self.kind = kind;
        self
    }
}

/// The side that runs a called tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum CallKind {
    /// The caller: a result must follow.
    #[default]
    Function,
    /// The provider: the result, if any, is in the same message, or in the model's next one. A result need not follow.
    Hosted,
}

/// The answer to a call.
///
/// ```
/// use epitome_core::message::{Text, ToolResultView};
///
/// let content = Text("no such file");
/// let result = ToolResultView::new("c1", &content).with_error(true);
/// assert!(result.call_id == "c1" && result.is_error);
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ToolResultView<'a> {
    /// The call that it answers.
    pub call_id: &'a str,
    /// The content that the tool returned.
    pub content: &'a dyn Parts,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl<'a> ToolResultView<'a> {
    /// The result of the call `call_id`.
    #[must_use]
    pub const fn new(call_id: &'a str, content: &'a dyn Parts) -> Self {
        Self { call_id, content, is_error: false }
    }

    /// Marks the result as a failure, or not.
    #[must_use]
    pub const fn with_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }
}

impl core::fmt::Debug for ToolResultView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ToolResultView")
            .field("call_id", &self.call_id)
            .field("is_error", &self.is_error)
            .finish_non_exhaustive()
    }
}

/// The kind of a media part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum MediaKind {
    /// A still picture.
    Image,
    /// A sound.
    Audio,
    /// A moving picture.
    Video,
    /// A document, for example a PDF.
    Document,
}

/// An image, a sound, a video or a document.
///
/// ```
/// use epitome_core::message::{MediaExtent, MediaKind, MediaView};
///
/// let mut extent = MediaExtent::UNKNOWN;
/// extent.pixels = Some((640, 480));
/// let picture = MediaView::new(MediaKind::Image, "image/png").with_extent(extent);
/// assert_eq!(picture.extent.pixels, Some((640, 480)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaView<'a> {
    /// The kind of the media.
    pub kind: MediaKind,
    /// The media type of the part; empty if it is unknown.
    pub mime: &'a str,
    /// The size of the part, if it is known.
    pub extent: MediaExtent,
}

impl<'a> MediaView<'a> {
    /// A part of this kind and media type, of unknown extent.
    #[must_use]
    pub const fn new(kind: MediaKind, mime: &'a str) -> Self {
        Self { kind, mime, extent: MediaExtent::UNKNOWN }
    }

    /// Sets the extent.
    #[must_use]
    pub const fn with_extent(mut self, extent: MediaExtent) -> Self {
        self.extent = extent;
        self
    }
}

/// The size of a media part: the figures that the providers' published formulas need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MediaExtent {
    /// Width and height in pixels.
    pub pixels: Option<(u32, u32)>,
    /// Length in milliseconds.
    pub millis: Option<u32>,
    /// Number of pages.
    pub pages: Option<u32>,
    /// Whether the sender asked for the cheap, low-resolution reading of an image.
    pub low_detail: bool,
}

impl MediaExtent {
    /// An unknown size.
    pub const UNKNOWN: Self = Self { pixels: None, millis: None, pages: None, low_detail: false };
}

/// The subject of a request for approval, or of the answer to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalView<'a> {
    /// Pairs the request with its answer.
    pub id: &'a str,
    /// The call that may or may not be run; empty when there is none.
    pub call_id: &'a str,
}

impl<'a> ApprovalView<'a> {
    /// The approval `id`, about the call `call_id`.
    #[must_use]
    pub const fn new(id: &'a str, call_id: &'a str) -> Self {
        Self { id, call_id }
    }
}

/// A person's answer to a request for approval.
///
/// ```
/// use epitome_core::message::{ApprovalAnswerView, ApprovalView};
///
/// let answer = ApprovalAnswerView::new(ApprovalView::new("a1", "c1"), true);
/// assert!(answer.approved && answer.approval.call_id == "c1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalAnswerView<'a> {
    /// The request that is answered, and the call of the request.
    pub approval: ApprovalView<'a>,
    /// Whether the person agreed.
    pub approved: bool,
}

impl<'a> ApprovalAnswerView<'a> {
    /// The answer to `approval`.
    #[must_use]
    pub const fn new(approval: ApprovalView<'a>, approved: bool) -> Self {
        Self { approval, approved }
    }
}

/// The content that a provider left in place of messages that it compacted itself.
///
/// ```
/// use epitome_core::Tokens;
/// use epitome_core::message::CompactionView;
///
/// let left = CompactionView::new("openai", "", Some("gAAAA")).with_tokens(Some(Tokens(900)));
/// assert_eq!(left.provider, "openai");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionView<'a> {
    /// The provider that made the content, and the only one that can read it.
    pub provider: &'a str,
    /// The readable summary; empty when there is none.
    pub text: &'a str,
    /// The payload, to be sent back byte for byte.
    pub opaque: Option<&'a str>,
    /// The number of tokens that the provider has written, if it has reported it: the size of the payload.
    pub tokens: Option<Tokens>,
}

impl<'a> CompactionView<'a> {
    /// The content that `provider` left.
    #[must_use]
    pub const fn new(provider: &'a str, text: &'a str, opaque: Option<&'a str>) -> Self {
        Self { provider, text, opaque, tokens: None }
    }

    /// Sets the number of tokens.
    #[must_use]
    pub const fn with_tokens(mut self, tokens: Option<Tokens>) -> Self {
        self.tokens = tokens;
        self
    }
}

/// A part of a kind that the reader does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownView<'a> {
    /// The wire format of the part, the only one in which it can be written; empty if it is unknown.
    pub format: &'a str,
    /// The kind's name on the wire.
    pub kind: &'a str,
    /// Its source text.
    pub raw: &'a str,
}

impl<'a> UnknownView<'a> {
    /// A part of `format` whose kind is called `kind`, written as `raw`.
    #[must_use]
    pub const fn new(format: &'a str, kind: &'a str, raw: &'a str) -> Self {
        Self { format, kind, raw }
    }
}
