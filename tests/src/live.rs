//! The code under test in comparable form: the content of an index and of a plan, as plain values.

use epitome_core::message::PartView;
use epitome_core::{
    ArrayTable, Full, GroupKind, Index, IndexBuf, OpenCallSlots, OpenCallTree, OpenCalls, Outcome, PartSpan,
    PartVerdict, Placed, Plan, PlanError, Planner, Profile, RestoreError, Revision, Seq, Span, Stored, Table,
    Tokens, Validator, ViolationKind,
};

use crate::message::Message;
use crate::naive::{self, Request};
use crate::strategy::TestStrategy;

/// The index on the heap.
pub type Heap = IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>;
/// An index in place, with room for any conversation of the properties.
pub type Fixed = IndexBuf<ArrayTable<Span, 512>, OpenCallSlots<64>, ArrayTable<PartSpan, 2048>>;
/// An index in a vector of the heapless crate, with little room for calls.
pub type Tight = IndexBuf<heapless::Vec<Span, 512>, OpenCallSlots<8>, heapless::Vec<PartSpan, 2048>>;

/// An empty index.
#[must_use]
pub fn empty<S: Table<Span> + Default, C: OpenCalls + Default, P: Table<PartSpan> + Default>()
-> IndexBuf<S, C, P> {
    IndexBuf::with_parts(S::default(), C::default(), P::default())
}

/// Facts about a group that are visible from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFacts {
    /// The positions of its messages, in projection order.
    pub positions: Vec<usize>,
    /// The kind.
    pub kind: GroupKind,
    /// Its turn.
    pub turn: u32,
    /// Its size.
    pub tokens: u64,
    /// Whether it is pinned, open, abandoned.
    pub marks: (bool, bool, bool),
}

/// An index of the conversation on the heap, and the place of each message.
///
/// # Panics
/// Never: the heap has room.
#[must_use]
pub fn index_of(messages: &[Message]) -> (Heap, Vec<Placed>) {
    let mut index: Heap = empty();
    let placed = messages.iter().map(|message| push(&mut index, message).expect("a heap has room"));
    let placed = placed.collect();
    (index, placed)
}

/// Pushes a message with its parts.
///
/// # Errors
/// [`Full`] when there is no room.
pub fn push<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>>(
    index: &mut IndexBuf<S, C, P>,
    message: &Message,
) -> Result<Placed, Full> {
    index.push_with_parts(message, message.size(), |at, _| message.part_size(at as usize))
}

/// Pushes messages until one finds no room. Returns the number of pushed messages.
pub fn push_while_room<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>>(
    index: &mut IndexBuf<S, C, P>,
    messages: &[Message],
) -> usize {
    messages.iter().take_while(|message| push(index, message) != Err(Full)).count()
}

/// The groups of an index.
#[must_use]
pub fn groups(index: Index<'_>) -> Vec<GroupFacts> {
    let facts = index.groups().map(|group| GroupFacts {
        positions: flat(group.positions()),
        kind: group.kind(),
        turn: group.turn().0,
        tokens: group.tokens().as_u64(),
        marks: (group.is_pinned(), group.is_open(), group.is_abandoned()),
    });
    facts.collect()
}

/// The whole content of an index and of its memory for calls, as text.
#[must_use]
pub fn everything<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>>(index: &IndexBuf<S, C, P>) -> String {
    let view = index.view();
    let mut calls = Vec::new();
    index.open_calls().for_each(&mut |id, call| calls.push((id.to_vec(), call)));
    format!("{view:?} {calls:?} {:?}", index.head())
}

/// Outcome of a plan, in the form of the naive twin.
#[must_use]
pub fn plan(index: Index<'_>, request: &Request) -> naive::Outcome {
    let Request { budget, pass, strategy } = request;
    let mut planner = Planner::new();
    // An earlier plan in the same memory must not influence the next one.
    let _ = planner.plan(index, budget, *pass, &TestStrategy::Digest { keep: 0, chars: 4_096 });
    match planner.plan(index, budget, *pass, strategy) {
        Ok(Outcome::Unchanged(why)) => naive::Outcome::Unchanged(why.as_str()),
        Ok(Outcome::Planned(plan)) => naive::Outcome::Planned(naive::Planned {
            verdicts: plan.verdicts().to_string(),
            tokens_after: plan.tokens_after(),
            projection: flat(plan.projection()),
            stable: plan.stable_prefix().messages as usize,
            stable_tokens: (!is_any_full(index)).then(|| plan.stable_prefix().tokens),
            floors: (plan.floors().hard, plan.floors().goal),
            shortened: shortened(&plan),
            summaries: plan.summaries().map(|gap| (flat(gap.covers()), gap.allowance.0)).collect(),
        }),
        Err(PlanError::Infeasible(infeasible)) => {
            let largest = infeasible.largest.iter().flatten();
            naive::Outcome::Infeasible {
                floor: infeasible.floor,
                largest: largest.map(|group| (group.tokens.as_u64(), group.position as usize)).collect(),
            }
        }
        Err(other) => unreachable!("{other}"),
    }
}

