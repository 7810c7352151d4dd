//! All messages that a run sends, in one index.

mod numbers;
mod undone;

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::message::{CallKind, Role};
use epitome_core::{Group, Index, OpenCall, Revision, Seq, Stamp, TokenCounter, Turn};

use crate::history::inner::{
    Beside, Exchange, PendingEdit, PendingRecord, VisibleIndex, covered, exchange, joined,
};
use crate::history::{Entry, History, Live, Loaded, PartStandIn, Summary};
use crate::message::{Message, Part, Str, ToolCall};
use crate::provider::RunPlace;
use crate::session::{SessionContext, SessionError, SessionErrorKind};

/// All messages that a run sends: instructions, context by source, input, and the messages of the run. The history
/// stands at its provider's place, in the groups that it was stored in.
///
/// Messages have numbers of their own here. The numbers of the history are its sequence numbers, moved by the number of
/// messages before it; the other numbers continue the count.
pub(super) struct Working {
    visible: VisibleIndex,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    places: Places,
    /// Messages outside the history, in their original form, by their numbers.
    own: Vec<(Seq, Entry)>,
    /// Size of those messages that answer no known call, and have no place in the index.
    orphan_tokens: u64,
    /// Changes that the stored history does not know yet: the summaries that were made in this run, the messages that
    /// it hides, and the messages that it has shortened. Each of these has the stand-ins of its parts that the stored
    /// history knows.
    made: Vec<Seq>,
    hidden: Vec<SeqRange>,
    edited: BTreeMap<Seq, Vec<PartStandIn>>,
    strategy: Str,
}

/// Messages to be sent after a compaction, in the run's numbers.
#[derive(Default)]
pub(super) struct Compacted {
    /// All visible messages.
    pub(super) live: Vec<Live>,
    /// The messages that it has hidden.
    pub(super) hidden: Vec<SeqRange>,
    /// The summaries that it has made.
    pub(super) made: Vec<Seq>,
    /// The messages that it has shortened, with the earlier stand-ins of their parts.
    pub(super) edited: Vec<(Seq, Vec<PartStandIn>)>,
    pub(super) strategy: Str,
}

/// First numbers of the run's messages.
#[derive(Debug, Clone, Default)]
struct Places {
    /// Whether instructions stand at the number 0.
    instructs: bool,
    /// The first number of each source, in the order of sources.
    sources: Vec<u64>,
    /// The first number of the history that is compacted, and the number after its last. `turn` is the turn before it.
    stored: Option<(u64, u64)>,
    /// The numbers in that history of the messages that the run had stored before this index was made.
    logged: Vec<Seq>,
    turn: Turn,
    input: u64,
    said: u64,
}

impl Working {
    /// An empty index.
    pub(super) fn empty(counter: Arc<dyn TokenCounter + Send + Sync>) -> Self {
        let (made, hidden, edited) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (visible, places, strategy) = (VisibleIndex::default(), Places::default(), Str::default());
        Self { visible, counter, places, own: Vec::new(), orphan_tokens: 0, made, hidden, edited, strategy }
    }

    /// The index of a run that is about to begin. `primary` names the source whose history is compacted.
    pub(super) fn begin(
        context: &SessionContext,
        primary: Option<&str>,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self, SessionError> {
        Self::begin_without(context, primary, counter, &[])
    }

    /// Index of a run that has begun: `own` are the numbers in that history of the messages that the run itself has stored.
    pub(super) fn begin_without(
        context: &SessionContext,
        primary: Option<&str>,
        counter: Arc<dyn TokenCounter + Send + Sync>,
        own: &[Seq],
    ) -> Result<Self, SessionError> {
        let mut working = Self::empty(counter);
        working.places.logged = own.to_vec();
        if let Some(text) = context.instruction_text() {
            working.push(vec![Message::system(text)]);
            working.places.instructs = true;
        }
        for source in context.context_messages() {
            let base = working.visible.head().0;
            working.places.sources.push(base);
            let history = context.history(&source.source_id).filter(|_| source.loaded);
            let loaded = history.map_or(0, |history| history.projection().count());
            if let Some(history) = history {
                let (is_primary, turn) = (primary == Some(source.source_id.as_str()), working.index().turn());
                working.extend(history, if is_primary { own } else { &[] })?;
                if is_primary {
                    working.places.stored = Some((base, working.visible.head().0));
                    working.places.turn = turn;
                }
            }
            working.push(source.messages.iter().skip(loaded).cloned().collect());
        }
        working.places.input = working.visible.head().0;
        working.push(context.input_messages().to_vec());
        working.places.said = working.visible.head().0;
        if let Some(history) = primary.and_then(|primary| context.history(primary)) {
            let revision = history.revision();
            working.visible.set_revision(revision);
        }
        Ok(working)
    }

    /// Adds messages to the run.
    pub(super) fn push(&mut self, messages: Vec<Message>) {
        if messages.is_empty() {
            return;
        }
        let first = self.visible.head().0;
        let placing = self.visible.place(messages, &*self.counter, &mut |_| {});
        let orphans = placing.entries().iter().filter(|entry| entry.orphan);
        let tokens = orphans.map(|entry| entry.count.tokens.as_u64()).sum();
        self.orphan_tokens = self.orphan_tokens.saturating_add(tokens);
        self.own.extend((first..).map(Seq).zip(placing.entries().iter().cloned()));
        placing.keep();
    }

    pub(super) fn index(&self) -> Index<'_> {
        self.visible.index()
    }

