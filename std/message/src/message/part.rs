//! The parts of an owned message.

use std::borrow::Cow;

use epitome_core::Tokens;
use epitome_core::message::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MediaExtent, MediaKind, MediaView, PartView,
    Parts, ReasoningView, ToolCallView, ToolResultView, UnknownView,
};

use super::Str;

/// The deepest nesting of tool results in a stored message. Provider formats nest once; the JSON reader stops at a
/// depth of about 40.
pub const NESTING_MAX: usize = 16;

/// A piece of a message's content.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the writer of a format must say of each kind how it is written")]
pub enum Part {
    /// Text.
    Text(Str),
    /// Reasoning of the model before its answer.
    Reasoning(Reasoning),
    /// A call of a tool by the model.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolResult),
    /// An image, a sound, a video or a document.
    Media(Media),
    /// A request for approval to a person.
    ApprovalRequest(Approval),
    /// The person's answer to a request for approval.
    ApprovalResponse(ApprovalAnswer),
    /// The stand-in of messages that a provider compacted. Only this provider can read it, in requests to the model
    /// it was made for. Other providers and models receive its text.
    Compaction(CompactionPart),
    /// A part of an unknown kind, with its source text.
    Unknown(UnknownPart),
}

impl Part {
    /// Calls `visit` with this part as the planner sees it.
    pub(crate) fn view(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match self {
            Self::Text(text) => visit(PartView::Text(text)),
            Self::Reasoning(reasoning) => visit(PartView::Reasoning(reasoning.view())),
            Self::ToolCall(call) => visit(PartView::ToolCall(call.view())),
            Self::ToolResult(result) => visit(PartView::ToolResult(result.view())),
            Self::Media(media) => visit(PartView::Media(media.view())),
            Self::ApprovalRequest(approval) => visit(PartView::ApprovalRequest(approval.view())),
            Self::ApprovalResponse(answer) => visit(PartView::ApprovalResponse(answer.view())),
            Self::Compaction(compaction) => visit(PartView::Compaction(compaction.view())),
            Self::Unknown(unknown) => visit(PartView::Unknown(unknown.view())),
        }
    }
}

/// Reasoning, readable or sealed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Reasoning {
    /// The provider's id of the item.
    pub id: Option<Str>,
    /// The readable part; empty when there is none.
    pub text: Str,
    /// The signed or encrypted part, which is sent back byte for byte.
    pub opaque: Option<Str>,
}

impl Reasoning {
    /// Readable reasoning.
    #[must_use]
    pub fn new(text: impl Into<Str>) -> Self {
        Self { id: None, text: text.into(), opaque: None }
    }

    fn view(&self) -> ReasoningView<'_> {
        ReasoningView::new(&self.text).with_opaque(self.opaque.as_deref()).with_id(self.id.as_deref())
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that pairs the call with its result.
    pub id: Str,
    /// The tool's name.
    pub name: Str,
    /// The arguments in the model's own text: JSON for most tools.
    pub arguments: Str,
    /// The side that runs the tool.
    pub kind: CallKind,
}

impl ToolCall {
    /// A call that the caller runs.
    #[must_use]
    pub fn new(id: impl Into<Str>, name: impl Into<Str>, arguments: impl Into<Str>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), kind: CallKind::Function }
    }

    pub(super) fn view(&self) -> ToolCallView<'_> {
        ToolCallView::new(&self.id, &self.name, &self.arguments).with_kind(self.kind)
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: Str,
    /// The content of the result: texts and media.
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ToolResult {
    /// The result of the call `call_id`.
    #[must_use]
    pub fn new(call_id: impl Into<Str>, mut parts: Vec<Part>) -> Self {
        // The result lives as long as the message, and usually has one text.
        parts.shrink_to_fit();
        Self { call_id: call_id.into(), parts, is_error: false }
    }

    /// The texts of the result, joined, without media.
    ///
    /// ```
    /// use epitome_message::{Part, ToolResult};
    ///
    /// let result = ToolResult::new("call_1", vec![Part::Text("ERROR: no such file".into())]);
    /// assert!(result.text().contains("ERROR"));
    /// ```
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        joined(&self.parts)
    }

    fn view(&self) -> ToolResultView<'_> {
        ToolResultView::new(&self.call_id, self).with_error(self.is_error)
    }
}

/// The texts among `parts`, joined.
pub(super) fn joined(parts: &[Part]) -> Cow<'_, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |all, more| Cow::Owned(all.into_owned() + more))
}

/// Visits the parts of the tool's output.
impl Parts for ToolResult {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for part in &self.parts {
            part.view(visit);
        }
    }
}

/// An image, a sound, a video or a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Media {
    /// The kind of the media.
    pub kind: MediaKind,
    /// The media type; empty if it is not known.
    pub mime: Str,
    /// The source of its bytes.
    pub source: MediaSource,
    /// The size, if it is known.
    pub extent: MediaExtent,
}

impl Media {
    /// A part of unknown extent.
    #[must_use]
    pub fn new(kind: MediaKind, mime: impl Into<Str>, source: MediaSource) -> Self {
        Self { kind, mime: mime.into(), source, extent: MediaExtent::UNKNOWN }
    }

