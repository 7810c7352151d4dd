//! The stored form of the parts of a message: one object per part, with the kind as its only key.
//!
//! These types mirror the types of the domain, so that a renamed field there cannot change the stored data.

use epitome_core::Tokens;
use epitome_core::message::{CallKind, MediaExtent, MediaKind};
use serde::{Deserialize, Serialize};

use crate::{
    Approval, ApprovalAnswer, CompactionPart, Media, MediaSource, Part, Reasoning, Str, ToolCall, ToolResult,
    UnknownPart,
};

/// The stored form of a part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, clippy::exhaustive_enums, reason = "a mirror of `Part`, which nobody takes apart")]
pub enum StoredPart {
    Text(Str),
    Reasoning(StoredReasoning),
    ToolCall(StoredCall),
    ToolResult(StoredResult),
    Media(StoredMedia),
    ApprovalRequest {
        id: Str,
        #[serde(default, skip_serializing_if = "is_empty")]
        call_id: Str,
    },
    ApprovalResponse {
        id: Str,
        #[serde(default, skip_serializing_if = "is_empty")]
        call_id: Str,
        approved: bool,
    },
    Compaction {
        provider: Str,
        #[serde(default, skip_serializing_if = "is_empty")]
        model: Str,
        #[serde(default, skip_serializing_if = "is_empty")]
        text: Str,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
    },
    Unknown {
        #[serde(default, skip_serializing_if = "is_empty")]
        format: Str,
        kind: Str,
        raw: Str,
    },
}

impl StoredPart {
    /// The stored form of a part.
    #[must_use]
    pub fn of(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text.clone()),
            Part::Reasoning(reasoning) => Self::Reasoning(StoredReasoning::of(reasoning)),
            Part::ToolCall(call) => Self::ToolCall(StoredCall::of(call)),
            Part::ToolResult(result) => Self::ToolResult(StoredResult::of(result)),
            Part::Media(media) => Self::Media(StoredMedia::of(media)),
            Part::ApprovalRequest(Approval { id, call_id }) => {
                Self::ApprovalRequest { id: id.clone(), call_id: call_id.clone() }
            }
            Part::ApprovalResponse(ApprovalAnswer { approval: Approval { id, call_id }, approved }) => {
                Self::ApprovalResponse { id: id.clone(), call_id: call_id.clone(), approved: *approved }
            }
            Part::Compaction(CompactionPart { provider, model, text, opaque, tokens }) => Self::Compaction {
                provider: provider.clone(),
                model: model.clone(),
                text: text.clone(),
                opaque: opaque.clone(),
                tokens: tokens.map(|tokens| tokens.0),
            },
            Part::Unknown(UnknownPart { format, kind, raw }) => {
                Self::Unknown { format: format.clone(), kind: kind.clone(), raw: raw.clone() }
            }
        }
    }

    /// The part with this stored form.
    #[must_use]
    pub fn into_part(self) -> Part {
        match self {
            Self::Text(text) => Part::Text(text),
            Self::Reasoning(reasoning) => Part::Reasoning(reasoning.into_reasoning()),
            Self::ToolCall(call) => Part::ToolCall(call.into_call()),
            Self::ToolResult(result) => Part::ToolResult(result.into_result()),
            Self::Media(media) => Part::Media(media.into_media()),
            Self::ApprovalRequest { id, call_id } => Part::ApprovalRequest(Approval { id, call_id }),
            Self::ApprovalResponse { id, call_id, approved } => {
                Part::ApprovalResponse(ApprovalAnswer { approval: Approval { id, call_id }, approved })
            }
            Self::Compaction { provider, model, text, opaque, tokens } => {
                let tokens = tokens.map(Tokens);
                Part::Compaction(CompactionPart { provider, model, text, opaque, tokens })
            }
            Self::Unknown { format, kind, raw } => Part::Unknown(UnknownPart { format, kind, raw }),
        }
    }
}

#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredReasoning {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    text: Str,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opaque: Option<Str>,
}

impl StoredReasoning {
    fn of(reasoning: &Reasoning) -> Self {
        Self { id: reasoning.id.clone(), text: reasoning.text.clone(), opaque: reasoning.opaque.clone() }
    }

    fn into_reasoning(self) -> Reasoning {
        Reasoning { id: self.id, text: self.text, opaque: self.opaque }
    }
}

#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredCall {
    id: Str,
    name: Str,
    arguments: Str,
    #[serde(default, skip_serializing_if = "is_default")]
    kind: CallKind,
}

impl StoredCall {
    fn of(call: &ToolCall) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            kind: call.kind,
        }
    }

    fn into_call(self) -> ToolCall {
        ToolCall { id: self.id, name: self.name, arguments: self.arguments, kind: self.kind }
    }
}

#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredResult {
    call_id: Str,
    parts: Vec<StoredPart>,
    #[serde(default, skip_serializing_if = "is_default")]
    is_error: bool,
}

impl StoredResult {
    fn of(result: &ToolResult) -> Self {
        let parts = result.parts.iter().map(StoredPart::of).collect();
        Self { call_id: result.call_id.clone(), parts, is_error: result.is_error }
    }

    fn into_result(self) -> ToolResult {
        let parts = self.parts.into_iter().map(StoredPart::into_part).collect();
        ToolResult { call_id: self.call_id, parts, is_error: self.is_error }
    }
}

#[doc(hidden)]
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredMedia {
    kind: MediaKind,
    #[serde(default, skip_serializing_if = "is_empty")]
    mime: Str,
    source: StoredSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pixels: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    millis: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pages: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    low_detail: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredSource {
    Base64(Str),
    Uri(Str),
}

impl StoredMedia {
    fn of(media: &Media) -> Self {
        let source = match &media.source {
            MediaSource::Base64(bytes) => StoredSource::Base64(bytes.clone()),
            MediaSource::Uri(uri) => StoredSource::Uri(uri.clone()),
        };
        let MediaExtent { pixels, millis, pages, low_detail, .. } = media.extent;
        Self { kind: media.kind, mime: media.mime.clone(), source, pixels, millis, pages, low_detail }
    }

    fn into_media(self) -> Media {
        let source = match self.source {
            StoredSource::Base64(bytes) => MediaSource::Base64(bytes),
            StoredSource::Uri(uri) => MediaSource::Uri(uri),
        };
        let mut media = Media::new(self.kind, self.mime, source);
        media.extent.pixels = self.pixels;
        media.extent.millis = self.millis;
        media.extent.pages = self.pages;
        media.extent.low_detail = self.low_detail;
        media
    }
}

fn is_empty(text: &Str) -> bool {
    text.is_empty()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
