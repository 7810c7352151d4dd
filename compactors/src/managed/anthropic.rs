//! Anthropic's own compaction and context editing: mappers between JSON texts of its Messages API, for any HTTP
//! client.
//!
//! | type | decision by | next request |
//! |---|---|---|
//! | [`ContextEdits`] | the API, for each request anew | the whole history, unchanged |
//! | [`ThresholdCompaction`] | the API, above a trigger | the history with the response; [`trim_to_block`] may shorten it |
//! | [`Summarize`] | the caller, by a separate request | the block and the later messages ([`replay`]) |
//!
//! The functions take a request or a response as JSON text. Those that write a request return JSON text, and content
//! that they do not change keeps its text byte for byte: messages, blocks, `signature`, `encrypted_content`,
//! `tool_changes`, `cache_control`. Only the order of the request's own members changes.
//!
//! ```
//! use epitome_compactors::managed::anthropic::{Summarize, SummaryAnswer, choose_cut, replay};
//!
//! let request = r#"{"model":"claude-opus-5-5","max_tokens":4096,"messages":[
//!   {"role":"user","content":"Name the entities."},{"role":"assistant","content":"Recipe, Step."},
//!   {"role":"user","content":"Name the fields."},{"role":"assistant","content":"title, servings"}]}"#;
//! let cut = choose_cut(request, 1)?.ok_or("too short")?;
//! let ask = Summarize::new().request(request, cut)?;
//! assert!(ask.contains(r#""compaction":{"type":"summarize"}"#) && !ask.contains("fields"));
//!
//! // Sent with the header `anthropic-beta: compact-2026-09-04`, it is answered with a block.
//! let response = r#"{"type":"message","role":"assistant","stop_reason":"compaction",
//!   "content":[{"type":"compaction","content":"Entities: Recipe, Step.","signature":"EuYB"}]}"#;
//! let SummaryAnswer::Written(block) = SummaryAnswer::read(response)? else { return Err("no summary".into()) };
//! assert_eq!(
//!     replay(request, cut, &block)?,
//!     r#"{"max_tokens":4096,"model":"claude-opus-5-5","messages":[{"role":"assistant","content":[{"type":"compaction","content":"Entities: Recipe, Step.","signature":"EuYB"}]},{"role":"user","content":"Name the fields."},{"role":"assistant","content":"title, servings"}]}"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `anthropic`, `AnthropicCompaction` sends the requests for a summary, as a
//! [`CompactionService`](super::CompactionService).
//!
//! The rules are those of <https://platform.claude.com/docs/en/build-with-claude/compaction> as of September 2026.

mod background;
mod binding;
mod block;
mod body;
#[cfg(feature = "anthropic")]
mod client;
mod cut;
mod edits;
mod error;
mod service;
mod summarize;
mod threshold;

pub use background::{BackgroundSwap, DiscardedBlock, Swapped, Ticket};
pub use binding::{BINDING_BETA, BoundThinking, Remedy, drop_mismatched, strip_thinking};
pub use block::CompactionBlock;
#[cfg(feature = "anthropic")]
pub use client::AnthropicCompaction;
pub use cut::choose_cut;
pub use edits::{
    AppliedEdit, CONTEXT_EDITING_BETA, ClearInputs, ClearThinking, ClearToolUses, ContextEdits, EditTrigger,
    applied_edits,
};
pub use error::{CompactionCode, MappingError};
pub use service::{PROVIDER, summarize_body, summarized};
pub use summarize::{NoSummary, ON_DEMAND_BETA, Summarize, SummaryAnswer, replay};
pub use threshold::{
    THRESHOLD_BETA, TRIGGER_DEFAULT, TRIGGER_MIN, ThresholdCompaction, ThresholdOutcome, trim_to_block,
};

#[cfg(test)]
mod tests;