    /// The media type, for formats that require one. If it is not known: the type for the file extension of the
    /// URL, otherwise `image/*`, `audio/*` or `video/*` by the kind; empty for a document.
    ///
    /// ```
    /// use epitome_core::message::MediaKind;
    /// use epitome_message::{Media, MediaSource};
    ///
    /// let mime = |url: &str| Media::new(MediaKind::Image, "", MediaSource::Uri(url.into())).likely_mime().to_owned();
    /// assert_eq!(mime("https://example.org/a.PNG?size=2"), "image/png");
    /// assert_eq!(mime("https://example.org/a"), "image/*");
    /// ```
    #[must_use]
    pub fn likely_mime(&self) -> &str {
        if !self.mime.is_empty() {
            return &self.mime;
        }
        let ending = match &self.source {
            MediaSource::Uri(url) => url.split(['?', '#']).next().and_then(|path| path.rsplit_once('.')),
            MediaSource::Base64(_) => None,
        };
        let ending = ending.map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
        match (self.kind, &*ending) {
            (MediaKind::Image, "png") => "image/png",
            (MediaKind::Image, "jpg" | "jpeg") => "image/jpeg",
            (MediaKind::Image, "gif") => "image/gif",
            (MediaKind::Image, "webp") => "image/webp",
            (MediaKind::Audio, "mp3") => "audio/mpeg",
            (MediaKind::Audio, "wav") => "audio/wav",
            (MediaKind::Video, "mp4") => "video/mp4",
            (MediaKind::Document, "pdf") => "application/pdf",
            (MediaKind::Image, _) => "image/*",
            (MediaKind::Audio, _) => "audio/*",
            (MediaKind::Video, _) => "video/*",
            _ => "",
        }
    }

    fn view(&self) -> MediaView<'_> {
        MediaView::new(self.kind, &self.mime).with_extent(self.extent)
    }
}

/// The source of the bytes of a media part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the writer of a format must say of each how it is written")]
pub enum MediaSource {
    /// In the message, as base64.
    Base64(Str),
    /// Elsewhere: a URL or a provider's file id.
    Uri(Str),
}

/// The subject of a request for approval, and of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Approval {
    /// The id that pairs the request with its answer.
    pub id: Str,
    /// The id of the call that needs approval; empty if there is none.
    pub call_id: Str,
}

impl Approval {
    /// The approval `id`, about the call `call_id`.
    #[must_use]
    pub fn new(id: impl Into<Str>, call_id: impl Into<Str>) -> Self {
        Self { id: id.into(), call_id: call_id.into() }
    }

    fn view(&self) -> ApprovalView<'_> {
        ApprovalView::new(&self.id, &self.call_id)
    }
}

/// A person's answer to a request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ApprovalAnswer {
    /// The request that it answers.
    pub approval: Approval,
    /// Whether the person agreed.
    pub approved: bool,
}

impl ApprovalAnswer {
    /// The answer to `approval`.
    #[must_use]
    pub const fn new(approval: Approval, approved: bool) -> Self {
        Self { approval, approved }
    }

    fn view(&self) -> ApprovalAnswerView<'_> {
        ApprovalAnswerView::new(self.approval.view(), self.approved)
    }
}

/// The content with which a provider replaced messages that it compacted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CompactionPart {
    /// The provider that made it. No other provider can read it.
    pub provider: Str,
    /// The model that it was made for, the only one that receives it. Empty if the model is not known; any model of
    /// the provider then receives it.
    pub model: Str,
    /// The readable summary; empty when there is none.
    pub text: Str,
    /// The payload, which is sent back byte for byte.
    pub opaque: Option<Str>,
    /// Number of tokens that the provider reported for the payload. Without it, the size of the payload is
    /// estimated from its length.
    pub tokens: Option<Tokens>,
}

impl CompactionPart {
    /// The stand-in that `provider` returned.
    #[must_use]
    pub fn new(provider: impl Into<Str>, text: impl Into<Str>, opaque: Option<Str>) -> Self {
        Self { provider: provider.into(), model: Str::default(), text: text.into(), opaque, tokens: None }
    }

    /// Sets the number of tokens.
    #[must_use]
    pub const fn with_tokens(mut self, tokens: Option<Tokens>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the model that the part is for.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Str>) -> Self {
        self.model = model.into();
        self
    }

    /// Whether the part may be sent to `model`. It may if one of the two models is not known.
    #[must_use]
    pub fn is_for_model(&self, model: &str) -> bool {
        self.model.is_empty() || model.is_empty() || self.model == model
    }

    fn view(&self) -> CompactionView<'_> {
        CompactionView::new(&self.provider, &self.text, self.opaque.as_deref()).with_tokens(self.tokens)
    }
}

/// A part of an unknown kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnknownPart {
    /// The wire format of its source, the only format in which it can be written; empty if the format is not known.
    pub format: Str,
    /// The name of the kind on the wire.
    pub kind: Str,
    /// Its source text.
    pub raw: Str,
}

impl UnknownPart {
    /// A part of `format` whose kind is called `kind`, written as `raw`.
    #[must_use]
    pub fn new(format: impl Into<Str>, kind: impl Into<Str>, raw: impl Into<Str>) -> Self {
        Self { format: format.into(), kind: kind.into(), raw: raw.into() }
    }

    fn view(&self) -> UnknownView<'_> {
        UnknownView::new(&self.format, &self.kind, &self.raw)
    }
}
