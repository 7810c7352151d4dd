//! Context provider for memories in Redis: it stores the messages of runs, and finds the memories nearest to the input
//! of a run by words, by vectors, or by both.
//!
//! The provider needs the search of Redis 8, or the module `RediSearch` 2.10 or later on an older server, and runs on
//! tokio. It has the behavior of `RedisContextProvider` of Microsoft Agent Framework, and both can use one index.
//!
//! ```
//! use epitome_redis_search::{RedisContextProvider, RedisServer, RemoteOptions, Scope};
//! use epitome_std::provider::Providers;
//!
//! let server = RedisServer::from_url("redis://127.0.0.1/")?;
//! let memories = RedisContextProvider::new(&server, RemoteOptions::default())?
//!     .with_scope(Scope::default().with_application("shop").with_user("alice"));
//! let mut providers = Providers::default();
//! providers.push(memories)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod filter;
mod index;
mod once;
mod provider;
mod query;
mod service;
#[cfg(test)]
mod tests;
mod vectors;

pub use epitome_history::{Password, RemoteOptions};
pub use epitome_redis::RedisServer;
pub use epitome_std::memory::{Embedder, Scope};
pub use provider::{PROMPT, RedisContextProvider};
pub use vectors::{VectorAlgorithm, VectorDistance, VectorSearch};
