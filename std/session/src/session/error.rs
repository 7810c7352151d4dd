//! Errors of a session, by the caller's next action.

use core::error::Error;
use core::fmt;

use crate::history::{StoreError, StoreErrorKind};

/// A failed operation on a session, in a provider or in a compaction. It never holds message text.
///
/// ```
/// use epitome_std::session::{AgentSession, SessionErrorKind};
///
/// let error = AgentSession::from_dict(serde_json::json!({"type": "session"})).unwrap_err();
/// assert_eq!(error.kind(), SessionErrorKind::Invalid);
/// assert_eq!(error.to_string(), "`session_id` is missing: a session needs one");
/// ```
#[derive(Debug)]
pub struct SessionError {
    kind: SessionErrorKind,
    context: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The next step for the caller of a failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionErrorKind {
    /// The object does not exist: correct the id.
    NotFound,
    /// Another writer was first: load again and retry.
    Conflict,
    /// The request itself is wrong: do not repeat it as it is.
    Invalid,
    /// The stored data cannot be read: restore it from a backup.
    Corrupt,
    /// A store or service cannot be reached: retry later.
    Unavailable,
    /// The protected messages alone exceed the limit: raise the window, or remove pins.
    Infeasible,
}

impl SessionError {
    /// An error of this kind; `context` names the operation and its result, without any message text.
    #[must_use]
    pub fn new(kind: SessionErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// Adds the cause of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The next step for the caller.
    #[must_use]
    pub const fn kind(&self) -> SessionErrorKind {
        self.kind
    }

    pub(crate) fn invalid(context: impl Into<String>) -> Self {
        Self::new(SessionErrorKind::Invalid, context)
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        let kind = match error.kind() {
            StoreErrorKind::NotFound | StoreErrorKind::Pruned => SessionErrorKind::NotFound,
            StoreErrorKind::Conflict => SessionErrorKind::Conflict,
            StoreErrorKind::Invalid | StoreErrorKind::Unsupported => SessionErrorKind::Invalid,
            StoreErrorKind::Corrupt => SessionErrorKind::Corrupt,
            // `Unavailable`, and a kind of a later release.
            _ => SessionErrorKind::Unavailable,
        };
        Self::new(kind, "history store").with_source(error)
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for SessionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
