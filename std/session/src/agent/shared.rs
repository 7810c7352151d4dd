//! A session that several tasks share.

use core::fmt;
use std::sync::Arc;

use futures::lock::{Mutex, MutexGuard};

use crate::session::AgentSession;

/// A session that several tasks share. A clone refers to the same session.
///
/// ```
/// use epitome_std::agent::SharedSession;
/// use epitome_std::session::AgentSession;
///
/// # futures::executor::block_on(async {
/// let session = SharedSession::new(AgentSession::with_id("s-1"));
/// let other = session.clone();
/// assert_eq!(other.lock().await.session_id().as_str(), "s-1");
/// # });
/// ```
#[derive(Clone)]
pub struct SharedSession(Arc<Mutex<AgentSession>>);

/// The order of runs on a shared session at the same time.
///
/// ```
/// # use async_trait::async_trait;
/// # use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError, Concurrency, ToolOutput};
/// # use epitome_std::message::Message;
/// # use epitome_std::run::{ModelResponse, RunError, RunOptions};
/// # struct Echo;
/// # #[async_trait]
/// # impl ChatClient for Echo {
/// #     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
/// #         Ok(ModelResponse::new(request.messages.last().cloned().into_iter().collect()))
/// #     }
/// # }
///
/// let agent = Agent::new("assistant", Echo).with_concurrency(Concurrency::Reject);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Concurrency {
    /// The second run waits: runs of one session follow each other.
    #[default]
    Serialize,
    /// The second run is rejected with [`RunError::Busy`](crate::run::RunError::Busy).
    Reject,
}

impl SharedSession {
    /// Shares a session.
    #[must_use]
    pub fn new(session: AgentSession) -> Self {
        Self(Arc::new(Mutex::new(session)))
    }

    /// Locks the session, as soon as no run has it.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the waiting.
    pub async fn lock(&self) -> impl core::ops::DerefMut<Target = AgentSession> + Send + '_ {
        self.0.lock().await
    }

    pub(super) async fn take(&self, concurrency: Concurrency) -> Option<MutexGuard<'_, AgentSession>> {
        match concurrency {
            Concurrency::Serialize => Some(self.0.lock().await),
            Concurrency::Reject => self.0.try_lock(),
        }
    }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SharedSession");
        match self.0.try_lock() {
            Some(session) => debug.field("session_id", session.session_id()).finish_non_exhaustive(),
            None => debug.field("busy", &true).finish_non_exhaustive(),
        }
    }
}
