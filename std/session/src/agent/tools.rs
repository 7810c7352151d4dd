//! Tool runners and their outputs.

use core::fmt;
use core::future::Future;
use core::pin::Pin;

use epitome_core::message::Role;

use crate::message::{Message, Part, Str, ToolCall, ToolResult};

/// Runs one call.
pub(super) type ToolRunner = dyn Fn(ToolCall) -> ToolFuture + Send + Sync;

/// The future that the caller's closure returns for a call.
pub type ToolFuture = Pin<Box<dyn Future<Output = ToolOutput> + Send>>;

/// The output of a tool: sent to the model as the result of its call.
///
/// ```
/// use epitome_std::agent::ToolOutput;
///
/// assert!(!ToolOutput::new("forty-two").is_error);
/// assert!(ToolOutput::failed("there is no such file").is_error);
///
/// use epitome_core::message::MediaKind;
/// use epitome_std::message::{Media, MediaSource, Part};
/// let screenshot = Media::new(MediaKind::Image, "image/png", MediaSource::Base64("iVBORw0KGgo=".into()));
/// assert_eq!(ToolOutput::from_parts(vec![Part::Media(screenshot)]).parts.len(), 1);
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content.
    pub parts: Vec<Part>,
    /// Whether it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// The output of a tool that has succeeded: a text.
    #[must_use]
    pub fn new(text: impl Into<Str>) -> Self {
        Self { parts: vec![Part::Text(text.into())], is_error: false }
    }

    /// The output of a tool that has failed: a text with the reason. The model may try something else.
    #[must_use]
    pub fn failed(text: impl Into<Str>) -> Self {
        Self { is_error: true, ..Self::new(text) }
    }

    /// The output of a tool that has succeeded, with these parts: an image, for example.
    #[must_use]
    pub const fn from_parts(parts: Vec<Part>) -> Self {
        Self { parts, is_error: false }
    }

    pub(super) fn into_message(self, call_id: Str) -> Message {
        let mut result = ToolResult::new(call_id, self.parts);
        result.is_error = self.is_error;
        Message::new(Role::Tool, vec![Part::ToolResult(result)])
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolOutput")
            .field("parts", &self.parts.len())
            .field("is_error", &self.is_error)
            .finish()
    }
}

/// The result that [`OpenCallAction::Report`] gives to a call.
pub const INTERRUPTED: &str =
    "[interrupted: no result of this call was stored, and it may have run all the same]";

/// The result of a call that a person has denied: see [`ApprovalState`](crate::run::ApprovalState). The tool runner is not asked.
pub const DENIED: &str = "[denied: the user does not allow this call; it has not run]";

/// The treatment of tool calls of the turn that an earlier run has left without a result, because its process ended or
/// it was cancelled.
///
/// ```
/// # use async_trait::async_trait;
/// # use epitome_std::message::{Message, Part, ToolCall};
/// # use epitome_std::run::{ModelResponse, RunError, RunOptions};
/// # use epitome_core::message::Role;
/// use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError, INTERRUPTED, Input, OpenCallAction, ToolOutput};
///
/// # struct Paying;
/// # #[async_trait]
/// # impl ChatClient for Paying {
/// #     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
/// #         Ok(ModelResponse::new(vec![match request.messages.len() {
/// #             1 => Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c1", "pay", "{}"))]),
/// #             _ => Message::assistant("I look at the account first."),
/// #         }]))
/// #     }
/// # }
/// # futures::executor::block_on(async {
/// // A run ends with a call of the tool `pay`, which nobody runs.
/// let agent = Agent::new("assistant", Paying);
/// let mut session = agent.create_session(Some("s-1"), None);
/// agent.run(&mut session, "Pay the bill.", &RunOptions::default()).await?;
///
/// // The next run does not pay: the model is told, and decides.
/// let agent = agent
///     .with_tool_runner(|_| Box::pin(async { unreachable!("a payment that may have been made") }))
///     .with_open_calls(OpenCallAction::Report);
/// let outcome = agent.run(&mut session, Input::default(), &RunOptions::default()).await?;
/// let Part::ToolResult(result) = &outcome.response.messages[0].parts()[0] else { unreachable!() };
/// assert!(result.is_error && result.parts == [Part::Text(INTERRUPTED.into())]);
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OpenCallAction {
    /// The tool runner runs them. A tool that had run and whose result was not stored runs twice.
    #[default]
    Run,
    /// Each call gets [`INTERRUPTED`] as its result, and the model decides whether to call the tool again. Use it for
    /// tools that must not run twice. No tool runner is needed. A call whose stored
    /// [approval](crate::run::ApprovalState) has no answer has not run, and is not reported; the answer is stored
    /// before the call runs.
    Report,
}
