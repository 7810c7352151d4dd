//! Messages, and the properties of a single message: parts, attribution, tokens, identifiers and terms.
//!
//! [`Message`] is owned, and cheap to clone. [`tokens`] has the token counters, exact and estimating; [`models`] is
//! the table of windows, prices and counters by name; [`search`] finds the texts that are nearest to a query.
//!
//! This crate parses no provider format (see `epitome-wire`), and stores nothing (see `epitome-history`).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod media;
mod message;
pub mod models;
pub mod search;
#[doc(hidden)]
pub mod stored;
pub mod tokens;

pub use epitome_core::identifiers;
pub use message::{
    Approval, ApprovalAnswer, Attribution, CompactionPart, LABEL_EPHEMERAL, LABEL_IMPORTANT, Media,
    MediaSource, Message, NESTING_MAX, Part, Reasoning, Repaired, Str, ToolCall, ToolResult, UnknownPart,
    WireText, apply_repairs, summary_of_user,
};
