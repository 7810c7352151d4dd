//! Conversations in the formats of providers and agents. The crate finds conversations in a text, reads their messages,
//! and writes them back.
//!
//! [`read`] returns the conversations of a text of any [`Format`] as owned messages. [`write_back`] returns the text
//! with the present state of these messages. An unchanged part is written byte for byte: unknown fields, key order and
//! spelling of numbers.
//!
//! This crate stores no session (that is `epitome-history`) and does not decide which messages a request holds.
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
//! [`document`] finds Chat Completions messages as byte ranges, line by line for a file that is too large for the
//! memory. [`openai_chat`] reads and writes one such message. The form in which stores keep messages is in
//! `epitome-history`. It is no format for exchange.
//!
//! # Questions that JSON leaves open
//!
//! - *Numbers* keep their text: a value is parsed only when it is needed, `1.50` stays `1.50`, and there is no largest
//!   number.
//! - *The same key twice*: a `DuplicateKey` error if a reader uses the key, because programs disagree on which value
//!   counts. Any other key is copied like the rest of the text.
//! - *Half a surrogate pair* (`\ud83d` alone) is read as U+FFFD. Such a half appears when a program cuts a text in the
//!   middle of an emoji. In the text that is written back it stays, as long as its part is unchanged.
//! - *Depth*: no function recurses with the depth of the text, except for results within results, which end at
//!   [`NESTING_MAX`](epitome_message::NESTING_MAX).
//! - *A byte order mark* is skipped, and stays in the text that is written back.
//!
//! # Adding a format
//!
//! Another crate adds a format with [`custom`]. A format of this crate is a folder here, a row of the table in
//! `format.rs`, and small texts in `fuzz/seeds`: the tests over all formats put odd values in every place of these
//! texts. Its [`FormatSpec`](custom::FormatSpec) has three functions:
//!
//! - `sign` looks at a `Body` (one JSON value, or lines) and returns `No`, `Possible`, `Likely` or `Certain`, with the
//!   reason in words. `Certain` requires a sign that no other format has. `Body::sample` and `Body::field` return the values to
//!   look at.
//! - `read` adds conversations to a `Transcript`. First it registers the lists (`Transcript::array`,
//!   `Transcript::lines`), then `Transcript::extend` reads their elements. If that is not enough, `read` takes a record
//!   (`Transcript::element`) for every element that holds messages, and passes its messages to `Conversation::extend`.
//!   Elements without a record stay in their places. The spec has the keys that the reader uses around a list, so that
//!   a repeated key is refused. Content in a field of its own, such as instructions, is `Transcript::field`. A value
//!   that cannot be left out is `Transcript::value`. Texts are slices of the source: `expect::share` makes them without
//!   a copy. Every message ends with `with_wire`, whose text is a slice of its record. A message that shares its record
//!   with the message before it has `rejoin`. `json` checks every value, and in `Transcript::extend` every line. After
//!   that, `json::known` reads them.
//! - Branches and side chains are conversations of their own, with a `Relation`. They may share records. Every record
//!   has to be in one of them: the writer leaves out a record that is in none. `forest::Forest` is for records that
//!   name the record before them. Their list is `free` (`Transcript::forest`, `Transcript::free_array`), because its
//!   order is not the conversation's. Their spec has a `chain`, so that the record after a gap names the record before
//!   it. A file that only grows has a `log` in its spec instead: its records are `Transcript::logged`, and the new
//!   state of its conversation is one more line.
//! - If files may be too long for the memory, the spec has an `outline::Outliner`: it assigns lines to conversations.
//!   It stores only the values of a line that decide this, in the type that decides it for `read`.
//! - Reports of usage go to `Conversation::usage`, and compactions of the tool to `Conversation::compactions`.
//! - `write` returns the text of a record that has to change. If `read` makes `custom::RecordMessage`s, which note the
//!   place of each part in its record, `slots::write` does all of this. Otherwise `write` patches the old text
//!   (`json::patch`, `json::rebuild`, `Places`). It writes a new record, or refuses it.
//!
//! Errors have offsets and paths within the text that a function received. `json::nested` adds them up, and `read`
//! converts them to line and column. The tests over all formats are in `src/tests/formats.rs`.

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
mod shell;
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
