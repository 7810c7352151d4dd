//! Compactions of a stored session: reading the messages that they have hidden, and undoing the latest one.

use core::fmt;
use std::collections::BTreeMap;

use epitome_core::{Revision, Seq};

use super::compact::{compacted_of, stored_history};
use super::live::Run;
use super::served::service_managed;
use super::working::Working;
use super::{RunError, RunSettings};
use crate::history::{Committed, History, LogPage};
use crate::provider::{ContextProvider, HistoryProvider, open_history};
use crate::session::{AgentSession, SessionContext, SessionError, SessionErrorKind};

/// The compactions of a stored session: reads the messages that they have hidden, and undoes the latest one.
///
/// It reads and changes the history that a run would compact. After an undo, the next proactive passes of this [`AgentSession`]
/// wait for [`Pacing::REST_TURNS`](epitome_core::Pacing::REST_TURNS) requests, so that the undone compaction is not
/// made again at once. A request that does not fit does not wait, nor does a compaction on demand. The run reports a
/// waiting pass with [`RunEvent::Resting`](super::RunEvent::Resting). A session that is written and read again does not
/// keep this wait.
///
/// While a run is under way, use [`Run::compactions`]: an undo then takes effect in the next request of that run.
///
/// ```
/// # use epitome_core::Seq;
/// # use epitome_std::compaction::{CompactionOptions, Held, MessagesCompactor};
/// # use epitome_std::message::Message;
/// # use epitome_std::provider::{InMemoryHistoryProvider, Providers};
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// # let mut providers = Providers::default();
/// # providers.push(InMemoryHistoryProvider::default()).unwrap();
/// # let settings = RunSettings::new("helper").with_providers(providers);
/// # let mut session = AgentSession::new();
/// # for question in ["One?", "Two?", "Three?", "Four?"] {
/// #     let input = vec![Message::user(question)];
/// #     let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
/// #     let prompt = run.prompt().await?;
/// #     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Yes.")])).await?;
/// #     run.finish().await?;
/// # }
/// let ends = MessagesCompactor::new("ends", |mut messages: Vec<Held>, _: CompactionOptions| async move {
///     messages.drain(1..6);
///     Ok(messages)
/// });
/// compact(&settings, &mut session, &ends, CompactionOptions::default()).await?;
///
/// let mut compactions = Compactions::open(&settings, &mut session).await?;
/// let made = compactions.latest().await?.expect("one was made").revision;
/// assert_eq!(compactions.expand(made, Seq(0), 100).await?.messages.len(), 5);
/// compactions.undo(made).await?;
/// assert_eq!(compactions.history().live().len(), 8);
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
pub struct Compactions<'a> {
    session: &'a mut AgentSession,
    run: Option<UnderWay<'a>>,
    history: History,
}

/// A run that is under way: its messages, and the numbers in the history of the messages that it has stored itself.
struct UnderWay<'a> {
    working: &'a mut Working,
    context: &'a mut SessionContext,
    provider: HistoryProvider,
    logged: BTreeMap<Seq, Seq>,
}

impl<'a> Compactions<'a> {
    /// Opens the compactions of the history that a run of these settings would compact. `Agent::settings` returns the
    /// settings of an agent. While a run is under way it has the session: use [`Run::compactions`].
    ///
    /// # Errors
    /// `Invalid` as [`compact`](super::compact), and if there is no history provider; otherwise the error of the store.
    pub async fn open(settings: &RunSettings, session: &'a mut AgentSession) -> Result<Self, SessionError> {
        let history = stored_history(settings, session).await?;
        let history = history.ok_or_else(|| SessionError::invalid("there is no history provider"))?;
        Ok(Self { session, run: None, history })
    }

