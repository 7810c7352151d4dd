//! A compaction-focused conversation-history engine for LLM agents.
//!
//! Epitome stores what was said, knows what every message costs, and decides what the model sees next, so that the next
//! request fits, is legal for the provider that receives it, and loses nothing that must not be lost.
//!
//! - [`core`]: groups, sizes, budgets, plans. No heap, no I/O, no clock.
//! - [`compactors`]: the strategies.
//! - [`std`]: owned messages, wire formats, token counters, history stores.
//!
//! It is not an agent framework, a vector database or a tokenizer, and it calls no model.
pub use epitome_compactors as compactors;
pub use epitome_core as core;
pub use epitome_std as std;

/// README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
