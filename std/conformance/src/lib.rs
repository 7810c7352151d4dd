//! The contract of every [`HistoryStore`](epitome_history::HistoryStore), as scenarios that any implementation runs with one call.
//!
//! A [`Subject`] opens the store under test. A [`Suite`] runs the scenarios on it and returns a [`Report`], which names
//! each scenario that failed. Each scenario creates its own sessions, with unique ids, and deletes them, so a database
//! with other content may be used. Only the scenarios and groups that [`Suite::with_skip`] declares are skipped.
//!
//! This crate is for tests: scenarios are assertions, and a failed one is a panic that the suite catches. It needs
//! unwinding panics. It runs on any executor, because it waits only for the store.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use epitome_conformance::{Subject, Suite};
//! use epitome_history::{HistoryStore, JsonlStore, StoreError};
//!
//! /// A folder for each scenario.
//! struct Folders(tempfile::TempDir);
//!
//! #[async_trait]
//! impl Subject for Folders {
//!     async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
//!         Ok(Arc::new(JsonlStore::open(self.0.path().join(place))?))
//!     }
//!
//!     fn is_apart(&self) -> bool {
//!         true
//!     }
//! }
//!
//! # futures::executor::block_on(async {
//! let folders = Folders(tempfile::tempdir()?);
//! let report = Suite::new().run_one("a_log_has_pages", &folders).await;
//! report.assert_passed();
//! assert_eq!(report.to_string(), "1 of 1 scenarios passed, 0 failed, 0 were skipped");
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap();
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "assertions about a store: a failed one ends its scenario, and is what the suite reports"
)]

mod appends;
mod authority;
mod commits;
mod contents;
mod edits;
mod ends;
pub mod fixtures;
mod handles;
pub mod index;
mod late_answers;
mod prune;
mod random;
mod report;
mod room;
mod search;
mod sessions;
mod states;
mod subject;
mod suite;
mod support;
mod table;
mod tails;
mod times;
mod twin;
mod undo;

pub use report::{Report, ScenarioOutcome};
pub use subject::{OneStore, Subject};
pub use suite::Suite;
