//! Sessions that are kept: an append-only log, and compactions that hide parts of it.
//!
//! [`HistoryStore`] is the storage contract. Nothing is ever deleted by a compaction: a [`CompactionRecord`] says what
//! is hidden and what stands there instead, and [`HistoryStore::load`] gives what is left: the *live projection*.

mod error;
mod live;
mod record;
mod store;

pub use error::{StoreError, StoreErrorKind};
pub use live::{History, HistoryError};
pub use record::{CompactionRecord, RecordId, Summary, UnansweredCall};
pub use store::{
    AppendToken, Appended, Entry, HistoryStore, Live, Loaded, LogPage, Logged, SessionId, SessionInfo,
    TokenCount,
};
