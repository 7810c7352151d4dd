//! The calls of a message, and its requests for approval, remembered until they are answered.

use super::ToolName;
use super::part::{PartKind, PartSpan};
use super::push::IndexBuf;
use super::seat::Seat;
use super::span::Span;
use crate::message::{CallKind, MessageView, PartView, Role};
use crate::open_calls::{OpenCall, OpenCalls, OpenKind};
use crate::table::{Full, Table};

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// Opens the calls of a message that is in its group. `rows` is the first row of its parts; without rows, the names
    /// of tools are not needed.
    pub(super) fn open<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        seat: Seat,
        rows: Option<usize>,
    ) -> Result<(), Full> {
        let (span, mut result) = (self.len().saturating_sub(1), Ok(()));
        let own = rows.and_then(|from| self.parts.as_mut_slice().get_mut(from..)).unwrap_or_default();
        let mut inputs = own.iter_mut().filter(|row| row.kind() == PartKind::ToolInput);
        for_each_awaited(message, |kind, id, name| {
            let mark = if kind == OpenKind::Approval { OpenCall::APPROVAL } else { 0 };
            let ordinal = self.opened | mark;
            let mut tool = 0;
            if rows.is_some() && kind == OpenKind::Call {
                tool = ToolName::new(name).bits();
                inputs.next().into_iter().for_each(|row| row.set_tool(tool));
            }
            let open = OpenCall { turn: seat.turn, anchor: seat.anchor, ordinal, span, tool };
            result = result.and(self.calls.open(id.as_bytes(), open));
            self.opened = next_opened(self.opened);
            let leader = self.spans.as_mut_slice().get_mut(seat.leader as usize);
            leader.into_iter().for_each(Span::add_unanswered);
        });
        result
    }
}

/// Calls `visit` for each call and each request for approval of a message that an answer must follow, in order, with its
/// id and the tool's name.
pub(crate) fn for_each_awaited<M: MessageView + ?Sized>(
    message: &M,
    mut visit: impl FnMut(OpenKind, &str, &str),
) {
    if message.role() != Role::Assistant {
        return;
    }
    message.for_each_part(&mut |part| match part {
        PartView::ToolCall(call) if call.kind == CallKind::Function => {
            visit(OpenKind::Call, call.id, call.name);
        }
        PartView::ApprovalRequest(request) => visit(OpenKind::Approval, request.id, ""),
        _ => {}
    });
}

/// The number of the next call. The bit that marks requests for approval stays free.
pub(super) const fn next_opened(opened: u32) -> u32 {
    if opened < OpenCall::ORDINAL_MAX { opened.saturating_add(1) } else { OpenCall::ORDINAL_MAX }
}
