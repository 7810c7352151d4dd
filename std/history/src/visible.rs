//! The visible messages of a session, with their groups and sizes.

use epitome_core::attribution::SeqRange;
use epitome_core::message::PartView;
use epitome_core::{
    Amount, Group, Index, IndexBuf, OpenCall, OpenCallTree, OpenCalls, PartSpan, RestoreError, Revision, Seq,
    Span, Stored, TokenCounter, Tokens, Turn,
};
use epitome_message::tokens::{can_be_shortened, measure_all_with_parts};
use epitome_message::{Message, Str};

use super::{Appended, Entry, Live, Loaded, Pins, TokenCount, UnansweredCall};

/// The visible messages of a session, in groups. A run also has one, for all messages that it sends.
#[derive(Debug, Clone)]
pub struct VisibleIndex {
    index: IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>,
    /// The messages by position in the index. Their keys ascend.
    live: Vec<Live>,
    unanswered: Vec<UnansweredCall>,
    /// The answers to hidden calls that were placed since the load.
    late: Vec<Entry>,
    /// Pins in addition to the stored ones.
    pins: Pins,
}

pub(super) type Counter = dyn TokenCounter + Send + Sync;

impl Default for VisibleIndex {
    fn default() -> Self {
        Self::unindexed(Vec::new(), Vec::new())
    }
}

impl VisibleIndex {
    /// Makes the index of loaded messages, with their stored groups. Messages with counts of another counter are
    /// counted again.
    pub fn of(loaded: Loaded, counter: &Counter) -> Result<Self, RestoreError> {
        Self::pinned(loaded, Pins::default(), counter)
    }

    /// Makes the index of loaded messages with these pins.
    pub(super) fn pinned(loaded: Loaded, pins: Pins, counter: &Counter) -> Result<Self, RestoreError> {
        let mut visible = Self::unindexed(loaded.live, loaded.unanswered);
        visible.pins = pins;
        recount(&mut visible.live, counter);
        visible.rebuild(loaded.head, loaded.revision)?;
        Ok(visible)
    }

    /// The messages of the next request, in order and with their stored sizes, of any counter.
    pub(super) fn sent(loaded: Loaded) -> Result<Vec<Live>, RestoreError> {
        let mut visible = Self::unindexed(loaded.live, loaded.unanswered);
        visible.rebuild(loaded.head, loaded.revision)?;
        let positions = visible.index().projection().flatten();
        Ok(positions.filter_map(|at| visible.live.get(at as usize).cloned()).collect())
    }

    fn unindexed(live: Vec<Live>, unanswered: Vec<UnansweredCall>) -> Self {
        let index = IndexBuf::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
        Self { index, live, unanswered, late: Vec::new(), pins: Pins::default() }
    }

    /// Replaces the pins. Messages that are stored as pinned stay pinned.
    pub(super) fn set_pins(&mut self, pins: Pins) -> Result<(), RestoreError> {
        let same = self.pins.is_empty() && pins.is_empty();
        self.pins = pins;
        if same { Ok(()) } else { self.rebuild(self.head(), self.index().revision()) }
    }

