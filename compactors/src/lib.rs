//! Rules that decide what an LLM conversation keeps when it has outgrown its budget.
//!
//! Each is a [`Strategy`](epitome_core::Strategy): a pure rule over the sizes and kinds of groups. It never sees text and
//! never splits a call from its result.
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
//!     Outcome::Planned(plan) => assert_eq!(plan.verdicts().to_string(), "KDDDDKKKKKKK"),
//!     Outcome::Unchanged(why) => unreachable!("{why:?}"),
//! }
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! This crate does not summarize (a strategy has no model to ask), and it stores nothing.
#![no_std]
#![warn(clippy::arithmetic_side_effects)]

mod pipeline;
mod sliding_window;
mod truncation;

pub use pipeline::Pipeline;
pub use sliding_window::{SlidingWindow, Window};
pub use truncation::{Strength, Truncation};