    /// The visible history.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Reads the latest compaction in the store that is not undone.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn latest(&self) -> Result<Option<Committed>, SessionError> {
        Ok(self.history.latest_compaction().await?)
    }

    /// Reads the messages that the compaction with the revision `made` has hidden or shortened, in their original form:
    /// at most `limit` messages, from the number `from` on.
    ///
    /// # Errors
    /// `Invalid` if no compaction made `made`; otherwise the error of the store.
    pub async fn expand(&self, made: Revision, from: Seq, limit: u32) -> Result<LogPage, SessionError> {
        Ok(self.history.expand(made, from, limit).await?)
    }

    /// Undoes the compaction that made the revision `made`, and returns the new revision. The messages that it hid are
    /// visible again. A repeated call returns the same revision.
    ///
    /// # Errors
    /// `Conflict` if a later compaction is in force, perhaps of another writer, or if [`Compactions::is_ahead`].
    /// Nothing is changed then, and [`Compactions::latest`] returns the later one. `Invalid` if no compaction made
    /// `made`, or the store supports no undo; `NotFound` if the messages that it hid were pruned.
    ///
    /// # Cancel safety
    /// The compaction is undone or not. The same call again makes sure.
    pub async fn undo(&mut self, made: Revision) -> Result<Revision, SessionError> {
        if self.is_ahead() {
            let context = "the run has compacted since, which is not stored: take that back first";
            return Err(SessionError::new(SessionErrorKind::Conflict, context));
        }
        let undone = self.history.uncompact(made).await?;
        self.undone()?;
        Ok(undone)
    }

    /// Whether a run that is under way has compacted its request, and has not stored that yet. Such a compaction has no
    /// revision.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.working.is_ahead())
    }

    /// Takes back all compactions of a run that is under way and has not stored them yet, including the messages that
    /// it has hidden for itself only.
    ///
    /// # Errors
    /// The error of the store. Nothing is changed then.
    ///
    /// # Cancel safety
    /// The compactions are taken back or not.
    pub async fn take_back(&mut self) -> Result<(), SessionError> {
        if self.is_ahead() {
            self.history.reload().await?;
            self.undone()?;
        }
        Ok(())
    }

    /// Makes a run show the current history, and takes back the compactions that the run has not stored.
    fn undone(&mut self) -> Result<(), SessionError> {
        self.session.note_compaction();
        self.session.pacing.undone(self.session.requests);
        if let Some(UnderWay { working, context, provider, logged }) = &mut self.run {
            working.show_again(&self.history, logged)?;
            context.put_history(provider.source_id(), self.history.snapshot());
        }
        Ok(())
    }
}

impl Run<'_> {
    /// The compactions of the history that this run compacts, including those that it has stored itself. An undo takes
    /// effect in the next request, at the place of the messages. Compactions and undos of other writers since the run
    /// began take effect too, but no new messages of other writers.
    ///
    /// # Errors
    /// [`RunError::Misuse`] if the run is over, or an answer is arriving. [`RunError::Session`] as [`Compactions::open`].
    ///
    /// ```
    /// # use epitome_std::compaction::{CompactionOptions, Held, MessagesCompactor};
    /// # use epitome_std::message::Message;
    /// # use epitome_std::provider::{InMemoryHistoryProvider, Providers};
    /// # use epitome_std::run::*;
    /// # use epitome_std::session::AgentSession;
    /// # futures::executor::block_on(async {
    /// # let mut providers = Providers::default();
    /// # providers.push(InMemoryHistoryProvider::default()).unwrap();
    /// # let settings = RunSettings::new("helper").with_providers(providers);
    /// # let mut session = AgentSession::new();
    /// # for question in ["One?", "Two?", "Three?", "Four?"] {
    /// #     let input = vec![Message::user(question)];
    /// #     let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
    /// #     let prompt = run.prompt().await?;
    /// #     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Yes.")])).await?;
    /// #     run.finish().await?;
    /// # }
    /// # let ends = MessagesCompactor::new("ends", |mut messages: Vec<Held>, _: CompactionOptions| async move {
    /// #     messages.drain(1..6);
    /// #     Ok(messages)
    /// # });
    /// # compact(&settings, &mut session, &ends, CompactionOptions::default()).await?;
    /// let (input, options) = (vec![Message::user("And what was first?")], RunOptions::default());
    /// let mut run = Run::begin(&settings, &mut session, input, &options).await?;
    /// assert_eq!(run.prompt().await?.messages.len(), 4);
    /// let mut compactions = run.compactions().await?;
    /// let made = compactions.latest().await?.expect("one was made").revision;
    /// compactions.undo(made).await?;
    /// assert_eq!(run.prompt().await?.messages.len(), 9);
    /// # Ok::<(), RunError>(())
    /// # }).unwrap();
    /// ```
    pub async fn compactions(&mut self) -> Result<Compactions<'_>, RunError> {
        self.check_idle()?;
        if self.served.is_kept() {
            return Err(service_managed().into());
        }
        let provider = compacted_of(&self.providers, self.session)?;
        let provider = provider.ok_or_else(|| SessionError::invalid("there is no history provider"))?;
        let history = open_history(&provider, self.session).await?;
        let logged = self.logged(&provider);
        let Self { session, working, context, .. } = self;
        Ok(Compactions { session, run: Some(UnderWay { working, context, provider, logged }), history })
    }
}

impl fmt::Debug for Compactions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compactions").field("history", &self.history).finish_non_exhaustive()
    }
}
