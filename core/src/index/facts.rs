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
    /// Calls that a result must follow.
    pub(crate) calls: u32,
    /// Requests for approval, which an answer must follow too.
    pub(crate) requests: u32,
    /// The longest id of the calls and requests.
    pub(crate) id_bytes: usize,
    pub(crate) answer: Answer,
    /// Whether it is an answer.
    answered: bool,
    /// Whether what it answers, or would answer, is a request for approval.
    pub(crate) approves: bool,
    /// Whether it says something itself, beside answers and approvals.
    pub(crate) speaks: bool,
    /// In a message of the model, by how many the calls that the provider runs outnumber the results.
    pub(crate) hosted: i32,
}

/// Which call a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The message is not an answer.
    No,
    /// The message answers no known call.
    Orphan,
    To(OpenCall),
}

impl Facts {
    /// `find` gives the open call or request that an answer with this id belongs to.
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
        // One reference is all that the visitor holds: with the fields apart each call would first gather them.
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

    /// Facts of a message that need no look at its parts.
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

    /// Whether it is the model's, with calls that results must follow.
    pub(crate) const fn calls(&self) -> bool {
        self.calls > 0
    }

    /// Its calls and its requests for approval.
    pub(crate) const fn awaits(&self) -> u32 {
        self.calls.saturating_add(self.requests)
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

    /// The turn that it is in, or begins, after `turn`.
    pub(crate) fn next_turn(&self, turn: Turn) -> Turn {
        if self.begins_turn() { turn.next() } else { turn }
    }
}

/// Whether a result, or an approval, in a message of this role answers a call. In the model's message it is a hosted tool's, and
/// instructions answer nothing.
pub(crate) const fn may_answer(role: Role) -> bool {
    matches!(role, Role::Tool | Role::User)
}

/// Closes the call, or the request for approval, that a message answers.
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
