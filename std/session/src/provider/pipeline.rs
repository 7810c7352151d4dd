//! The providers of an agent, run in order.

use core::fmt;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use epitome_core::Seq;
use futures::FutureExt;
use serde_json::Value;
use tracing::{Instrument, debug_span, warn};

use super::{
    AgentInfo, ClosureProvider, ContextProvider, Failures, HistoryProvider, Hook, HookName, ProviderError,
    ProviderWarning, source_id,
};
use crate::compaction::AutoCompaction;
use crate::history::History;
use crate::session::{AgentSession, SessionContext, SessionError, State};

/// The providers of an agent, in order.
///
/// Their hooks are called in order before a run, and in reverse order after it. A clone shares the providers.
///
/// ```
/// use std::sync::Arc;
/// use epitome_std::history::MemoryStore;
/// use epitome_std::provider::{HistoryProvider, Providers};
///
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::new("main", Arc::new(MemoryStore::new())))?;
/// providers.push(HistoryProvider::new("audit", Arc::new(MemoryStore::new())).load_messages(false))?;
/// assert!(providers.warnings().is_empty());
/// assert!(providers.push(HistoryProvider::in_memory().with_source_id("audit")).is_err());
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Clone, Default)]
pub struct Providers {
    list: Vec<Arc<dyn ContextProvider>>,
    warned: Arc<AtomicBool>,
}

impl Providers {
    /// Creates the pipeline of these providers, in this order.
    ///
    /// # Errors
    /// `Invalid` if two providers have the same source id, or a source id is empty.
    pub fn new(list: impl IntoIterator<Item = Arc<dyn ContextProvider>>) -> Result<Self, SessionError> {
        let mut providers = Self::default();
        for provider in list {
            providers.push_shared(provider)?;
        }
        Ok(providers)
    }

    /// Adds a provider behind the others. Runs that have begun do not see it.
    ///
    /// # Errors
    /// `Invalid` if another provider has the same source id, or the source id is empty.
    pub fn push(&mut self, provider: impl ContextProvider + 'static) -> Result<(), SessionError> {
        self.push_shared(Arc::new(provider))
    }

    /// Adds a closure behind the others. Without a chosen id it gets the first free one of `decorated`, `decorated-2`,
    /// ..
    ///
    /// # Errors
    /// As [`Providers::push`].
    pub fn push_closure(&mut self, provider: ClosureProvider) -> Result<(), SessionError> {
        let provider = provider.numbered(|id| self.has(id));
        self.push(provider)
    }

    /// Adds a shared provider behind the others.
    ///
    /// # Errors
    /// As [`Providers::push`].
    pub fn push_shared(&mut self, provider: Arc<dyn ContextProvider>) -> Result<(), SessionError> {
        let source_id = provider.source_id();
        if source_id.is_empty() {
            return Err(SessionError::invalid(
                "a provider's source id is empty, which stands for the caller: name it",
            ));
        }
        if self.has(source_id) {
            return Err(SessionError::invalid(format!(
                "two providers have the source id {source_id:?}: give one of them another"
            )));
        }
        self.list.push(provider);
        self.warned = Arc::default();
        Ok(())
    }

    /// The providers of one run: this list, or the in-memory history alone. The in-memory history is used if the list
    /// is empty, the service keeps no history of the session, and the run's options do not set `store: true`. It is
    /// also used with `store: true` if the session has such a history already. This list stays as it is.
    #[must_use]
    pub fn for_run(&self, session: &AgentSession, context: &SessionContext) -> Self {
        let service_stores = context.options().get("store") == Some(&Value::Bool(true));
        let is_elsewhere = service_stores && !session.has_state(source_id::IN_MEMORY);
        if !self.list.is_empty() || session.service_session_id().is_some() || is_elsewhere {
            return self.clone();
        }
        Self::in_memory()
    }

    /// A list with only the history that the session keeps itself.
    pub(crate) fn in_memory() -> Self {
        Self { list: vec![Arc::new(HistoryProvider::in_memory())], warned: Arc::default() }
    }

    /// Calls the hooks before a run, in order. History providers that do not load are left out. If the service keeps
    /// the session's history, all history providers are left out.
    ///
    /// # Errors
    /// The first failure ends the call: later providers are not called, no provider has to undo anything, and the model
    /// must not be called. Nothing of the run is stored. A provider that panics has failed with `Invalid`. Its state
    /// stays as it left it, and the text of the panic is not repeated.
    ///
    /// # Cancel safety
    /// Dropping the future has the effect of a failure. The session is intact, and the run may begin again with a new
    /// context.
    pub async fn before_run(
        &self,
        agent: &dyn AgentInfo,
        session: &mut AgentSession,
        context: &mut SessionContext,
    ) -> Result<(), ProviderError> {
        self.warn_once();
        for provider in &self.list {
            if !is_asked_before(&**provider, context) {
                continue;
            }
            call(&**provider, HookName::BeforeRun, agent, session, context).await?;
        }
        Ok(())
    }

    /// Calls the hooks after a run, in reverse order. History providers store the messages of the run.
    ///
    /// # Errors
    /// A failure does not stop the other providers; the error lists all failures. The call may be repeated with the
    /// same context: stored messages are not stored again, and all providers are called again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the remaining hooks undone. The call may be repeated as after a failure.
    pub async fn after_run(
        &self,
        agent: &dyn AgentInfo,
        session: &mut AgentSession,
        context: &mut SessionContext,
    ) -> Result<(), Failures> {
        let mut failures = Vec::new();
        for provider in self.list.iter().rev() {
            if let Err(error) = call(&**provider, HookName::AfterRun, agent, session, context).await {
                failures.push(error);
            }
        }
        Failures::of(failures).map_or(Ok(()), Err)
    }

