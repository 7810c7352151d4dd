//! Making a request legal: the only place where anything is invented.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::index::{Answer, Facts, close, for_each_call};
use crate::message::MessageView;
use crate::open_calls::{OpenCall, OpenCallTree, OpenCalls};
use crate::profile::{Profile, Results};
use crate::{Seq, Turn};

/// The text of a result that stands in for one that never came. It never varies: a provider's prompt cache sees the same
/// bytes in every request.
pub const ABORTED: &str = "[aborted: this call has no result]";

/// One step of writing a repaired request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Write the message at this position.
    Keep(u32),
    /// Write, at this place, a result of the text [`ABORTED`] for a call.
    Abort {
        /// The position of the message that called.
        position: u32,
        /// Which of its calls, from 0.
        call: u32,
    },
}

/// What becomes of calls without a result at the end of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a tool is running or it is not")]
pub enum Pending {
    /// Their tools may still be running: they stay as they are.
    Running,
    /// Nothing is running any more: they get an aborted result.
    Over,
}

/// Orders and completes `messages` so that `profile` accepts them, and returns what to write, in order.
///
/// Results are moved directly after the message that called; results of no call, and second results, are left out; calls
/// without a result get an aborted one. Under [`Profile::Permissive`] nothing is moved.
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{Pending, Profile, Repair, repair};
///
/// let calls = [ToolCallView::new("c1", "read", "a.txt")];
/// let request = [SimpleMessage::user("Read a.txt."), SimpleMessage::calls(&calls), SimpleMessage::user("Hello?")];
/// let repaired = repair(Profile::OpenaiChat, &request, Pending::Over);
/// assert_eq!(repaired, [Repair::Keep(0), Repair::Keep(1), Repair::Abort { position: 1, call: 0 }, Repair::Keep(2)]);
/// ```
pub fn repair<M: MessageView>(
    profile: Profile,
    messages: impl IntoIterator<Item = M>,
    pending: Pending,
) -> Vec<Repair> {
    let mut repairer = Repairer::default();
    messages.into_iter().for_each(|message| repairer.push(&message));
    repairer.finish(profile, pending)
}

/// [`repair`] for messages that come one by one and are not held.
#[derive(Debug, Default)]
pub struct Repairer {
    open: OpenCallTree,
    turn: Turn,
    rows: Vec<Row>,
    /// For each message that called, the positions of its results.
    results: BTreeMap<u32, Vec<u32>>,
    /// For each message that called, its calls without a result, by their place in it.
    unanswered: BTreeMap<u32, Vec<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Other,
    Calls,
    Result { paired: bool },
}

impl Repairer {
    /// Takes note of the next message.
    pub fn push<M: MessageView + ?Sized>(&mut self, message: &M) {
        let position = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let facts = Facts::of(message, |id| self.open.find(id, self.turn));
        if facts.begins_turn() {
            self.turn = self.turn.next();
        }
        self.rows.push(match facts.answer {
            Answer::To(call) => {
                close(&mut self.open, message, call);
                self.results.entry(call.span).or_default().push(position);
                Row::Result { paired: true }
            }
            Answer::Orphan => Row::Result { paired: false },
            Answer::No if facts.calls() => Row::Calls,
            Answer::No => Row::Other,
        });
        let mut ordinal = 0;
        for_each_call(message, &mut |call| {
            let open =
                OpenCall { turn: self.turn, anchor: Seq(u64::from(position)), ordinal, span: position };
            // A tree has always room.
            let _ = self.open.open(call.id.as_bytes(), open);
            ordinal = ordinal.saturating_add(1);
        });
    }

    /// What to write, in order.
    #[must_use]
    pub fn finish(mut self, profile: Profile, pending: Pending) -> Vec<Repair> {
        let unanswered = &mut self.unanswered;
        self.open.for_each(&mut |_, call| unanswered.entry(call.span).or_default().push(call.ordinal));
        let mut out = Vec::with_capacity(self.rows.len());
        for (position, row) in (0_u32..).zip(&self.rows) {
            match row {
                Row::Result { paired: true } if profile.rules().results != Results::Next => {
                    out.push(Repair::Keep(position))
                }
                Row::Result { .. } => {}
                Row::Other => out.push(Repair::Keep(position)),
                Row::Calls => self.write_step(position, profile, pending, &mut out),
            }
        }
        out
    }

    /// A message that called, its results, and an aborted one for each call that has none.
    fn write_step(&self, position: u32, profile: Profile, pending: Pending, out: &mut Vec<Repair>) {
        out.push(Repair::Keep(position));
        if profile.rules().results == Results::Next {
            let results = self.results.get(&position).into_iter().flatten();
            out.extend(results.map(|result| Repair::Keep(*result)));
        }
        if pending == Pending::Over || !self.is_last_step(position) {
            let calls = self.unanswered.get(&position).into_iter().flatten();
            out.extend(calls.map(|call| Repair::Abort { position, call: *call }));
        }
    }

    /// Whether only results follow the message at `position`.
    fn is_last_step(&self, position: u32) -> bool {
        let after = self.rows.iter().skip(position as usize).skip(1);
        after.into_iter().all(|row| matches!(row, Row::Result { .. }))
    }
}
