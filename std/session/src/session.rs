//! Sessions: the identity of a conversation, the state of the agent's providers, and the parts of one run.
//!
//! An [`AgentSession`] lasts from run to run. A [`SessionContext`] is made anew for each run: providers add messages,
//! instructions and tools to it before the model is called, and read the answer in it afterwards. Neither holds the
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