    /// Lets the histories store the messages of the run that are not stored yet. No other provider is called.
    ///
    /// # Errors
    /// As [`Providers::after_run`].
    ///
    /// # Cancel safety
    /// As [`Providers::after_run`].
    pub async fn store(
        &self,
        session: &mut AgentSession,
        context: &mut SessionContext,
    ) -> Result<(), Failures> {
        let mut failures = Vec::new();
        for history in self.list.iter().rev().filter_map(|provider| provider.as_history()) {
            let source_id = history.source_id();
            let stored = match Lent::take(session, source_id) {
                Ok(mut lent) => history.store(lent.session, context, &mut lent.state).await,
                Err(error) => Err(error),
            };
            if let Err(error) = stored {
                warn!(source_id, kind = ?error.kind(), "nothing stored");
                failures.push(ProviderError::new(source_id, HookName::AfterRun, error));
            }
        }
        Failures::of(failures).map_or(Ok(()), Err)
    }

    /// Warnings about this list.
    #[must_use]
    pub fn warnings(&self) -> Vec<ProviderWarning> {
        let histories: Vec<&HistoryProvider> = self.histories().collect();
        let ids = |list: &[&HistoryProvider]| list.iter().map(|it| it.source_id().to_owned()).collect();
        let loaders: Vec<&HistoryProvider> = histories.iter().copied().filter(|it| it.loads()).collect();
        match loaders.len() {
            0 if !histories.is_empty() => vec![ProviderWarning::NoLoader { source_ids: ids(&histories) }],
            0 | 1 => Vec::new(),
            _ => vec![ProviderWarning::SeveralLoaders { source_ids: ids(&loaders) }],
        }
    }

    /// Logs [`Providers::warnings`], once for this list and its clones: with an agent's first session or with the first
    /// run, also of a session that was read.
    pub fn warn_once(&self) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            for warning in self.warnings() {
                warn!("{warning}");
            }
        }
    }

    /// The history providers, in order.
    pub fn histories(&self) -> impl Iterator<Item = &HistoryProvider> {
        self.list.iter().filter_map(|provider| provider.as_history())
    }

    /// The history that is compacted: that of the only provider that loads. `None` if none or several do.
    #[must_use]
    pub fn primary_history(&self) -> Option<&HistoryProvider> {
        let mut loaders = self.histories().filter(|it| it.loads());
        loaders.next().filter(|_| loaders.next().is_none())
    }

    /// The compaction settings of the first provider that has some.
    #[must_use]
    pub fn compaction(&self) -> Option<&AutoCompaction> {
        self.list.iter().find_map(|provider| provider.as_compaction())
    }

    /// All providers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn ContextProvider>> {
        self.list.iter()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn has(&self, source_id: &str) -> bool {
        self.list.iter().any(|provider| provider.source_id() == source_id)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|provider| provider.source_id())).finish()
    }
}

fn is_asked_before(provider: &dyn ContextProvider, context: &SessionContext) -> bool {
    let Some(history) = provider.as_history() else { return true };
    if history.loads() && context.service_session_id().is_some() {
        let source_id = provider.source_id();
        warn!(source_id, "nothing is loaded: the service keeps the history of this session");
        return false;
    }
    history.loads()
}

/// Opens the history of a session outside of any hook.
pub(crate) async fn open_history(
    provider: &HistoryProvider,
    session: &mut AgentSession,
) -> Result<History, SessionError> {
    let mut lent = Lent::take(session, provider.source_id())?;
    provider.open(lent.session, &mut lent.state).await
}

/// Begins the history of `other` with the messages before `at` in the history of `session`.
pub(crate) async fn fork_history(
    provider: &HistoryProvider,
    session: &mut AgentSession,
    at: Seq,
    other: &mut AgentSession,
) -> Result<(), SessionError> {
    let mut lent = Lent::take(session, provider.source_id())?;
    provider.fork((lent.session, &mut lent.state), at, other).await
}

/// Calls one hook with the provider's state. The state goes back into the session in any case.
async fn call(
    provider: &dyn ContextProvider,
    name: HookName,
    agent: &dyn AgentInfo,
    session: &mut AgentSession,
    context: &mut SessionContext,
) -> Result<(), ProviderError> {
    let source_id = provider.source_id();
    let failed = |error| ProviderError::new(source_id, name, error);
    let mut lent = Lent::take(session, source_id).map_err(failed)?;
    let Lent { session, state, .. } = &mut lent;
    let done = async {
        let hook = Hook { agent, session, context, state };
        match name {
            HookName::BeforeRun => provider.before_run(hook).await,
            HookName::AfterRun => provider.after_run(hook).await,
        }
    };
    let span = debug_span!("hook", source_id, hook = name.as_str());
    // A panic leaves no inconsistent value behind: the state goes back as it is, and a context only grows.
    let done = AssertUnwindSafe(done).catch_unwind().instrument(span).await;
    let done = done.unwrap_or_else(|_| Err(SessionError::invalid("the provider panicked")));
    done.map_err(|error| {
        warn!(source_id, hook = name.as_str(), kind = ?error.kind(), "provider failed");
        ProviderError::new(source_id, name, error)
    })
}

/// A provider's state, taken out of its session during a hook.
struct Lent<'a> {
    session: &'a mut AgentSession,
    source_id: &'a str,
    state: State,
}

impl<'a> Lent<'a> {
    fn take(session: &'a mut AgentSession, source_id: &'a str) -> Result<Self, SessionError> {
        let state = session.take_state(source_id)?;
        Ok(Self { session, source_id, state })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.session.put_state(self.source_id, core::mem::take(&mut self.state));
    }
}
