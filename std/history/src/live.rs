//! A session in use: its live projection, grouped and counted, over the store that keeps it.

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

/// A session in use: the content of its next request, and the store that keeps all of it.
///
/// Messages are grouped and counted once, when they are appended. A fresh process loads the same groups, the same sizes and the same
/// projection.
///
/// Several histories, also in several processes, may use one session. Each shows the session as it was stored when that history last
/// changed or reloaded it; one that is behind learns it by `Conflict`, or takes in the changes of the others.
///
/// *Cancel safety*: if the future of a changing method is dropped, or fails, this shows what it showed before, and the
/// next changing method loads the session again first, and so sees whether the store went through with it.
pub struct History {
    store: Arc<dyn HistoryStore>,
    session: SessionId,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    /// Counts what another counter has counted when it was stored, at the first load and not again at each.
    recounter: CachedCounter,
    visible: VisibleIndex,
    /// Whether the store may have more than is visible here.
    in_doubt: bool,
    /// Whether only the last turn is here, which is enough to append.
    tail_only: bool,
    /// The late answers of a copy that has no log of them.
    beside: Option<Beside>,
    /// The numbers of what compactions hide and shorten, if the model can read by number.
    pub(super) handles: Option<Handles>,
    /// Says when something is appended.
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl History {
    /// Loads a session, or begins it if there is none.
    ///
    /// # Errors
    /// As [`HistoryStore::load`]; `Corrupt` if what is stored contradicts itself.
    pub async fn open(
        store: Arc<dyn HistoryStore>,
        session: impl Into<SessionId>,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Result<Self, StoreError> {
        Self::begin(store, session.into(), counter, false).await
    }

    /// Opens the last turn only: to append to, at the cost of that turn. Everything else loads the rest.
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

    /// Sets the clock that says when something is appended. The default is the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Another handle on the same session, which shows what this one shows: to plan on in one task while this one goes on in
    /// another. Its cost is that of what is visible.
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

    /// Whether all that is visible is here.
    #[doc(hidden)]
    pub const fn is_whole(&self) -> bool {
        !self.tail_only
    }

    /// The append under `token`, if there was one.
    #[doc(hidden)]
    pub async fn appended(&self, token: &AppendToken) -> Result<Option<Appended>, StoreError> {
        self.store.appended(&self.session, token).await
    }

    /// Loads the session again, to see what other handles have done.
    ///
    /// # Errors
    /// As [`History::open`]. This then shows what it showed before.
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
        let pins = self.visible.pins().clone();
        let visible = VisibleIndex::pinned(loaded, pins, &self.recounter);
        self.visible = visible.map_err(|error| self.contradicts(error))?;
        self.in_doubt = false;
        Ok(())
    }

    /// Pins these messages in this handle, also those of them that come later, and no others but those that are stored as
    /// pinned. Nothing of it is stored.
    ///
    /// # Errors
    /// `Corrupt` if what was loaded contradicts itself; the next changing method loads it again.
    pub fn set_pins(&mut self, pins: Pins) -> Result<(), StoreError> {
        let pinned = self.visible.set_pins(pins);
        self.in_doubt |= pinned.is_err();
        pinned.map_err(|error| self.contradicts(error))
    }

    fn contradicts(&self, error: RestoreError) -> StoreError {
        let context = format!("session {:?} cannot be put together", self.session.as_str());
        StoreError::new(StoreErrorKind::Corrupt, context).with_source(error)
    }

    /// Fills a plan of this history with `notes`, and with what is left of clamped parts; `then` gets what is ready. A plan
    /// that has summaries needs [`History::fill_with`].
    ///
    /// # Errors
    /// As [`fill`](super::fill).
    pub fn fill<'a, T>(
        &self,
        plan: Plan<'a>,
        notes: &Notes,
        then: impl FnOnce(ReadyPlan<'a, '_>) -> T,
    ) -> Result<T, FillError> {
        self.fill_with(plan, notes, &[], then)
    }

    /// Fills the plan with the summaries that stand in the place of groups, in the order of [`Plan::summaries`].
    ///
    /// # Errors
    /// As [`fill_with`](crate::fill_with).
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

    /// The record of a plan for the stored session: hidden messages, summaries and shortened parts, for one
    /// commit.
    ///
    /// The text of a summary becomes a message of the model as it is; it stands at the lowest number that it covers, has
    /// no more authority than a model's own words and the least of what it covers, and says what it is derived from.
    #[must_use]
    pub fn record(&self, ready: &ReadyPlan<'_, '_>, strategy: &str) -> CompactionRecord {
        self.record_with(ready, strategy, core::iter::empty())
    }

