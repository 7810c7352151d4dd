//! Decides which messages of a conversation between a user, an LLM and its tools stay in the next request, without
//! changing the conversation.
//!
//! Push every message once into an [`IndexBuf`]. The index puts the message in its group (a tool call and all its
//! results are one group) and adds its tokens to running sums. When the conversation exceeds its [`Budget`], a
//! [`Strategy`] writes verdicts into a [`Draft`]. The resulting [`Plan`] describes the content of the next request.
//!
//! ```
//! use epitome_core::message::SimpleMessage;
//! use epitome_core::{ArrayTable, Budget, Cell, Draft, IndexBuf, OpenCallSlots, Outcome, Pass, Span, Strategy, Tokens};
//!
//! /// Drops the oldest groups that may be dropped, until the goal is met.
//! #[derive(Debug)]
//! struct Oldest;
//!
//! impl Strategy for Oldest {
//!     fn name(&self) -> &'static str {
//!         "oldest"
//!     }
//!
//!     fn plan(&self, draft: &mut Draft<'_>) {
//!         draft.drop_oldest();
//!     }
//! }
//!
//! let mut index = IndexBuf::<ArrayTable<Span, 8>, OpenCallSlots<4>>::new();
//! index.push(&SimpleMessage::system("Answer briefly."), Tokens(6))?;
//! for question in ["What is 6 x 7?", "And 6 x 8?", "And 6 x 9?"] {
//!     index.push(&SimpleMessage::user(question), Tokens(9))?;
//!     index.push(&SimpleMessage::assistant("Let me see."), Tokens(7))?;
//! }
//! let budget = Budget::builder().window(100).trigger(50).goal(48).build()?;
//! let mut cells = [Cell::default(); 8];
//! let outcome = epitome_core::plan(index.view(), &budget, Pass::Manual, &Oldest, &mut cells)?;
//! let Outcome::Planned(plan) = outcome else { unreachable!("54 tokens are more than 48") };
//! // The oldest answer is enough for the goal. The instructions, the first and the last user message are protected.
//! assert_eq!(plan.verdicts().to_string(), "KKDKKKK");
//! assert_eq!(plan.tokens_after(), 47);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! A plan may also shorten parts of messages (a tool result, reasoning) or replace a span of groups with a summary. To
//! allow this, push with [`IndexBuf::push_with_parts`], plan with [`plan_with`], and [fill](Plan::fill) the plan. The
//! example there goes from the messages to the [`PlannedEdit`]s that a store has to write.
//!
//! This crate does not call models, read clocks, draw random numbers, allocate (without the `alloc` feature) or store
//! anything. Owned messages are in `epitome-message`, wire formats in `epitome-wire`, stores in `epitome-history`, and
//! strategies in `epitome-compactors`.
//!
//! # Features
//! - `alloc`: `Vec` as a table and [`OpenCallTree`], the unbounded memory for unanswered calls.
//! - `defmt`: identifiers, amounts, outcomes and errors as `defmt` values, for devices.
//! - `heapless`: `heapless::Vec` as a fixed-capacity table.
//! - `serde`: identifiers, amounts, budgets and the saved state of a usage ledger as serde values.
//! - `suspend`: a stream of text into a bounded history can be suspended, and then holds no borrow of the history.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![warn(clippy::arithmetic_side_effects)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod attribution;
mod bounded;
mod budget;
mod chat;
mod count;
#[cfg(feature = "defmt")]
mod defmt;
mod draft;
pub mod estimate;
pub mod identifiers;
mod ids;
mod index;
pub mod message;
mod open_calls;
mod pass;
mod plan;
mod profile;
#[cfg(feature = "alloc")]
mod repair;
mod shape;
mod strategy;
mod table;
#[cfg(test)]
mod test_message;
mod tokens;
mod trigger;
mod usage;
mod validate;

pub use bounded::{
    ArenaMessage, BoundedHistory, BoundedSummaryError, CLAMP_MARKER, CompactError, Compacted,
    DERIVED_RANGES_MAX, LEDGER_OPENING, OPEN_CALLS_MAX, SnapshotError, Stream, is_ledger,
};
pub use budget::{Budget, BudgetBuilder, BudgetError, RESERVE_MAX, WINDOW_DEFAULT};
pub use chat::write_openai_chat;
pub use count::{
    Amount, CALL_TOKENS, Framing, ImageRule, MESSAGE_TOKENS, MediaRules, NAME_TOKENS, Rate, ToolFraming,
    count_message, count_part, count_parts, measure_each, measure_message, measure_part, media_tokens,
};
pub use draft::{
    CLAMPS_MAX, Cell, Clamp, Draft, ELIDED_TOKENS_MAX, Floors, PartVerdict, Refusal, Replacement, Scratch,
    Verdict, Writer, floors,
};
pub use estimate::ClassEstimator;
pub use ids::{Head, Revision, Seq, Turn};
pub use index::{
    Group, GroupKind, Groups, Index, IndexBuf, IndexedPart, IndexedParts, NoParts, PartKind, PartSpan,
    Placed, RestoreError, Span, Stored, TEXT_PART_TOKENS_MIN, ToolName,
};
#[cfg(feature = "alloc")]
pub use open_calls::OpenCallTree;
pub use open_calls::{CALL_ID_MAX, OpenCall, OpenCallSlots, OpenCalls, OpenKind};
pub use pass::Pass;
#[cfg(feature = "alloc")]
pub use plan::Planner;
pub use plan::{
    ClampGap, Contributor, ElisionGap, FillError, Gap, Infeasible, Loss, LossKind, LossReport, Outcome,
    PartEdit, Placeholders, Plan, PlanError, PlannedEdit, ReadyPlan, StablePrefix, StandIn, StandIns,
    SummaryEdit, SummaryGap, Unchanged, Verdicts, plan, plan_with,
};
pub use profile::Profile;
#[cfg(feature = "alloc")]
pub use repair::{ABORTED, BRIDGE, BRIDGE_USER, Pending, Repair, Repairer, UNRECORDED, repair};
pub use strategy::{KEEP_STEPS_MIN, Protection, Strategy};
pub use table::{ArrayTable, Full, SliceTable, Table};
pub use tokens::{Basis, TokenBounds, TokenCounter, Tokens};
pub use trigger::{Fired, Pacing, Trigger, TriggerKind, TriggerView, Wait, WaitReason};
pub use usage::{
    AnthropicTokens, Correction, GeminiTokens, ModelKey, OpenAiTokens, SavedUsageLedger, Size, Spend, Stamp,
    Tally, Usage, UsageHandle, UsageLedger,
};
pub use validate::{Validator, Violation, ViolationKind};
