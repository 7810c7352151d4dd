//! Stores of sessions.

mod file;
mod memory;

#[cfg(test)]
mod tests;

use core::fmt;

use async_trait::async_trait;

pub use file::FileSessionStore;
pub use memory::MemorySessionStore;

use super::{AgentSession, SessionError};
use crate::history::SessionId;

/// Keeps sessions whole: their ids, their state, and the histories that they keep themselves. Histories that are in a
/// [`HistoryStore`](crate::history::HistoryStore) are not in here.
///
/// *For callers*: a session that was loaded is a copy; what is done to it is kept when it is saved. Of two that save one
/// session, the last one wins, whole: run one session in one place at a time.
///
/// *For implementers*: each method is one step. A failed one has changed nothing.
///
/// *Cancel safety*: dropping a future leaves the whole old or the whole new session.
///
/// ```
/// use epitome_std::session::{AgentSession, MemorySessionStore, SessionErrorKind, SessionStore};
///
/// # futures::executor::block_on(async {
/// let store = MemorySessionStore::default();
/// let session = AgentSession::with_id("s-1");
/// store.save(&session).await?;
/// assert_eq!(store.load(session.session_id()).await?.session_id(), session.session_id());
/// assert!(store.delete(session.session_id()).await?);
/// assert_eq!(store.load(session.session_id()).await.unwrap_err().kind(), SessionErrorKind::NotFound);
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[async_trait]
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Keeps a session, in place of what was kept under its id.
    ///
    /// # Errors
    /// As [`AgentSession::to_dict`]; `Unavailable` if it cannot be written now.
    async fn save(&self, session: &AgentSession) -> Result<(), SessionError>;

    /// Loads a session.
    ///
    /// # Errors
    /// `NotFound` if there is none; `Corrupt` if what is kept cannot be read; `Invalid` if it is no session.
    async fn load(&self, id: &SessionId) -> Result<AgentSession, SessionError>;

    /// Deletes a session. Returns whether there was one.
    ///
    /// # Errors
    /// `Unavailable` if that cannot be done now.
    async fn delete(&self, id: &SessionId) -> Result<bool, SessionError>;

    /// The ids of all sessions that can be read, in order.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be listed now.
    async fn list(&self) -> Result<Vec<SessionId>, SessionError>;
}
