//! Context provider for memories in [Mem0](https://docs.mem0.ai): before a run, it adds the stored memories of a user;
//! after the run, it sends the messages of the run to Mem0.
//!
//! The provider sends HTTP requests to the service of mem0.ai or to a self-hosted server, and runs on tokio. It has the
//! behavior of `Mem0ContextProvider` of Microsoft Agent Framework and sends the same requests.
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
