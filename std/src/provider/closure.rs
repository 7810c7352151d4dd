//! Closures as providers.

use core::fmt;
use core::future::Future;
use core::pin::Pin;

use async_trait::async_trait;

use super::{AgentInfo, ContextProvider, HookName, source_id};
use crate::session::{AgentSession, SessionContext, SessionError, State};

/// What a hook is called with.
#[expect(missing_debug_implementations, reason = "it lends what is said")]
#[non_exhaustive]
pub struct Hook<'a> {
    /// Who runs.
    pub agent: &'a dyn AgentInfo,
    /// The session.
    pub session: &'a mut AgentSession,
    /// The run.
    pub context: &'a mut SessionContext,
    /// The provider's own state in the session.
    pub state: &'a mut State,
}

/// What a hook that is a closure returns.
pub type HookFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send + 'a>>;

/// A closure as a provider: one hook, and a source id that is `decorated` unless it is given another.
///
/// ```
/// use epitome_std::provider::{ClosureProvider, Hook, Providers};
///
/// let clock = ClosureProvider::before_run(|hook: Hook<'_>| {
///     Box::pin(async move {
///         hook.context.extend_instructions("clock", ["It is noon."]);
///         Ok(())
///     })
/// });
/// let mut providers = Providers::default();
/// providers.push(clock.with_source_id("clock"))?;
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
pub struct ClosureProvider {
    source_id: Box<str>,
    /// Whether the id was chosen by the caller, and not the default one.
    named: bool,
    hook: HookName,
    run: Box<dyn for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync>,
}

impl ClosureProvider {
    /// `run` before the model is called.
    pub fn before_run(run: impl for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync + 'static) -> Self {
        Self::new(HookName::BeforeRun, Box::new(run))
    }

    /// `run` after the model has answered.
    pub fn after_run(run: impl for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync + 'static) -> Self {
        Self::new(HookName::AfterRun, Box::new(run))
    }

    /// The same under another source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        (self.source_id, self.named) = (source_id.into(), true);
        self
    }

    /// The same under the first of `decorated`, `decorated-2`, .. that is free, unless the caller has chosen an id.
    pub(super) fn numbered(self, is_taken: impl Fn(&str) -> bool) -> Self {
        if self.named || !is_taken(&self.source_id) {
            return self;
        }
        let mut ids = (2_u64..).map(|number| format!("{}-{number}", source_id::DECORATED));
        match ids.find(|id| !is_taken(id)) {
            Some(id) => Self { source_id: id.into(), ..self },
            None => self,
        }
    }

    fn new(hook: HookName, run: Box<dyn for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync>) -> Self {
        Self { source_id: source_id::DECORATED.into(), named: false, hook, run }
    }

    /// Calls the closure in its own hook, and in the other one does nothing.
    async fn at(&self, now: HookName, hook: Hook<'_>) -> Result<(), SessionError> {
        if now == self.hook { (self.run)(hook).await } else { Ok(()) }
    }
}

#[async_trait]
impl ContextProvider for ClosureProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(
        &self,
        agent: &dyn AgentInfo,
        session: &mut AgentSession,
        context: &mut SessionContext,
        state: &mut State,
    ) -> Result<(), SessionError> {
        self.at(HookName::BeforeRun, Hook { agent, session, context, state }).await
    }

    async fn after_run(
        &self,
        agent: &dyn AgentInfo,
        session: &mut AgentSession,
        context: &mut SessionContext,
        state: &mut State,
    ) -> Result<(), SessionError> {
        self.at(HookName::AfterRun, Hook { agent, session, context, state }).await
    }
}

impl fmt::Debug for ClosureProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosureProvider")
            .field("source_id", &self.source_id)
            .field("hook", &self.hook)
            .finish_non_exhaustive()
    }
}
