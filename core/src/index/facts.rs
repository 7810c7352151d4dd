//! Facts of a message that the index has to know, read in one pass over its parts.

use crate::attribution::{Retention, SourceKind};
use crate::message::{CallKind, MessageView, PartView, Role};
use crate::open_calls::{OpenCall, OpenCalls, OpenKind};

use super::GroupKind;
use super::part::{PartSpan, Rows};
use super::span::Flags;
use crate::Turn;
use crate::table::Table;

/// The facts of one message that decide its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) role: Role,
    pub(crate) source: SourceKind,
    pub(crate) flags: Flags,
    /// Number of calls that a result must follow.
    pub(crate) calls: u32,
    /// Number of requests for approval, which an answer must follow too.
    pub(crate) requests: u32,
    /// The longest id of the calls and requests.
    pub(crate) id_bytes: usize,
    pub(crate) answer: Answer,
    /// Whether a part was an answer.
    answered: bool,
    /// Whether the answer belongs, or would belong, to a request for approval.
    pub(crate) approves: bool,
    /// Whether the message has content other than answers and approvals.
    pub(crate) speaks: bool,
    /// For a message of the model: the number of hosted calls less the number of results.
    pub(crate) hosted: i32,
}

/// The call that a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The message is not an answer.
    No,
    /// The message answers no known call.
    Orphan,
    To(OpenCall),
}

impl Facts {
    /// Reads the facts of a message. `find` returns the open call or request for approval that an answer with this id
    /// belongs to.
    pub(crate) fn of<M: MessageView + ?Sized, P: Table<PartSpan>>(
        message: &M,
        find: impl Fn(OpenKind, &[u8]) -> Option<OpenCall>,
    ) -> Self {
        let mut facts = Self::before_parts(message);
        facts.read_parts::<M, P>(message, find);
        facts
    }

