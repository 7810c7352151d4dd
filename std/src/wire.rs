//! Conversations as providers write them: finding them in a file, reading their messages, writing them back.
//!
//! [`document`] finds the messages of a conversation in a JSON or JSONL text as byte ranges, without building a tree
//! and without copying; [`openai_chat`] reads and writes one message in the Chat Completions format. What nobody
//! changed is written back byte for byte, unknown fields, key order and spelling of numbers included.
//!
//! ```
//! use epitome_core::message::{MessageView, Role};
//! use epitome_std::wire::document::{conversation, Piece};
//! use epitome_std::wire::openai_chat::ChatView;
//!
//! let text = r#"{"model":"m","messages":[{"role":"system","content":"Be brief."}, {"role":"user","content":"Hi"}]}"#;
//! let found = conversation(text)?;
//! let last = ChatView::parse(found.get(1).unwrap_or_default())?;
//! assert_eq!(last.role(), Role::User);
//!
//! let mut shorter = Vec::new();
//! found.splice([Piece::Original(1)], &mut shorter)?;
//! assert_eq!(shorter, br#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod document;
mod error;
mod json;
pub mod openai_chat;
pub mod stored;

pub use error::{WireError, WireErrorKind};

#[cfg(test)]
mod tests;
