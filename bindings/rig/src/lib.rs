//! Conversation memory for agents of rig, in a store of Epitome.
//!
//! [`SessionMemory`] is a [`ConversationMemory`]: pass it to `AgentBuilder::memory`. Every message is stored and none
//! is deleted. If the conversation exceeds its budget, a compaction hides messages from the next request; a tool call
//! stays with its results.
//!
//! ```
//! use epitome::core::Budget;
//! use epitome::history::MemoryStore;
//! use epitome_rig::SessionMemory;
//! use rig_core::completion::Message;
//! use rig_core::memory::ConversationMemory;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let budget = Budget::builder().window(128_000).build()?;
//! let memory = SessionMemory::new(MemoryStore::new(), budget);
//! memory.append(&"chat".into(), vec![Message::user("Hello"), Message::assistant("Hello!")]).await?;
//! assert_eq!(memory.load(&"chat".into()).await?.len(), 2);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! It is not a [`Compactor`](rig_core::memory::Compactor) of rig: such a compactor puts one message in front of the
//! messages that a policy has kept, in the memory of the process. Here strategy and store are Epitome's, and a
//! compaction is stored with the session.

mod convert;
mod restore;

use core::fmt;
use std::sync::Arc;

use epitome::compaction::{CompactionCx, Compactor};
use epitome::compactors::{AgentPreset, Engine, Truncation};
use epitome::core::{Budget, ClassEstimator, Pass, TokenCounter};
use epitome::history::{
    AppendToken, History, HistoryStore, HistoryStoreExt as _, SessionId, StoreError, StoreErrorKind,
};
use epitome::session::SessionErrorKind;
use rig_core::completion::Message;
use rig_core::id::ConversationId;
use rig_core::memory::{ConversationMemory, MemoryError};
use rig_core::wasm_compat::WasmBoxedFuture;
use uuid::Uuid;

/// Maximum number of attempts of an append. Each attempt appends after the messages that other writers have appended
/// meanwhile.
const TRIES_MAX: usize = 8;

/// Memory of the conversations of an agent. Each conversation is a session of the store, with the id of the
/// conversation.
///
/// *Concurrency*: any number of agents and processes may use one store. *Cancel safety*: a dropped future has appended all messages
/// of a run, or none.
#[derive(Clone)]
pub struct SessionMemory {
    store: Arc<dyn HistoryStore>,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    budget: Budget,
    compactor: Arc<dyn Compactor>,
}

impl SessionMemory {
    /// Creates a memory in `store`. A conversation with more tokens than the trigger of `budget` is compacted before
    /// its next request, by the strategy `agent`, and by truncation if that strategy finds nothing to do.
    ///
    /// The budget is for the history alone: reserve tokens for the next message, the instructions and the schemas of
    /// tools.
    #[must_use]
    pub fn new(store: impl HistoryStore + 'static, budget: Budget) -> Self {
        let compactor = Engine::new(AgentPreset::new()).with_fallback(Truncation::new());
        let (store, counter) = (Arc::new(store), Arc::new(ClassEstimator::new()));
        Self { store, counter, budget, compactor: Arc::new(compactor) }
    }

    /// Sets the compactor, for example an [`Engine`] of another strategy or with a summarizer.
    #[must_use]
    pub fn with_compactor(mut self, compactor: impl Compactor + 'static) -> Self {
        self.compactor = Arc::new(compactor);
        self
    }

    /// Sets the token counter. Stored messages keep the counts that they were stored with.
    #[must_use]
    pub fn with_counter(mut self, counter: impl TokenCounter + Send + Sync + 'static) -> Self {
        self.counter = Arc::new(counter);
        self
    }

    /// Opens the session of a conversation, for operations that rig does not have: to read the log, to read the
    /// messages that a compaction hid, or to undo a compaction.
    ///
    /// # Errors
    /// As [`History::open`].
    pub async fn history(&self, conversation: &ConversationId) -> Result<History, StoreError> {
        History::open(self.store.clone(), session(conversation), self.counter.clone()).await
    }

    async fn loaded(&self, conversation: &ConversationId) -> Result<Vec<Message>, MemoryError> {
        let mut history = self.history(conversation).await.map_err(MemoryError::backend)?;
        if self.budget.is_due(history.index().tokens()) {
            let mut cx = CompactionCx::new(&mut history, self.budget, Pass::Proactive);
            self.compactor.compact(&mut cx).await.map_err(|error| match error.kind() {
                SessionErrorKind::Infeasible => MemoryError::Policy(error.to_string()),
                _ => MemoryError::backend(error),
            })?;
        }
        restore::messages(history.projection())
    }

    async fn appended(
        &self,
        conversation: &ConversationId,
        messages: Vec<Message>,
    ) -> Result<(), MemoryError> {
        let messages = convert::messages(&messages).map_err(MemoryError::backend)?;
        let mut history = self.history(conversation).await.map_err(MemoryError::backend)?;
        let token = AppendToken::new(Uuid::new_v4().to_string());
        for _ in 1..TRIES_MAX {
            match history.append(&token, messages.clone()).await {
                // The history has loaded the messages of the other writer; the next attempt appends after them.
                Err(error) if error.kind() == StoreErrorKind::Conflict => {}
                done => return done.map(drop).map_err(MemoryError::backend),
            }
        }
        history.append(&token, messages).await.map(drop).map_err(MemoryError::backend)
    }

    async fn cleared(&self, conversation: &ConversationId) -> Result<(), MemoryError> {
        match self.store.clear(&session(conversation)).await {
            Err(error) if error.kind() != StoreErrorKind::NotFound => Err(MemoryError::backend(error)),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for SessionMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionMemory")
            .field("budget", &self.budget)
            .field("compactor", &self.compactor)
            .finish_non_exhaustive()
    }
}

impl ConversationMemory for SessionMemory {
    /// Loads the messages of the next request. Compacts the conversation first, if a compaction is due.
    ///
    /// # Errors
    /// `Policy` if the protected messages do not fit the budget; `Backend` if the store fails.
    fn load<'a>(
        &'a self,
        conversation: &'a ConversationId,
    ) -> WasmBoxedFuture<'a, Result<Vec<Message>, MemoryError>> {
        Box::pin(self.loaded(conversation))
    }

    /// Stores the messages of a run, all or none.
    ///
    /// # Errors
    /// `Backend` if the store fails, or if every attempt conflicts with an append of another writer.
    fn append<'a>(
        &'a self,
        conversation: &'a ConversationId,
        messages: Vec<Message>,
    ) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(self.appended(conversation, messages))
    }

    /// Hides all messages of the conversation. The log keeps them, and [`History::uncompact`] shows them again.
    ///
    /// # Errors
    /// `Backend` if the store fails.
    fn clear<'a>(&'a self, conversation: &'a ConversationId) -> WasmBoxedFuture<'a, Result<(), MemoryError>> {
        Box::pin(self.cleared(conversation))
    }
}

fn session(conversation: &ConversationId) -> SessionId {
    SessionId::new(conversation.as_str())
}
