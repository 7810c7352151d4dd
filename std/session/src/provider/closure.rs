//! Functions as providers.

use core::fmt;
use core::future::Future;
use core::pin::Pin;

use async_trait::async_trait;

use super::{ContextProvider, Hook, HookName, source_id};
use crate::session::SessionError;

/// The future of a hook that is a boxed closure.
pub type HookFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send + 'a>>;

/// A function that can be a hook: an `async fn` with a [`Hook`] as its only argument, or a closure that returns a future.
///
/// It is implemented for all of them. A closure that both awaits and borrows from its hook needs [`boxed_hook`].
pub trait HookFn<'a>: Send + Sync {
    /// The returned future.
    type Future: Future<Output = Result<(), SessionError>> + Send + 'a;

    /// Calls the function.
    fn call(&self, hook: Hook<'a>) -> Self::Future;
}

impl<'a, F, T> HookFn<'a> for F
where
    F: Fn(Hook<'a>) -> T + Send + Sync,
    T: Future<Output = Result<(), SessionError>> + Send + 'a,
{
    type Future = T;

    fn call(&self, hook: Hook<'a>) -> T {
        self(hook)
    }
}

/// Returns the closure unchanged: it tells the compiler that its future borrows from the hook.
///
/// ```
/// use epitome_std::provider::{ClosureProvider, boxed_hook};
///
/// let city = String::from("Lisbon");
/// let weather = ClosureProvider::before_run(boxed_hook(move |hook| {
///     let text = format!("The user is in {city}.");
///     Box::pin(async move {
///         hook.context.extend_instructions("weather", [text]);
///         Ok(())
///     })
/// }));
/// ```
pub const fn boxed_hook<F>(run: F) -> F
where
    F: for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync,
{
    run
}

/// A function as a provider: one hook, and a source id that is `decorated` unless it is given another.
///
/// ```
/// use epitome_std::provider::{ClosureProvider, Hook, Providers};
/// use epitome_std::session::SessionError;
///
/// async fn clock(hook: Hook<'_>) -> Result<(), SessionError> {
///     hook.context.extend_instructions("clock", ["It is noon."]);
///     Ok(())
/// }
///
/// let mut providers = Providers::default();
/// providers.push(ClosureProvider::before_run(clock).with_source_id("clock"))?;
/// # Ok::<(), SessionError>(())
/// ```
pub struct ClosureProvider {
    source_id: Box<str>,
    /// Whether the id was chosen by the caller, and not the default one.
    named: bool,
    hook: HookName,
    run: Box<dyn for<'a> Fn(Hook<'a>) -> HookFuture<'a> + Send + Sync>,
}

impl ClosureProvider {
    /// A provider that calls `run` before the model is called.
    pub fn before_run(run: impl for<'a> HookFn<'a> + 'static) -> Self {
        Self::new(HookName::BeforeRun, run)
    }

    /// A provider that calls `run` after the model has answered.
    pub fn after_run(run: impl for<'a> HookFn<'a> + 'static) -> Self {
        Self::new(HookName::AfterRun, run)
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Box<str>>) -> Self {
        (self.source_id, self.named) = (source_id.into(), true);
        self
    }

    /// Renames the provider to the first free id of `decorated`, `decorated-2`, .., unless the caller has chosen an id.
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

    fn new(hook: HookName, run: impl for<'a> HookFn<'a> + 'static) -> Self {
        let run = Box::new(boxed_hook(move |hook| Box::pin(run.call(hook))));
        Self { source_id: source_id::DECORATED.into(), named: false, hook, run }
    }

    /// Calls the closure in its own hook, and does nothing in the other one.
    async fn at(&self, now: HookName, hook: Hook<'_>) -> Result<(), SessionError> {
        if now == self.hook { (self.run)(hook).await } else { Ok(()) }
    }
}

#[async_trait]
impl ContextProvider for ClosureProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        self.at(HookName::BeforeRun, hook).await
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        self.at(HookName::AfterRun, hook).await
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
