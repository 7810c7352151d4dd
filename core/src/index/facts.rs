//! What the index has to know of a message, read in one pass over its parts.

use crate::attribution::{Retention, SourceKind};
use crate::message::{CallKind, MessageView, PartView, Role, ToolCallView};
use crate::open_calls::{OpenCall, OpenCalls};

use super::GroupKind;
use super::span::Flags;

/// The facts of one message that decide its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) role: Role,
    pub(crate) source: SourceKind,
    pub(crate) flags: Flags,
    /// Calls that a result must follow.
    pub(crate) calls: u32,
    pub(crate) call_id_bytes: usize,
    pub(crate) answer: Answer,
    /// Whether it says something itself, beside answers and approvals.
    pub(crate) speaks: bool,
}

/// Which call a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is not an answer.
    No,
    /// It answers no call that is known.
    Orphan,
    To(OpenCall),
}

impl Facts {
    /// `find` gives the open call that an answer with this id belongs to.
    pub(crate) fn of<M: MessageView + ?Sized>(message: &M, find: impl Fn(&[u8]) -> Option<OpenCall>) -> Self {
        let (role, attribution) = (message.role(), message.attribution());
        let mut facts = Self {
            role,
            source: attribution.source,
            flags: Flags::PINNED
                .when(attribution.retention == Retention::Pinned)
                .with(Flags::EPHEMERAL.when(attribution.retention == Retention::Ephemeral)),
            calls: 0,
            call_id_bytes: 0,
            answer: if role == Role::Tool { Answer::Orphan } else { Answer::No },
            speaks: false,
        };
        let mut answered = false;
        message.for_each_part(&mut |part| match part {
            PartView::ToolCall(call) if call.kind == CallKind::Function && role == Role::Assistant => {
                facts.calls = facts.calls.saturating_add(1);
                facts.call_id_bytes = facts.call_id_bytes.max(call.id.len());
            }
            PartView::ToolResult(result) if may_answer(role) && !answered => {
                answered = true;
                facts.answer = find(result.call_id.as_bytes()).map_or(Answer::Orphan, Answer::To);
            }
            PartView::Reasoning(_) => facts.flags = facts.flags.with(Flags::REASONING),
            PartView::Text(_) | PartView::Media(_) | PartView::Unknown(_) => facts.speaks = true,
            _ => {}
        });
        facts
    }

    /// Whether it is the model's, with calls that results must follow.
    pub(crate) const fn calls(&self) -> bool {
        self.calls > 0
    }

    pub(crate) const fn is_instruction(&self) -> bool {
        matches!(self.role, Role::System | Role::Developer)
    }

    /// The kind of the group that it makes when it joins none.
    pub(crate) fn kind(&self) -> GroupKind {
        match self.role {
            _ if self.source == SourceKind::Compaction => GroupKind::Summary,
            Role::User => GroupKind::User,
            Role::Assistant if self.calls() => GroupKind::Exchange,
            Role::Assistant => GroupKind::Assistant,
            _ => GroupKind::System,
        }
    }

    /// Whether a turn begins with it: the caller's user says something. What answers a call belongs to the call's turn,
    /// whatever else it says.
    pub(crate) fn begins_turn(&self) -> bool {
        let is_users = self.role == Role::User && self.source == SourceKind::Caller;
        is_users && self.speaks && self.answer == Answer::No
    }
}

/// Whether a result in a message of this role answers a call. In the model's message it is a hosted tool's, and
/// instructions answer nothing.
pub(crate) const fn may_answer(role: Role) -> bool {
    matches!(role, Role::Tool | Role::User)
}

/// Calls `visit` for each call of a message that a result must follow, in order.
pub(crate) fn for_each_call<M: MessageView + ?Sized>(message: &M, visit: &mut dyn FnMut(ToolCallView<'_>)) {
    if message.role() != Role::Assistant {
        return;
    }
    message.for_each_part(&mut |part| match part {
        PartView::ToolCall(call) if call.kind == CallKind::Function => visit(call),
        _ => {}
    });
}

/// Closes the call that a message answers.
pub(crate) fn close<M: MessageView + ?Sized>(calls: &mut impl OpenCalls, message: &M, call: OpenCall) {
    let mut closed = false;
    message.for_each_part(&mut |part| match part {
        PartView::ToolResult(result) if !closed => {
            calls.close(result.call_id.as_bytes(), call);
            closed = true;
        }
        _ => {}
    });
}

/// The id of a response, held in place so that the next message can be compared with it.
///
/// Ids of up to 48 bytes are compared whole; of a longer one its length, its first bytes and a digest of all of it. Two
/// messages that were wrongly taken for one response would only be kept or removed together; no pairing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseId {
    len: usize,
    head: [u8; 48],
    digest: u64,
}

impl ResponseId {
    /// In place of an id where there is none.
    pub(crate) const NONE: Self = Self { len: 0, head: [0; 48], digest: 0 };

    pub(crate) fn new(id: &str) -> Self {
        const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const FNV_PRIME: u64 = 0x0100_0000_01b3;
        let bytes = id.as_bytes();
        let mut head = [0; 48];
        head.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let fnv = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        Self { len: bytes.len(), head, digest: bytes.iter().skip(48).fold(FNV_OFFSET, fnv) }
    }
}