/// Message, place in it, and maximum size of each shortened part.
fn shortened(plan: &Plan<'_>) -> Vec<(usize, usize, u32)> {
    let left = |verdict| match verdict {
        PartVerdict::Keep => unreachable!("a kept part is not shortened"),
        PartVerdict::Elide(allowance) => allowance.0,
        PartVerdict::Clamp(clamp) => clamp.tokens_max().0,
        _ => unreachable!("a verdict of a new kind"),
    };
    let parts = plan.shortened();
    parts.map(|(part, verdict)| (part.position() as usize, part.ordinal() as usize, left(verdict))).collect()
}

/// Whether a group has the highest amount, which also stands for all larger sizes.
#[must_use]
pub fn is_any_full(index: Index<'_>) -> bool {
    index.groups().any(|group| group.tokens() == Tokens::MAX)
}

/// The violations of a request, sorted.
#[must_use]
pub fn violations(profile: Profile, messages: &[Message]) -> Vec<(u32, ViolationKind)> {
    violations_with::<OpenCallTree>(profile, messages)
}

/// The violations of a request. From the message at `edit` on, it differs from the request that the provider saw
/// before.
///
/// # Panics
/// Never: a tree has room.
#[must_use]
pub fn violations_after(profile: Profile, edit: u32, messages: &[Message]) -> Vec<(u32, ViolationKind)> {
    violations_of(Validator::<OpenCallTree>::new(profile).with_edit(edit), messages)
}

/// The violations of a request, with another memory for calls.
///
/// # Panics
/// If the memory has no room.
#[must_use]
pub fn violations_with<C: OpenCalls + Default>(
    profile: Profile,
    messages: &[Message],
) -> Vec<(u32, ViolationKind)> {
    violations_of(Validator::<C>::new(profile), messages)
}

fn violations_of<C: OpenCalls>(
    mut validator: Validator<C>,
    messages: &[Message],
) -> Vec<(u32, ViolationKind)> {
    let mut found = Vec::new();
    for message in messages {
        validator
            .push(message, &mut |violation| found.push(naive::as_pair(violation)))
            .expect("room for calls");
    }
    validator.finish(&mut |violation| found.push(naive::as_pair(violation)));
    found.sort_unstable();
    found
}

/// Positions one by one.
pub fn flat(ranges: impl Iterator<Item = core::ops::Range<u32>>) -> Vec<usize> {
    ranges.flatten().map(|at| at as usize).collect()
}

/// Restores an index of the messages at `visible` (ascending) from the facts that their appends stored. Unanswered
/// calls of all other messages are restored as hidden calls.
///
/// # Errors
/// The errors of [`IndexBuf::restore`].
///
/// # Panics
/// If there is no room for the hidden calls.
pub fn restored<S: Table<Span> + Default, C: OpenCalls + Default, P: Table<PartSpan> + Default>(
    messages: &[Message],
    calls: &impl OpenCalls,
    placed: &[Placed],
    visible: &[usize],
) -> Result<IndexBuf<S, C, P>, RestoreError> {
    let mut index = empty::<S, C, P>();
    // A summary has the number of the first message that it replaces.
    let is_visible = |anchor: Seq| {
        let at = usize::try_from(anchor.0).unwrap();
        visible.contains(&at) && !messages[at].is_summary()
    };
    for at in visible {
        let place = placed[*at];
        let seq = Seq(*at as u64);
        let leader = visible.iter().position(|other| Seq(*other as u64) == place.anchor);
        let leader = leader.filter(|_| place.anchor != seq).map(|at| u32::try_from(at).unwrap());
        let (anchor, turn, orphan) = (place.anchor, place.turn, place.orphan);
        let stored = Stored { seq, leader, anchor, turn, tokens: messages[*at].size(), orphan };
        let size = |ordinal: u32, _: PartView<'_>| messages[*at].part_size(ordinal as usize);
        index.restore_with_parts(&messages[*at], &stored, size)?;
    }
    calls.for_each(&mut |id, call| {
        if !is_visible(call.anchor) {
            let id = core::str::from_utf8(id).unwrap();
            index.restore_hidden_call(id, call.turn, call.anchor, call.ordinal).expect("room for calls");
        }
    });
    index.resume(Seq(placed.len() as u64), Revision(0));
    Ok(index)
}
