//! A session in use: its live projection, grouped and counted, over the store that keeps it.

use core::fmt;
use std::sync::Arc;

use epitome_core::{
    Budget, Cell, Head, Index, Outcome, Pass, Plan, PlanError, Revision, Seq, Strategy, TokenCounter, plan,
};

use super::visible::Visible;
use super::{
    Append, AppendToken, Appended, CompactionRecord, HistoryStore, Live, Loaded, SessionId, StoreError,
    StoreErrorKind,
};
use crate::message::{Message, Str};

/// A session in use: what its next request would contain, and the store that keeps all of it.
///
/// Messages are grouped and counted once, when they are appended. What a fresh process loads is what this one holds: the
/// groups, the sizes and the projection are the same.
///
/// Several histories, also in several processes, may use one session. What one of them shows is what was stored when it
/// last changed or reloaded the session; one that is behind learns it by `Conflict`, or takes in what the others did.
///
/// *Cancel safety*: if the future of a changing method is dropped, or fails, this shows what it showed before, and the
/// next changing method loads the session again first, and so sees whether the store went through with it.
pub struct History {
    store: Arc<dyn HistoryStore>,
    session: SessionId,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    visible: Visible,
    /// Whether the store may have more than is visible here.
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
        let mut history = Self { store, session, counter, visible: Visible::new(), in_doubt: true };
        history.reload().await?;
        Ok(history)
    }

    /// Loads the session again, to see what other handles have done.
    ///
    /// # Errors
    /// As [`History::open`]. This then shows what it showed before.
    pub async fn reload(&mut self) -> Result<(), StoreError> {
        self.in_doubt = true;
        let loaded = match self.store.load(&self.session).await {
            Err(error) if error.kind() == StoreErrorKind::NotFound => Loaded::new(Seq(0), Revision(0)),
            loaded => loaded?,
        };
        self.visible = Visible::of(loaded, &*self.counter).map_err(|error| {
            let context = format!("session {:?} cannot be put together", self.session.as_str());
            StoreError::new(StoreErrorKind::Corrupt, context).with_source(error)
        })?;
        self.in_doubt = false;
        Ok(())
    }

    /// Appends messages: groups them, counts them and stores them, all or none.
    ///
    /// The token makes it repeatable: after an error, the same call again appends once at most.
    ///
    /// # Errors
    /// As [`HistoryStore::append`]. After `Conflict`, somebody else has appended, and this has loaded what they did:
    /// decide anew. An error of a load may also come after the messages were stored: repeat the call with its token.
    pub async fn append(
        &mut self,
        token: &AppendToken,
        messages: Vec<Message>,
    ) -> Result<Appended, StoreError> {
        self.settle().await?;
        self.in_doubt = true;
        let head = self.head();
        let placing = self.visible.place(messages, &*self.counter);
        let append = Append::new(token, head, placing.entries());
        let answer = self.store.append(&self.session, &append).await;
        if answer.as_ref().is_ok_and(move |appended| placing.accept(*appended)) {
            self.in_doubt = false;
            return answer;
        }
        // Refused, seen before, or somebody has come in between: what is stored decides.
        self.reload_after(answer).await
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
        cells.resize(self.index().span_count(), Cell::default());
        plan(self.index(), budget, pass, strategy, cells)
    }

    /// What a plan of this history does to the stored session.
    #[must_use]
    pub fn record(&self, plan: &Plan<'_>, strategy: &str) -> CompactionRecord {
        CompactionRecord {
            parent: self.revision(),
            head: self.head(),
            hides: self.visible.hidden_by(plan),
            summaries: Vec::new(),
            unanswered: self.visible.unanswered_under(plan),
            strategy: Str::from(strategy),
            tokens_before: plan.tokens_before(),
            tokens_after: plan.tokens_after(),
        }
    }

    /// Commits a record: from then on the session shows what the record leaves, here and wherever it is loaded.
    ///
    /// # Errors
    /// As [`HistoryStore::commit`]. After `Conflict`, this has loaded what others did: plan anew. An error of a load may
    /// also come after the record was committed: repeat the call with this record, which is then known.
    pub async fn commit(&mut self, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.settle().await?;
        self.in_doubt = true;
        let committed = self.store.commit(&self.session, record).await;
        self.reload_after(committed).await
    }

    /// Plans a pass and, if there is something to do, commits it.
    ///
    /// # Errors
    /// [`HistoryError`]: there is no plan, or the store refused it, and the session is then as it was; or it was
    /// committed, and could not be loaded after that. Either way the same call again plans on what is then stored.
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
        let positions = self.index().projection().flatten();
        positions.filter_map(|position| self.live().get(position as usize)).map(|live| &live.entry.message)
    }

    /// What is visible, by position in the index.
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

    /// How often what is visible has been changed.
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
