//! Every sentence of the storage contract, on every store.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed expectation ends the test"
)]

/// Runs each scenario on a fresh store of each kind.
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $scenario() { super::$scenario(&epitome_std::history::MemoryStore::new()); })*
        }
        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(#[test] fn $scenario() {
                let directory = tempfile::tempdir().unwrap();
                let store = epitome_std::history::SqliteStore::open(directory.path().join("store.db")).unwrap();
                super::$scenario(&store);
            })*
        }
    };
}

mod appends;
mod commits;
mod late_answers;
#[cfg(feature = "sqlite")]
mod model;
mod sessions;
#[cfg(feature = "sqlite")]
mod sqlite_file;
mod support;
#[cfg(feature = "sqlite")]
mod twin;
