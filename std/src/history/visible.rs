//! What a session shows: its visible messages with their groups and sizes.

use epitome_core::attribution::SeqRange;
use epitome_core::{
    Index, IndexBuf, OpenCall, OpenCallTree, OpenCalls, Plan, RestoreError, Revision, Seq, Span, Stored,
    TokenCounter, Verdict, count_message,
};

use super::{Appended, Entry, Live, Loaded, TokenCount, UnansweredCall};
use crate::message::{Message, Str};

/// The visible messages of a session, grouped.
pub(super) struct Visible {
    index: IndexBuf<Vec<Span>, OpenCallTree>,
    /// By position in the index; keys ascend.
    live: Vec<Live>,
    unanswered: Vec<UnansweredCall>,
}

type Counter = dyn TokenCounter + Send + Sync;

impl Visible {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self { index: IndexBuf::new(), live: Vec::new(), unanswered: Vec::new() }
    }

    /// What was loaded, in the groups that were stored; counted again where another counter has counted.
    pub(super) fn of(loaded: Loaded, counter: &Counter) -> Result<Self, RestoreError> {
        let mut visible = Self { index: IndexBuf::new(), live: loaded.live, unanswered: loaded.unanswered };
        for live in &mut visible.live {
            if live.entry.count.counter != counter.name() {
                live.entry.count = count(&live.entry.message, counter);
            }
        }
        visible.rebuild(loaded.head, loaded.revision)?;
        Ok(visible)
    }

    /// Groups and counts messages on their way into the log. They are to be seen here until the answer is dropped,
    /// and stay only if it is accepted.
    pub(super) fn place(&mut self, messages: Vec<Message>, counter: &Counter) -> Placing<'_> {
        let (head, revision) = (self.index.head(), self.index().revision());
        let before = Before { head, revision, live: self.live.len(), unanswered: self.unanswered.clone() };
        let mut placing = Placing { visible: self, entries: Vec::new(), before: Some(before) };
        for message in messages {
            let entry = placing.visible.place_one(message, counter);
            placing.entries.push(entry);
        }
        placing
    }

    pub(super) fn live(&self) -> &[Live] {
        &self.live
    }

    pub(super) fn index(&self) -> Index<'_> {
        self.index.view()
    }

    pub(super) const fn head(&self) -> Seq {
        self.index.head()
    }

    /// The log's messages that `plan` drops: ascending, none overlapping, none adjacent.
    pub(super) fn hidden_by(&self, plan: &Plan<'_>) -> Vec<SeqRange> {
        let dropped = plan.index().groups().filter(|group| plan.verdict(group) == Verdict::Drop);
        let positions = dropped.flat_map(|group| group.positions().flatten().collect::<Vec<_>>());
        let live = positions.filter_map(|position| self.live.get(position as usize));
        let mut ranges: Vec<_> = live.flat_map(covered).collect();
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

    /// The unanswered calls that `plan` drops.
    pub(super) fn unanswered_under(&self, plan: &Plan<'_>) -> Vec<UnansweredCall> {
        let mut calls = Vec::new();
        self.index.open_calls().for_each(&mut |id, call: OpenCall| {
            let group = plan.index().group_of(call.span);
            if group.is_some_and(|group| plan.verdict(&group) == Verdict::Drop) {
                let id = Str::from(String::from_utf8_lossy(id).into_owned());
                calls.push(UnansweredCall::new(id, call.anchor, call.turn, call.ordinal));
            }
        });
        calls
    }

    fn place_one(&mut self, message: Message, counter: &Counter) -> Entry {
        let (seq, turn) = (self.index.head(), self.index.view().turn());
        let count = count(&message, counter);
        let mut entry = Entry::new(message, seq, turn, count);
        if self.index.is_orphan(&entry.message) {
            self.index.skip();
            entry.orphan = true;
            return entry;
        }
        // Tables on the heap have always room.
        if let Ok(placed) = self.index.push(&entry.message, entry.count.tokens) {
            (entry.anchor, entry.turn, entry.late) = (placed.anchor, placed.turn, placed.late);
            if placed.hidden {
                self.forget_unanswered(&entry);
            } else {
                self.live.push(Live::new(seq, entry.clone()));
            }
        }
        entry
    }

    /// A hidden call has its answer.
    fn forget_unanswered(&mut self, answer: &Entry) {
        let id = answer.call_id();
        let of_group = |call: &UnansweredCall| call.anchor == answer.anchor && Some(&*call.id) == id;
        if let Some(at) = self.unanswered.iter().position(of_group) {
            self.unanswered.remove(at);
        }
    }

    /// Makes the index anew from what is visible, with the groups that were stored.
    fn rebuild(&mut self, head: Seq, revision: Revision) -> Result<(), RestoreError> {
        self.index.clear();
        for live in &self.live {
            let Entry { anchor, turn, count, orphan, .. } = &live.entry;
            let leads = *anchor == live.key;
            let leader =
                if leads { None } else { self.live.binary_search_by_key(anchor, |live| live.key).ok() };
            let leader = leader.and_then(|at| u32::try_from(at).ok());
            let (seq, anchor, turn, orphan) = (live.key, *anchor, *turn, *orphan);
            let stored = Stored { seq, leader, anchor, turn, tokens: count.tokens, orphan };
            self.index.restore(&live.entry.message, &stored)?;
        }
        for call in &self.unanswered {
            // Trees have always room.
            let _ = self.index.restore_hidden_call(&call.id, call.turn, call.anchor, call.ordinal);
        }
        self.index.resume(head, revision);
        Ok(())
    }
}

/// Messages on their way into the log. Unless it is accepted, all is as it was before when this is dropped, be that
/// because the store has refused them or because nobody waits for its answer any more.
///
/// An index takes a message in constant time and cannot be forked in less than its length, so the way back is the slow
/// one.
pub(super) struct Placing<'a> {
    visible: &'a mut Visible,
    entries: Vec<Entry>,
    /// The way back; `None` once accepted.
    before: Option<Before>,
}

struct Before {
    head: Seq,
    revision: Revision,
    /// How many messages were visible.
    live: usize,
    unanswered: Vec<UnansweredCall>,
}

impl Placing<'_> {
    /// What goes into the log.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Keeps the messages, if the store has done what they were placed for and nobody has come in between.
    pub(super) fn accept(mut self, appended: Appended) -> bool {
        let expected = self.before.as_ref().map(|before| {
            let late = self.entries.iter().any(|entry| entry.late && !entry.orphan);
            // However many late answers an append has, it moves the revision once.
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
        self.visible.unanswered = before.unanswered;
        // What has been put together once can be put together again; if not, nothing is better than a half.
        if self.visible.rebuild(before.head, before.revision).is_err() {
            *self.visible = Visible::new();
        }
    }
}

fn count(message: &Message, counter: &Counter) -> TokenCount {
    TokenCount::new(count_message(message, counter), counter.basis(), Str::from(counter.name()))
}

/// The log's messages that a visible one stands for: what a summary covers, or itself.
fn covered(live: &Live) -> Vec<SeqRange> {
    match live.covers.as_slice() {
        [] => vec![SeqRange { first: live.key, last: live.key }],
        covers => covers.to_vec(),
    }
}
