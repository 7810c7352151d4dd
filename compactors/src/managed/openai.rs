//! OpenAI's compaction, and that of others who speak Responses: requests written and answers read, without HTTP.
//!
//! | how | who decides | request | answer |
//! |---|---|---|---|
//! | on its own | the client | [`compact_body`] to `POST /responses/compact` | [`compacted`] |
//! | of a stored response | the client | [`compact_previous_body`] to the same | [`compacted_previous`] |
//! | in band | the client | [`trigger_body`] to `POST /responses` | [`triggered`] |
//! | in passing | the server, when a request passes a threshold | [`context_management`] in any request | an item in the answer; [`ServerCompaction`] hides what is before it |
//!
//! What comes back is one item, `compaction`, whose `encrypted_content` goes back as it is. Instructions are sent anew with
//! each request: the item keeps them for one hop only. What the user said is sent before it; anything else that stands before it
//! would be read and paid for, and is hidden.
//!
//! With the feature `openai`, `OpenAiCompaction` sends the requests to the first three.
//!
//! ```
//! use epitome_compactors::managed::ServiceRequest;
//! use epitome_compactors::managed::openai::{CompactOptions, ResponsesVendor, compact_body, compacted};
//! use epitome_std::message::Message;
//!
//! let vendor = ResponsesVendor::openai();
//! let messages = [Message::user("Hi"), Message::assistant("Hello."), Message::user("And then?"), Message::assistant("This.")];
//! let messages = messages.each_ref();
//! let request = ServiceRequest::new(&messages).replacing_from(1);
//! let body = compact_body(&vendor, "gpt-5.1-codex-max", &request, &CompactOptions::default())?;
//! assert!(body.text.starts_with(r#"{"input":[{"type":"message","role":"user","#));
//!
//! let answer = r#"{"id": "resp_1", "object": "response.compaction", "output": [
//!   {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
//!   {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And then?"}]},
//!   {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}],
//!   "usage": {"input_tokens": 40, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 9, "total_tokens": 49}}"#;
//! let artefact = compacted(&vendor, "gpt-5.1-codex-max", &request, answer)?;
//! assert_eq!(artefact.part.opaque.as_deref(), Some("gAAAA"));
//! // The first message stays where it is; the other goes before the item.
//! assert_eq!(artefact.before.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "openai")]
mod client;
mod request;
mod response;
mod users;

use core::time::Duration;

use epitome_std::message::{Message, Part, Str};

use super::refusal::refused;
use super::{Position, ServiceError};

pub use super::refusal::retry_after;
pub use super::server::ServerCompaction;
#[cfg(feature = "openai")]
pub use client::OpenAiCompaction;
pub use request::{
    CacheMode, CacheRetention, CompactOptions, ImageCompression, compact_body, compact_previous_body,
    context_management, continued_input, input, trigger_body,
};
pub use response::{compacted, compacted_previous, triggered};

/// The model that compacts, if none is named.
pub const MODEL: &str = "gpt-5.1-codex-max";

/// Which of those who speak Responses is asked. Each has keys of its own: what one left, no other can read.
///
/// ```
/// use epitome_compactors::managed::Position;
/// use epitome_compactors::managed::openai::ResponsesVendor;
///
/// assert_eq!(ResponsesVendor::openai().position(), Position::AfterUserMessages);
/// assert_eq!(ResponsesVendor::xai().position(), Position::InPlace);
/// assert_eq!(ResponsesVendor::other("my-proxy").provider(), "my-proxy");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsesVendor {
    provider: Str,
    instructions_apart: bool,
    returns_users: bool,
}

impl ResponsesVendor {
    /// OpenAI: it returns all that the user said, and then the item.
    #[must_use]
    pub fn openai() -> Self {
        Self { provider: "openai".into(), instructions_apart: true, returns_users: true }
    }

    /// Azure, which has OpenAI's form.
    #[must_use]
    pub fn azure() -> Self {
        Self { provider: "azure-openai".into(), ..Self::openai() }
    }

    /// xAI: the item alone stands for all that it was sent, and instructions are messages. Source: its documentation of context
    /// compaction and of Responses.
    #[must_use]
    pub fn xai() -> Self {
        Self { provider: "xai".into(), instructions_apart: false, returns_users: false }
    }

    /// Another one, called `provider`, with OpenAI's form.
    #[must_use]
    pub fn other(provider: impl Into<Str>) -> Self {
        Self { provider: provider.into(), ..Self::openai() }
    }

    /// The name of the service in `CompactionPart::provider`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// A message that was read from an answer of this vendor: a compaction in it is this vendor's. The format does not say
    /// whose it is, and a reader takes it for OpenAI's.
    #[must_use]
    pub fn adopt(&self, message: Message) -> Message {
        if !message.parts().iter().any(|part| matches!(part, Part::Compaction(_))) {
            return message;
        }
        let parts = message.parts().iter().cloned().map(|part| match part {
            Part::Compaction(mut left) => {
                left.provider = self.provider.clone();
                Part::Compaction(left)
            }
            part => part,
        });
        message.clone().with_parts(parts.collect())
    }

    /// The position of its result in a request.
    #[must_use]
    pub const fn position(&self) -> Position {
        if self.returns_users { Position::AfterUserMessages } else { Position::InPlace }
    }

    /// Whether instructions have a field of their own.
    const fn has_instructions_apart(&self) -> bool {
        self.instructions_apart
    }
}

/// The error that an answer with an HTTP status that is no success is. Of its body only the code is told: its message may
/// repeat what was said.
///
/// ```
/// use epitome_compactors::managed::ServiceErrorKind;
/// use epitome_compactors::managed::openai::{ResponsesVendor, refusal, retry_after};
///
/// let vendor = ResponsesVendor::openai();
/// let wait = retry_after(Some("2"), None, None);
/// let error = refusal(&vendor, 429, wait, r#"{"error": {"code": "rate_limit_exceeded", "message": "Slow down"}}"#);
/// assert_eq!(error.kind(), &ServiceErrorKind::RateLimited { retry_after: wait });
/// assert_eq!(error.to_string(), "openai: HTTP 429, rate_limit_exceeded");
/// // Waiting brings no money.
/// let error = refusal(&vendor, 429, wait, r#"{"error": {"code": "insufficient_quota"}}"#);
/// assert!(!error.kind().is_transient());
/// ```
#[must_use]
pub fn refusal(
    vendor: &ResponsesVendor,
    status: u16,
    retry_after: Option<Duration>,
    body: &str,
) -> ServiceError {
    refused(vendor.provider(), status, retry_after, body)
}

#[cfg(test)]
mod tests;
