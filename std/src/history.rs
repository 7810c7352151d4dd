//! Sessions that are kept: an append-only log, and compactions that hide parts of it.
//!
//! [`HistoryStore`] is the storage contract. Nothing is ever deleted by a compaction: a [`CompactionRecord`] says what
//! is hidden or shortened and what stands there instead, and [`HistoryStore::load`] gives what is left: the *live projection*.

#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
mod bodies;
#[cfg(feature = "conformance")]
pub mod conformance;
mod edit;
mod encryption;
mod error;
mod ext;
mod fill;
mod jsonl;
mod kernel;
mod line;
mod live;
mod memory;
mod open;
pub(crate) mod pause;
mod pending;
mod pins;
mod planned;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod remote;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod rows;
mod rules;
mod simple;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod tail;
mod time;
mod url;
mod visible;

#[cfg(feature = "redis")]
pub use self::redis::{RedisOptions, RedisStore};
pub use edit::{MessageEdit, PartStandIn, shortened_messages};
#[cfg(feature = "encryption")]
pub use encryption::StoreKey;
pub use error::{HistoryError, StoreError, StoreErrorKind};
pub use ext::{Exported, HistoryStoreExt, Keep, Retained, check_export};
pub use fill::{Handles, Notes, clamped_text, fill, fill_with, part_text};
use fill::{clamped_named, fill_named};
pub use jsonl::{CutTail, Fsync, JsonlOptions, JsonlStore};
pub use kernel::Store;
pub use live::History;
pub(crate) use live::{Beside, Exchange, exchange};
pub use memory::MemoryStore;
pub(crate) use memory::{Snapshot, Step};
pub use open::open_store;
#[cfg(feature = "encryption")]
pub use open::open_store_with_key;
pub(crate) use pending::{Pending, PendingEdit};
pub use pins::{Pinned, Pins};
pub use planned::RELOADED;
#[cfg(feature = "postgres")]
pub use postgres::{Migrate, PostgresOptions, PostgresStore};
pub use record::{Committed, CompactionRecord, RecordId, Summary, UnansweredCall};
#[cfg(any(feature = "postgres", feature = "redis"))]
pub use remote::RemoteOptions;
pub use simple::{ByteStore, Saved, SimpleHistory};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
use store::OwnedState;
pub use store::{
    Append, AppendPosition, AppendToken, Appended, Entry, HistoryStore, KeptState, Live, Loaded, LogPage,
    Logged, LoggedAppend, NewState, Pruned, SessionId, SessionInfo, StateOutcome, StateRevision, TokenCount,
};
pub use time::Timestamp;
pub use url::shown_url;
pub(crate) use visible::{Visible, covered, joined};
