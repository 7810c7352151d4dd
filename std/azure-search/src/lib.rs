//! Context provider for documents of [Azure AI Search](https://learn.microsoft.com/azure/search/): before a run, it
//! adds the documents of an index or a knowledge base that match the input.
//!
//! The provider uses the REST interface of the service, version 2026-04-01, and runs on tokio. It has the behavior of
//! `AzureAISearchContextProvider` of Microsoft Agent Framework and sends the same requests.
//!
//! ```
//! use epitome_azure_search::{AzureAISearchContextProvider, Credential};
//! use epitome_std::provider::Providers;
//!
//! # fn key() -> &'static str { "a-key" }
//! let key = Credential::ApiKey(key().into());
//! let search = AzureAISearchContextProvider::of_index("https://docs.search.windows.net", "handbook", key)?
//!     .with_semantic_configuration("default");
//! let mut providers = Providers::default();
//! providers.push(search)?;
//! # Ok::<(), epitome_std::session::SessionError>(())
//! ```

mod creation;
mod index;
mod knowledge_base;
mod provider;
#[cfg(test)]
mod tests;

pub use creation::KnowledgeModel;
pub use epitome_http::{Endpoint, Key};
pub use epitome_std::memory::Embedder;
pub use provider::{AzureAISearchContextProvider, Credential, PROMPT};
