//! Owned messages, wire formats, token counters, history stores and sessions: everything of Epitome that needs a heap or I/O.
//!
//! [`message::Message`] is one message with its attribution; [`wire`] reads and writes it in a provider's format;
//! [`history`] keeps sessions of them: an append-only log, and compactions that hide parts of it without deleting
//! anything. [`session`] and [`provider`] put histories, and whatever else a model should see, into the runs of an agent;
//! [`compaction`] says when a run compacts, and [`memory`] finds again what was said earlier.
//!
//! This crate does not decide what to keep (that is `epitome-core` and a strategy), and it calls a model only through a
//! client of yours: see [`agent`].

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod agent;
pub mod compaction;
mod files;
pub mod history;
pub mod identifiers;
pub mod media;
pub mod memory;
pub mod message;
pub mod models;
pub mod provider;
pub mod run;
pub mod search;
pub mod session;
pub mod tokens;
pub mod wire;
