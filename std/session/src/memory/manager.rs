//! Memories, and the trait of the stores that keep them.

use core::fmt;

use async_trait::async_trait;
use epitome_core::message::Role;

use crate::history::SessionId;
use crate::message::Str;
use crate::session::SessionError;

/// Keeps memories, and finds them again.
///
/// *For implementers*: memories are kept in the order in which they come. A search in one session never returns
/// memories of another.
///
/// *Cancel safety*: dropping the future of [`MemoryManager::add`] leaves all of its memories kept, or none.
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_std::history::SessionId;
/// use epitome_std::memory::{InMemoryStore, Memory, MemoryManager, MemoryQuery};
///
/// # futures::executor::block_on(async {
/// let (store, session) = (InMemoryStore::default(), SessionId::new("s-1"));
/// let said = vec![Memory::new(Role::User, "I live in Lisbon."), Memory::new(Role::User, "I like tea.")];
/// store.add(&session, "run-1", said.clone()).await?;
/// store.add(&session, "run-1", said).await?;
/// assert_eq!(store.all(&session).await?.len(), 2, "once for a token");
/// let found = store.search(&MemoryQuery::new("Lisbon", 5).in_session(session)).await?;
/// assert_eq!(found[0].text.as_str(), "I live in Lisbon.");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[async_trait]
pub trait MemoryManager: Send + Sync + fmt::Debug {
    /// Stores memories of a session. `token` is the idempotency key: a repetition with the same token stores nothing.
    ///
    /// # Errors
    /// `Unavailable` if the memories cannot be stored now.
    async fn add(&self, session: &SessionId, token: &str, memories: Vec<Memory>) -> Result<(), SessionError>;

    /// Finds memories, best first.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be searched now.
    async fn search(&self, query: &MemoryQuery) -> Result<Vec<Memory>, SessionError>;

    /// All memories of a session, oldest first.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be read now.
    async fn all(&self, session: &SessionId) -> Result<Vec<Memory>, SessionError>;

    /// Forgets a session. Returns how many memories it had.
    ///
    /// # Errors
    /// `Unavailable` if that cannot be done now.
    async fn forget(&self, session: &SessionId) -> Result<usize, SessionError>;
}

/// A message that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The role of its author.
    pub role: Role,
    /// The text.
    pub text: Str,
}

impl Memory {
    /// The memory of a message with this role and text.
    #[must_use]
    pub fn new(role: Role, text: impl Into<Str>) -> Self {
        Self { role, text: text.into() }
    }
}

/// A query for memories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryQuery {
    /// The words to search for.
    pub text: Str,
    /// Maximum number of memories.
    pub limit: usize,
    /// The session to search; `None` for all sessions.
    pub session: Option<SessionId>,
}

impl MemoryQuery {
    /// At most `limit` memories with words of `text`, of all sessions.
    #[must_use]
    pub fn new(text: impl Into<Str>, limit: usize) -> Self {
        Self { text: text.into(), limit, session: None }
    }

    /// Limits the query to this session.
    #[must_use]
    pub fn in_session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }
}