    pub(super) const fn visible(&self) -> &VisibleIndex {
        &self.visible
    }

    pub(super) fn counter(&self) -> &Arc<dyn TokenCounter + Send + Sync> {
        &self.counter
    }

    /// Stamp by which the ledger knows a request.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp::new(self.index().revision(), self.visible.head())
    }

    /// Messages to be sent.
    pub(super) fn projection(&self) -> Vec<&Message> {
        let positions = self.index().projection().flatten();
        let live = positions.filter_map(|position| self.visible.live().get(position as usize));
        live.map(|live| &live.entry.message).collect()
    }

    /// The instructions, if there are any.
    pub(super) fn instructions(&self) -> Option<&Message> {
        let first = self.visible.live().first().filter(|_| self.places.instructs);
        first.map(|live| &live.entry.message)
    }

    /// Size of the messages that answer calls which only a service has.
    pub(super) const fn orphan_tokens(&self) -> u64 {
        self.orphan_tokens
    }

    /// Whether a message of the input has other content beside an answer to no call, or to a call that a compaction has
    /// hidden: that content would not be sent.
    pub(super) fn loses_input(&self) -> bool {
        let is_sent = |seq: &Seq| self.visible.live().binary_search_by_key(seq, |live| live.key).is_ok();
        let mut input =
            self.own.iter().filter(|(seq, _)| (self.places.input..self.places.said).contains(&seq.0));
        let says = |part: &Part| matches!(part, Part::Text(_) | Part::Media(_) | Part::Unknown(_));
        input.any(|(seq, entry)| {
            entry.message.role() == Role::User && !is_sent(seq) && entry.message.parts().iter().any(says)
        })
    }

    /// Whether `message` answers no call.
    pub(super) fn is_orphan(&self, message: &Message) -> bool {
        self.visible.is_orphan(message)
    }

    /// The calls without a result, in order: those of the current turn, or those of earlier ones.
    pub(super) fn calls_without_result(&self, current: bool) -> Vec<ToolCall> {
        let (turn, mut open) = (self.index().turn(), Vec::<(Vec<u8>, OpenCall)>::new());
        self.visible.for_each_open_call(&mut |id, call| {
            if call.span != OpenCall::HIDDEN && (call.turn == turn) == current {
                open.push((id.to_vec(), call));
            }
        });
        open.sort_by_key(|(_, call)| (call.anchor, call.ordinal));
        open.iter().filter_map(|(id, call)| self.call(id, *call)).collect()
    }

    /// The messages from the answer with the call `id` on. Of several open calls of this id the first counts.
    pub(super) fn since_call(&self, id: &str) -> impl Iterator<Item = (Seq, &Message)> {
        let mut anchor = None::<Seq>;
        self.visible.for_each_open_call(&mut |open, call| {
            if open == id.as_bytes() && call.span != OpenCall::HIDDEN {
                anchor = Some(anchor.map_or(call.anchor, |first| first.min(call.anchor)));
            }
        });
        let live = self.visible.live();
        let mut first = anchor.map_or(live.len(), |anchor| live.partition_point(|live| live.key < anchor));
        // An answer may be several messages.
        let is_models =
            |at: &usize| live.get(*at).is_some_and(|live| live.entry.message.role() == Role::Assistant);
        while let Some(before) = first.checked_sub(1).filter(is_models) {
            first = before;
        }
        live.iter().skip(first).map(|live| (live.key, &live.entry.message))
    }

    /// Whether a message with this number was there before the run.
    pub(super) const fn is_before_input(&self, number: Seq) -> bool {
        number.0 < self.places.input
    }

    fn call(&self, id: &[u8], open: OpenCall) -> Option<ToolCall> {
        let group = self.index().group_of(open.span)?;
        let live = group.positions().flatten().filter_map(|at| self.visible.live().get(at as usize));
        let mut calls = live.flat_map(|live| live.entry.message.parts()).filter_map(|part| match part {
            Part::ToolCall(call) if call.kind == CallKind::Function => Some(call),
            _ => None,
        });
        calls.find(|call| call.id.as_bytes() == id).cloned()
    }

    /// Whether the message at this position and all after it are the run's own: no request has held them in their
    /// current form.
    pub(super) fn is_unsent(&self, position: Seq) -> bool {
        let live = usize::try_from(position.0).ok().and_then(|at| self.visible.live().get(at));
        live.is_some_and(|live| live.key.0 >= self.places.input)
    }

    /// Sets the revision of the visible messages.
    pub(super) const fn hold_at(&mut self, revision: Revision) {
        self.visible.set_revision(revision);
    }

    /// The name of the strategy that compacted in this run; `name` if none did.
    pub(super) fn strategy_or(&self, name: &str) -> Str {
        if self.strategy.is_empty() { Str::from(name) } else { self.strategy.clone() }
    }

    /// Shows the messages that a compaction has left.
    pub(super) fn adopt(&mut self, left: Compacted) -> Result<(), SessionError> {
        let Compacted { live, hidden, made, edited, strategy } = left;
        let is_hidden = |seq: Seq| hidden.iter().any(|range| range.contains(seq));
        let hides = |group: &Group<'_>| {
            self.visible.covered_by(group).first().is_some_and(|range| is_hidden(range.first))
        };
        let mut unanswered = self.visible.unanswered().to_vec();
        unanswered.extend(self.visible.unanswered_where(hides));
        // A late answer that a new summary contains is no longer news.
        let is_told = |anchor: Seq| {
            let new = live.iter().filter(|live| made.contains(&live.key));
            new.flat_map(|live| &live.covers).any(|range| range.contains(anchor))
        };
        let late = self.visible.late().iter().filter(|late| !is_told(late.anchor)).cloned().collect();
        let mut loaded = Loaded::new(self.visible.head(), self.index().revision().next());
        (loaded.live, loaded.unanswered) = (live, unanswered);
        let visible = VisibleIndex::of(loaded, &*self.counter).map_err(|error| {
            SessionError::new(SessionErrorKind::Invalid, "what a compaction has left").with_source(error)
        })?;
        self.visible = visible.with_late(late);
        self.made.retain(|key| !hidden.iter().any(|range| range.contains(*key)));
        self.made.extend(made);
        self.hidden = joined(self.hidden.iter().copied().chain(hidden).collect());
        for (number, stood) in edited {
            // If a message is shortened again, the stored history still knows the first of its stand-ins.
            self.edited.entry(number).or_insert(stood);
        }
        self.strategy = strategy;
        Ok(())
    }

    /// Changes that the compactions of this run make to the stored history, in its numbers. `logged` has the numbers of
    /// the messages that the run itself has stored. Messages that are not stored are left out: they were hidden or
    /// shortened for this run only.
    pub(super) fn pending(&self, logged: &BTreeMap<Seq, Seq>) -> PendingRecord {
        let made = self.visible.live().iter().filter(|live| self.made.contains(&live.key));
        let summaries = made.filter_map(|live| {
            let covers = self.in_history(&live.covers, logged);
            let key = covers.first()?.first;
            let attribution = live.entry.message.attribution().clone().with_derived_from(covers);
            let message = live.entry.message.clone().with_attribution(attribution);
            Some(Summary::new(key, message, live.entry.count.clone()))
        });
        let hides = self.in_history(&self.hidden, logged);
        let edits = self.edited.iter().filter_map(|(number, seen)| self.pending_edit(*number, seen, logged));
        let mut edits: Vec<_> = edits.collect();
        edits.sort_by_key(|edit| edit.seq);
        PendingRecord { hides, summaries: summaries.collect(), edits, strategy: self.strategy.clone() }
    }

    /// `None` if the message is hidden by now, or not stored.
    fn pending_edit(
        &self,
        number: Seq,
        seen: &[PartStandIn],
        logged: &BTreeMap<Seq, Seq>,
    ) -> Option<PendingEdit> {
        let live = self.visible.live();
        let live = live.get(live.binary_search_by_key(&number, |live| live.key).ok()?)?;
        let at = self.in_history(&[SeqRange { first: number, last: number }], logged);
        let new = live.stand_ins.iter().filter(|stand_in| !seen.contains(stand_in));
        let (stand_ins, count) = (new.cloned().collect(), live.entry.count.clone());
        Some(PendingEdit { seq: at.first()?.first, seen: seen.to_vec(), stand_ins, count })
    }

    /// Records that the stored history has the compactions.
    pub(super) fn committed(&mut self) {
        self.hidden.clear();
        self.made.clear();
        self.edited.clear();
    }

    /// Whether there are compactions that the stored history does not have.
    pub(super) fn is_ahead(&self) -> bool {
        !self.hidden.is_empty() || !self.edited.is_empty()
    }

    /// The number here of a message of the run.
    pub(super) fn number_of(&self, place: RunPlace) -> Option<Seq> {
        let number = |first: u64, at: usize| Seq(first.saturating_add(at as u64));
        match place {
            RunPlace::Input(at) => Some(number(self.places.input, at)),
            RunPlace::Said(at) => Some(number(self.places.said, at)),
            RunPlace::Context { source, at } => {
                let first = *self.places.sources.get(source)?;
                // The history numbers the messages that it has loaded.
                (self.places.stored.is_none_or(|(base, _)| base != first)).then(|| number(first, at))
            }
        }
    }

    /// The number in the stored history of a message that was loaded from it.
    pub(super) fn stored_number(&self, number: Seq) -> Option<Seq> {
        let (base, end) = self.places.stored?;
        (base..end).contains(&number.0).then(|| Seq(number.0 - base))
    }

    /// Number of messages of the stored history that the run knows, hidden ones too.
    pub(super) const fn stored_len(&self) -> u64 {
        match self.places.stored {
            Some((base, end)) => end.saturating_sub(base),
            None => 0,
        }
    }

    /// The answers that the visible summaries do not contain yet, by the positions of the summaries. `stored` is the
    /// history.
    pub(super) async fn late_answers(&self, stored: Option<&History>) -> Result<Beside, SessionError> {
        let mut beside = Beside::new();
        for (position, live) in
            (0..).map(Seq).zip(self.visible.live()).filter(|(_, it)| !it.covers.is_empty())
        {
            let mut exchanges = Vec::new();
            if let Some(history) = stored {
                let covers = self.in_history(&live.covers, &BTreeMap::new());
                exchanges = history.late_answers_in(&covers, history.head()).await?;
            }
            let own = |late: &&Entry| live.covers.iter().any(|range| range.contains(late.anchor));
            for late in self.visible.late().iter().filter(own) {
                // If the history was read again since, it contains this answer by now.
                if exchanges.iter().any(|known: &Exchange| known.last() == Some(&late.message)) {
                    continue;
                }
                exchanges.push(match (stored, self.stored_number(late.anchor)) {
                    (Some(history), Some(anchor)) => {
                        let mut late = late.clone();
                        late.anchor = anchor;
                        history.late_exchange(&late).await?
                    }
                    _ => self.exchange(late),
                });
            }
            if !exchanges.is_empty() {
                beside.insert(position, exchanges);
            }
        }
        Ok(beside)
    }

    /// Ranges of the messages that are in the stored history, in its numbers.
    fn in_history(&self, ranges: &[SeqRange], logged: &BTreeMap<Seq, Seq>) -> Vec<SeqRange> {
        let mut found = Vec::new();
        for range in ranges {
            if let Some((base, end)) = self.places.stored {
                let (first, last) = (range.first.0.max(base), range.last.0.min(end.saturating_sub(1)));
                if first <= last && base < end {
                    found.push(SeqRange { first: Seq(first - base), last: Seq(last - base) });
                }
            }
            let seqs = logged.range(range.first..=range.last).map(|(_, seq)| *seq);
            found.extend(seqs.map(|seq| SeqRange { first: seq, last: seq }));
        }
        joined(found)
    }

    fn extend(&mut self, history: &History, but: &[Seq]) -> Result<(), SessionError> {
        self.visible.extend(history.visible(), but, &*self.counter).map_err(|error| {
            SessionError::new(SessionErrorKind::Corrupt, "a loaded history cannot be put together")
                .with_source(error)
        })
    }

    /// An answer with its call, which the run has made.
    fn exchange(&self, answer: &Entry) -> Exchange {
        let own = self.own.iter().filter(|(_, entry)| entry.anchor == answer.anchor);
        exchange(answer, own.flat_map(|(_, entry)| entry.message.parts()))
    }

    /// Messages that the visible message at this position stands for.
    pub(super) fn covers_at(&self, position: usize) -> Vec<SeqRange> {
        self.visible.live().get(position).map(covered).unwrap_or_default()
    }
}

/// A turn of the history in the run, where it comes behind the turn `before`.
const fn moved(turn: Turn, before: Turn) -> Turn {
    Turn(turn.0.saturating_add(before.0))
}
