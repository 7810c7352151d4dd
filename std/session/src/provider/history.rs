//! Histories as providers.

use core::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::{ClassEstimator, Seq, TokenCounter};
use tracing::{Instrument, debug, debug_span};

use super::{ContextProvider, Hook, source_id};
use crate::history::{History, HistoryStore, HistoryStoreExt, SessionId};
#[cfg(feature = "redis")]
use crate::history::{RedisOptions, RedisServer, RedisStore, StoreError};
use crate::session::{AgentSession, SessionError, State};

mod state;
mod storing;

pub(crate) use storing::{LastStored, RunPlace};

/// Loads the messages of a session into a run, and stores the messages that the run adds.
///
/// One type for all purposes: the memory of an agent loads and stores, a log for audits only stores.
///
/// After a run it stores, in this order: context of other providers (only if asked to), input, response. It does not
/// store again messages that it has loaded itself or that other history providers have, unless
/// [`HistoryProvider::store_context_from`] names their source. An ephemeral input or response is not stored, nor is
/// context with the label `ephemeral`. With [`HistoryProvider::store_context_messages`], all
/// other context is stored, including retrieved text. Stored messages lose their labels.
///
/// The run's token is the idempotency key: a repeated `after_run` stores once. A message that is really said twice, in
/// two runs or in one, is stored twice.
///
/// ```
/// use std::sync::Arc;
/// use epitome_std::history::MemoryStore;
/// use epitome_std::message::Message;
/// use epitome_std::provider::{HistoryProvider, NamedAgent, Providers};
/// use epitome_std::session::{AgentResponse, AgentSession, SessionContext};
///
/// # futures::executor::block_on(async {
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::new("memory", Arc::new(MemoryStore::new())))?;
/// let (agent, mut session) = (NamedAgent::new("a"), AgentSession::with_id("s"));
///
/// let mut run = SessionContext::new(&session, "run-1", vec![Message::user("I am Alice.")]);
/// providers.before_run(&agent, &mut session, &mut run).await?;
/// run = run.with_response(AgentResponse::new(vec![Message::assistant("Hello, Alice.")]));
/// providers.after_run(&agent, &mut session, &mut run).await?;
///
/// let mut run = SessionContext::new(&session, "run-2", vec![Message::user("Who am I?")]);
/// providers.before_run(&agent, &mut session, &mut run).await?;
/// assert_eq!(run.prompt_messages().count(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct HistoryProvider {
    source_id: Box<str>,
    backing: Backing,
    counter: Option<Arc<dyn TokenCounter + Send + Sync>>,
    session_prefix: Box<str>,
    load_messages: bool,
    store_inputs: bool,
    store_responses: bool,
    store_context_messages: bool,
    store_context_from: Option<Vec<String>>,
    store_ephemeral: bool,
    keep_state: bool,
}

/// Place of the messages.
#[derive(Clone)]
enum Backing {
    /// In a store.
    Store(Arc<dyn HistoryStore>),
    /// In the session itself, so that they are written with it.
    Session,
}

impl HistoryProvider {
    /// A provider over `store`. It loads, and stores input and response.
    #[must_use]
    pub fn new(source_id: impl Into<Box<str>>, store: Arc<dyn HistoryStore>) -> Self {
        Self::with_backing(source_id.into(), Backing::Store(store))
    }