    /// The record, with the parts of the messages that stand in the place of groups, in the order of [`Plan::summaries`], where these are
    /// not the texts of the plan.
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

    /// Has `record`, which is not committed yet, show `text` as well: in its last summary, or in the place of the last messages that it
    /// hides. The part begins with [`RELOADED`](super::RELOADED). Texts of compactions before, where they stand alone, are hidden. Returns the tokens of the text; `None` if the record has no place for it, or if it has more than `tokens_max`.
    pub fn add_text(&self, record: &mut CompactionRecord, text: &str, tokens_max: u64) -> Option<u64> {
        self.visible.add_text(record, text, tokens_max, &*self.counter)
    }

    /// The record of what was decided elsewhere, as far as it fits what is visible here; `None` if nothing of it does.
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

    /// Commits a record: from then on the session shows what the record leaves, here and wherever it is loaded.
    ///
    /// # Errors
    /// As [`HistoryStore::commit`]. After `Conflict`, this has loaded what others did: plan anew. An error of a load may
    /// also come after the record was committed: repeat the call with this record, which is then known.
    pub async fn commit(&mut self, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.tail_only = false;
        self.settle().await?;
        self.in_doubt = true;
        let committed = self.store.commit(&self.session, record).await;
        self.reload_after(committed).await
    }

    /// Plans a pass and, if there is something to do, fills it with the default [`Notes`] and commits it; `None` if there is nothing to do.
    ///
    /// There is no memory for summaries here: a strategy that only writes them (`Summarization`, `Ledger`) does nothing, and `AgentPreset`
    /// hides messages without its ledger. `Engine` and `compact_messages` of `epitome-compactors` have that memory.
    ///
    /// # Errors
    /// [`HistoryError`]: there is no plan, it cannot be filled, or the store refused it, and the session is then as it was; or it was
    /// committed, and could not be loaded after that. Either way the same call again plans on what is then stored.
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

    /// The latest compaction that is not undone, as it is stored now.
    ///
    /// # Errors
    /// As [`HistoryStore::records`]; a session that was not begun has none.
    pub async fn latest_compaction(&self) -> Result<Option<Committed>, StoreError> {
        match self.store.latest_compaction(&self.session).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(None),
            latest => latest,
        }
    }

    /// Reads what the record that made `made` has hidden or shortened: see [`expand`](super::HistoryStoreExt::expand).
    ///
    /// # Errors
    /// As [`expand`](super::HistoryStoreExt::expand).
    pub async fn expand(&self, made: Revision, from: Seq, limit: u32) -> Result<LogPage, StoreError> {
        self.store.expand(&self.session, made, from, limit).await
    }

    /// Reads the log: see [`HistoryStore::log`]. A session that was not begun has an empty one.
    ///
    /// # Errors
    /// As [`HistoryStore::log`].
    pub async fn log(&self, range: core::ops::Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        match self.store.log(&self.session, range, limit).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(LogPage::new(Vec::new(), None)),
            page => page,
        }
    }

    /// Undoes the record that made `made`, the latest that is not undone, and shows what was visible before it; what was
    /// appended since stays.
    ///
    /// # Errors
    /// As [`HistoryStore::uncompact`]. After `Conflict`, this has loaded what others did.
    pub async fn uncompact(&mut self, made: Revision) -> Result<Revision, StoreError> {
        self.tail_only = false;
        self.in_doubt = true;
        let undone = self.store.uncompact(&self.session, made).await;
        self.reload_after(undone).await
    }

    /// Takes back the message `at` and all that came after it: see [`rewind`](super::HistoryStoreExt::rewind).
    ///
    /// # Errors
    /// As [`rewind`](super::HistoryStoreExt::rewind).
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

    /// The visible messages, by position in the index.
    #[must_use]
    pub fn live(&self) -> &[Live] {
        self.visible.live()
    }

    /// The groups and sizes of what is visible.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.visible.index()
    }

    /// The sequence number that the next message will get.
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

    /// Loads the session after an operation. If both fail, the operation's own error is the one to tell.
    async fn reload_after<T>(&mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let reloaded = self.reload().await;
        let value = answer?;
        reloaded.map(|()| value)
    }
}

/// Maximum number of texts whose recounts are remembered: of more than a window holds, in half a megabyte.
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
