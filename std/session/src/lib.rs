//! Sessions, providers, runs and their compaction: the parts of Epitome that an agent works with.
//!
//! [`session`] and [`provider`] add histories and other context to the runs of an agent. [`run`] is one exchange, from
//! the user's input to the stored result. [`compaction`] has the settings of compactions. [`memory`] finds earlier
//! messages. [`agent`] drives a run: it sends requests and runs tools until the
//! model calls no more tools.
//!
//! They use other crates, which this crate re-exports. [`message`] (with [`tokens`], [`models`] and [`search`]) is one
//! message and its properties. [`wire`] reads and writes messages in a provider's format. [`history`] stores sessions.
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

/// Owned messages: all of `epitome-message` except its modules, which the root of this crate re-exports.
pub mod message {
    pub use epitome_core::attribution::{Authority, Retention, SourceKind};
    pub use epitome_core::message::Role;
    pub use epitome_message::{
        Approval, ApprovalAnswer, Attribution, CompactionPart, LABEL_EPHEMERAL, LABEL_IMPORTANT, Media,
        MediaSource, Message, NESTING_MAX, Part, Reasoning, Repaired, Str, ToolCall, ToolResult, UnknownPart,
        WireText, apply_repairs, summary_of_user,
    };
}
