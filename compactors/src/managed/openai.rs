//! Compaction by OpenAI, and by other vendors with the Responses API: writes requests and reads responses, without
//! HTTP.
//!
//! | form | decision by | request | response |
//! |---|---|---|---|
//! | separate | the client | [`compact_body`] to `POST /responses/compact` | [`compacted`] |
//! | of a stored response | the client | [`compact_previous_body`] to the same | [`compacted_previous`] |
//! | in band | the client | [`trigger_body`] to `POST /responses` | [`triggered`] |
//! | at a threshold | the server | [`context_management`] in any request | an item; see [`ServerCompaction`] |
//!
//! The result is one item, `compaction`. Its `encrypted_content` is sent back unchanged. Instructions are sent
//! again with each request: the item keeps them for one request only. Messages of the user are sent before the
//! item. Any other messages before it would be read and paid for, and are hidden.
//!
//! With the feature `openai`, `OpenAiCompaction` sends the requests of the first three forms.
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

/// The default model for compactions.
pub const MODEL: &str = "gpt-5.1-codex-max";

/// A vendor with the Responses API. Each vendor has its own encryption keys: no vendor can read the compaction of
/// another.
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
    /// OpenAI: it returns all messages of the user, and then the item.
    #[must_use]
    pub fn openai() -> Self {
        Self { provider: "openai".into(), instructions_apart: true, returns_users: true }
    }

    /// Azure, with the form of OpenAI.
    #[must_use]
    pub fn azure() -> Self {
        Self { provider: "azure-openai".into(), ..Self::openai() }
    }

    /// xAI: the item alone replaces all messages of the request, and instructions are messages. Source: xAI's
    /// documentation of context compaction and of Responses.
    #[must_use]
    pub fn xai() -> Self {
        Self { provider: "xai".into(), instructions_apart: false, returns_users: false }
    }

    /// Another vendor, with the name `provider` and the form of OpenAI.
    #[must_use]
    pub fn other(provider: impl Into<Str>) -> Self {
        Self { provider: provider.into(), ..Self::openai() }
    }

    /// The name of the service in `CompactionPart::provider`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Sets the provider of the compactions in a message that was read from a response of this vendor. The format
    /// does not name the vendor, and the reader assumes OpenAI.
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

    /// The position of the vendor's result in a request.
    #[must_use]
    pub const fn position(&self) -> Position {
        if self.returns_users { Position::AfterUserMessages } else { Position::InPlace }
    }

    /// Whether instructions have a separate field.
    const fn has_instructions_apart(&self) -> bool {
        self.instructions_apart
    }
}

/// Converts a response with an HTTP status of failure to an error. The error contains only the code of the body,
/// because the body's message may repeat the conversation.
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
