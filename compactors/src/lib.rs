//! Strategies that decide which messages of an LLM conversation stay when it exceeds its budget.
//!
//! A [`Strategy`](epitome_core::Strategy) is a pure rule over the sizes and kinds of groups. It never sees text,
//! and never separates a call from its result.
//!
//! ```
//! use epitome_compactors::Truncation;
//! use epitome_core::message::SimpleMessage;
//! use epitome_core::{Budget, Cell, IndexBuf, OpenCallTree, Outcome, Pass, Span, Tokens, plan};
//!
//! let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
//! for turn in 0..6 {
//!     index.push(&SimpleMessage::user("And the next file?"), Tokens(100))?;
//!     index.push(&SimpleMessage::assistant("It is fine."), Tokens(100))?;
//! }
//! let budget = Budget::builder().window(2_000).trigger(1_000).goal(800).build()?;
//! let mut cells = vec![Cell::default(); index.view().span_count()];
//! match plan(index.view(), &budget, Pass::Manual, &Truncation::new(), &mut cells)? {
//!     Outcome::Planned(plan) => assert_eq!(plan.verdicts().to_string(), "KDDDDDKKKKKK"),
//!     Outcome::Unchanged(why) => unreachable!("{why:?}"),
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! A strategy calls no model: [`Summarization`] only chooses the groups to summarize. With the feature `std`, an
//! `Engine` turns any strategy into a compactor for runs: it requests the summaries and commits the plan.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![warn(clippy::arithmetic_side_effects)]

#[cfg(feature = "std")]
extern crate std;

mod agent_preset;
#[cfg(feature = "std")]
mod any_strategy;
#[cfg(feature = "std")]
mod chat_preset;
mod context_window;
#[cfg(feature = "std")]
mod engine;
mod ephemeral_first;
#[cfg(feature = "std")]
mod gap;
mod ledger;
#[cfg(feature = "std")]
pub mod managed;
mod media_clearing;
#[cfg(feature = "std")]
mod messages;
mod newest_first;
mod oversized_clamp;
mod pipeline;
mod reasoning_clearing;
#[cfg(feature = "std")]
mod salience;
mod sliding_window;
#[cfg(feature = "std")]
mod spec;
mod stretch;
mod summarization;
#[cfg(feature = "std")]
mod summary;
mod supersede;
mod tool_exchange_digest;
mod tool_exchange_drop;
mod tool_result_clearing;
mod truncation;

pub use agent_preset::AgentPreset;
#[cfg(feature = "std")]
pub use any_strategy::AnyStrategy;
#[cfg(feature = "std")]
pub use chat_preset::ChatPreset;
pub use context_window::ContextWindow;
#[cfg(feature = "std")]
pub use engine::{Background, BackgroundTask, Engine};
pub use ephemeral_first::EphemeralFirst;
pub use ledger::Ledger;
#[cfg(feature = "std")]
pub use managed::Managed;
pub use media_clearing::MediaClearing;
#[cfg(feature = "std")]
pub use messages::{CompactedMessages, compact_messages};
pub use newest_first::NewestFirst;
pub use oversized_clamp::OversizedClamp;
pub use pipeline::{NotLast, Pipeline};
pub use reasoning_clearing::ReasoningClearing;
#[cfg(feature = "std")]
pub use salience::Salience;
pub use sliding_window::{SlidingWindow, Window};
#[cfg(feature = "std")]
pub use spec::{MadeStrategy, STAGES_MAX, SpecError, SpecTexts, StrategySpec};
pub use summarization::Summarization;
#[cfg(feature = "std")]
pub use summary::{
    DigestSummarizer, Instructions, PromptedSummarizer, Summarizer, SummaryError, SummaryRequest,
    SummaryWriter,
};
pub use supersede::Supersede;
pub use tool_exchange_digest::ToolExchangeDigest;
pub use tool_exchange_drop::ToolExchangeDrop;
pub use tool_result_clearing::{CLEARED, ToolResultClearing};
pub use truncation::{Strength, Truncation};
