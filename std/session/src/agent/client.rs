//! Model clients and their requests.

use core::error::Error;
use core::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::message::Message;
use crate::run::{Delta, ModelResponse, Prompt};
use crate::session::{ServiceSessionId, Tool};

/// Calls a model.
///
/// *For implementers*: send what the request says, all of it and nothing else, and tell what came back. Whether to try
/// again is decided here; what is sent is decided elsewhere.
///
/// *Concurrency*: one client serves any number of runs at once.
///
/// *Cancel safety*: if a future is dropped, the call is over for the agent, whatever the service does with it.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_core::Usage;
/// use epitome_std::agent::{ChatClient, ChatRequest, ClientError};
/// use epitome_std::message::Message;
/// use epitome_std::run::ModelResponse;
///
/// /// Where a client of yours would send the request.
/// struct Canned;
///
/// #[async_trait]
/// impl ChatClient for Canned {
///     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
///         if request.model.is_empty() {
///             return Err("the agent names no model".into());
///         }
///         Ok(ModelResponse::new(vec![Message::assistant("Hello.")]).with_usage(Usage::new(9, 2)))
///     }
/// }
/// ```
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// Calls the model and waits for the whole answer.
    ///
    /// # Errors
    /// Whatever went wrong. The run ends with it; what was said before the call is stored. Two errors do not end the run:
    /// [`ContextOverflow`](crate::wire::ContextOverflow), if the agent compacts, and [`SessionForgotten`], if the history is stored
    /// here.
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError>;

    /// Calls the model and tells the answer piece by piece, as it arrives. The future is dropped when nobody listens any more.
    ///
    /// A client that cannot do so returns the whole answer instead, as this one does.
    ///
    /// # Errors
    /// As [`ChatClient::complete`]. What was told before it is stored too, marked incomplete.
    async fn stream(
        &self,
        request: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        let _ = on_delta;
        self.complete(request).await.map(Some)
    }
}

/// A client that several hold: an agent and the summarizer of its compactions, say.
#[async_trait]
impl<T: ChatClient + ?Sized> ChatClient for Arc<T> {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        (**self).complete(request).await
    }

    async fn stream(
        &self,
        request: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        (**self).stream(request, on_delta).await
    }
}

/// The error of a client.
pub type ClientError = Box<dyn Error + Send + Sync>;

/// The error of a client whose service does not know the session that the request goes on from: the session that it kept, or the latest
/// response. The agent then sends the whole history, once. [`session_forgotten`](crate::wire::session_forgotten) knows the
/// refusals of services that have OpenAI's form.
///
/// ```
/// use epitome_std::agent::{ClientError, SessionForgotten};
/// use epitome_std::wire::session_forgotten;
///
/// fn refused(status: u16, body: &str) -> ClientError {
///     if session_forgotten(status, body) { SessionForgotten.into() } else { format!("HTTP {status}").into() }
/// }
///
/// let body = r#"{"error": {"code": "previous_response_not_found"}}"#;
/// assert!(refused(400, body).is::<SessionForgotten>());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to say of it")]
pub struct SessionForgotten;

impl fmt::Display for SessionForgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service does not know what the request goes on from: send the whole history")
    }
}

impl Error for SessionForgotten {}

/// Takes an answer piece by piece.
pub type DeltaSink<'a> = dyn FnMut(Delta) + Send + 'a;

/// A request that a client sends.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ChatRequest<'a> {
    /// The messages, instructions first.
    pub messages: &'a [Message],
    /// The tools.
    pub tools: &'a [Tool],
    /// The options of the run.
    pub options: &'a Map<String, Value>,
    /// The model's name; empty if the agent does not say.
    pub model: &'a str,
    /// The id of the session that the service keeps, if it keeps one.
    pub service_session_id: Option<&'a ServiceSessionId>,
}

impl<'a> ChatRequest<'a> {
    /// A request of its own, outside of any run: without tools, and in no session of the service.
    #[must_use]
    pub const fn without_tools(
        messages: &'a [Message],
        options: &'a Map<String, Value>,
        model: &'a str,
    ) -> Self {
        Self { messages, tools: &[], options, model, service_session_id: None }
    }

    /// Sets the tools, for a request that begins as one of a run did: a prompt cache holds the tools too.
    #[must_use]
    pub const fn with_tools(mut self, tools: &'a [Tool]) -> Self {
        self.tools = tools;
        self
    }

    pub(super) fn new(prompt: &'a Prompt, options: &'a Map<String, Value>, model: &'a str) -> Self {
        Self {
            messages: &prompt.messages,
            tools: &prompt.tools,
            options,
            model,
            service_session_id: prompt.service_session_id.as_ref(),
        }
    }
}

impl fmt::Debug for ChatRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatRequest")
            .field("messages", &self.messages.len())
            .field("tools", &self.tools.len())
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
