//! The request that a compaction is about.

use core::fmt;

use serde_json::{Map, Value};

use crate::message::{Message, Str};
use crate::session::Tool;

/// The request that would be sent next if nothing were compacted. Its beginning was sent before, and is in the
/// provider's prompt cache: another request to the same model can begin with the same messages to use the cache.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct LiveRequest {
    /// The messages, instructions first, legal for the run's profile.
    pub messages: Vec<Message>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// The options of the run.
    pub options: Map<String, Value>,
    /// The name of the model; empty if the agent has none.
    pub model: Str,
}

impl LiveRequest {
    /// A request of these messages to this model.
    #[must_use]
    pub fn new(messages: Vec<Message>, model: impl Into<Str>) -> Self {
        Self { messages, tools: Vec::new(), options: Map::new(), model: model.into() }
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }
}

/// Shows no text: messages stay out of logs.
impl fmt::Debug for LiveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveRequest")
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
