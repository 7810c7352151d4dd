//! Whether a provider would accept a request.

use core::fmt;

use crate::index::{is_answer, may_answer};
use crate::message::{CallKind, MessageView, PartView, Role};
use crate::open_calls::{OpenCall, OpenCalls};
use crate::profile::Profile;
use crate::table::Full;
use crate::{Seq, Turn};

/// One breach of a profile's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Violation {
    /// The position of the message that is at fault: of a missing result, the one that called.
    pub position: u32,
    /// What is wrong with it.
    pub kind: ViolationKind,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ViolationKind {
    /// A result of no call, or not where the call's results must stand.
    OrphanResult,
    /// A second result of one call.
    DuplicateResult,
    /// A call without a result, though the conversation went on.
    UnansweredCall,
    /// A call without a result at the end: the tool may still be running.
    PendingCall,
}

impl ViolationKind {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrphanResult => "orphan_result",
            Self::DuplicateResult => "duplicate_result",
            Self::UnansweredCall => "unanswered_call",
            Self::PendingCall => "pending_call",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ViolationKind::OrphanResult => "a tool result without its call directly before it",
            ViolationKind::DuplicateResult => "a second result of one call",
            ViolationKind::UnansweredCall => "a tool call without a result",
            ViolationKind::PendingCall => "a tool call that is still without a result at the end",
        };
        write!(f, "message {}: {what} ({})", self.position, self.kind.as_str())
    }
}

/// Checks a request against a profile, message by message.
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{OpenCallSlots, Profile, Validator, ViolationKind};
///
/// let calls = [ToolCallView::new("c1", "read", "a.txt")];
/// let mut found = Vec::new();
/// let mut validator = Validator::<OpenCallSlots<8>>::new(Profile::OpenaiChat);
/// for message in [SimpleMessage::user("Read a.txt."), SimpleMessage::calls(&calls), SimpleMessage::user("Hello?")] {
///     validator.push(&message, &mut |violation| found.push(violation))?;
/// }
/// validator.finish(&mut |violation| found.push(violation));
/// assert_eq!((found[0].position, found[0].kind), (1, ViolationKind::UnansweredCall));
/// # Ok::<(), epitome_core::Full>(())
/// ```
#[derive(Debug, Clone)]
pub struct Validator<C> {
    profile: Profile,
    /// The calls that wait for their result.
    open: C,
    /// The calls that have it, as long as a second one could come.
    answered: C,
    position: u32,
    ordinal: u32,
}

impl<C: OpenCalls + Default> Validator<C> {
    /// A validator at the beginning of a request.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { profile, open: C::default(), answered: C::default(), position: 0, ordinal: 0 }
    }
}

impl<C: OpenCalls> Validator<C> {
    /// Checks the next message. `found` is told of each violation that has come to light: of a missing result when the
    /// message comes that should have been it.
    ///
    /// # Errors
    /// [`Full`] if there is no room to remember the calls.
    pub fn push<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        found: &mut dyn FnMut(Violation),
    ) -> Result<(), Full> {
        let role = message.role();
        if !is_answer(message) && self.profile.results_follow_calls() {
            self.end_step(ViolationKind::UnansweredCall, found);
        }
        let (mut result, mut answers) = (Ok(()), false);
        message.for_each_part(&mut |part| {
            let done = match part {
                PartView::ToolCall(call) if call.kind == CallKind::Function && role == Role::Assistant => {
                    self.open(call.id.as_bytes())
                }
                PartView::ToolResult(answer) if may_answer(role) => {
                    answers = true;
                    self.answer(answer.call_id.as_bytes(), found)
                }
                _ => Ok(()),
            };
            result = result.and(done);
        });
        if role == Role::Tool && !answers {
            found(Violation { position: self.position, kind: ViolationKind::OrphanResult });
        }
        self.position = self.position.saturating_add(1);
        result
    }

    /// Ends the request.
    pub fn finish(mut self, found: &mut dyn FnMut(Violation)) {
        self.end_step(ViolationKind::PendingCall, found);
    }

    fn open(&mut self, id: &[u8]) -> Result<(), Full> {
        let anchor = Seq(u64::from(self.position));
        let call = OpenCall { turn: Turn(0), anchor, ordinal: self.ordinal, span: self.position };
        self.ordinal = self.ordinal.saturating_add(1);
        self.open.open(id, call)
    }

    fn answer(&mut self, id: &[u8], found: &mut dyn FnMut(Violation)) -> Result<(), Full> {
        if let Some(call) = self.open.claim(id, Turn(0)) {
            return self.answered.open(id, call);
        }
        let second = self.answered.find(id, Turn(0)).is_some();
        let kind = if second { ViolationKind::DuplicateResult } else { ViolationKind::OrphanResult };
        found(Violation { position: self.position, kind });
        Ok(())
    }

    /// Reports the calls that have no result and forgets them.
    fn end_step(&mut self, kind: ViolationKind, found: &mut dyn FnMut(Violation)) {
        self.open.for_each(&mut |_, call| found(Violation { position: call.span, kind }));
        self.open.clear();
        self.answered.clear();
    }
}
