//! Anthropic's own compaction and context editing: mappers between texts of its Messages API, usable with any client.
//!
//! | what | who decides | what is sent afterwards |
//! |---|---|---|
//! | [`ContextEdits`] | the API, for each request anew | the whole history, as ever |
//! | [`ThresholdCompaction`] | the API, when a request is larger than a trigger | the response as it came; [`trim_to_block`] leaves out what the API would pass over |
//! | [`Summarize`] | the caller, with a request of its own | the block first, in place of what it summarizes ([`replay`]) |
//!
//! A request or response goes in as JSON text and comes out as such. What is not concerned keeps its text byte for byte:
//! messages, blocks, `signature`, `encrypted_content`, `tool_changes`, `cache_control`. Only the request's own members are put
//! in another order.
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