    /// A provider over the session itself: its messages are written with the session, in `state[source_id].messages`.
    /// Its source id is `in_memory`.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_backing(source_id::IN_MEMORY.into(), Backing::Session)
    }

    /// A provider over a store on this Redis server. Its source id is `redis_memory`. Call it within a tokio runtime,
    /// on which the store then runs. For a store that is open already, use [`HistoryProvider::new`] with the same
    /// source id.
    ///
    /// ```no_run
    /// use epitome_std::history::{Password, RedisOptions, RedisServer};
    /// use epitome_std::provider::RedisHistoryProvider;
    ///
    /// # async fn token() -> Result<String, epitome_std::history::StoreError> { Ok("a-token".to_owned()) }
    /// # async fn example() -> Result<(), epitome_std::history::StoreError> {
    /// let server = RedisServer::new("docs.redis.cache.windows.net")
    ///     .with_user("0f3c5a5e-object-id")
    ///     .with_password(Password::from_fn(|| Box::pin(async { Ok(token().await?.into()) })));
    /// let audit = RedisHistoryProvider::in_redis(&server, RedisOptions::default()).await?.load_messages(false);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`RedisStore::connect_to`].
    #[cfg(feature = "redis")]
    pub async fn in_redis(server: &RedisServer, options: RedisOptions) -> Result<Self, StoreError> {
        let store = RedisStore::connect_to(server, options).await?;
        Ok(Self::new(source_id::REDIS_MEMORY, Arc::new(store)))
    }

    fn with_backing(source_id: Box<str>, backing: Backing) -> Self {
        Self {
            source_id,
            backing,
            counter: None,
            session_prefix: Box::default(),
            load_messages: true,
            store_inputs: true,
            store_responses: true,
            store_context_messages: false,
            store_context_from: None,
            store_ephemeral: false,
            keep_state: false,
        }
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the token counter. The default is the counter of the session's latest run, and the estimator before the
    /// first run.
    #[must_use]
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter + Send + Sync>) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Sets a prefix of the session's id in the store. Two providers of one agent over one store need different
    /// prefixes: otherwise they share one log.
    #[must_use]
    pub fn with_session_prefix(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.session_prefix = prefix.into();
        self
    }

    /// Sets whether it loads messages (default: `true`). If not, its hook before a run is not called.
    #[must_use]
    pub const fn load_messages(mut self, load: bool) -> Self {
        self.load_messages = load;
        self
    }

    /// Sets whether it stores the input (default: `true`).
    #[must_use]
    pub const fn store_inputs(mut self, store: bool) -> Self {
        self.store_inputs = store;
        self
    }

    /// Sets whether it stores the response of the model (default: `true`).
    #[must_use]
    pub const fn store_responses(mut self, store: bool) -> Self {
        self.store_responses = store;
        self
    }

    /// Sets whether it stores the context of other providers (default: `false`).
    #[must_use]
    pub const fn store_context_messages(mut self, store: bool) -> Self {
        self.store_context_messages = store;
        self
    }

    /// Sets the sources whose context it stores; an empty list stores none. The default is all sources, except those
    /// whose messages are stored already.
    #[must_use]
    pub fn store_context_from<S: Into<String>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.store_context_from = Some(sources.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether it stores ephemeral messages too (default: `false`).
    #[must_use]
    pub const fn store_ephemeral(mut self, store: bool) -> Self {
        self.store_ephemeral = store;
        self
    }

    /// Sets whether it stores the session itself in its store too (default: `false`): the text of
    /// [`AgentSession::to_json`], including the histories that the session holds. It is stored in one step with the
    /// append of the run, if the store can do so. Later changes are stored when the run ends.
    /// [`HistoryProvider::load_session`] returns the stored session.
    ///
    /// An outdated session, which went on elsewhere since it was loaded, is not stored: the messages are stored, and
    /// the run reports [`RunEvent::StateNotKept`](crate::run::RunEvent::StateNotKept). A history in the session itself
    /// stores no session.
    #[must_use]
    pub const fn keep_state(mut self, keep: bool) -> Self {
        self.keep_state = keep;
        self
    }

    /// Whether it loads messages.
    #[must_use]
    pub const fn loads(&self) -> bool {
        self.load_messages
    }

    /// Opens the session's history: groups and counts its visible messages. `state` is the state of this provider.
    ///
    /// # Errors
    /// As [`History::open`].
    pub async fn open(&self, session: &mut AgentSession, state: &mut State) -> Result<History, SessionError> {
        let span = debug_span!("load", source_id = &*self.source_id);
        async {
            let (store, id) = self.place(session, state).await?;
            let history = History::open(store, id, self.counter(session)).await?;
            debug!(messages = history.live().len(), tokens = history.index().tokens(), "loaded");
            Ok(history)
        }
        .instrument(span)
        .await
    }

    /// Opens the history to append only. If it shows no messages, it loads only those that new messages are grouped with.
    async fn open_to_append(
        &self,
        session: &mut AgentSession,
        state: &mut State,
    ) -> Result<History, SessionError> {
        if self.load_messages && session.service_session_id().is_none() {
            return self.open(session, state).await;
        }
        let span = debug_span!("load", source_id = &*self.source_id, tail = true);
        async {
            let (store, id) = self.place(session, state).await?;
            Ok(History::open_tail(store, id, self.counter(session)).await?)
        }
        .instrument(span)
        .await
    }

    /// The store, and the name of the session in it.
    async fn place(
        &self,
        session: &mut AgentSession,
        state: &mut State,
    ) -> Result<(Arc<dyn HistoryStore>, SessionId), SessionError> {
        let store: Arc<dyn HistoryStore> = match &self.backing {
            Backing::Store(store) => Arc::clone(store),
            Backing::Session => session.memory_store(&self.source_id, state, self.counter(session)).await?,
        };
        Ok((store, self.name(session.session_id())))
    }

    /// Begins the history of `other` with the messages before `at`. `state` is the state of this provider.
    pub(super) async fn fork(
        &self,
        (session, state): (&mut AgentSession, &mut State),
        at: Seq,
        other: &mut AgentSession,
    ) -> Result<(), SessionError> {
        let (store, id) = self.place(session, state).await?;
        let to = self.name(other.session_id());
        store.fork(&id, at, &to).await?;
        if matches!(self.backing, Backing::Session) {
            let (theirs, _) = self.place(other, &mut State::new()).await?;
            let copied = store.copy(&to, &*theirs, &to).await;
            store.delete(&to).await?;
            copied?;
        }
        Ok(())
    }

    fn counter(&self, session: &AgentSession) -> Arc<dyn TokenCounter + Send + Sync> {
        let known = self.counter.as_ref().or(session.counter.as_ref());
        known.map_or_else(|| Arc::new(ClassEstimator::new()) as _, Arc::clone)
    }

    /// The name of a session in the store.
    fn name(&self, session: &SessionId) -> SessionId {
        SessionId::new(format!("{}{session}", self.session_prefix))
    }
}

