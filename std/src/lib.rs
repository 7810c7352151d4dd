//! Owned messages, wire formats, token counters and history stores: everything of Epitome that needs a heap or I/O.
//!
//! [`message::Message`] is one message with its attribution; [`wire`] reads and writes it in a provider's format;
//! [`history`] keeps sessions of them: an append-only log, and compactions that hide parts of it without deleting
//! anything.
//!
//! This crate does not decide what to keep (that is `epitome-core` and a strategy), and it never calls a model.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod history;
pub mod message;
pub mod tokens;
pub mod wire;
