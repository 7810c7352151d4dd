//! A compaction-focused conversation-history engine for LLM agents.
//!
//! Epitome stores what was said, knows what every message costs, and decides what the model sees next, so that the next
//! request fits, is legal for the provider that receives it, and loses nothing that must not be lost.
//!
//! - [`core`]: groups, sizes, budgets, plans. No heap, no I/O, no clock.
//! - [`compactors`]: the strategies, summaries, and the engine that a run calls.
//! - [`std`]: owned messages, wire formats, token counters, history stores, sessions, providers and runs.
//!
//! It is not an agent framework, a vector database or a tokenizer, and it calls a model through your own client only; a
//! provider that compacts may be asked by a client of ours, behind a feature.
pub use epitome_compactors as compactors;
pub use epitome_core as core;
pub use epitome_std as std;
pub use epitome_std::provider::{ContextProvider, HistoryProvider, InMemoryHistoryProvider};
pub use epitome_std::session::{AgentSession, SessionContext};

/// README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The guide's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/from-agent-framework.md")]
struct FromAgentFramework;

/// The guide's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-strategy.md")]
struct AddingAStrategy;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/what-is-kept.md")]
struct WhatIsKept;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/steering.md")]
struct Steering;

/// The guide's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-provider.md")]
struct AddingAProvider;

/// The page's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/provider-managed.md")]
struct ProviderManaged;
