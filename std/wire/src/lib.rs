//! Conversations as providers and agents write them: finding them in a text, reading their messages, writing them back.
//!
//! [`read`] gives the conversations of a text of any [`Format`] as owned messages; [`write_back`] gives the text with the present state of
//! these. An unchanged part is written byte for byte: unknown fields, key order and spelling of numbers.
//!
//! This crate keeps no session (that is `epitome-history`) and decides nothing about what a request holds.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{Format, ReadOptions, detect, read, write_back};
//!
//! let text = r#"{"model":"m","messages":[{"role":"system","content":"Be brief."}, {"role":"user","content":"Hi"}]}"#;
//! assert_eq!(detect(text)?.format, Format::OpenaiChat);
//! let mut transcript = read(text, &ReadOptions::default())?;
//! let entries = &mut transcript.conversations_mut()[0].entries;
//! assert_eq!(entries[1].message().role(), Role::User);
//!
//! entries.remove(0);
//! let mut shorter = Vec::new();
//! write_back(&transcript, &mut shorter)?;
//! assert_eq!(shorter, br#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`document`] finds Chat Completions messages as byte ranges, line by line where a file is too large to hold, and
//! [`openai_chat`] reads and writes one of them. The form in which stores keep messages is in `epitome-history`; it is no format for
//! exchange.
//!
//! # Questions that JSON leaves open
//!
//! - *Numbers* keep their text: a value is parsed only when it is needed, `1.50` stays `1.50`, and there is no largest.
//! - *The same key twice*: where it is a key that a reader looks at, a `DuplicateKey` error, because programs disagree on
//!   which one counts; any other is carried like the rest of the text.
//! - *Half a surrogate pair* (`\ud83d` alone), which a program leaves when it cuts a text in the middle of an emoji, is read as U+FFFD. In
//!   the text that is written back it stays, as long as its part is not changed.
//! - *Depth*: nothing here recurses with the depth of the text, except for results within results, which end at
//!   [`NESTING_MAX`](epitome_message::NESTING_MAX).
//! - *A byte order mark* is passed over, and stays in the text that is written back.
//!
//! # Adding a format
//!
//! Another crate adds a format with [`custom`]. A format of this crate is a folder here, a row of the table in `format.rs`, and small
//! texts in `fuzz/seeds`, in which the tests over all formats put odd values in every place. Its [`FormatSpec`](custom::FormatSpec)
//! has three functions:
//!
//! - `sign` looks at a `Body` (one JSON value, or lines) and says `No`, `Possible` or `Certain`, with the words for people.
//!   `Certain` only for a sign that no other format has; `Body::sample` and `Body::field` give what to look at.
//! - `read` adds conversations to a `Transcript`. First it names the lists (`Transcript::array`, `Transcript::lines`), then
//!   `Transcript::extend` reads their elements; or, where that is not enough, for every element that holds messages it takes
//!   a record (`Transcript::element`) and gives its messages to `Conversation::extend`. Elements without a record stay where
//!   they are. The keys around a list that it looks at stand in the spec, so that one that is there twice is refused. What stands in a field of its own, such as
//!   instructions, is `Transcript::field`; a value that cannot be left out, `Transcript::value`. Texts are slices of the
//!   source: `expect::share` makes them without a copy. Every message ends with `with_wire`, whose text is a slice of its
//!   record; one that shares its record with the message before it has `rejoin`. What `json` has been through once, which
//!   is every value and, in `Transcript::extend`, every line, is read by `json::known` from there on.
//! - Branches and side chains are conversations of their own, with a `Relation`; they may share records. Every record has
//!   to be in one of them: what is in none when a transcript is written is left out. `forest::Forest` is for records that
//!   name the one before them; their list is `free` (`Transcript::forest`, `Transcript::free_array`), because its order is
//!   not the conversation's, and their spec has a `chain`, so that what follows a gap names what is before it.
//!   A file that is only added to has a `log` in its spec instead: its records are `Transcript::logged`, and what has become
//!   of its conversation is one more line.
//! - Where files may be too long to hold, the spec has an `outline::Outliner`: which lines are which conversation. Only what
//!   decides that is held of a line, in the same type that decides it for `read`.
//! - Reports of usage go to `Conversation::usage`, what the tool compacted itself to `Conversation::compactions`.
//! - `write` gives the text of a record that has to change. Where `read` makes `custom::RecordMessage`s, which note where each part stands in
//!   its record, `slots::write` is all of it. Else the old text is patched (`json::patch`, `json::rebuild`, `Places`). A record that is
//!   new is written, or refused.
//!
//! Errors have offsets and paths within the text that a function was given; `json::nested` adds up, and `read` makes line
//! and column of it. The tests over all formats are in `src/tests/formats.rs`.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod adk;
pub mod agent_framework;
pub mod ai_sdk;
pub mod aider;
mod answers;
pub mod anthropic;
pub mod bedrock_converse;
mod blocks;
mod body;
mod branches;
pub mod chatgpt;
pub mod claude_ai;
pub mod claude_code;
pub mod cline;
pub mod codex;
pub mod continue_dev;
pub mod convert;
pub mod copilot_chat;
pub mod copilot_cli;
pub mod cursor;
pub mod custom;
pub mod document;
mod error;
mod expect;
mod exports;
mod forest;
mod forgotten;
mod format;
pub mod gemini;
pub mod gemini_cli;
pub mod goose;
mod injected;
#[doc(hidden)]
pub mod json;
pub mod langchain;
mod limits;
pub mod openai_chat;
pub mod openai_responses;
pub mod opencode;
pub mod openhands;
pub mod otel_genai;
mod outline;
mod overflow;
mod patch_parts;
pub mod pi;
mod places;
pub mod pydantic_ai;
mod read;
mod rewrite;
pub mod semantic_kernel;
pub mod sharegpt;
mod slots;
mod spec;
mod stream;
pub mod swe_agent;
mod transcript;
pub mod usage;

pub use convert::{
    CONVERSION_TARGETS, ConversionLoss, ConversionLossKind, Converted, convert, convert_continued, received,
};
pub use error::{WireError, WireErrorKind};
pub use forgotten::session_forgotten;
pub use format::Format;
pub use limits::{FieldValidator, FieldViolation, FieldViolationKind};
pub use outline::{Outline, OutlinedConversation};
pub use overflow::{ContextOverflow, context_overflow};
pub use read::{Detection, ReadOptions, detect, read};
pub use stream::{LineRecord, SessionLines};
pub use transcript::{
    Conversation, LazyList, Relation, SourceRecordId, ToolCompaction, ToolCompactions, Transcript,
    TranscriptEntries, TranscriptEntry, UsageEntry, write_back,
};

#[cfg(test)]
mod tests;
