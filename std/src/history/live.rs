//! A session in use: its live projection, grouped and counted, over the store that keeps it.

use core::fmt;
use std::sync::Arc;

use epitome_core::attribution::{SeqRange, SourceKind};
use epitome_core::{
    Budget, Cell, Head, Index, IndexBuf, OpenCall, OpenCallTree, OpenCalls, Outcome, Pass, Plan, PlanError,
    Revision, Seq, Span, Stored, Strategy, TokenCounter, Verdict, count_message, plan,
};

use super::{
    AppendToken, Appended, CompactionRecord, Entry, HistoryStore, Live, Loaded, SessionId, StoreError,
    StoreErrorKind, TokenCount, UnansweredCall,
};
use crate::message::{Message, Str};

/// A session in use: what its next request would contain, and the store that keeps all of it.
///
/// Messages are grouped and counted once, when they are appended. What a fresh process loads is what this one holds: the
/// groups, the sizes and the projection are the same.
///
/// *Cancel safety*: if the future of a changing method is dropped, the next one loads the session again first, and so
/// sees whether the store went through with it.
pub struct History {
    store: Arc<dyn HistoryStore>,
    session: SessionId,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    index: IndexBuf<Vec<Span>, OpenCallTree>,
    /// By position in the index; keys ascend.
    live: Vec<Live>,
    unanswered: Vec<UnansweredCall>,
    /// Whether a change was sent to the store and its answer has not been taken in.
    in_doubt: bool,
}

