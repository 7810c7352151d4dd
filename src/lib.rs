//! A compaction-focused conversation-history engine for LLM agents.
//!
//! Epitome stores conversations, counts the tokens of each message, and decides which messages the model sees next. The
//! next request then fits the limit (the window less the reserve for the answer), follows the rules of the provider
//! that receives it, and keeps all protected messages. If the protected messages alone exceed the limit, Epitome
//! reports it.
//!
//! - [`message`] has the type of a message, [`tokens`] counts it, [`models`] has the windows and prices of models.
//! - [`wire`] reads and writes conversations in the formats of providers and tools.
//! - [`core`]: groups, sizes, budgets, plans. No heap, no I/O, no clock.
//! - [`compactors`]: the strategies, summaries, and the engine that a run calls.
//! - [`history`] keeps sessions: an append-only log, and compactions that hide parts of it.
//! - [`session`], [`provider`], [`compaction`] and [`run`] are the parts of an agent's exchange with a model.
//! - [`agent`] drives a run: it sends requests and runs tools until the model calls no more tools. [`memory`] and
//!   [`search`] find earlier messages.
//! - Behind features there are providers over services: `mem0`, `azure_search`, `redis_search`.
//!
//! The examples of the documentation use the names of the single crates. In a program that depends on `epitome` alone,
//! `epitome_core` is `epitome::core`, `epitome_compactors` is `epitome::compactors`, `epitome_message::Message` is
//! `epitome::message::Message`, `epitome_std::run` is `epitome::run`, and so on.
//!
//! Epitome is not an agent framework, a vector database or a tokenizer. It calls a model only through the client of
//! your program. One exception is behind a feature: a client of this project can ask a provider that compacts.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "azure-search")]
pub use epitome_azure_search as azure_search;
pub use epitome_compactors as compactors;
pub use epitome_core as core;
#[cfg(feature = "mem0")]
pub use epitome_mem0 as mem0;
#[cfg(feature = "redis-search")]
pub use epitome_redis_search as redis_search;
pub use epitome_std::provider::{ContextProvider, HistoryProvider, InMemoryHistoryProvider};
pub use epitome_std::session::{AgentSession, SessionContext};
pub use epitome_std::{
    agent, compaction, history, identifiers, media, memory, message, models, provider, run, search, session,
    tokens, wire,
};

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
#[doc = include_str!("../docs/formats.md")]
struct Formats;

/// The guide's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-format.md")]
struct AddingAFormat;

/// The page's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/clients.md")]
struct Clients;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/counting.md")]
struct Counting;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/without-a-heap.md")]
struct WithoutAHeap;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/what-is-kept.md")]
struct WhatIsKept;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/steering.md")]
struct Steering;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/memory.md")]
struct Memory;

/// The page's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/search.md")]
struct Search;

/// The page's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/services.md")]
struct Services;

/// The page's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/postgres.md")]
struct Postgres;

/// The guide's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/adding-a-store.md")]
struct AddingAStore;

/// The page's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/provider-managed.md")]
struct ProviderManaged;
