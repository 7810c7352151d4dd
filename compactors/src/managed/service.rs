//! The trait [`CompactionService`], with its requests and results.

use core::fmt;
use std::boxed::Box;
use std::format;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::Usage;
use epitome_core::message::Role;
use epitome_std::compaction::KeptSession;
use epitome_std::message::{CompactionPart, Message, Part, Str};
use epitome_std::session::Tool;
use epitome_std::wire::ConversionLoss;

use super::{ServiceError, ServiceErrorKind};

/// A provider that compacts conversations itself, and returns content that only it can read.
///
/// *For implementers*: one call is one request. [`Managed`](super::Managed) decides about retries and the total
/// time, and checks and commits the result. An implementation needs nothing of the session but
/// its arguments.
///
/// *Concurrency*: one service serves any number of sessions at once.
///
/// *Cancel safety*: if the future is dropped, the request ends and nothing is committed.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_compactors::managed::{
///     Artefact, Capabilities, CompactionService, Cut, Position, ServiceError, ServiceRequest,
/// };
/// use epitome_std::message::CompactionPart;
///
/// /// A service that keeps the number of messages, and nothing else.
/// #[derive(Debug)]
/// struct Forgetful;
///
/// #[async_trait]
/// impl CompactionService for Forgetful {
///     fn provider(&self) -> &str {
///         "forgetful"
///     }
///
///     fn capabilities(&self) -> Option<Capabilities> {
///         Some(Capabilities::new(Position::InPlace, Cut::Group))
///     }
///
///     async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
///         let sealed = format!("sealed:{}", request.messages.len());
///         Ok(Artefact::new(CompactionPart::new("forgetful", "", Some(sealed.into()))))
///     }
/// }
/// ```
#[async_trait]
pub trait CompactionService: Send + Sync + fmt::Debug {
    /// Provider of the compactions: the value of [`CompactionPart::provider`].
    fn provider(&self) -> &str;

    /// The abilities of the endpoint; `None` if it compacts nothing.
    fn capabilities(&self) -> Option<Capabilities>;

    /// Compacts the messages of the request.
    ///
    /// # Errors
    /// [`ServiceError`]. The history stays unchanged.
    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError>;

    /// Compacts a session that the service has stored. The result begins a new session. It is called only if the
    /// [`Capabilities`] allow it.
    ///
    /// # Errors
    /// [`ServiceError`], by default `Unsupported`. The session stays unchanged.
    async fn compact_kept(&self, session: &KeptSession<'_>) -> Result<Artefact, ServiceError> {
        let _ = session;
        let context = format!("{}: it compacts no session that it keeps", self.provider());
        Err(ServiceError::new(ServiceErrorKind::Unsupported, context))
    }
}

/// The abilities of a service, and its needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The position of its result in a request.
    pub position: Position,
    /// The points at which its input may end.
    pub cut: Cut,
    /// Whether other services can read the result too.
    pub portable_text: bool,
    /// Whether it compacts sessions that it has stored itself.
    pub kept_sessions: bool,
}

impl Capabilities {
    /// The capabilities of a service whose results only it can read.
    #[must_use]
    pub const fn new(position: Position, cut: Cut) -> Self {
        Self { position, cut, portable_text: false, kept_sessions: false }
    }

    /// Declares that the results of the service have a text.
    #[must_use]
    pub const fn with_portable_text(mut self) -> Self {
        self.portable_text = true;
        self
    }

    /// Declares that the service compacts sessions that it has stored itself: [`CompactionService::compact_kept`].
    #[must_use]
    pub const fn with_kept_sessions(mut self) -> Self {
        self.kept_sessions = true;
        self
    }
}

/// The position of a service's result in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// Before all other messages. It replaces all messages from the first one, including the first user message. A
    /// pin ends the replaced span.
    First,
    /// Behind the user messages of the replaced span, which are sent on unchanged.
    AfterUserMessages,
    /// In the place of the replaced span.
    InPlace,
}

/// The points at which the input of a service may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Behind any group, so that no call is open.
    Group,
    /// Only before a message of the user.
    Turn,
}

