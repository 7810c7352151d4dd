//! Errors of a store, by the caller's next step.

use core::error::Error;
use core::fmt;

use epitome_core::{FillError, PlanError};

/// A failed operation on a store. The error names the operation and the cause, never the text of a message.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    context: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kind of an error: the next step of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// There is no such session. Create it with an append, or correct the id.
    NotFound,
    /// Another writer has changed the session. Load again and retry on the current state.
    Conflict,
    /// The request itself is wrong. Do not repeat it unchanged.
    Invalid,
    /// The stored data cannot be read. Restore it from a backup, or export the readable part.
    Corrupt,
    /// The store cannot be reached or written. Retry later, with the same token.
    Unavailable,
    /// The content was deleted for good. Continue without it.
    Pruned,
    /// The store does not support the operation. Use another store, or work without the operation.
    Unsupported,
}

impl StoreError {
    /// Makes an error of this kind. `context` describes the operation and its result, without any message text.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), source: None }
    }

    /// Adds the cause of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// The reason why a session was not compacted.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// No plan is possible, for example because the protected messages exceed the limit.
    Plan(PlanError),
    /// The plan cannot be filled: a stand-in is missing, empty or too large, or belongs to another plan.
    Fill(FillError),
    /// The store refused the operation.
    Store(StoreError),
}

impl From<PlanError> for HistoryError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<FillError> for HistoryError {
    fn from(error: FillError) -> Self {
        Self::Fill(error)
    }
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(error) => error.fmt(f),
            Self::Fill(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for HistoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Plan(error) => error.source(),
            Self::Fill(error) => error.source(),
            Self::Store(error) => error.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_cause_of_a_failed_store_is_told() {
        let store =
            StoreError::new(StoreErrorKind::Unavailable, "append").with_source(io::Error::other("no room"));
        let error = HistoryError::from(store);
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("no room"));
    }
}