    /// The pins in addition to the stored ones.
    pub(super) const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Groups and counts messages before they are appended. They are visible here until the returned value is dropped,
    /// and stay only if it is accepted.
    pub fn place(
        &mut self,
        messages: Vec<Message>,
        counter: &Counter,
        progress: &mut (dyn FnMut(usize) + Send),
    ) -> Placing<'_> {
        let sizes = measure_all_with_parts(&messages, counter, progress);
        let (head, revision) = (self.index.head(), self.index().revision());
        let (live, late) = (self.live.len(), self.late.len());
        let before = Before { head, revision, live, late, unanswered: self.unanswered.clone() };
        let mut placing = Placing { visible: self, entries: Vec::new(), before: Some(before) };
        for (message, (size, part_tokens)) in messages.into_iter().zip(sizes) {
            let entry = placing.visible.place_one(message, named(size, counter), part_tokens);
            placing.entries.push(entry);
        }
        placing
    }

    /// The messages, in order.
    #[must_use]
    pub fn live(&self) -> &[Live] {
        &self.live
    }

    /// The index of the messages.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.index.view()
    }

    /// The sequence number of the next message.
    #[must_use]
    pub const fn head(&self) -> Seq {
        self.index.head()
    }

    /// The messages of the groups for which `hides` returns true, as ranges: ascending, disjoint and not adjacent. A
    /// summary counts as the messages that it covers.
    pub fn covered_where(&self, hides: impl Fn(&Group<'_>) -> bool) -> Vec<SeqRange> {
        let view = self.index.view();
        let hidden = view.groups().filter(|group| hides(group));
        joined(hidden.flat_map(|group| self.covered_by(&group)).collect())
    }

    /// The messages of a group. A summary counts as the messages that it covers.
    pub fn covered_by(&self, group: &Group<'_>) -> Vec<SeqRange> {
        let live = group.positions().flatten().filter_map(|position| self.live.get(position as usize));
        live.flat_map(covered).collect()
    }

    /// The unanswered calls of the groups for which `hides` returns true.
    pub fn unanswered_where(&self, hides: impl Fn(&Group<'_>) -> bool) -> Vec<UnansweredCall> {
        let mut calls = Vec::new();
        self.index.open_calls().for_each(&mut |id, call: OpenCall| {
            let group = self.index.view().group_of(call.span);
            if group.is_some_and(|group| hides(&group)) {
                let id = Str::from(String::from_utf8_lossy(id).into_owned());
                calls.push(UnansweredCall::new(id, call.anchor, call.turn, call.ordinal));
            }
        });
        calls
    }

    /// Calls `visit` for each call without an answer.
    pub fn for_each_open_call(&self, visit: &mut dyn FnMut(&[u8], OpenCall)) {
        self.index.open_calls().for_each(visit);
    }

    /// Whether `message` would answer no call.
    pub fn is_orphan(&self, message: &Message) -> bool {
        self.index.is_orphan(message)
    }

    /// Sets the revision.
    pub const fn set_revision(&mut self, revision: Revision) {
        self.index.resume(self.index.head(), revision);
    }

    /// The hidden calls that have no answer.
    pub fn unanswered(&self) -> &[UnansweredCall] {
        &self.unanswered
    }

    /// The answers to hidden calls that were placed since the load.
    pub fn late(&self) -> &[Entry] {
        &self.late
    }

    /// Adds late answers.
    pub fn with_late(mut self, late: Vec<Entry>) -> Self {
        self.late = late;
        self
    }

    /// Appends the messages of another index, in their groups. Their numbers and turns are shifted behind those of this
    /// index. The messages with the numbers `but` are left out.
    pub fn extend(&mut self, other: &Self, but: &[Seq], counter: &Counter) -> Result<(), RestoreError> {
        let (head, turn, revision) = (self.head(), self.index().turn(), self.index().revision());
        let seq = |seq: Seq| Seq(seq.0.saturating_add(head.0));
        let turn = |its: Turn| Turn(its.0.saturating_add(turn.0));
        let here = self.live.len();
        for live in other.live.iter().filter(|live| !but.contains(&live.key)) {
            let mut live = live.clone();
            let entry = &mut live.entry;
            (live.key, entry.anchor, entry.turn) = (seq(live.key), seq(entry.anchor), turn(entry.turn));
            for range in &mut live.covers {
                *range = SeqRange { first: seq(range.first), last: seq(range.last) };
            }
            self.live.push(live);
        }
        recount(self.live.get_mut(here..).unwrap_or_default(), counter);
        self.unanswered.extend(other.unanswered.iter().map(|call| {
            UnansweredCall::new(call.id.clone(), seq(call.anchor), turn(call.turn), call.ordinal)
        }));
        self.rebuild(seq(other.head()), revision)
    }

    fn place_one(&mut self, message: Message, count: TokenCount, part_tokens: Vec<Tokens>) -> Entry {
        let (seq, turn) = (self.index.head(), self.index.view().turn());
        let mut entry = Entry::new(message, seq, turn, count);
        entry.part_tokens = part_tokens;
        if self.index.is_orphan(&entry.message) {
            self.index.skip();
            entry.orphan = true;
            return entry;
        }
        // Tables on the heap are never full.
        let sizes = |ordinal, _: PartView<'_>| size_of(&entry.part_tokens, ordinal);
        let seen = self.pins.seen(seq, &entry.message);
        if let Ok(placed) = self.index.push_with_parts(&seen, entry.count.tokens, sizes) {
            (entry.anchor, entry.turn, entry.late) = (placed.anchor, placed.turn, placed.late);
            if placed.hidden {
                self.forget_unanswered(&entry);
                self.late.push(entry.clone());
            } else {
                self.live.push(Live::new(seq, entry.clone()));
            }
        }
        entry
    }

    /// Removes the hidden call that `answer` answers from the unanswered calls.
    fn forget_unanswered(&mut self, answer: &Entry) {
        if let Some(at) = self.unanswered.iter().position(|call| call.is_answered_by(answer)) {
            self.unanswered.remove(at);
        }
    }

    /// Builds the index again from the visible messages, with their stored groups.
    fn rebuild(&mut self, head: Seq, revision: Revision) -> Result<(), RestoreError> {
        self.index.clear();
        for live in &self.live {
            let Entry { anchor, turn, count, part_tokens, orphan, .. } = &live.entry;
            let leads = *anchor == live.key;
            let leader =
                if leads { None } else { self.live.binary_search_by_key(anchor, |live| live.key).ok() };
            let leader = leader.and_then(|at| u32::try_from(at).ok());
            let (seq, anchor, turn, orphan) = (live.key, *anchor, *turn, *orphan);
            let stored = Stored { seq, leader, anchor, turn, tokens: count.tokens, orphan };
            let sizes = |ordinal, _: PartView<'_>| size_of(part_tokens, ordinal);
            self.index.restore_with_parts(&self.pins.seen(seq, &live.entry.message), &stored, sizes)?;
        }
        for call in &self.unanswered {
            // Trees are never full.
            let _ = self.index.restore_hidden_call(&call.id, call.turn, call.anchor, call.ordinal);
        }
        self.index.resume(head, revision);
        Ok(())
    }
}

/// Messages that are placed but not yet appended. Dropping this value without `accept` restores the earlier state,
/// after a refusal of the store or a drop by the caller.
///
/// An index takes a message in constant time, and a copy of it costs its whole length. The restoration is therefore the
/// slow path.
#[derive(Debug)]
pub struct Placing<'a> {
    visible: &'a mut VisibleIndex,
    entries: Vec<Entry>,
    /// The earlier state; `None` once accepted.
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    head: Seq,
    revision: Revision,
    /// Number of messages that were visible.
    live: usize,
    late: usize,
    unanswered: Vec<UnansweredCall>,
}

