//! Facts of one message that the rules of the profiles depend on.

use crate::index::{ResponseId, may_answer};
use crate::message::{CallKind, MessageView, PartView, Role};

/// The shape of one message, read in one pass over its parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    /// Whether the message holds reasoning of the model.
    pub(crate) reasoning: bool,
    /// Whether the message holds signed or encrypted reasoning.
    pub(crate) opaque: bool,
    /// Whether the message holds nothing but reasoning.
    pub(crate) only_reasoning: bool,
    /// Whether the message ends with reasoning that has an id: the content that it led to is yet to come.
    pub(crate) dangling: bool,
    /// Whether the message holds the content of a provider's compaction.
    pub(crate) compaction: bool,
    pub(crate) response: Option<ResponseId>,
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A system or developer message.
    Instruction,
    User,
    /// A message of the model, without calls that a result must follow.
    Says,
    /// A message of the model, with such calls.
    Calls,
    /// A result, in any role.
    Result,
}

impl Kind {
    pub(crate) const fn is_model(self) -> bool {
        matches!(self, Self::Says | Self::Calls)
    }
}

impl Shape {
    pub(crate) fn of<M: MessageView + ?Sized>(message: &M) -> Self {
        let role = message.role();
        let (mut parts, mut thoughts, mut shape) = (0_usize, 0_usize, Self::new(role));
        message.for_each_part(&mut |part| {
            parts = parts.saturating_add(1);
            match part {
                PartView::Reasoning(reasoning) if role == Role::Assistant => {
                    thoughts = thoughts.saturating_add(1);
                    shape.opaque |= reasoning.opaque.is_some();
                    shape.dangling |= reasoning.id.is_some();
                    return;
                }
                PartView::ToolCall(call) if call.kind == CallKind::Function && role == Role::Assistant => {
                    shape.kind = Kind::Calls;
                }
                PartView::ToolResult(_) if may_answer(role) => shape.kind = Kind::Result,
                PartView::Compaction(_) => shape.compaction = true,
                _ => {}
            }
            shape.dangling = false;
        });
        shape.reasoning = thoughts > 0;
        shape.only_reasoning = shape.reasoning && thoughts == parts;
        shape.response = message.response_id().map(ResponseId::new);
        shape
    }

    const fn new(role: Role) -> Self {
        let kind = match role {
            Role::System | Role::Developer => Kind::Instruction,
            Role::User => Kind::User,
            Role::Assistant => Kind::Says,
            Role::Tool => Kind::Result,
        };
        Self {
            kind,
            reasoning: false,
            opaque: false,
            only_reasoning: false,
            dangling: false,
            compaction: false,
            response: None,
        }
    }

    /// Whether the message continues a message of the response `before`. It is true if one of them has no response id.
    pub(crate) fn is_of(&self, before: Option<ResponseId>) -> bool {
        match (before, self.response) {
            (Some(before), Some(own)) => before == own,
            _ => true,
        }
    }
}
