//! A request, and the answer to it.

use core::fmt;
use std::sync::Arc;

use epitome_core::{Repair, Size, Usage};
use serde_json::Value;

use crate::history::Timestamp;
use crate::message::{Message, Str};
use crate::session::{ServiceSessionId, Tool};

/// A request, ready to be sent.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// let settings = settings.with_instructions("Be brief.");
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &RunOptions::default()).await?;
/// let prompt = run.prompt().await?;
/// assert_eq!(prompt.messages, [Message::system("Be brief."), Message::user("Hi")]);
/// assert!(prompt.size.tokens > 0 && prompt.repairs.is_empty());
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[non_exhaustive]
pub struct Prompt {
    /// The handle that the answer is recorded with.
    pub handle: RequestHandle,
    /// The messages, instructions first, legal for the run's profile.
    pub messages: Vec<Message>,
    /// The tools.
    pub tools: Vec<Tool>,
    /// The size of the request, without repairs.
    pub size: Size,
    /// The changes that made it legal; empty if there were none.
    pub repairs: Vec<Repair>,
    /// The id of the session that the service keeps, if it keeps one: `messages` then has only the new messages.
    pub service_session_id: Option<ServiceSessionId>,
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .field("size", &self.size)
            .field("repairs", &self.repairs.len())
            .finish_non_exhaustive()
    }
}

/// The handle of one request: its answer is recorded with it, once. It has the size of the request, so that a usage
/// report is never assigned to another request.
///
/// ```compile_fail,E0382
/// # use epitome_std::run::{ModelResponse, Prompt, Run, RunError};
/// # async fn twice(run: &mut Run<'_>, prompt: Prompt) -> Result<(), RunError> {
/// run.record(prompt.handle, ModelResponse::default()).await?;
/// run.record(prompt.handle, ModelResponse::default()).await
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the answer to the request is recorded with the handle"]
pub struct RequestHandle {
    pub(super) request: epitome_core::UsageHandle,
    pub(super) run_token: Str,
    /// The number of the request in the run.
    pub(super) number: u64,
}

/// The answer of the model to one request.
///
/// ```
/// use epitome_core::Usage;
/// use epitome_std::message::Message;
/// use epitome_std::run::ModelResponse;
///
/// let response = ModelResponse::new(vec![Message::assistant("Hello.")]).with_usage(Usage::new(12, 3));
/// assert_eq!(response.with_response_id("resp_1").response_id.as_deref(), Some("resp_1"));
/// ```
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelResponse {
    /// Its messages, in order.
    pub messages: Vec<Message>,
    /// The provider's id of the response.
    pub response_id: Option<Str>,
    /// The usage that the provider reported.
    pub usage: Option<Usage>,
    /// The id of the session that the service has begun to keep, if it has.
    pub service_session_id: Option<ServiceSessionId>,
    /// The reason why the model has stopped, in the provider's word: `stop`, `length`, `tool_calls`, `end_turn`, and so
    /// on.
    pub finish_reason: Option<Str>,
    /// The time of the response, by the provider's clock.
    pub created_at: Option<Timestamp>,
    /// The response as the provider sent it, for data without a field here. It is not stored.
    pub raw_response: Option<Arc<Value>>,
}

impl ModelResponse {
    /// A response of these messages.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Sets the usage that the provider reported.
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the provider's id of the response.
    #[must_use]
    pub fn with_response_id(mut self, id: impl Into<Str>) -> Self {
        self.response_id = Some(id.into());
        self
    }

    /// Sets the reason why the model has stopped.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: impl Into<Str>) -> Self {
        self.finish_reason = Some(reason.into());
        self
    }

    /// Sets the time of the response.
    #[must_use]
    pub const fn with_created_at(mut self, time: Timestamp) -> Self {
        self.created_at = Some(time);
        self
    }

    /// Sets the response as the provider sent it.
    #[must_use]
    pub fn with_raw_response(mut self, response: Value) -> Self {
        self.raw_response = Some(Arc::new(response));
        self
    }

    /// Sets the id of the session that the service keeps from now on.
    #[must_use]
    pub fn with_service_session_id(mut self, id: impl Into<ServiceSessionId>) -> Self {
        self.service_session_id = Some(id.into());
        self
    }
}

impl fmt::Debug for ModelResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelResponse")
            .field("messages", &self.messages.len())
            .field("usage", &self.usage)
            .field("finish_reason", &self.finish_reason)
            .finish_non_exhaustive()
    }
}
