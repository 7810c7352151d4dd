//! Owned messages that share their source text.

use std::sync::{Arc, LazyLock};

use epitome_core::message::Role;
use epitome_message::{
    Media, MediaSource, Message, Part, Reasoning, Str, ToolCall, ToolResult, UnknownPart, WireText,
};

use super::content::{ChatMedia, ChatPart, ChatSource, Content};
use super::{ChatView, FORMAT};
use crate::WireError;
use crate::expect::share;
use crate::injected::own_ledger;
use crate::json::known::Value;

/// Reads `text` as a message. The text is copied once, and every part without escapes is a slice of that copy.
///
/// # Errors
/// As [`ChatView::parse`].
pub fn read(text: &str) -> Result<Message, WireError> {
    let whole: Arc<str> = Arc::from(text);
    Ok(ChatView::parse(&whole)?.to_message(&whole))
}

/// Reads `text`, a slice of `whole` that is known to be JSON, as a message. Every part without escapes is a slice of
/// `whole` too.
pub(crate) fn read_in<'a>(whole: &Arc<str>, text: impl Into<Value<'a>>) -> Result<Message, WireError> {
    Ok(ChatView::of_known(text.into())?.to_message(whole))
}

impl ChatView<'_> {
    fn to_message(&self, whole: &Arc<str>) -> Message {
        let mut message = Message::new(self.role, self.to_parts(whole));
        if let Some(name) = &self.name {
            message = message.with_name(share(whole, name));
        }
        own_ledger(message.with_wire(WireText::new(NAME.clone(), share(whole, self.text))))
    }

    fn to_parts(&self, whole: &Arc<str>) -> Vec<Part> {
        let content = self.content.to_parts(whole);
        if self.role == Role::Tool {
            return vec![Part::ToolResult(ToolResult::new(share(whole, &self.call_id), content))];
        }
        let reasoning = self.reasoning.iter().map(|text| Part::Reasoning(Reasoning::new(share(whole, text))));
        let refusal = self.refusal.iter().map(|text| Part::Text(share(whole, text)));
        let calls = self.calls.iter().map(|call| {
            let (id, name) = (share(whole, &call.id), share(whole, &call.name));
            Part::ToolCall(ToolCall::new(id, name, share(whole, &call.arguments)))
        });
        reasoning.chain(content).chain(refusal).chain(calls).collect()
    }
}

impl Content<'_> {
    fn to_parts(&self, whole: &Arc<str>) -> Vec<Part> {
        match self {
            Self::None => Vec::new(),
            Self::Text(text) => vec![Part::Text(share(whole, text))],
            Self::Parts(parts) => parts.iter().map(|part| part.to_part(whole)).collect(),
        }
    }
}

impl ChatPart<'_> {
    pub(super) fn to_part(&self, whole: &Arc<str>) -> Part {
        match self {
            Self::Text(text) => Part::Text(share(whole, text)),
            Self::Media(media) => Part::Media(media.to_media(whole)),
            Self::Unknown { kind, raw } => {
                Part::Unknown(UnknownPart::new(NAME.clone(), share(whole, kind), share(whole, raw)))
            }
        }
    }
}

impl ChatMedia<'_> {
    fn to_media(&self, whole: &Arc<str>) -> Media {
        let source = match &self.source {
            ChatSource::Base64(data) => MediaSource::Base64(share(whole, data)),
            ChatSource::Uri(uri) => MediaSource::Uri(share(whole, uri)),
        };
        let mut media = Media::new(self.kind, share(whole, &self.mime), source);
        media.extent = self.extent();
        media
    }
}

/// The format's name, shared by all messages.
static NAME: LazyLock<Str> = LazyLock::new(|| Str::from(FORMAT));
