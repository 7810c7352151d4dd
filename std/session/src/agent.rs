//! An agent: a model client with the settings that all its runs share. It is a thin layer over
//! [`Run`](crate::run::Run).
//!
//! The caller supplies the client: [`ChatClient`] has one method for whole answers, and another one for answers that
//! arrive piece by piece. The agent calls the client, runs tools with the caller's closure, and calls the client again
//! until the model calls no more tools.
//!
//! One agent serves any number of sessions at once. It holds no data of a session.
//!
//! ```
//! use async_trait::async_trait;
//! use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError};
//! use epitome_std::message::Message;
//! use epitome_std::run::{ModelResponse, RunOptions};
//!
//! /// Says how many messages it was sent.
//! struct Counting;
//!
//! #[async_trait]
//! impl ChatClient for Counting {
//!     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
//!         let text = format!("{} messages", request.messages.len());
//!         Ok(ModelResponse::new(vec![Message::assistant(text)]))
//!     }
//! }
//!
//! # futures::executor::block_on(async {
//! let agent = Agent::new("assistant", Counting);
//! let mut session = agent.create_session(None, None);
//! agent.run(&mut session, "Hello, my name is Alice!", &RunOptions::default()).await?;
//! let outcome = agent.run(&mut session, "What's my name?", &RunOptions::default()).await?;
//! assert_eq!(outcome.response.messages, [Message::assistant("3 messages")]);
//! # Ok::<(), epitome_std::run::RunError>(())
//! # }).unwrap();
//! ```

mod call;
mod client;
mod input;
mod open_calls;
mod shared;
mod stream;
mod tools;

use core::fmt;
use std::sync::Arc;

use crate::compaction::{CompactionOptions, CompactionResult, Compactor};
use crate::provider::{ClosureProvider, ProviderWarning};
use crate::run::{self, RunSettings};
use crate::session::{AgentSession, ServiceSessionId, SessionError};

pub use crate::session::Tool;
pub use client::{ChatClient, ChatRequest, ClientError, DeltaSink, SessionForgotten};
pub use input::Input;
pub use shared::{Concurrency, SharedSession};
pub use stream::{RunStream, RunUpdate};
pub use tools::{DENIED, INTERRUPTED, OpenCallAction, ToolFuture, ToolOutput};

use self::tools::ToolRunner;

/// An agent: a model client, and the settings of all runs of the agent. A clone shares both.
///
/// ```
/// # use async_trait::async_trait;
/// # use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError, Tool, ToolOutput};
/// # use epitome_std::message::{Message, Part, ToolCall};
/// # use epitome_std::run::{ModelResponse, RunOptions, RunSettings};
/// # use epitome_core::message::Role;
/// /// Calls a tool once, and then says what it said.
/// struct Curious;
///
/// #[async_trait]
/// impl ChatClient for Curious {
///     async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
///         let said = if request.messages.len() == 1 {
///             Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c1", "time", "{}"))])
///         } else {
///             Message::assistant("It is noon.")
///         };
///         Ok(ModelResponse::new(vec![said]))
///     }
/// }
///
/// # futures::executor::block_on(async {
/// // The client finds the tools of a request in `request.tools`.
/// let time = Tool::new("time", "Tells the time.", serde_json::json!({"type": "object", "properties": {}}));
/// let agent = Agent::with_settings(RunSettings::new("assistant").with_tools(vec![time]), Curious)
///     .with_tool_runner(|call| Box::pin(async move { ToolOutput::new(format!("{}: 12:00", call.name.as_str())) }));
/// let mut session = agent.create_session(Some("s-1"), None);
/// let outcome = agent.run(&mut session, "What time is it?", &RunOptions::default()).await?;
/// assert_eq!(outcome.response.messages.len(), 3, "the call, its result and the answer");
/// # Ok::<(), epitome_std::run::RunError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Agent {
    settings: Arc<RunSettings>,
    client: Arc<dyn ChatClient>,
    tool_runner: Option<Arc<ToolRunner>>,
    tool_rounds_max: u32,
    parallel_calls_max: usize,
    open_calls: OpenCallAction,
    concurrency: Concurrency,
}

/// Maximum number of tool rounds in one run. More rounds are more often a loop than work.
pub const TOOL_ROUNDS_MAX: u32 = 40;

/// Maximum number of tool calls of one answer that run at once. Agent Framework runs all of them at once. The limit
/// keeps a model that asks for a hundred files from opening a hundred at once.
pub const PARALLEL_CALLS_MAX: usize = 8;

/// Maximum number of compactions after a provider has refused a request as too long: see
/// [`Run::refused`](crate::run::Run::refused).
pub const OVERFLOW_COMPACTIONS_MAX: u32 = 2;

