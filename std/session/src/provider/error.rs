//! Errors of providers, each with its provider and its hook.

use core::error::Error;
use core::fmt;

use crate::session::{SessionError, SessionErrorKind};

/// A provider that failed.
///
/// ```
/// use epitome_std::provider::{HistoryProvider, HookName, NamedAgent, Providers};
/// use epitome_std::session::{AgentSession, SessionContext};
/// use serde_json::json;
///
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::in_memory())?;
/// let mut session = AgentSession::new();
/// session.state_mut().insert("in_memory".into(), json!("no object"));
/// let mut context = SessionContext::new(&session, "run-1", Vec::new());
/// let agent = NamedAgent::new("a");
/// let asked = providers.before_run(&agent, &mut session, &mut context);
/// let error = futures::executor::block_on(asked).unwrap_err();
/// assert_eq!((&*error.source_id, error.hook), ("in_memory", HookName::BeforeRun));
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct ProviderError {
    /// The source id of the provider.
    pub source_id: Box<str>,
    /// The hook that failed.
    pub hook: HookName,
    /// The error.
    pub error: SessionError,
}

/// A hook of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookName {
    /// Before the model is called.
    BeforeRun,
    /// After it has answered.
    AfterRun,
}

impl HookName {
    /// The name of the method.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeRun => "before_run",
            Self::AfterRun => "after_run",
        }
    }
}

impl ProviderError {
    pub(crate) fn new(source_id: &str, hook: HookName, error: SessionError) -> Self {
        Self { source_id: source_id.into(), hook, error }
    }

    /// The next step for the caller.
    #[must_use]
    pub const fn kind(&self) -> SessionErrorKind {
        self.error.kind()
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "provider {:?}, {}: {}", self.source_id, self.hook.as_str(), self.error)
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// The providers that failed after a run, in the order of their calls. All other providers have done their part.
#[derive(Debug)]
pub struct Failures {
    first: ProviderError,
    others: Vec<ProviderError>,
}

impl Failures {
    /// The failures as one value; `None` for an empty list.
    pub(crate) fn of(failures: Vec<ProviderError>) -> Option<Self> {
        let mut failures = failures.into_iter();
        Some(Self { first: failures.next()?, others: failures.collect() })
    }

    /// The first one.
    #[must_use]
    pub const fn first(&self) -> &ProviderError {
        &self.first
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ProviderError> {
        core::iter::once(&self.first).chain(&self.others)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        for other in &self.others {
            write!(f, "; {other}")?;
        }
        Ok(())
    }
}

impl Error for Failures {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.first)
    }
}
