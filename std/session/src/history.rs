//! Stored sessions and their stores: all of `epitome-history`, and the stores of this build that have a crate of their
//! own.

mod open;

pub use epitome_history::*;
#[cfg(feature = "postgres")]
pub use epitome_postgres::{Migrate, PostgresOptions, PostgresServer, PostgresStore};
#[cfg(feature = "redis")]
pub use epitome_redis::{RedisOptions, RedisServer, RedisStore};
#[cfg(feature = "sqlite")]
pub use epitome_sqlite::SqliteStore;
pub use open::open_store;
#[cfg(feature = "encryption")]
pub use open::open_store_with_key;