    /// Reads the parts of the message, for an index with parts in a `P`.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn read_parts<M: MessageView + ?Sized, P: Table<PartSpan>>(
        &mut self,
        message: &M,
        find: impl Fn(OpenKind, &[u8]) -> Option<OpenCall>,
    ) {
        // The visitor captures one reference: with separate fields each call would first gather them.
        message.for_each_part(&mut |part| self.read::<P>(&part, &find));
    }

    /// Reads the parts of the message, and in the same pass adds a row for each part that a plan may shorten.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn read_with_rows<M: MessageView + ?Sized, P: Table<PartSpan>>(
        &mut self,
        message: &M,
        find: impl Fn(OpenKind, &[u8]) -> Option<OpenCall>,
        rows: &mut Rows<'_, '_, P>,
    ) {
        message.for_each_part(&mut |part| {
            let answered = self.answered;
            self.read::<P>(&part, &find);
            rows.add(self, &part, answered);
        });
    }

    /// The facts of a message that do not depend on its parts.
    pub(super) fn before_parts<M: MessageView + ?Sized>(message: &M) -> Self {
        let (role, attribution) = (message.role(), message.attribution());
        Self {
            role,
            source: attribution.source,
            flags: Flags::PINNED
                .when(attribution.retention == Retention::Pinned)
                .with(Flags::EPHEMERAL.when(attribution.retention == Retention::Ephemeral)),
            calls: 0,
            requests: 0,
            id_bytes: 0,
            answer: if role == Role::Tool { Answer::Orphan } else { Answer::No },
            answered: false,
            approves: false,
            speaks: false,
            hosted: 0,
        }
    }

    #[cfg_attr(feature = "alloc", inline(always))]
    fn read<P: Table<PartSpan>>(
        &mut self,
        part: &PartView<'_>,
        find: &impl Fn(OpenKind, &[u8]) -> Option<OpenCall>,
    ) {
        let find = |kind, id: &str| find(kind, id.as_bytes()).map_or(Answer::Orphan, Answer::To);
        match part {
            PartView::ToolCall(call) if call.kind == CallKind::Function && self.role == Role::Assistant => {
                self.calls = self.calls.saturating_add(1);
                self.id_bytes = self.id_bytes.max(call.id.len());
            }
            PartView::ToolResult(result) if may_answer(self.role) && !self.answered => {
                self.answered = true;
                self.answer = find(OpenKind::Call, result.call_id);
            }
            PartView::ApprovalRequest(request) if self.role == Role::Assistant => {
                self.requests = self.requests.saturating_add(1);
                self.id_bytes = self.id_bytes.max(request.id.len());
            }
            PartView::ApprovalResponse(response) if may_answer(self.role) && !self.answered => {
                (self.answered, self.approves) = (true, true);
                self.answer = find(OpenKind::Approval, response.approval.id);
            }
            PartView::ToolCall(_) if P::READS_HOSTED && self.role == Role::Assistant => {
                self.flags = self.flags.with(Flags::HOSTED);
                self.hosted = self.hosted.saturating_add(1);
            }
            PartView::ToolResult(_) if P::READS_HOSTED && self.role == Role::Assistant => {
                self.hosted = self.hosted.saturating_sub(1);
            }
            PartView::Reasoning(_) => self.flags = self.flags.with(Flags::REASONING),
            PartView::Text(_) | PartView::Media(_) | PartView::Unknown(_) => self.speaks = true,
            _ => {}
        }
    }

    /// Whether the message is of the model and has calls that results must follow.
    pub(crate) const fn calls(&self) -> bool {
        self.calls > 0
    }

    /// Number of the calls and requests for approval of the message.
    pub(crate) const fn awaits(&self) -> u32 {
        self.calls.saturating_add(self.requests)
    }

    pub(crate) const fn is_instruction(&self) -> bool {
        matches!(self.role, Role::System | Role::Developer)
    }

    /// The kind of the group that the message begins if it joins none.
    pub(crate) fn kind(&self) -> GroupKind {
        match self.role {
            _ if self.source == SourceKind::Compaction => GroupKind::Summary,
            Role::User => GroupKind::User,
            Role::Assistant if self.calls() => GroupKind::Exchange,
            Role::Assistant => GroupKind::Assistant,
            _ => GroupKind::System,
        }
    }

    /// Whether the message begins a turn: the caller's user sends it, and it has content of its own. An answer to a
    /// call belongs to the turn of the call, even if the message has other content.
    pub(crate) fn begins_turn(&self) -> bool {
        let is_users = self.role == Role::User && self.source == SourceKind::Caller;
        is_users && self.speaks && self.answer == Answer::No
    }

    /// The turn of the message after `turn`, which the message may begin.
    pub(crate) fn next_turn(&self, turn: Turn) -> Turn {
        if self.begins_turn() { turn.next() } else { turn }
    }
}

/// Whether a result, or an approval, in a message of this role answers a call. A result in a message of the model comes
/// from a hosted tool, and instructions answer nothing.
pub(crate) const fn may_answer(role: Role) -> bool {
    matches!(role, Role::Tool | Role::User)
}

/// Closes the call or the request for approval that a message answers.
pub(crate) fn close<M: MessageView + ?Sized>(calls: &mut impl OpenCalls, message: &M, call: OpenCall) {
    let mut closed = calls.close_known(call);
    if closed {
        return;
    }
    message.for_each_part(&mut |part| {
        let id = match part {
            PartView::ToolResult(result) => result.call_id,
            PartView::ApprovalResponse(response) => response.approval.id,
            _ => return,
        };
        if !closed {
            calls.close(id.as_bytes(), call);
            closed = true;
        }
    });
}

/// The id of a response, stored in place for a comparison with that of the next message.
///
/// Ids of up to 48 bytes are compared as a whole; longer ids by their length, their first 48 bytes and a digest of the
/// rest. Two messages that were wrongly taken for one response would only be kept or removed together; no pairing
/// depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseId {
    len: usize,
    head: [u8; 48],
    digest: u64,
}

impl ResponseId {
    /// The value for a missing id.
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