impl History {
    /// Loads a session, or begins it if there is none.
    ///
    /// # Errors
    /// As [`HistoryStore::load`]; `Corrupt` if what is stored contradicts itself.
    pub async fn open(
        store: Arc<dyn HistoryStore>,
        session: SessionId,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self, StoreError> {
        let index = IndexBuf::new();
        let mut history = Self {
            store,
            session,
            counter,
            index,
            live: Vec::new(),
            unanswered: Vec::new(),
            in_doubt: false,
        };
        history.reload().await?;
        Ok(history)
    }

    /// Loads the session again: what to do after `Conflict`.
    ///
    /// # Errors
    /// As [`History::open`].
    pub async fn reload(&mut self) -> Result<(), StoreError> {
        let loaded = match self.store.load(&self.session).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Loaded::new(Seq(0), Revision(0)),
            loaded => loaded?,
        };
        self.live = loaded.live;
        self.unanswered = loaded.unanswered;
        for live in &mut self.live {
            if live.entry.count.counter != self.counter.name() {
                live.entry.count = count(&live.entry.message, &*self.counter);
            }
        }
        self.rebuild(loaded.head, loaded.revision)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Appends messages: groups them, counts them and stores them, all or none.
    ///
    /// The token makes it repeatable: after an error, the same call again appends once at most.
    ///
    /// # Errors
    /// As [`HistoryStore::append`]. After `Conflict`, somebody else has appended: [`History::reload`] and decide anew.
    pub async fn append(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
    ) -> Result<Appended, StoreError> {
        self.settle().await?;
        self.in_doubt = true;
        let head = self.head();
        let entries = self.place(messages);
        let appended = self.store.append(&self.session, token, head, &entries).await;
        match appended {
            Ok(appended) if appended.first == head && appended.head == self.head() => {
                self.index.resume(appended.head, appended.revision);
                self.in_doubt = false;
                Ok(appended)
            }
            // The token was seen before, or nothing was appended: what is stored decides.
            answer => {
                self.reload().await?;
                answer
            }
        }
    }

    /// Plans a pass over what is visible. `cells` is memory for the verdicts, made large enough here.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn plan<'a>(
        &'a self,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
        cells: &'a mut Vec<Cell>,
    ) -> Result<Outcome<'a>, PlanError> {
        cells.resize(self.index.view().span_count(), Cell::default());
        plan(self.index.view(), budget, pass, strategy, cells)
    }

    /// What a plan of this history does to the stored session.
    #[must_use]
    pub fn record(&self, plan: &Plan<'_>, strategy: &str) -> CompactionRecord {
        CompactionRecord {
            parent: self.revision(),
            head: self.head(),
            hides: self.hidden_by(plan),
            summaries: Vec::new(),
            unanswered: self.unanswered_under(plan),
            strategy: Str::from(strategy),
            tokens_before: plan.tokens_before(),
            tokens_after: plan.tokens_after(),
        }
    }

    /// Commits a record: from then on the session shows what the record leaves, here and wherever it is loaded.
    ///
    /// # Errors
    /// As [`HistoryStore::commit`]. After `Conflict`, [`History::reload`] and plan anew.
    pub async fn commit(&mut self, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.settle().await?;
        self.in_doubt = true;
        let committed = self.store.commit(&self.session, record).await;
        self.reload().await?;
        committed
    }

    /// Plans a pass and, if there is something to do, commits it.
    ///
    /// # Errors
    /// [`HistoryError`]: there is no plan, or the store refused it. The session is then as it was.
    pub async fn compact(
        &mut self,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
    ) -> Result<Option<CompactionRecord>, HistoryError> {
        self.settle().await?;
        let mut cells = Vec::new();
        let record = match self.plan(budget, pass, strategy, &mut cells)? {
            Outcome::Unchanged(_) => return Ok(None),
            Outcome::Planned(plan) => self.record(&plan, strategy.name()),
        };
        self.commit(&record).await?;
        Ok(Some(record))
    }

    /// The messages of the next request, in order.
    pub fn projection(&self) -> impl Iterator<Item = &Message> {
        let positions = self.index.view().projection().flatten();
        positions.filter_map(|position| self.live.get(position as usize)).map(|live| &live.entry.message)
    }

    /// What is visible, by position in the index.
    #[must_use]
    pub fn live(&self) -> &[Live] {
        &self.live
    }

    /// The groups and sizes of what is visible.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.index.view()
    }

    /// The sequence number that the next message will get.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.index.head()
    }

    /// How often what is visible has been changed.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.index.view().revision()
    }

    async fn settle(&mut self) -> Result<(), StoreError> {
        if self.in_doubt { self.reload().await } else { Ok(()) }
    }

    /// Groups and counts messages on their way into the log.
    fn place(&mut self, messages: Vec<Message>) -> Vec<Entry> {
        messages.into_iter().map(|message| self.place_one(message)).collect()
    }

    fn place_one(&mut self, message: Message) -> Entry {
        let (seq, turn) = (self.index.head(), self.index.view().turn());
        let count = count(&message, &*self.counter);
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

    fn hidden_by(&self, plan: &Plan<'_>) -> Vec<SeqRange> {
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

    fn unanswered_under(&self, plan: &Plan<'_>) -> Vec<UnansweredCall> {
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

    /// Makes the index anew from what is visible, with the groups that were stored.
    fn rebuild(&mut self, head: Head, revision: Revision) -> Result<(), StoreError> {
        self.index.clear();
        let corrupt = |error| {
            let context = format!("session {:?} cannot be put together", self.session.as_str());
            StoreError::new(StoreErrorKind::Corrupt, context).with_source(error)
        };
        for live in &self.live {
            let Entry { anchor, turn, count, orphan, .. } = &live.entry;
            let leads = *anchor == live.key;
            let leader =
                if leads { None } else { self.live.binary_search_by_key(anchor, |live| live.key).ok() };
            let leader = leader.and_then(|at| u32::try_from(at).ok());
            let (seq, anchor, turn, orphan) = (live.key, *anchor, *turn, *orphan);
            let stored = Stored { seq, leader, anchor, turn, tokens: count.tokens, orphan };
            self.index.restore(&live.entry.message, &stored).map_err(|error| corrupt(error.to_string()))?;
        }
        for call in &self.unanswered {
            // Trees have always room.
            let _ = self.index.restore_hidden_call(&call.id, call.turn, call.anchor, call.ordinal);
        }
        self.index.resume(head, revision);
        Ok(())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("session", &self.session)
            .field("head", &self.head())
            .field("revision", &self.revision())
            .field("live", &self.live.len())
            .finish_non_exhaustive()
    }
}

/// Why a session was not compacted.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// There is no plan.
    Plan(PlanError),
    /// The store refused.
    Store(StoreError),
}

impl From<PlanError> for HistoryError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for HistoryError {}

fn count(message: &Message, counter: &(dyn TokenCounter + Send + Sync)) -> TokenCount {
    TokenCount::new(count_message(message, counter), counter.basis(), Str::from(counter.name()))
}

/// The log's messages that a visible one stands for: a summary's sources, or itself.
fn covered(live: &Live) -> Vec<SeqRange> {
    let attribution = live.entry.message.attribution();
    if attribution.source == SourceKind::Compaction && !attribution.derived_from.is_empty() {
        return attribution.derived_from.clone();
    }
    vec![SeqRange { first: live.key, last: live.key }]
}
