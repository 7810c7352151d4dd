//! The state of a session, which is kept beside its log.

use core::fmt;

use epitome_core::Head;

/// A counter of the states that a session has kept; 0 before the first one.
///
/// It is a counter of its own: neither appends nor commits move it, and it moves neither head nor revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(clippy::exhaustive_structs, reason = "a number and nothing else, as the other counters")]
pub struct StateRevision(pub u64);

impl StateRevision {
    /// The one after it.
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

/// A session's state on its way into a store: any text. The store takes it as it is, and keeps the latest one only.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewState<'a> {
    /// The revision of the state that it was made from: it is kept only in place of that one.
    pub made_from: StateRevision,
    /// The state itself.
    pub text: &'a str,
}

impl<'a> NewState<'a> {
    /// `text`, made from the state of this revision.
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

/// A session's state as a store keeps it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptState {
    /// Its revision.
    pub revision: StateRevision,
    /// The session's head when it was kept. If that has moved on, something was appended by one who kept no state, or whose
    /// state was refused, or did not come to it.
    pub head: Head,
    /// The state itself.
    pub text: Box<str>,
}

impl KeptState {
    /// `text` under this revision, kept when the session was at `head`.
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

/// The outcome for a state that came with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle each, and there is no fourth")]
pub enum StateOutcome {
    /// The state is kept, under this revision.
    Kept(StateRevision),
    /// Another one was kept since it was made, and stays.
    Stale,
    /// The store keeps no state.
    Unsupported,
}

/// A state on its way into a store that works elsewhere than where it is called.
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
