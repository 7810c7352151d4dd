//! Plans what to keep of a conversation between a user, an LLM and its tools, without touching it.
//!
//! Push every message once into an [`IndexBuf`]: it is put in its group (a tool call and all its results are one group)
//! and its tokens join running sums. When the conversation has outgrown its [`Budget`], a [`Strategy`] writes verdicts
//! into a [`Draft`], and the resulting [`Plan`] says what the next request will contain.
//!
//! ```
//! use epitome_core::{Budget, IndexBuf, Outcome, Pass, Strategy, Draft, Verdict, Tokens, plan};
//! use epitome_core::message::SimpleMessage;
//!
//! /// Drops the oldest groups that may be dropped, until the goal is met.
//! #[derive(Debug)]
//! struct Oldest;
//! impl Strategy for Oldest {
//!     fn name(&self) -> &'static str { "oldest" }
//!     fn plan(&self, draft: &mut Draft<'_>) {
//!         draft.drop_oldest();
//!     }
//! }
//!
//! let mut index = IndexBuf::<[epitome_core::Span; 8], epitome_core::OpenCallSlots<4>>::new();
//! for (message, tokens) in [
//!     (SimpleMessage::system("Be brief."), 5),
//!     (SimpleMessage::user("What is 6 x 7?"), 9),
//!     (SimpleMessage::assistant("42"), 4),
//!     (SimpleMessage::user("And 6 x 8?"), 8),
//! ] {
//!     index.push(&message, Tokens(tokens)).unwrap();
//! }
//! let budget = Budget::builder().window(24).reserve(0).trigger(23).goal(22).min_reclaim(0).build().unwrap();
//! let mut verdicts = [Verdict::Keep; 8];
//! let Outcome::Planned(plan) = plan(index.view(), &budget, Pass::Manual, &Oldest, &mut verdicts).unwrap() else {
//!     panic!("nothing to do")
//! };
//! assert_eq!(plan.verdicts().to_string(), "KKDK");
//! assert_eq!(plan.tokens_after(), 22);
//! ```
//!
//! This crate does not call models, read clocks, draw random numbers, allocate (without the `alloc` feature) or store
//! anything. Owned messages, wire formats and stores live in `epitome-std`, the strategies in `epitome-compactors`.
//!
//! # Features
//! - `alloc`: `Vec` as a table and [`OpenCallTree`], the unbounded memory for unanswered calls.
//! - `heapless`: `heapless::Vec` as a fixed-capacity table.
//! - `serde`: identifiers and amounts as serde values.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod attribution;
pub mod estimate;
mod ids;
pub mod message;
mod tokens;

pub use estimate::ClassEstimator;
pub use ids::{Head, Revision, Seq, Turn};
pub use tokens::{Basis, TokenCounter, Tokens};
