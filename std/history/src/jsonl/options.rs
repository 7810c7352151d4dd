//! Options of a store's writes.

/// The durability and size options of a [`JsonlStore`](super::JsonlStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JsonlOptions {
    /// When what was written is made to last.
    pub fsync: Fsync,
}

impl JsonlOptions {
    /// Sets the fsync policy: when a write is made to last.
    #[must_use]
    pub const fn with_fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }
}

/// When what was written is made to last through a loss of power. Whatever it is, what was acknowledged survives the end
/// of the process, and every state that is found again is a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fsync {
    /// Before any append or commit is acknowledged.
    #[default]
    Always,
    /// Before a commit is acknowledged, with all that was appended before it. A loss of power takes the latest appends since then.
    OnCommit,
    /// Never: whenever the system does it.
    Never,
}
