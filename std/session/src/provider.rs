//! Providers: objects that add to a run before the model is called, and see its answer afterwards.
//!
//! A [`ContextProvider`] adds messages, instructions and tools to a run, and may keep data in the session's state. A
//! [`HistoryProvider`] is a provider that loads and stores messages. An agent owns its [`Providers`]; one list serves
//! any number of sessions at once.

mod agent_info;
mod closure;
mod compaction;
mod error;
mod history;
mod hook;
mod pipeline;
mod warning;

#[cfg(test)]
mod tests;

pub use agent_info::{AgentInfo, NamedAgent};
pub use closure::{ClosureProvider, HookFn, HookFuture, boxed_hook};
pub use compaction::CompactionProvider;
pub use error::{Failures, HookName, ProviderError};
#[cfg(feature = "redis")]
pub use history::RedisHistoryProvider;
pub use history::{HistoryProvider, InMemoryHistoryProvider};
pub(crate) use history::{LastStored, RunPlace};
pub use hook::{ContextProvider, Hook};
pub use pipeline::Providers;
pub(crate) use pipeline::{fork_history, open_history};
pub use warning::ProviderWarning;

/// The default source ids of providers.
///
/// A session's state and the attribution of messages name providers by these ids, also after the program has been built
/// anew: they never change.
pub mod source_id {
    /// Histories that the session itself keeps.
    pub const IN_MEMORY: &str = "in_memory";
    /// Histories in Redis.
    pub const REDIS_MEMORY: &str = "redis_memory";
    /// Search in Redis.
    pub const REDIS: &str = "redis";
    /// Mem0.
    pub const MEM0: &str = "mem0";
    /// Azure AI Search.
    pub const AZURE_AI_SEARCH: &str = "azure_ai_search";
    /// Histories in SQLite.
    pub const SQLITE_MEMORY: &str = "sqlite_memory";
    /// Histories in Postgres.
    pub const POSTGRES_MEMORY: &str = "postgres_memory";
    /// Histories in JSONL files.
    pub const JSONL_MEMORY: &str = "jsonl_memory";
    /// Histories in Cosmos DB.
    pub const COSMOS_MEMORY: &str = "cosmos_memory";
    /// Compaction.
    pub const COMPACTION: &str = "compaction";
    /// Memories of earlier conversations.
    pub const MEMORY: &str = "memory";
    /// Memory files that a model keeps by a tool.
    pub const MEMORY_TOOL: &str = "memory_tool";
    /// Closures; the second has `decorated-2`, and so on.
    pub const DECORATED: &str = "decorated";
}
