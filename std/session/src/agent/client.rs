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
/// *For implementers*: send the whole request and nothing else, and return the whole response. The client decides about
/// retries; the run decides the content of requests.
///
/// *Concurrency*: one client serves any number of runs at once.
///
/// *Cancel safety*: dropping a future ends the call for the agent. The service may still process the request.
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
    /// Any failure of the call. The error ends the run, and the messages before the call are stored. Two errors do not
    /// end the run: [`ContextOverflow`](crate::wire::ContextOverflow), if the agent compacts, and [`SessionForgotten`],
    /// if the history is stored here.
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError>;

    /// Calls the model and passes the answer to `on_delta` piece by piece, as it arrives. The future is dropped when
    /// the reader stops the stream.
    ///
    /// A client that cannot stream returns the whole answer instead, as this default does.
    ///
    /// # Errors
    /// As [`ChatClient::complete`]. The pieces before the error are stored too, marked incomplete.
    async fn stream(
        &self,
        request: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        let _ = on_delta;
        self.complete(request).await.map(Some)
    }
}

/// A shared client: for example of an agent and of the summarizer of its compactions.
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

/// The error of a client whose service does not know the session that the request continues: the session that it kept,
/// or the latest response. The agent then sends the whole history, once.
/// [`session_forgotten`](crate::wire::session_forgotten) recognizes the refusals of services with OpenAI's error
/// format.
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

/// Receiver of an answer that arrives piece by piece.
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
    /// The name of the model; empty if the agent has none.
    pub model: &'a str,
    /// The id of the session that the service keeps, if it keeps one.
    pub service_session_id: Option<&'a ServiceSessionId>,
}

impl<'a> ChatRequest<'a> {
    /// A request outside of any run, without tools and without a session of the service.
    #[must_use]
    pub const fn without_tools(
        messages: &'a [Message],
        options: &'a Map<String, Value>,
        model: &'a str,
    ) -> Self {
        Self { messages, tools: &[], options, model, service_session_id: None }
    }

    /// Sets the tools. A request that begins like a request of a run needs the same tools: a prompt cache covers them
    /// too.
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
