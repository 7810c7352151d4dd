//! A loaded session: its live projection, grouped and counted, and its store.

mod append;
mod hidden;
mod late;

use core::fmt;
use std::sync::Arc;

use epitome_core::{
    Budget, Cell, Clamp, FillError, Head, Index, IndexedPart, Outcome, Pass, Plan, ReadyPlan, RestoreError,
    Revision, Seq, StandIn, Strategy, TokenCounter, Tokens, plan,
};
use epitome_message::tokens::CachedCounter;
use epitome_message::{Message, Part, Str};

use super::visible::VisibleIndex;
use super::{
    AppendToken, Appended, Committed, CompactionRecord, Handles, HistoryError, HistoryStore,
    HistoryStoreExt as _, Live, Loaded, LogPage, Notes, PendingRecord, Pins, SessionId, StoreError,
    StoreErrorKind, Timestamp, clamped_named, fill_named, part_text,
};

pub use hidden::Unseen;
pub use late::{Beside, Exchange, exchange};

/// A loaded session: the messages of its next request, and the store that keeps the whole session.
///
/// Messages are grouped and counted once, when they are appended. A new process loads the same groups, the same sizes
/// and the same projection.
///
/// Several histories, also in several processes, may use one session. Each shows the session as it was when that
/// history last changed or reloaded it. An operation on an outdated history fails with `Conflict`, or takes in the
/// changes of the others.
///
/// *Cancel safety*: if the future of a changing method is dropped or fails, the history shows the same messages as
/// before. The next changing method first loads the session again, and so finds out whether the store has done the
/// operation.
pub struct History {
    store: Arc<dyn HistoryStore>,
    session: SessionId,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    /// Counts messages that were stored with the sizes of another counter. It counts each text at the first load only.
    recounter: CachedCounter,
    visible: VisibleIndex,
    /// Whether the store may have changes that are not visible here.
    in_doubt: bool,
    /// Whether only the last turn is loaded, which suffices for an append.
    tail_only: bool,
    /// The late answers of a copied history, whose store has no log of them.
    beside: Option<Beside>,
    /// The numbers of hidden and shortened messages, if the model can read messages by number.
    pub(super) handles: Option<Handles>,
    /// The clock for the times of appends.
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl History {
    /// Loads a session. A session that does not exist begins with its first append.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::load`]; `Corrupt` if the stored data contradicts itself.
    pub async fn open(
        store: Arc<dyn HistoryStore>,
        session: impl Into<SessionId>,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self, StoreError> {
        Self::begin(store, session.into(), counter, false).await
    }

    /// Loads only the last turn, to append messages at the cost of that turn. Every other operation loads the rest.
    #[doc(hidden)]
    pub async fn open_tail(
        store: Arc<dyn HistoryStore>,
        session: SessionId,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self, StoreError> {
        Self::begin(store, session, counter, true).await
    }

    async fn begin(
        store: Arc<dyn HistoryStore>,
        session: SessionId,
        counter: Arc<dyn TokenCounter + Send + Sync>,
        tail_only: bool,
    ) -> Result<Self, StoreError> {
        let recounter = CachedCounter::new(counter.clone(), RECOUNTS_MAX);
        let visible = VisibleIndex::default();
        let (in_doubt, clock) = (true, Arc::new(Timestamp::now));
        let (beside, handles) = (None, None);
        let mut history =
            Self { store, session, counter, recounter, visible, in_doubt, tail_only, beside, handles, clock };
        history.reload().await?;
        Ok(history)
    }

    /// Sets the clock for the times of appends. The default is the system clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes a second handle of the same session with the same messages: for example to plan in one task while another
    /// task continues with this handle. The cost grows with the number of visible messages.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            session: self.session.clone(),
            counter: Arc::clone(&self.counter),
            recounter: CachedCounter::new(Arc::clone(&self.counter), RECOUNTS_MAX),
            visible: self.visible.clone(),
            in_doubt: self.in_doubt,
            tail_only: self.tail_only,
            beside: self.beside.clone(),
            handles: self.handles.clone(),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Whether all visible messages are loaded.
    #[doc(hidden)]
    pub const fn is_whole(&self) -> bool {
        !self.tail_only
    }

    /// The answer to the append under `token`, if there was one.
    #[doc(hidden)]
    pub async fn appended(&self, token: &AppendToken) -> Result<Option<Appended>, StoreError> {
        self.store.appended(&self.session, token).await
    }

    /// Loads the session again, to get the changes of other handles.
    ///
    /// # Errors
    /// The errors of [`History::open`]. The history then shows the same messages as before.
    pub async fn reload(&mut self) -> Result<(), StoreError> {
        self.in_doubt = true;
        let loaded = match self.tail_only {
            true => self.store.tail(&self.session).await,
            false => self.store.load(&self.session).await,
        };
        let loaded = match loaded {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Loaded::new(Seq(0), Revision(0)),
            loaded => loaded?,
        };
        loaded.check_texts(&format!("session {:?}", self.session.as_str()))?;
        let pins = self.visible.pins().clone();
        let visible = VisibleIndex::pinned(loaded, pins, &self.recounter);
        self.visible = visible.map_err(|error| self.contradicts(error))?;
        self.in_doubt = false;
        Ok(())
    }

    /// Pins these messages in this handle, also messages that are appended later. The pins replace earlier pins of the
    /// handle; messages that are stored as pinned stay pinned. Pins are not stored.
    ///
    /// # Errors
    /// `Corrupt` if the loaded data contradicts itself; the next changing method loads the session again.
    pub fn set_pins(&mut self, pins: Pins) -> Result<(), StoreError> {
        let pinned = self.visible.set_pins(pins);
        self.in_doubt |= pinned.is_err();
        pinned.map_err(|error| self.contradicts(error))
    }

    fn contradicts(&self, error: RestoreError) -> StoreError {
        let context = format!("session {:?} cannot be put together", self.session.as_str());
        StoreError::new(StoreErrorKind::Corrupt, context).with_source(error)
    }

    /// Fills a plan of this history with `notes` for elided parts and with excerpts for clamped parts; `then` receives
    /// the filled plan. A plan with summaries needs [`History::fill_with`].
    ///
    /// # Errors
    /// The errors of [`fill`](super::fill).
    pub fn fill<'a, T>(
        &self,
        plan: Plan<'a>,
        notes: &Notes,
        then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
    ) -> Result<T, FillError> {
        self.fill_with(plan, notes, &[], then)
    }

    /// Fills the plan also with the summaries in the place of groups, in the order of [`Plan::summaries`].
    ///
    /// # Errors
    /// The errors of [`fill_with`](crate::fill_with).
    pub fn fill_with<'a, T>(
        &self,
        plan: Plan<'a>,
        notes: &Notes,
        summaries: &[StandIn<'_>],
        then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
    ) -> Result<T, FillError> {
        let text = |position, ordinal| self.part_text(position, ordinal);
        let handle = |part: &IndexedPart<'_>| self.handle_of_part(part);
        fill_named(plan, notes, summaries, &*self.counter, text, handle, then)
    }

    /// The text that [`History::fill`] puts in the place of a clamped part, and its size; `None` if the part has no text.
    #[must_use]
    pub fn clamped_text(&self, part: &IndexedPart<'_>, clamp: Clamp) -> Option<(String, Tokens)> {
        let text = self.part_text(part.position(), part.ordinal())?;
        Some(clamped_named(&text, (part.kind(), clamp), self.handle_of_part(part), &*self.counter))
    }

    fn part_text(&self, position: u32, ordinal: u32) -> Option<String> {
        let live = self.live().get(position as usize)?;
        part_text(&live.entry.message, ordinal)
    }

    /// Makes the record of a plan for the stored session: hidden messages, summaries and shortened parts, for one
    /// commit.
    ///
    /// The text of a summary becomes a message of the model, at the lowest number that it covers. Its authority is at
    /// most that of the model's own messages and at most the lowest authority among the covered messages. Its
    /// attribution names these messages.
    #[must_use]
    pub fn record(&self, ready: &ReadyPlan<'_, '_>, strategy: &str) -> CompactionRecord {
        self.record_with(ready, strategy, core::iter::empty())
    }

    /// [`History::record`] with other parts for the messages that stand for groups, in the order of
    /// [`Plan::summaries`], instead of the texts of the plan.
    #[must_use]
    pub fn record_with(
        &self,
        ready: &ReadyPlan<'_, '_>,
        strategy: &str,
        summaries: impl Iterator<Item = Vec<Part>>,
    ) -> CompactionRecord {
        let mut record = self.visible.record(ready, summaries, &*self.counter);
        record.strategy = Str::from(strategy);
        record
    }

    /// Adds `text` to `record`, which is not committed yet: to its last summary, or in the place of the last messages
    /// that it hides. The added part begins with [`RELOADED`](super::RELOADED). Texts of earlier compactions that stand
    /// alone are hidden. Returns the tokens of the text; `None` if the record has no place for it, or if it has more
    /// than `tokens_max`.
    pub fn add_text(&self, record: &mut CompactionRecord, text: &str, tokens_max: u64) -> Option<u64> {
        self.visible.add_text(record, text, tokens_max, &*self.counter)
    }

    /// Makes the record of a compaction that was decided on a copy, as far as it fits the visible messages; `None` if
    /// no part of it fits.
    #[doc(hidden)]
    pub fn record_pending(&self, pending: &PendingRecord) -> Option<CompactionRecord> {
        self.visible.record_pending(pending)
    }

    /// The token counter of the history.
    #[must_use]
    pub fn counter(&self) -> &(dyn TokenCounter + Send + Sync) {
        &*self.counter
    }

    /// The visible messages, with their groups.
    #[doc(hidden)]
    pub const fn visible(&self) -> &VisibleIndex {
        &self.visible
    }

    /// Commits a record. From then on, every load of the session shows the result.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::commit`]. After `Conflict`, this handle has loaded the changes of the others: plan
    /// again. A load may also fail after the record was committed. Then repeat the call with the same record, which the
    /// store recognizes.
    pub async fn commit(&mut self, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.tail_only = false;
        self.settle().await?;
        self.in_doubt = true;
        let committed = self.store.commit(&self.session, record).await;
        self.reload_after(committed).await
    }

    /// Plans a pass. If the plan changes something, fills it with the default [`Notes`] and commits it. Returns `None`
    /// if there is nothing to do.
    ///
    /// This method has no memory for summaries. A strategy that only writes summaries (`Summarization`, `Ledger`) does
    /// nothing, and `AgentPreset` hides messages without its ledger. `Engine` and `compact_messages` of
    /// `epitome-compactors` have that memory.
    ///
    /// # Errors
    /// [`HistoryError`]: there is no plan, it cannot be filled, or the store refused it; the session is then unchanged.
    /// A load may also fail after the commit. In both cases, the same call again plans on the stored session.
    pub async fn compact(
        &mut self,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
    ) -> Result<Option<CompactionRecord>, HistoryError> {
        self.settle().await?;
        let mut cells = vec![Cell::default(); self.index().cell_count()];
        let record = match plan(self.index(), budget, pass, strategy, &mut cells)? {
            Outcome::Unchanged(_) => return Ok(None),
            Outcome::Planned(plan) => {
                self.fill(plan, &Notes::default(), |ready| self.record(&ready, strategy.name()))?
            }
        };
        self.commit(&record).await?;
        Ok(Some(record))
    }

    /// The latest stored compaction that is not undone.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::records`]. A session that does not exist yet has no compaction.
    pub async fn latest_compaction(&self) -> Result<Option<Committed>, StoreError> {
        match self.store.latest_compaction(&self.session).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(None),
            latest => latest,
        }
    }

    /// Reads the messages that the record of revision `made` has hidden or shortened: see
    /// [`expand`](super::HistoryStoreExt::expand).
    ///
    /// # Errors
    /// The errors of [`expand`](super::HistoryStoreExt::expand).
    pub async fn expand(&self, made: Revision, from: Seq, limit: u32) -> Result<LogPage, StoreError> {
        self.store.expand(&self.session, made, from, limit).await
    }

    /// Reads the log: see [`HistoryStore::log`]. A session that does not exist yet has an empty log.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::log`].
    pub async fn log(&self, range: core::ops::Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        match self.store.log(&self.session, range, limit).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(LogPage::new(Vec::new(), None)),
            page => page,
        }
    }

