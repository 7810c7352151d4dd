//! Messages in the form that the planner reads: borrowed views, independent of the storage of the messages.
//!
//! Implement [`MessageView`] for a message type and every part of this crate works on it. Nothing here owns text.

mod simple;
mod views;

pub use simple::{SimpleMessage, Text};
pub use views::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MediaExtent, MediaKind, MediaView,
    ReasoningView, ToolCallView, ToolResultView, UnknownView,
};

use crate::attribution::{AttributionView, Authority};

/// The speaker of a message.
///
/// ```
/// use epitome_core::attribution::Authority;
/// use epitome_core::message::Role;
///
/// assert_eq!((Role::Tool.as_str(), Role::Tool.authority()), ("tool", Authority::Retrieved));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Role {
    /// Standing instructions of the operator.
    System,
    /// Standing instructions of the application's developer.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, with its answer to one call.
    Tool,
}

impl Role {
    /// The name of the role, as most wire formats spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The authority of a message in this role that the caller itself added.
    #[must_use]
    pub const fn authority(self) -> Authority {
        match self {
            Self::System => Authority::System,
            Self::Developer => Authority::Developer,
            Self::User => Authority::User,
            Self::Assistant => Authority::Assistant,
            Self::Tool => Authority::Retrieved,
        }
    }
}

/// The parts of a message or of a tool result, in order.
///
/// ```
/// use epitome_core::message::{PartView, Parts};
///
/// /// A message of text alone.
/// struct Words(&'static str);
///
/// impl Parts for Words {
///     fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
///         visit(PartView::Text(self.0));
///     }
/// }
///
/// let mut bytes = 0;
/// Words("Hello").for_each_part(&mut |part| {
///     if let PartView::Text(text) = part {
///         bytes += text.len();
///     }
/// });
/// assert_eq!(bytes, 5);
/// ```
pub trait Parts {
    /// Calls `visit` once per part, in order.
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>));
}

/// One message, borrowed.
///
/// *For implementers*: a tool message answers exactly one call. A wire reader that finds several results, or results
/// beside user text, in one message splits the message. The return values of all methods never change while a message
/// is in an index.
///
/// ```
/// use epitome_core::attribution::AttributionView;
/// use epitome_core::message::{MessageView, PartView, Parts, Role};
/// use epitome_core::{ClassEstimator, count_message};
///
/// /// A message of a chat program.
/// struct Said {
///     by_user: bool,
///     text: String,
/// }
///
/// impl Parts for Said {
///     fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
///         visit(PartView::Text(&self.text));
///     }
/// }
///
/// impl MessageView for Said {
///     fn role(&self) -> Role {
///         if self.by_user { Role::User } else { Role::Assistant }
///     }
///
///     fn attribution(&self) -> AttributionView<'_> {
///         AttributionView::caller(self.role().authority())
///     }
/// }
///
/// let said = Said { by_user: true, text: "How warm is it?".into() };
/// assert!(count_message(&said, &ClassEstimator::new()).0 > 3);
/// ```
pub trait MessageView: Parts {
    /// The role of the speaker.
    fn role(&self) -> Role;

    /// The origin of the message, its authority and its retention.
    fn attribution(&self) -> AttributionView<'_>;

    /// The provider's id of the response that this message is part of. Messages with equal ids belong to one response.
    fn response_id(&self) -> Option<&str> {
        None
    }

    /// The name of the speaker, if the wire format has one.
    fn name(&self) -> Option<&str> {
        None
    }
}

impl<M: Parts + ?Sized> Parts for &M {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        (**self).for_each_part(visit);
    }
}

impl<M: MessageView + ?Sized> MessageView for &M {
    fn role(&self) -> Role {
        (**self).role()
    }

    fn attribution(&self) -> AttributionView<'_> {
        (**self).attribution()
    }

    fn response_id(&self) -> Option<&str> {
        (**self).response_id()
    }

    fn name(&self) -> Option<&str> {
        (**self).name()
    }
}

/// A piece of a message's content.
///
/// ```
/// use epitome_core::message::{PartView, Parts, SimpleMessage, ToolCallView};
///
/// let calls = [ToolCallView::new("c1", "read_sensor", r#"{"id":7}"#)];
/// let mut names = Vec::new();
/// SimpleMessage::calls(&calls).for_each_part(&mut |part| {
///     if let PartView::ToolCall(call) = part {
///         names.push(call.name.to_owned());
///     }
/// });
/// assert_eq!(names, ["read_sensor"]);
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum PartView<'a> {
    /// Text.
    Text(&'a str),
    /// Reasoning of the model before its answer.
    Reasoning(ReasoningView<'a>),
    /// A call of a tool by the model.
    ToolCall(ToolCallView<'a>),
    /// The answer to a call.
    ToolResult(ToolResultView<'a>),
    /// An image, a sound, a video or a document.
    Media(MediaView<'a>),
    /// A request for a person's approval of an action.
    ApprovalRequest(ApprovalView<'a>),
    /// The answer of the person to a request for approval.
    ApprovalResponse(ApprovalAnswerView<'a>),
    /// The stand-in of messages that a provider compacted itself.
    Compaction(CompactionView<'a>),
    /// A part of a kind that the reader does not know, kept as it was written.
    Unknown(UnknownView<'a>),
}
