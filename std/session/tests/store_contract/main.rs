//! Every rule of the storage contract, on every store; and the properties of each store's files.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed expectation ends the test"
)]

/// Runs each scenario on a fresh store of each kind.
macro_rules! on_every_store {
    ($($scenario:ident),* $(,)?) => {
        on_every_store! { memory: $($scenario),* }
        on_every_store! { simple: $($scenario),* }
        on_every_store! { jsonl: $($scenario),* }
        #[cfg(feature = "sqlite")]
        on_every_store! { sqlite: $($scenario),* }
    };
    ($store:ident: $($scenario:ident),*) => {
        mod $store {
            $(#[test] fn $scenario() {
                let subject = crate::subjects::$store();
                let opened = epitome_conformance::Subject::open(&subject, stringify!($scenario));
                super::$scenario(&*futures::executor::block_on(opened).unwrap());
            })*
        }
    };
}

#[cfg(feature = "sqlite")]
mod counts;
#[cfg(feature = "encryption")]
mod encrypted;
mod every_store;
#[cfg(target_os = "linux")]
mod failing_disk;
mod faults;
mod jsonl_files;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod killed_server;
mod moving;
#[cfg(feature = "postgres")]
mod postgres_killed;
#[cfg(feature = "postgres")]
mod postgres_passwords;
#[cfg(feature = "postgres")]
mod postgres_refusals;
#[cfg(feature = "postgres")]
mod postgres_server;
#[cfg(feature = "postgres")]
mod postgres_tables;
#[cfg(target_os = "linux")]
mod power;
#[cfg(feature = "redis")]
mod redis_store;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod remote;
mod retention;
mod rewind;
mod simple;
#[cfg(feature = "sqlite")]
mod sqlite_file;
#[cfg(target_os = "linux")]
mod steps;
mod subjects;
mod support;
mod urls;
mod words;
