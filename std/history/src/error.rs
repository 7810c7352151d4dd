//! Errors of a store, by the caller's next step.

use core::error::Error;
use core::fmt;

use epitome_core::{FillError, PlanError};

/// A failed operation on a store. It names the operation and the session's trouble, never a message's text.
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
    /// There is no such session: create it by appending, or correct the id.
    NotFound,
    /// Somebody else was there first: load again and retry on what is there now.
    Conflict,
    /// The request itself is wrong: do not repeat it as it is.
    Invalid,
    /// The stored data cannot be read: restore it from a backup, or export what can be read.
    Corrupt,
    /// The store cannot be reached or written: repeat later, with the same token.
    Unavailable,
    /// The content was deleted for good: do without it.
    Pruned,
    /// The store cannot do this at all: use another store, or do without.
    Unsupported,
}

impl StoreError {
    /// An error of this kind; `context` says what was tried and with which result, without any message text.
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

/// Why a session was not compacted.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// There is no plan.
    Plan(PlanError),
    /// Something that was to stand in place of a part is longer than the strategy allows.
    Fill(FillError),
    /// The store refused.
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