/// A history in the session itself, as [`HistoryProvider::in_memory`] makes it: `InMemoryHistoryProvider::default()`.
///
/// ```
/// use epitome_std::provider::{ContextProvider, InMemoryHistoryProvider};
///
/// assert_eq!(InMemoryHistoryProvider::default().source_id(), "in_memory");
/// ```
pub type InMemoryHistoryProvider = HistoryProvider;

/// A history on a Redis server, as [`HistoryProvider::in_redis`] makes it.
#[cfg(feature = "redis")]
pub type RedisHistoryProvider = HistoryProvider;

impl Default for HistoryProvider {
    fn default() -> Self {
        Self::in_memory()
    }
}

#[async_trait]
impl ContextProvider for HistoryProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { session, context, state, .. } = hook;
        // The check before the run may have opened the history already.
        let history = match context.take_history(&self.source_id) {
            Some(history) => history,
            None => self.open(session, state).await?,
        };
        context.extend_loaded(&*self.source_id, history.projection().cloned());
        context.put_history(&*self.source_id, history);
        Ok(())
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { session, context, state, .. } = hook;
        self.store(session, context, state).await
    }

    fn as_history(&self) -> Option<&HistoryProvider> {
        Some(self)
    }
}

impl fmt::Debug for HistoryProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryProvider")
            .field("source_id", &self.source_id)
            .field("load_messages", &self.load_messages)
            .field("store_inputs", &self.store_inputs)
            .field("store_responses", &self.store_responses)
            .field("store_context_messages", &self.store_context_messages)
            .field("store_context_from", &self.store_context_from)
            .field("keep_state", &self.keep_state)
            .finish_non_exhaustive()
    }
}
