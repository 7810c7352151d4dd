//! Memories in [Mem0](https://docs.mem0.ai) as a context provider: what it knows of a user is added to a run, and what is said in the run
//! is given to it.
//!
//! The provider asks the service of mem0.ai or a server of your own over HTTP; it runs on tokio. It behaves as `Mem0ContextProvider` of
//! Microsoft Agent Framework does, with the same requests.
//!
//! ```
//! use epitome_mem0::{Mem0ContextProvider, Scope};
//! use epitome_std::provider::Providers;
//!
//! # fn key() -> &'static str { "m0-key" }
//! let mem0 = Mem0ContextProvider::hosted(key())?
//!     .with_storage(Scope::default().with_user("alice").with_agent("helper"))
//!     .with_search(Scope::default().with_user("alice"));
//! let mut providers = Providers::default();
//! providers.push(mem0)?;
//! # Ok::<(), epitome_std::session::SessionError>(())
//! ```

mod client;
mod filter;
mod provider;
#[cfg(test)]
mod tests;

pub use epitome_http::{Endpoint, Key};
pub use epitome_std::memory::Scope;
pub use provider::{Mem0ContextProvider, PROMPT};
