//! The state of a session, which is saved beside its log.

use core::fmt;

use epitome_core::Head;

/// A counter of the states that a session has saved; 0 before the first one.
///
/// Appends and commits do not change it, and it does not change the head or the revision of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(clippy::exhaustive_structs, reason = "a number and nothing else, as the other counters")]
pub struct StateRevision(pub u64);

impl StateRevision {
    /// The next revision.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for StateRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A new state of a session: any text. The store does not interpret the text, and keeps only the latest state.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewState<'a> {
    /// The revision of the state that it was made from. It replaces only that state.
    pub made_from: StateRevision,
    /// The text of the state.
    pub text: &'a str,
}

impl<'a> NewState<'a> {
    /// Makes a new state `text` from the state of this revision.
    #[must_use]
    pub const fn new(made_from: StateRevision, text: &'a str) -> Self {
        Self { made_from, text }
    }
}

impl fmt::Debug for NewState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "NewState", self.made_from, self.text)
    }
}

/// A saved state of a session.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptState {
    /// The revision of the state.
    pub revision: StateRevision,
    /// The session's head when the state was saved. If the session's head is higher now, another writer appended
    /// without a state, its state was refused, or it stopped before it saved its state.
    pub head: Head,
    /// The text of the state.
    pub text: Box<str>,
}

impl KeptState {
    /// Makes a saved state with this revision, saved when the session was at `head`.
    #[must_use]
    pub const fn new(revision: StateRevision, head: Head, text: Box<str>) -> Self {
        Self { revision, head, text }
    }
}

impl fmt::Debug for KeptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "KeptState", self.revision, &self.text)
    }
}

/// Writes the state without its text, which may hold messages.
fn debug(f: &mut fmt::Formatter<'_>, name: &str, revision: StateRevision, text: &str) -> fmt::Result {
    f.debug_struct(name).field("revision", &revision).field("bytes", &text.len()).finish_non_exhaustive()
}

/// The outcome for a state that was saved with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle each, and there is no fourth")]
pub enum StateOutcome {
    /// The state is saved, with this revision.
    Kept(StateRevision),
    /// Another state was saved meanwhile. That one stays.
    Stale,
    /// The store does not support states.
    Unsupported,
}

/// An owned copy of a new state, for a store that works on another thread.
#[derive(Clone)]
pub struct OwnedState {
    pub(crate) made_from: StateRevision,
    pub(crate) text: Box<str>,
}

impl OwnedState {
    pub(crate) fn of(state: &NewState<'_>) -> Self {
        Self { made_from: state.made_from, text: state.text.into() }
    }

    pub(crate) const fn as_new(&self) -> NewState<'_> {
        NewState { made_from: self.made_from, text: &self.text }
    }
}

impl fmt::Debug for OwnedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "OwnedState", self.made_from, &self.text)
    }
}