impl Agent {
    /// The agent of this id over `client`, without instructions, tools and providers. Without a provider, each session
    /// keeps its history in memory.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>, client: impl ChatClient + 'static) -> Self {
        Self::with_settings(RunSettings::new(id), client)
    }

    /// An agent of these settings over `client`.
    #[must_use]
    pub fn with_settings(settings: RunSettings, client: impl ChatClient + 'static) -> Self {
        Self {
            settings: Arc::new(settings),
            client: Arc::new(client),
            tool_runner: None,
            tool_rounds_max: TOOL_ROUNDS_MAX,
            parallel_calls_max: PARALLEL_CALLS_MAX,
            open_calls: OpenCallAction::default(),
            concurrency: Concurrency::default(),
        }
    }

    /// Sets the function that runs tools. Without it, a run ends when the model calls a tool; the next run may bring the result. A call
    /// that a person must allow runs only when it is [approved](crate::run::ApprovalState).
    #[must_use]
    pub fn with_tool_runner(
        mut self,
        run: impl Fn(crate::message::ToolCall) -> ToolFuture + Send + Sync + 'static,
    ) -> Self {
        self.tool_runner = Some(Arc::new(run));
        self
    }

    /// Sets the limit of rounds with tools; the default is [`TOOL_ROUNDS_MAX`].
    #[must_use]
    pub const fn with_tool_rounds_max(mut self, rounds: u32) -> Self {
        self.tool_rounds_max = rounds;
        self
    }

    /// Sets the maximum number of tool calls of one answer that run at once; the default is [`PARALLEL_CALLS_MAX`].
    /// With 1 they run one after the other, in the order of the answer. Their results are in that order in any case. 0
    /// counts as 1.
    #[must_use]
    pub const fn with_parallel_calls_max(mut self, calls: usize) -> Self {
        self.parallel_calls_max = if calls == 0 { 1 } else { calls };
        self
    }

    /// Sets the treatment of tool calls that an earlier run has left without a result.
    #[must_use]
    pub const fn with_open_calls(mut self, calls: OpenCallAction) -> Self {
        self.open_calls = calls;
        self
    }

    /// Sets whether a second run on a shared session waits or is refused.
    #[must_use]
    pub const fn with_concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Adds a closure behind the providers. Runs that have begun do not see it, nor do clones of the agent.
    ///
    /// # Errors
    /// As [`Providers::push_closure`](crate::provider::Providers::push_closure).
    pub fn push_closure(&mut self, provider: ClosureProvider) -> Result<(), SessionError> {
        Arc::make_mut(&mut self.settings).providers.push_closure(provider)
    }

    /// Creates a session. Without `session_id` the session gets a new id. With a `service_session_id` the service keeps
    /// the conversation, and runs load nothing from histories.
    ///
    /// A history provider that [keeps the state](crate::provider::HistoryProvider::keep_state) of sessions returns a
    /// stored session with [`load_session`](crate::provider::HistoryProvider::load_session). A session that is created
    /// here under the same id has the stored messages, but not the stored state.
    ///
    /// The first created session logs [`Agent::warnings`].
    #[must_use]
    pub fn create_session(
        &self,
        session_id: Option<&str>,
        service_session_id: Option<ServiceSessionId>,
    ) -> AgentSession {
        self.settings.providers.warn_once();
        let mut session = match session_id {
            Some(id) => AgentSession::with_id(id),
            None => AgentSession::with_id_source(&*self.settings.ids),
        };
        session.set_service_session_id(service_session_id);
        session
    }

    /// Creates a session for a conversation that the service keeps.
    #[must_use]
    pub fn get_session(
        &self,
        service_session_id: impl Into<ServiceSessionId>,
        session_id: Option<&str>,
    ) -> AgentSession {
        self.create_session(session_id, Some(service_session_id.into()))
    }

    /// Warnings about the agent's providers.
    #[must_use]
    pub fn warnings(&self) -> Vec<ProviderWarning> {
        self.settings.providers.warnings()
    }

    /// The settings that all its runs share.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// Compacts the stored history of a session now.
    ///
    /// ```
    /// # use async_trait::async_trait;
    /// # use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError};
    /// # use epitome_std::compaction::{CompactionOptions, Compactor};
    /// # use epitome_std::message::Message;
    /// # use epitome_std::run::{ModelResponse, RunOptions};
    /// # use epitome_std::session::SessionError;
    /// # async fn shrink(agent: &Agent, compactor: &dyn Compactor) -> Result<(), SessionError> {
    /// let mut session = agent.create_session(Some("s-1"), None);
    /// let result = agent.compact(&mut session, compactor, CompactionOptions::default()).await?;
    /// println!("{} -> {} messages", result.original_count, result.compacted_count);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run::compact`].
    ///
    /// # Cancel safety
    /// As [`run::compact`].
    pub async fn compact(
        &self,
        session: &mut AgentSession,
        compactor: &dyn Compactor,
        options: CompactionOptions,
    ) -> Result<CompactionResult, SessionError> {
        run::compact(&self.settings, session, compactor, options).await
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("settings", &self.settings)
            .field("runs_tools", &self.tool_runner.is_some())
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
