//! Making a request legal: the only place where anything is invented.

mod grammar;
mod pairing;
#[cfg(test)]
mod tests;
mod thinking;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::Tokens;
use crate::index::{Answer, Facts, IndexBuf, NoParts, Span, for_each_awaited};
use crate::message::{MessageView, Role};
use crate::open_calls::{OpenCall, OpenCallTree, OpenCalls, OpenKind};
use crate::profile::{Instructions, Profile, Rules};
use crate::shape::{Kind, Shape};

/// The text of a result that stands in for one that never came. It never varies: a provider's prompt cache sees the same
/// bytes in every request. The same holds for the other invented texts.
pub const ABORTED: &str = "[aborted: this call has no result]";

/// The text of a result for a call whose result, if it has one, was written as something else: behind the call, before the
/// model speaks again, the user says something, or a result names no call.
pub const UNRECORDED: &str = "[no result is recorded for this call: the messages after it may hold it]";

/// The text of a message of the model that separates the user from a result.
pub const BRIDGE: &str = "[no answer: the user spoke first]";

/// The text of a message of the user that opens a conversation whose first message is not the user's. A summary of what was said
/// before may follow, or nothing may be known of it: the text is true of both.
pub const BRIDGE_USER: &str = "[the conversation began before this message]";

/// One step of writing a repaired request. Each writes one message or adds to the last; a message that no step names is
/// left out.
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
    /// Write, at this place, a result of the text [`UNRECORDED`] for a call.
    Unrecorded {
        /// The position of the message that called.
        position: u32,
        /// Which of its calls, from 0.
        call: u32,
    },
    /// Add the parts of the message at this position to the message that was written last: both are in one role, or both
    /// are instructions. Its authority becomes the lower one.
    Merge {
        /// The position of the message to add.
        position: u32,
    },
    /// Write the message at this position without its reasoning parts.
    DropReasoning {
        /// The position of the message.
        position: u32,
    },
    /// Write, at this place, a message of the user of the text [`BRIDGE_USER`].
    BridgeUser,
    /// Write, at this place, a message of the model of the text [`BRIDGE`].
    BridgeAssistant,
}

impl Repair {
    /// The text that the step invents: of a result, or of a message put between. `None` for a step that writes a message.
    #[must_use]
    pub const fn invented(self) -> Option<&'static str> {
        match self {
            Self::Keep(_) | Self::Merge { .. } | Self::DropReasoning { .. } => None,
            Self::Abort { .. } => Some(ABORTED),
            Self::Unrecorded { .. } => Some(UNRECORDED),
            Self::BridgeUser => Some(BRIDGE_USER),
            Self::BridgeAssistant => Some(BRIDGE),
        }
    }
}

/// The treatment of calls without a result in the current turn. Those of earlier turns always get an invented one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a tool is running or it is not")]
pub enum Pending {
    /// The tools of the current turn may still be running: its calls without a result stay as they are, those of its
    /// earlier steps too. A turn begins where the user says something.
    Running,
    /// Nothing is running any more: they get an invented result.
    Over,
}

/// Orders and completes `messages` so that `profile` accepts them, and returns what to write, in order.
///
/// - Results of no call, and second results, are left out. A call without a result gets one that says [`ABORTED`]; where the
///   user, or a result of no call, comes before the model speaks again, one that says [`UNRECORDED`], because that message
///   may hold the result.
/// - Where results must follow their calls directly, they are moved there.
/// - Where instructions must lead, later ones are moved behind the leading ones; where one message of them is allowed, they
///   are merged into it.
/// - Where the user must speak first and does not, a message of the user is put there.
/// - Where roles must alternate, neighbours of one role are merged; where the user may not follow a result, a message of
///   the model is put between.
/// - Left out are reasoning without what it led to, the calls' reasoning that other calls of the open turn lack, and signed
///   reasoning behind an edit ([`Repairer::with_edit`]) or behind a later message that is moved before it.
///
/// Afterwards a [`Validator`](crate::Validator) of the same profile finds nothing, but for the calls without a result that
/// [`Pending::Running`] leaves. What is legal already is kept as it is, but for one case: where results stand anywhere, a
/// result that could answer calls of several earlier turns, all of one id, is left out as nobody's. Each message must
/// answer at most one call, as [`MessageView`] asks for.
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{Pending, Profile, Repair, repair};
///
/// let calls = [ToolCallView::new("c1", "read", "a.txt")];
/// let request = [SimpleMessage::user("Read a.txt."), SimpleMessage::calls(&calls), SimpleMessage::user("Hello?")];
/// let unrecorded = Repair::Unrecorded { position: 1, call: 0 };
/// let repaired = repair(Profile::OpenaiChat, &request, Pending::Over);
/// assert_eq!(repaired, [Repair::Keep(0), Repair::Keep(1), unrecorded, Repair::Keep(2)]);
///
/// let repaired = repair(Profile::OpenaiChat, &request[..2], Pending::Over);
/// assert_eq!(repaired, [Repair::Keep(0), Repair::Keep(1), Repair::Abort { position: 1, call: 0 }]);
///
/// // Mistral's templates do not take the user directly after a result.
/// let repaired = repair(Profile::Mistral, &request, Pending::Over);
/// assert_eq!(repaired, [Repair::Keep(0), Repair::Keep(1), unrecorded, Repair::BridgeAssistant, Repair::Keep(2)]);
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
    /// Which result is which call's is a matter of groups.
    index: IndexBuf<Vec<Span>, OpenCallTree, NoParts>,
    /// By the number of each call, and of each request for approval, in the index: its message, and its place among the calls there.
    calls: Vec<(u32, u32)>,
    rows: Vec<Row>,
    /// For each message that called, the positions of its results.
    results: BTreeMap<u32, Vec<u32>>,
    first_changed: Option<u32>,
}

