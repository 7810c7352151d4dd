//! The trait.

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

/// A provider that compacts conversations itself, and leaves something that only it can read.
///
/// *For implementers*: one call is one request. Whether to try again, and how long to wait in all, is decided by
/// [`Managed`](super::Managed), which also checks and commits what comes back. Nothing of it depends on the session.
///
/// *Concurrency*: one service serves any number of sessions at once.
///
/// *Cancel safety*: if the future is dropped, the request is over and nothing is committed.
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

    /// Compacts.
    ///
    /// # Errors
    /// [`ServiceError`]. The history is left as it is.
    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError>;

    /// Compacts a session that the service keeps. What it leaves is what a new one begins with. Asked only where the
    /// [`Capabilities`] say so.
    ///
    /// # Errors
    /// [`ServiceError`], by default `Unsupported`. The session is left as it is.
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
    /// Whether it compacts sessions that it keeps itself.
    pub kept_sessions: bool,
}

impl Capabilities {
    /// The form of a service whose compactions only it can read.
    #[must_use]
    pub const fn new(position: Position, cut: Cut) -> Self {
        Self { position, cut, portable_text: false, kept_sessions: false }
    }

    /// Declares that the compactions of the service have a text.
    #[must_use]
    pub const fn with_portable_text(mut self) -> Self {
        self.portable_text = true;
        self
    }

    /// Declares that the service compacts sessions which it keeps itself: [`CompactionService::compact_kept`].
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
    /// Before all other messages: it stands for all of them from the first, the first request of the user too. A
    /// pin among them ends what it stands for.
    First,
    /// Behind what the user said in what it stands for, which is sent on as it was said.
    AfterUserMessages,
    /// In the place of what it stands for.
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
    /// The messages in the order in which they would be sent, up to the last that is to be replaced. Every call has its
    /// result.
    pub messages: &'a [&'a Message],
    /// From where on the messages are to be replaced: what comes before stays, and will be sent before the artefact.
    pub replaced_from: usize,
    /// The tools of the conversation, where they are known.
    pub tools: &'a [Tool],
    /// The conversation's model; empty where it is not known.
    pub model: &'a str,
}

impl<'a> ServiceRequest<'a> {
    /// All of these messages are to be replaced.
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

    /// Keeps the first `kept` messages.
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

/// No text: what was said stays out of logs.
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

/// The content that a service leaves in the place of messages.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artefact {
    /// The part that goes back to the provider byte for byte, and the text that others can read.
    pub part: CompactionPart,
    /// The parts directly before it, in the same message: the user's words, where the service sends them on.
    pub before: Vec<Part>,
    /// The usage, if the service reports it.
    pub usage: Option<Usage>,
    /// The content that was not sent to the service, because its format has no form for it: the result knows nothing
    /// of it. Messages are counted as they were sent, instructions first where they stand among them.
    pub losses: Vec<ConversionLoss>,
}

impl Artefact {
    /// `part` alone.
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

    /// Adds what the request could not say.
    #[must_use]
    pub fn with_losses(mut self, losses: Vec<ConversionLoss>) -> Self {
        self.losses = losses;
        self
    }

    /// The message for a conversation: one of the model.
    #[must_use]
    pub fn into_message(self) -> Message {
        Message::new(Role::Assistant, self.into_parts())
    }

    /// Parts of its message.
    pub(super) fn into_parts(self) -> Vec<Part> {
        let mut parts = self.before;
        parts.reserve_exact(1);
        parts.push(Part::Compaction(self.part));
        parts
    }

    /// The text that others can read; empty if there is none.
    #[must_use]
    pub const fn text(&self) -> &Str {
        &self.part.text
    }
}

/// No text, and nothing sealed.
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