/// A request for a compaction by a service.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ServiceRequest<'a> {
    /// The instructions, system and developer messages, in order.
    pub instructions: &'a [Message],
    /// The messages in the order of a request, up to the last one to be replaced. Every call has its result.
    pub messages: &'a [&'a Message],
    /// Index of the first message to be replaced. The messages before it stay, and will be sent before the
    /// artefact.
    pub replaced_from: usize,
    /// The tools of the conversation, if they are known.
    pub tools: &'a [Tool],
    /// The conversation's model; empty if it is not known.
    pub model: &'a str,
}

impl<'a> ServiceRequest<'a> {
    /// A request to replace all these messages.
    #[must_use]
    pub const fn new(messages: &'a [&'a Message]) -> Self {
        Self { instructions: &[], messages, replaced_from: 0, tools: &[], model: "" }
    }

    /// Sets the instructions of the conversation.
    #[must_use]
    pub const fn with_instructions(mut self, instructions: &'a [Message]) -> Self {
        self.instructions = instructions;
        self
    }

    /// Sets the number of leading messages that are kept.
    #[must_use]
    pub const fn replacing_from(mut self, kept: usize) -> Self {
        self.replaced_from = kept;
        self
    }

    /// Sets the tools of the conversation.
    #[must_use]
    pub const fn with_tools(mut self, tools: &'a [Tool]) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the model of the conversation.
    #[must_use]
    pub const fn with_model(mut self, model: &'a str) -> Self {
        self.model = model;
        self
    }

    /// The messages that are to be replaced.
    #[must_use]
    pub fn replaced(&self) -> &'a [&'a Message] {
        self.messages.get(self.replaced_from..).unwrap_or_default()
    }
}

/// Without the texts, to keep conversations out of logs.
impl fmt::Debug for ServiceRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceRequest")
            .field("instructions", &self.instructions.len())
            .field("messages", &self.messages.len())
            .field("replaced_from", &self.replaced_from)
            .field("tools", &self.tools.len())
            .field("model", &self.model)
            .finish()
    }
}

/// The content with which a service replaces messages.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artefact {
    /// The part that is sent back to the provider byte for byte, with the text that other providers can read.
    pub part: CompactionPart,
    /// The parts directly before it, in the same message: the user's words, if the service sends them on.
    pub before: Vec<Part>,
    /// The usage, if the service reports it.
    pub usage: Option<Usage>,
    /// The content that was not sent to the service, because its format has no form for it. The result does not
    /// cover this content. Messages are counted as they were sent; instructions come first if they are among them.
    pub losses: Vec<ConversionLoss>,
}

impl Artefact {
    /// An artefact of `part` alone.
    #[must_use]
    pub const fn new(part: CompactionPart) -> Self {
        Self { part, before: Vec::new(), usage: None, losses: Vec::new() }
    }

    /// Puts these parts before the compaction.
    #[must_use]
    pub fn behind(mut self, before: Vec<Part>) -> Self {
        self.before = before;
        self
    }

    /// Sets the usage of the compaction.
    #[must_use]
    pub const fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }

    /// Adds the content that the request has no form for.
    #[must_use]
    pub fn with_losses(mut self, losses: Vec<ConversionLoss>) -> Self {
        self.losses = losses;
        self
    }

    /// The artefact as a message of the model.
    #[must_use]
    pub fn into_message(self) -> Message {
        Message::new(Role::Assistant, self.into_parts())
    }

    /// The parts of its message.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let mut parts = self.before;
        parts.reserve_exact(1);
        parts.push(Part::Compaction(self.part));
        parts
    }

    /// The text that other providers can read; empty if there is none.
    #[must_use]
    pub const fn text(&self) -> &Str {
        &self.part.text
    }
}

/// Without the text and the sealed content.
impl fmt::Debug for Artefact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artefact")
            .field("provider", &self.part.provider)
            .field("model", &self.part.model)
            .field("text", &!self.part.text.is_empty())
            .field("bytes", &self.part.opaque.as_deref().map(str::len))
            .field("before", &self.before.len())
            .field("usage", &self.usage)
            .field("losses", &self.losses)
            .finish()
    }
}
