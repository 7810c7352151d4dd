//! The trait of context providers, and the arguments of their hooks.

use async_trait::async_trait;

use super::{AgentInfo, HistoryProvider};
use crate::compaction::AutoCompaction;
use crate::session::{AgentSession, SessionContext, SessionError, State};

/// The arguments of a hook.
#[expect(missing_debug_implementations, reason = "it lends what is said")]
#[non_exhaustive]
pub struct Hook<'a> {
    /// The agent that runs.
    pub agent: &'a dyn AgentInfo,
    /// The session.
    pub session: &'a mut AgentSession,
    /// The run.
    pub context: &'a mut SessionContext,
    /// The provider's own state in the session.
    pub state: &'a mut State,
}

impl<'a> Hook<'a> {
    /// A hook that is called outside of a run, or by a provider that wraps another one.
    #[must_use]
    pub const fn new(
        agent: &'a dyn AgentInfo,
        session: &'a mut AgentSession,
        context: &'a mut SessionContext,
        state: &'a mut State,
    ) -> Self {
        Self { agent, session, context, state }
    }
}

/// Takes part in runs: it may add to a run before the model is called, and read the answer afterwards.
///
/// *For callers*: put it into [`Providers`](super::Providers), which calls the hooks in order before a run and in reverse
/// after it. One provider serves any number of sessions and runs at once.
///
/// *For implementers*: put the data of a session into `state`, never into the provider. `state` is the provider's own
/// part of [`AgentSession::state`], under its source id; the parts of other providers are in `session`. It must be
/// JSON, so that the session can be written. Providers are trusted: each sees all messages and all state.
///
/// Both hooks may be called again for one run, if the first attempt failed: [`SessionContext::run_token`] is then the
/// same.
///
/// *Cancel safety*: if the future of a hook is dropped, the state is as the hook left it.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_std::provider::{ContextProvider, Hook};
/// use epitome_std::session::SessionError;
///
/// /// Counts the runs of a session, and tells the model.
/// #[derive(Debug)]
/// struct Runs;
///
/// #[async_trait]
/// impl ContextProvider for Runs {
///     fn source_id(&self) -> &str {
///         "runs"
///     }
///
///     async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
///         let Hook { context, state, .. } = hook;
///         let run = state.get("run").and_then(|run| run.as_u64()).unwrap_or(0) + 1;
///         state.insert("run".into(), run.into());
///         context.extend_instructions(self.source_id(), [format!("This is run {run}.")]);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// The source id: it names the provider in attribution and in filters, and is the key of its state. Two providers
    /// of one agent never have the same.
    fn source_id(&self) -> &str;

    /// Called before the model is called. Additions to `context` are sent.
    ///
    /// # Errors
    /// An error ends the run before the model is called: see [`Providers::before_run`](super::Providers::before_run).
    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let _ = hook;
        Ok(())
    }

    /// Called when the model has answered; the answer is in `context`.
    ///
    /// # Errors
    /// An error does not stop the other providers: see [`Providers::after_run`](super::Providers::after_run).
    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let _ = hook;
        Ok(())
    }

    /// The history provider that this is, or that it wraps; `None` if it keeps no history.
    fn as_history(&self) -> Option<&HistoryProvider> {
        None
    }

    /// Compaction settings of the runs that this provider joins; `None` if it sets none.
    fn as_compaction(&self) -> Option<&AutoCompaction> {
        None
    }
}
