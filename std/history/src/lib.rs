//! Stored sessions: an append-only log, and compactions that hide parts of it.
//!
//! [`HistoryStore`] is the storage contract. A compaction deletes nothing: a [`CompactionRecord`] names the messages
//! that are hidden or shortened, and their stand-ins. [`HistoryStore::load`] returns the visible messages: the *live
//! projection*.
//!
//! [`MemoryStore`], [`JsonlStore`] and [`SimpleHistory`] are stores. The stores for SQLite, Postgres and Redis have
//! their own crates. `epitome-conformance` tests any other store. [`History`] is one loaded session of any store.
//!
//! This crate does not decide which messages to hide: a strategy of `epitome-compactors` decides, and `epitome-core`
//! makes the plan.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

#[doc(hidden)]
#[expect(clippy::exhaustive_structs, reason = "the stores of this project take them apart")]
pub mod bodies;
mod edit;
#[doc(hidden)]
#[expect(clippy::exhaustive_enums, reason = "the stores of this project take them apart")]
pub mod encryption;
mod error;
mod ext;
#[doc(hidden)]
pub mod files;
mod fill;
mod jsonl;
#[expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "a store takes them apart, and must not compile if it leaves out a fact or a change"
)]
pub mod kernel;
mod line;
mod live;
mod memory;
mod pause;
mod pending;
mod pins;
mod planned;
mod record;
#[cfg(feature = "remote")]
#[doc(hidden)]
pub mod remote;
#[doc(hidden)]
#[expect(clippy::exhaustive_structs, reason = "the stores of this project take them apart")]
pub mod rows;
#[doc(hidden)]
#[expect(clippy::exhaustive_structs, reason = "the stores of this project take them apart")]
pub mod rules;
mod simple;
mod store;
pub mod stored;
#[doc(hidden)]
pub mod tail;
mod time;
mod url;
mod visible;
#[doc(hidden)]
#[expect(clippy::exhaustive_structs, reason = "the stores of this project take them apart")]
pub mod words;

pub use edit::{MessageEdit, PartStandIn, shortened_messages};
#[cfg(feature = "encryption")]
pub use encryption::StoreKey;
pub use error::{HistoryError, StoreError, StoreErrorKind};
pub use ext::{Exported, HistoryStoreExt, Keep, Retained, check_export};
pub use fill::{Handles, Notes, clamped_text, fill, fill_with, part_text};
use fill::{clamped_named, fill_named};
pub use jsonl::{CutTail, Fsync, JsonlOptions, JsonlStore};
pub use live::{History, Unseen};
pub use memory::MemoryStore;
use pending::PendingRecord;
pub use pins::{Pinned, Pins};
pub use planned::RELOADED;
pub use record::{Committed, CompactionRecord, RecordId, Summary, UnansweredCall};
#[cfg(feature = "remote")]
pub use remote::{Password, RemoteOptions, Secret, SecretFuture};
pub use simple::{ByteStore, Saved, SimpleHistory};
#[doc(hidden)]
pub use store::OwnedState;
pub use store::{
    Append, AppendPosition, AppendToken, Appended, Entry, FoundMessage, HistoryStore, KeptState, Live,
    Loaded, LogPage, LogSearch, Logged, LoggedAppend, NewState, Pruned, SearchScope, SessionId, SessionInfo,
    StateOutcome, StateRevision, TokenCount,
};
pub use time::Timestamp;
pub use url::shown_url;
use visible::VisibleIndex;

/// The parts of a history for the runs of `epitome-std`. They may change in any release.
#[doc(hidden)]
pub mod inner {
    pub use crate::live::{Beside, Exchange, exchange};
    pub use crate::memory::{Snapshot, Step};
    pub use crate::pause::pause;
    pub use crate::pending::{PendingEdit, PendingRecord};
    pub use crate::visible::{VisibleIndex, covered, joined};
}
