//! Memories: earlier messages that are found by their words, and texts that an application looks up for a run.
//!
//! A [`MemoryContextProvider`] adds the memories that a [`MemoryManager`] finds to a run, and stores the messages of
//! the run. A [`RetrievalProvider`] only adds texts, from an application's own [`Retriever`]. A [`RecallProvider`]
//! finds messages of the session that compactions have hidden. All add data, never instructions: their messages have
//! the authority of retrieved text, and are ephemeral.
//!
//! A [`MemoryTool`] lets the model itself keep texts, as files in a [`MemoryFolder`] that outlives the session.

mod config;
mod embedder;
mod folder;
mod keywords;
mod manager;
mod persistence;
mod provider;
mod recall;
mod retrieval;
mod scope;
mod store;
mod tool;

#[cfg(test)]
mod tests;

pub use config::{MemoryConfig, MemoryKind};
pub use embedder::Embedder;
pub use folder::{FILE_BYTES_MAX, FILES_MAX, FOLDER_BYTES_MAX, FileVersion, MemoryFolder, PATH_BYTES_MAX};
pub use keywords::KeywordRetriever;
pub use manager::{Memory, MemoryManager, MemoryQuery};
pub use persistence::MemoryPersistence;
pub use provider::{MemoryContextProvider, remembered};
pub use recall::RecallProvider;
pub use retrieval::{RetrievalProvider, Retrieved, Retriever, cut, retrieved_message};
pub use scope::Scope;
pub use store::InMemoryStore;
pub use tool::MemoryTool;

/// Default maximum number of memories or texts that are added to a run. Comparable providers of Microsoft Agent Framework have the same
/// default (`top_k = 5`).
pub const FOUND_MAX: usize = 5;
