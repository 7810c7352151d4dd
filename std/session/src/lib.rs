//! Sessions, what joins their runs, and when a run compacts: everything of Epitome that an agent works with.
//!
//! [`session`] and [`provider`] put histories, and whatever else a model should see, into the runs of an agent; [`run`] is one exchange,
//! from what the user says to what is stored of it; [`compaction`] says when a run compacts; [`memory`] finds again what was said
//! earlier; [`agent`] is a loop over runs.
//!
//! What they work with are crates of their own, which are reached from here too: [`message`] (with [`tokens`], [`models`] and
//! [`search`]) is one message and what can be said of it alone, [`wire`] reads and writes it in a provider's format, [`history`]
//! keeps sessions of them.
//!
//! This crate does not decide what to keep (that is `epitome-core` and a strategy), and it calls a model only through a
//! client of yours: see [`agent`].

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod agent;
pub mod compaction;
pub mod history;
pub mod memory;
pub mod provider;
pub mod run;
pub mod session;

pub use epitome_message::{identifiers, media, models, search, tokens};
pub use epitome_wire as wire;

/// Owned messages: all of `epitome-message` but its modules, which stand beside this one.
pub mod message {
    pub use epitome_core::attribution::{Authority, Retention, SourceKind};
    pub use epitome_core::message::Role;
    pub use epitome_message::{
        Approval, ApprovalAnswer, Attribution, CompactionPart, LABEL_EPHEMERAL, LABEL_IMPORTANT, Media,
        MediaSource, Message, NESTING_MAX, Part, Reasoning, Repaired, Str, ToolCall, ToolResult, UnknownPart,
        WireText, apply_repairs, summary_of_user,
    };
}
