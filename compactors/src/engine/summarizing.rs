//! An engine that summarizes, in one call.

use std::sync::Arc;

use epitome_std::agent::ChatClient;

use super::Engine;
use crate::{PromptedSummarizer, Summarization, Truncation};

impl Engine {
    /// A compactor whose summaries are written by `client`: the agent's client, or another one.
    ///
    /// It uses the agent's model. If there is no summary, it drops the oldest messages without one. For another
    /// model, prompt or window, build the compactor of [`Summarization`] with a [`PromptedSummarizer`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use async_trait::async_trait;
    /// use epitome_compactors::Engine;
    /// use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError};
    /// use epitome_std::compaction::AutoCompaction;
    /// use epitome_std::message::Message;
    /// use epitome_std::run::{ModelResponse, RunSettings};
    ///
    /// struct Client;
    ///
    /// #[async_trait]
    /// impl ChatClient for Client {
    ///     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
    ///         // ... send `request` to `request.model` ...
    ///         Ok(ModelResponse::new(vec![Message::assistant("Hello.")]))
    ///     }
    /// }
    ///
    /// let client = Arc::new(Client);
    /// let settings = RunSettings::new("assistant")
    ///     .with_model("claude-sonnet-4-5")
    ///     .with_compaction(AutoCompaction::new(Arc::new(Engine::summarizing(client.clone()))));
    /// let agent = Agent::with_settings(settings, client);
    /// ```
    #[must_use]
    pub fn summarizing(client: Arc<dyn ChatClient>) -> Self {
        Self::new(Summarization::new())
            .with_summarizer(Arc::new(PromptedSummarizer::new(client)))
            .with_fallback(Truncation::new())
    }
}
