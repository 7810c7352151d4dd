//! Sessions: who is talking, what the agent's providers remember of it, and what one run is made of.
//!
//! An [`AgentSession`] lasts from run to run. A [`SessionContext`] is made anew for each run: providers put messages,
//! instructions and tools into it before the model is called, and look at the answer in it afterwards. Neither holds the
//! providers themselves, which belong to the agent (see [`provider`](crate::provider)).

mod agent_session;
mod beside;
mod context;
mod dict;
mod error;
mod excluded;
mod filter;
mod id;
mod kept;
mod known_states;
mod response;
mod store;
mod tool;

#[cfg(test)]
mod tests;

pub use agent_session::{AgentSession, ServiceSessionId, State};
pub(crate) use context::KeptRun;
pub use context::{ContextMessages, Instruction, SessionContext};
pub use error::{SessionError, SessionErrorKind};
pub use filter::MessageFilter;
pub use id::{IdSource, UuidSource};
pub use response::AgentResponse;
pub use store::FileSessionStore;
pub use tool::{CONTEXT_SOURCE, Tool};