    /// Undoes the record of revision `made`, which must be the latest that is not undone. The messages that were
    /// visible before it are visible again. Messages that were appended since stay.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::uncompact`]. After `Conflict`, this handle has loaded the changes of the others.
    pub async fn uncompact(&mut self, made: Revision) -> Result<Revision, StoreError> {
        self.tail_only = false;
        self.in_doubt = true;
        let undone = self.store.uncompact(&self.session, made).await;
        self.reload_after(undone).await
    }

    /// Takes back the message `at` and all later messages: see [`rewind`](super::HistoryStoreExt::rewind).
    ///
    /// # Errors
    /// The errors of [`rewind`](super::HistoryStoreExt::rewind).
    pub async fn rewind(&mut self, at: Seq) -> Result<Revision, StoreError> {
        self.tail_only = false;
        self.settle().await?;
        self.in_doubt = true;
        let rewound = self.store.rewind(&self.session, at).await;
        self.reload_after(rewound).await
    }

    /// The messages of the next request, in order.
    pub fn projection(&self) -> impl Iterator<Item = &Message> {
        let positions = self.index().projection().flatten();
        positions.filter_map(|position| self.live().get(position as usize)).map(|live| &live.entry.message)
    }

    /// The visible messages, by their position in the index.
    #[must_use]
    pub fn live(&self) -> &[Live] {
        self.visible.live()
    }

    /// The groups and sizes of the visible messages.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.visible.index()
    }

    /// The sequence number of the next message.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.visible.head()
    }

    /// The revision: a counter of the changes to the visible messages.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.index().revision()
    }

    async fn settle(&mut self) -> Result<(), StoreError> {
        if self.in_doubt { self.reload().await } else { Ok(()) }
    }

    /// Loads the session after an operation. If both fail, returns the error of the operation.
    async fn reload_after<T>(&mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let reloaded = self.reload().await;
        let value = answer?;
        reloaded.map(|()| value)
    }
}

/// Maximum number of texts with remembered counts: more than a window holds, in half a megabyte.
const RECOUNTS_MAX: usize = 4_096;

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("session", &self.session)
            .field("head", &self.head())
            .field("revision", &self.revision())
            .field("live", &self.live().len())
            .finish_non_exhaustive()
    }
}
