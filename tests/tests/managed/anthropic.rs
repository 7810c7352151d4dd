//! Compaction by Anthropic.

pub(crate) mod client;
pub(crate) mod faults;
mod mappers;
pub(crate) mod sessions;

use epitome::compactors::managed::anthropic::AnthropicCompaction;

use crate::managed::support::server;

/// The API key that the server accepts.
const KEY: &str = "sk-test-4711";

/// A model that binds thinking to the messages before it.
pub(crate) const MODEL: &str = "claude-opus-5-5";

/// Base URL of the server for Messages.
fn base() -> String {
    format!("{}/anthropic", server())
}

/// The service on the server.
pub(crate) fn service() -> AnthropicCompaction {
    AnthropicCompaction::new(MODEL, KEY.into())
        .unwrap()
        .with_base_url(&base())
        .with_field("thinking", serde_json::json!({"type": "adaptive"}))
}
