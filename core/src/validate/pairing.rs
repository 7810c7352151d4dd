//! Check that each call has one result, at its place.

use super::{Violation, ViolationKind};
use crate::message::{CallKind, MessageView, PartView, Role};
use crate::open_calls::{OpenCall, OpenCalls, OpenKind};
use crate::profile::{Neighbours, Results, Rules};
use crate::shape::Kind;
use crate::table::Full;
use crate::{Seq, Turn};

#[derive(Debug, Clone, Default)]
pub(super) struct Pairing<C> {
    /// The calls that wait for their result.
    open: C,
    /// The calls that have a result, as long as a second one could come.
    answered: C,
    ordinal: u32,
    /// Whether the message before was of the model: where neighbours are joined, the next message of the model belongs
    /// to its turn.
    after_model: bool,
}

impl<C: OpenCalls> Pairing<C> {
    pub(super) fn push<M: MessageView + ?Sized>(
        &mut self,
        rules: &Rules,
        kind: Kind,
        message: &M,
        at: u32,
        found: &mut dyn FnMut(Violation),
    ) -> Result<(), Full> {
        let joins = rules.neighbours == Neighbours::Joined && kind.is_model() && self.after_model;
        self.after_model = kind.is_model();
        if rules.results == Results::Next && kind != Kind::Result && !joins {
            self.end_step(ViolationKind::UnansweredCall, found);
        }
        match kind {
            Kind::Calls => self.open_all(message, at),
            Kind::Result => {
                self.answer_all(message, at, found);
                Ok(())
            }
            Kind::Instruction | Kind::User | Kind::Says => Ok(()),
        }
    }

    pub(super) fn finish(mut self, found: &mut dyn FnMut(Violation)) {
        self.end_step(ViolationKind::PendingCall, found);
    }

    fn open_all<M: MessageView + ?Sized>(&mut self, message: &M, at: u32) -> Result<(), Full> {
        let mut result = Ok(());
        message.for_each_part(&mut |part| match part {
            PartView::ToolCall(call) if call.kind == CallKind::Function => {
                result = result.and(self.open(call.id.as_bytes(), at));
            }
            _ => {}
        });
        result
    }

    fn open(&mut self, id: &[u8], at: u32) -> Result<(), Full> {
        let call =
            OpenCall { turn: Turn(0), anchor: Seq(u64::from(at)), ordinal: self.ordinal, span: at, tool: 0 };
        self.ordinal = self.ordinal.saturating_add(1);
        self.open.open(id, call)
    }

    fn answer_all<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        at: u32,
        found: &mut dyn FnMut(Violation),
    ) {
        let mut answers = false;
        message.for_each_part(&mut |part| {
            if let PartView::ToolResult(answer) = part {
                answers = true;
                self.answer(answer.call_id.as_bytes(), at, found);
            }
        });
        if message.role() == Role::Tool && !answers {
            found(Violation::new(at, ViolationKind::OrphanResult));
        }
    }

    fn answer(&mut self, id: &[u8], at: u32, found: &mut dyn FnMut(Violation)) {
        if let Some(call) = self.open.claim(OpenKind::Call, id, Turn(0)) {
            // Without room for the call, a second result is reported as a result of no call.
            let _ = self.answered.open(id, call);
            return;
        }
        let second = self.answered.find(OpenKind::Call, id, Turn(0)).is_some();
        let kind = if second { ViolationKind::DuplicateResult } else { ViolationKind::OrphanResult };
        found(Violation::new(at, kind));
    }

    /// Reports the calls that have no result and forgets them.
    fn end_step(&mut self, kind: ViolationKind, found: &mut dyn FnMut(Violation)) {
        self.open.for_each(&mut |_, call| found(Violation::new(call.span, kind)));
        self.open.clear();
        self.answered.clear();
    }
}
