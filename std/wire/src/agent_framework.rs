//! Messages of Microsoft Agent Framework (Python, 1.x), in the form of `Message.to_dict`.
//!
//! A session holds the messages in its state, under `messages` of a history provider. An unchanged message is written
//! back as it was read, unknown fields included. [`read`](super::read) takes a list of messages, lines of messages, or
//! a session, in which the messages of each source are a conversation.
//!
//! The framework refuses a message with an unknown field, so the writer adds no field of this crate. The writer leaves
//! out a part without a content type in the framework: another format's unknown part, or a provider's sealed
//! compaction. A session stores the whole message in addition (see `AgentSession::to_dict` in `epitome-std`).
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

/// Key in the wire text of a message that the reader split: the number of the piece and the count of the pieces. Never
/// written.
const PIECE: &str = "_piece";
