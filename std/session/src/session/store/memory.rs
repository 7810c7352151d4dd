//! Sessions in memory.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::SessionStore;
use crate::history::SessionId;
use crate::session::{AgentSession, SessionError, SessionErrorKind};

/// Keeps sessions in memory, as the text that a file would have: a copy shares nothing with the session.
///
/// ```
/// use epitome_std::session::{AgentSession, MemorySessionStore, SessionStore};
///
/// # futures::executor::block_on(async {
/// let store = MemorySessionStore::default();
/// let mut session = AgentSession::with_id("s-1");
/// store.save(&session).await?;
/// session.state_mut().insert("x".into(), 1.into());
/// assert!(store.load(session.session_id()).await?.state().is_empty());
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Default)]
pub struct MemorySessionStore {
    sessions: Mutex<BTreeMap<SessionId, String>>,
}

impl MemorySessionStore {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionStore for MemorySessionStore {
    async fn save(&self, session: &AgentSession) -> Result<(), SessionError> {
        let text = session.to_json()?;
        self.sessions().insert(session.session_id().clone(), text);
        Ok(())
    }

    async fn load(&self, id: &SessionId) -> Result<AgentSession, SessionError> {
        let text = self.sessions().get(id).cloned();
        let text =
            text.ok_or_else(|| SessionError::new(SessionErrorKind::NotFound, "load: no such session"))?;
        AgentSession::from_json(&text)
    }

    async fn delete(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.sessions().remove(id).is_some())
    }

    async fn list(&self) -> Result<Vec<SessionId>, SessionError> {
        Ok(self.sessions().keys().cloned().collect())
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessionStore").field("sessions", &self.sessions().len()).finish_non_exhaustive()
    }
}
