//! Sessions that are kept: an append-only log, and compactions that hide parts of it.
//!
//! [`HistoryStore`] is the storage contract. Nothing is ever deleted by a compaction: a [`CompactionRecord`] says what
//! is hidden and what stands there instead, and [`HistoryStore::load`] gives what is left: the *live projection*.

mod error;
mod live;
mod memory;
mod open;
mod record;
mod rules;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod visible;

pub use error::{StoreError, StoreErrorKind};
pub use live::{History, HistoryError};
pub use memory::MemoryStore;
pub use open::open_store;
pub use record::{Committed, CompactionRecord, RecordId, Summary, UnansweredCall};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use store::{
    Append, AppendToken, Appended, Entry, HistoryStore, Live, Loaded, LogPage, Logged, SessionId,
    SessionInfo, TokenCount,
};
