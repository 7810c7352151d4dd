//! Options for the writes of a store.

/// The durability and size options of a [`JsonlStore`](super::JsonlStore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct JsonlOptions {
    /// The time at which a write is made durable.
    pub fsync: Fsync,
}

impl JsonlOptions {
    /// Sets the fsync policy: the time at which a write is made durable.
    #[must_use]
    pub const fn with_fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }
}

/// The time at which a write is made durable against a loss of power. Under every policy, an acknowledged write
/// survives the end of the process, and a recovered state contains only whole operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fsync {
    /// Before each append or commit is acknowledged.
    #[default]
    Always,
    /// Before a commit is acknowledged, together with all appends before it. A loss of power may lose the appends after
    /// the last commit.
    OnCommit,
    /// Never explicitly: the operating system decides.
    Never,
}
