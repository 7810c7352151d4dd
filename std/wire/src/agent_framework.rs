//! Messages as Microsoft Agent Framework (Python, 1.x) writes them: `Message.to_dict`.
//!
//! They stand in the state of a session, under `messages` of a history provider. An unchanged message is written back as it was read,
//! unknown fields included. [`read`](super::read) takes a list of messages, lines of them, and a session, in which the messages of each
//! source are a conversation.
//!
//! Their framework refuses a message with a field that it does not know, so nothing of ours is written into one. A part
//! that its content types cannot say (another format's unknown part, a provider's sealed compaction) is left out here; a
//! session keeps the message beside (see `AgentSession::to_dict` in `epitome-std`).
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::agent_framework;
//! use serde_json::json;
//!
//! let theirs = vec![json!({
//!     "type": "message", "role": "user", "author_name": "Al", "additional_properties": {"k": 1},
//!     "contents": [{"type": "text", "text": "Hi", "additional_properties": {}}],
//! })];
//! let messages = agent_framework::read_messages(&theirs)?;
//! assert_eq!((messages[0].role(), messages[0].name()), (Role::User, Some("Al")));
//! assert_eq!(agent_framework::write_messages(&messages), theirs);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```

mod content;
mod hosted;
mod message;
mod read;
mod spec;
mod write;

#[cfg(test)]
mod tests;

pub use read::{read_messages, trust_marker};
pub(crate) use spec::SPEC;
pub use spec::read_alone;
pub use write::{write_messages, write_with_sources};

/// The name of the format.
pub const FORMAT: &str = "agent-framework";

/// In the wire text of a message that was split when it was read: which piece it is, of how many. Never written.
const PIECE: &str = "_piece";
