//! Repair of requests: the only place where messages are invented.

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

/// The text of an invented result for a call that never got one.
///
/// It never varies: a provider's prompt cache sees the same bytes in every request. The same holds for the other
/// invented texts.
pub const ABORTED: &str = "[aborted: this call has no result]";

/// The text of an invented result for a call whose result may be in another message.
///
/// Such a message stands behind the call, before the next message of the model: a user message, or a result that names
/// no call.
pub const UNRECORDED: &str = "[no result is recorded for this call: the messages after it may hold it]";

/// The text of an invented message of the model between a result and a user message.
pub const BRIDGE: &str = "[no answer: the user spoke first]";

/// The text of an invented user message at the beginning of a conversation whose first message is not the user's.
///
/// A summary of earlier messages may follow, or nothing may be known of them: the text is true in both cases.
pub const BRIDGE_USER: &str = "[the conversation began before this message]";

/// One step in the writing of a repaired request.
///
/// Each step writes one message or adds to the last one. A message that no step names is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Write the message at this position.
    Keep(u32),
    /// Write, at this place, a result with the text [`ABORTED`] for a call.
    Abort {
        /// The position of the message with the call.
        position: u32,
        /// The number of the call in this message, from 0.
        call: u32,
    },
    /// Write, at this place, a result with the text [`UNRECORDED`] for a call.
    Unrecorded {
        /// The position of the message with the call.
        position: u32,
        /// The number of the call in this message, from 0.
        call: u32,
    },
    /// Add the parts of the message at this position to the message that was written last. Both messages have one role,
    /// or both are instructions. The authority of the written message becomes the lower one.
    Merge {
        /// The position of the message to add.
        position: u32,
    },
    /// Write the message at this position without its reasoning parts.
    DropReasoning {
        /// The position of the message.
        position: u32,
    },
    /// Write, at this place, a user message with the text [`BRIDGE_USER`].
    BridgeUser,
    /// Write, at this place, a message of the model with the text [`BRIDGE`].
    BridgeAssistant,
}

impl Repair {
    /// The text that the step invents: that of a result, or of a message between others. `None` for a step that writes
    /// a message of the request.
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

/// The treatment of calls without a result in the current turn. Such calls of earlier turns always get an invented
/// result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a tool is running or it is not")]
pub enum Pending {
    /// The tools of the current turn may still be running: its calls without a result stay unchanged, those of its
    /// earlier steps too. A turn begins with a user message that has content of its own.
    Running,
    /// No tool is running any more: these calls get an invented result.
    Over,
}

/// Orders and completes `messages` so that `profile` accepts them, and returns the steps that write the request, in
/// order.
///
/// - Results of no call, and second results, are left out. A call without a result gets one with the text [`ABORTED`].
///   If a user message, or a result of no call, comes before the next message of the model, the text is [`UNRECORDED`],
///   because that message may hold the result.
/// - Where results must follow their calls directly, they are moved there.
/// - Where instructions must lead, later ones are moved behind the leading ones; where one message of them is allowed,
///   they are merged into it.
/// - Where a user message must come first and does not, one is put there.
/// - Where roles must alternate, neighbours of one role are merged; where the user may not follow a result, a message
///   of the model is put between.
/// - Some reasoning is left out: reasoning without the content that it led to, the reasoning of calls that other calls
///   of the open turn lack, and signed reasoning behind an edit ([`Repairer::with_edit`]) or behind a later message
///   that is moved before it.
///
/// Afterwards a [`Validator`](crate::Validator) of the same profile finds nothing, except for the calls without a
/// result that [`Pending::Running`] leaves. Legal content is kept unchanged, with one exception. Where results stand
/// anywhere, a result is left out if it could answer calls of several earlier turns, all with one id. Each message must
/// answer at most one call, as [`MessageView`] requires.
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

/// Repairs a request as [`repair`] does, from messages that come one by one and are not stored.
#[derive(Debug, Default)]
pub struct Repairer {
    /// The index, whose groups pair results with their calls.
    index: IndexBuf<Vec<Span>, OpenCallTree, NoParts>,
    /// By the number of each call, and of each request for approval, in the index: the position of its message, and its
    /// number among the calls there.
    calls: Vec<(u32, u32)>,
    rows: Vec<Row>,
    /// For each message with calls, the positions of its results.
    results: BTreeMap<u32, Vec<u32>>,
    first_changed: Option<u32>,
}

/// Stored facts about a message.
#[derive(Debug, Clone, Copy)]
struct Row {
    shape: Shape,
    /// Whether the message is a result without a call.
    orphan: bool,
    /// Whether the message may hold the result of a call that has none: it has content of the user, or it is a result
    /// without a call.
    may_hold: bool,
}

/// A request under repair.
#[derive(Debug)]
struct Request<'a> {
    rows: &'a [Row],
    rules: &'a Rules,
    results: &'a BTreeMap<u32, Vec<u32>>,
    /// For each message with calls, the results that are invented for them.
    invented: BTreeMap<u32, Vec<Repair>>,
    /// The messages that lose their reasoning, regardless of their neighbours.
    stripped: BTreeSet<u32>,
}

impl Repairer {
    /// Sets the first position from which on the messages differ from those that the provider has seen, as
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
        // Profiles have rules for results alone: approvals stay in their places.
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

    /// The position of the message of a call, and the number of the call among the calls there.
    fn caller(&self, call: OpenCall) -> Option<(u32, u32)> {
        self.calls.get(call.number() as usize).copied()
    }

    /// For each message, whether it is of the model, and a message that may hold a result stands behind it before the
    /// next message of the model. Adjacent messages of the model count as one, because parallel calls may be messages
    /// of their own.
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

    /// The steps that write the repaired request, in order.
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

    /// All messages except orphans.
    fn paired(&self) -> impl Iterator<Item = (u32, Kind)> {
        let rows = (0_u32..).zip(self.rows).filter(|(_, row)| !row.orphan);
        rows.map(|(position, row)| (position, row.shape.kind))
    }

    /// Whether a message of this kind is sent apart from the others.
    fn is_apart(&self, kind: Kind) -> bool {
        kind == Kind::Instruction && self.rules.instructions != Instructions::Anywhere
    }
}
