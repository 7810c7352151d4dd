//! Messages, and what can be said of one alone: its parts and its attribution, how many tokens it has, which identifiers and terms.
//!
//! [`Message`] is owned, and cheap to clone. [`tokens`] counts it, exactly or by an estimate; [`models`] is the table of windows,
//! prices and counters by name; [`search`] finds the texts that are nearest to a query.
//!
//! This crate reads no format of a provider (that is `epitome-wire`) and keeps nothing (`epitome-history`).

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