impl Placing<'_> {
    /// The entries to append.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether some of the entries answer a call of another turn, or no call that is visible here.
    pub(super) fn looks_back(&self) -> bool {
        self.entries.iter().any(|entry| entry.late || entry.orphan)
    }

    /// Keeps the messages without a store.
    pub fn keep(mut self) {
        let late = self.entries.iter().any(|entry| entry.late && !entry.orphan);
        let before = self.before.take();
        let revision = before.map_or_else(|| self.visible.index().revision(), |before| before.revision);
        let (head, revision) = (self.visible.head(), if late { revision.next() } else { revision });
        self.visible.index.resume(head, revision);
    }

    /// Keeps the messages if the store has appended them as placed, and no other writer has appended meanwhile. Returns
    /// whether it did.
    pub(super) fn accept(mut self, appended: Appended) -> bool {
        let expected = self.before.as_ref().map(|before| {
            let late = self.entries.iter().any(|entry| entry.late && !entry.orphan);
            // An append with several late answers changes the revision only once.
            let revision = if late { before.revision.next() } else { before.revision };
            Appended::new(before.head, self.visible.head(), revision)
        });
        let accepted = expected == Some(appended);
        if accepted {
            self.visible.index.resume(appended.head, appended.revision);
            self.before = None;
        }
        accepted
    }
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.visible.live.truncate(before.live);
        self.visible.late.truncate(before.late);
        self.visible.unanswered = before.unanswered;
        // The same messages were indexed before, so this succeeds. If not, an empty index is better than an
        // inconsistent one.
        if self.visible.rebuild(before.head, before.revision).is_err() {
            *self.visible = VisibleIndex::default();
        }
    }
}

/// Groups `entries` behind the loaded messages. Their sizes stay.
///
/// # Errors
/// [`RestoreError`] if the loaded data contradicts itself.
pub(super) fn grouped_behind(loaded: Loaded, entries: &[Entry]) -> Result<Vec<Entry>, RestoreError> {
    let mut visible = VisibleIndex::unindexed(loaded.live, loaded.unanswered);
    visible.rebuild(loaded.head, loaded.revision)?;
    let place = |entry: &Entry| {
        visible.place_one(entry.message.clone(), entry.count.clone(), entry.part_tokens.clone())
    };
    Ok(entries.iter().map(place).collect())
}

/// The size of a part. Every part that can be shortened has a size.
fn size_of(part_tokens: &[Tokens], ordinal: u32) -> Tokens {
    part_tokens.get(ordinal as usize).copied().unwrap_or(Tokens::ZERO)
}

/// Counts messages again that have counts of another counter, and parts without sizes.
fn recount(live: &mut [Live], counter: &Counter) {
    let is_stale = |entry: &Entry| {
        entry.count.counter != counter.name()
            || (entry.part_tokens.is_empty() && can_be_shortened(&entry.message))
    };
    let stale: Vec<_> = live.iter_mut().map(|live| &mut live.entry).filter(|entry| is_stale(entry)).collect();
    let messages: Vec<_> = stale.iter().map(|entry| &entry.message).collect();
    let sizes = measure_all_with_parts(&messages, counter, |_| {});
    for (entry, (size, part_tokens)) in stale.into_iter().zip(sizes) {
        (entry.count, entry.part_tokens) = (named(size, counter), part_tokens);
    }
}

/// A size with the name of its counter.
pub(super) fn named(size: Amount, counter: &Counter) -> TokenCount {
    TokenCount::new(size.tokens, size.basis, Str::from(counter.name()))
}

/// The ranges in ascending order, disjoint and not adjacent.
pub fn joined(mut ranges: Vec<SeqRange>) -> Vec<SeqRange> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let joins = next.first <= last.last.next();
        if joins {
            last.last = last.last.max(next.last);
        }
        joins
    });
    ranges
}

/// The messages of the log that a visible one stands for: the messages that a summary covers, or the message itself.
pub fn covered(live: &Live) -> Vec<SeqRange> {
    match live.covers.as_slice() {
        [] => vec![SeqRange { first: live.key, last: live.key }],
        covers => covers.to_vec(),
    }
}