/// Facts about a message that are remembered.
#[derive(Debug, Clone, Copy)]
struct Row {
    shape: Shape,
    /// Whether it is a result without a call.
    orphan: bool,
    /// Whether it may hold the result of a call that has none: the user says something in it, or it is a result without a
    /// call.
    may_hold: bool,
}

/// A request under repair.
#[derive(Debug)]
struct Request<'a> {
    rows: &'a [Row],
    rules: &'a Rules,
    results: &'a BTreeMap<u32, Vec<u32>>,
    /// For each message that called, the results that are invented for its calls.
    invented: BTreeMap<u32, Vec<Repair>>,
    /// The messages that lose their reasoning, whatever stands beside them.
    stripped: BTreeSet<u32>,
}

impl Repairer {
    /// Tells from which position on the messages are not what the provider has seen before, as
    /// [`Validator::with_edit`](crate::Validator::with_edit) does.
    #[must_use]
    pub const fn with_edit(mut self, first_changed: u32) -> Self {
        self.first_changed = Some(first_changed);
        self
    }

    /// Reads the next message.
    pub fn push<M: MessageView + ?Sized>(&mut self, message: &M) {
        let position = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        let (open, turn) = (self.index.open_calls(), self.index.view().turn());
        // What profiles ask for is results: approvals stay where they stand.
        let find = |kind, id: &[u8]| open.find(kind, id, turn).filter(|_| kind == OpenKind::Call);
        let facts = Facts::of::<_, NoParts>(message, find);
        if let Answer::To(call) = facts.answer
            && let Some((caller, _)) = self.caller(call)
        {
            self.results.entry(caller).or_default().push(position);
        }
        let stays = facts.approves && facts.role != Role::Tool;
        let orphan = facts.answer == Answer::Orphan && !stays;
        let may_hold = orphan || facts.role == Role::User && facts.speaks;
        self.rows.push(Row { shape: Shape::of(message), orphan, may_hold });
        let mut ordinal = 0;
        for_each_awaited(message, |kind, _, _| {
            self.calls.push((position, ordinal));
            ordinal = ordinal.saturating_add(u32::from(kind == OpenKind::Call));
        });
        // A vector and a tree have always room.
        let _ = self.index.push(message, Tokens::ZERO);
    }

    /// The message that a call stands in, and its place among the calls there.
    fn caller(&self, call: OpenCall) -> Option<(u32, u32)> {
        self.calls.get(call.number() as usize).copied()
    }

    /// For each message, whether it is the model's and behind it, before the model speaks again, stands something that may
    /// hold a result. Neighbours of the model are one: parallel calls may be messages of their own.
    fn followed(&self) -> Vec<bool> {
        let mut followed = alloc::vec![false; self.rows.len()];
        let (mut may_hold, mut was_model) = (false, false);
        for (followed, row) in followed.iter_mut().zip(&self.rows).rev() {
            let is_model = row.shape.kind.is_model();
            may_hold = if is_model { may_hold } else { row.may_hold || may_hold && !was_model };
            *followed = is_model && may_hold;
            was_model = is_model;
        }
        followed
    }

    /// The messages to write, in order.
    #[must_use]
    pub fn finish(self, profile: Profile, pending: Pending) -> Vec<Repair> {
        let mut invented = BTreeMap::<u32, Vec<Repair>>::new();
        let followed = self.followed();
        let turn = self.index.view().turn();
        self.index.open_calls().for_each(&mut |_, call| {
            let is_over = pending == Pending::Over || call.turn != turn;
            if let Some((caller, nth)) =
                self.caller(call).filter(|_| is_over && call.kind() == OpenKind::Call)
            {
                let (position, call) = (caller, nth);
                let step = if followed.get(caller as usize) == Some(&true) {
                    Repair::Unrecorded { position, call }
                } else {
                    Repair::Abort { position, call }
                };
                invented.entry(caller).or_default().push(step);
            }
        });
        let (rules, results) = (profile.rules(), &self.results);
        let stripped = thinking::stripped(&self.rows, rules, self.first_changed);
        let request = Request { rows: &self.rows, rules, results, invented, stripped };
        let steps = pairing::pair(&request);
        let steps = thinking::drop_reasoning(&request, steps);
        grammar::arrange(&request, steps)
    }
}

impl Request<'_> {
    fn shape(&self, position: u32) -> Option<&Shape> {
        self.rows.get(position as usize).map(|row| &row.shape)
    }

    /// Kind of the message that a step writes.
    fn kind(&self, step: Repair) -> Option<Kind> {
        match step {
            Repair::Keep(position) | Repair::DropReasoning { position } | Repair::Merge { position } => {
                self.shape(position).map(|shape| shape.kind)
            }
            Repair::Abort { .. } | Repair::Unrecorded { .. } => Some(Kind::Result),
            Repair::BridgeUser => Some(Kind::User),
            Repair::BridgeAssistant => Some(Kind::Says),
        }
    }

    /// All messages but orphans.
    fn paired(&self) -> impl Iterator<Item = (u32, Kind)> {
        let rows = (0_u32..).zip(self.rows).filter(|(_, row)| !row.orphan);
        rows.map(|(position, row)| (position, row.shape.kind))
    }

    /// Whether a message of this kind is sent apart from the others.
    fn is_apart(&self, kind: Kind) -> bool {
        kind == Kind::Instruction && self.rules.instructions != Instructions::Anywhere
    }
}
