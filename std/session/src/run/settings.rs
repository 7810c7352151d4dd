//! Settings that all runs of an agent share, and options of one run.

mod model;

use core::fmt;
use std::sync::Arc;

use epitome_core::{ClassEstimator, Profile, TokenCounter, Tokens};
use serde_json::{Map, Value};

use crate::compaction::{AutoCompaction, Compaction};
use crate::history::Timestamp;
use crate::message::Str;
use crate::models::Model;
use crate::provider::{AgentInfo, ContextProvider, Providers};
use crate::session::{IdSource, SessionError, Tool, UuidSource};

/// The time at which a run stores its messages.
///
/// ```
/// use epitome_std::run::{Persistence, RunOptions, RunSettings};
///
/// let settings = RunSettings::new("helper").with_persistence(Persistence::PerModelCall);
/// assert_eq!(settings.persistence, Persistence::PerModelCall);
/// // One run may do otherwise.
/// let options = RunOptions::default().with_persistence(Persistence::PerRun);
/// assert_eq!(options.persistence, Some(Persistence::PerRun));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Persistence {
    /// At the end of the run, in one step. The messages of a run that never ends are not stored.
    #[default]
    PerRun,
    /// Before and after each call of the model: messages from before a crash are there after it. The next run knows the
    /// calls of a crashed run without a result: see [`Run::unfinished_calls`](super::Run::unfinished_calls). An
    /// [`Agent`](crate::agent::Agent) also stores the result of a tool while others of the same answer still run. The
    /// results then stand in the order in which the tools ended.
    PerModelCall,
}

/// The settings that all runs of an agent share: its name, its providers, its instructions. They hold no data of a
/// session.
///
/// *The name of the model* decides most settings. A name that [`Models::builtin`](crate::models::Models::builtin) knows brings the
/// window and the reserve of the model's budget, its token counter, its prices, and the profile of its provider.
/// [`RunSettings::with_model_row`] gives these figures for a model that the table lacks. An option that is set beside
/// the model wins, in any order of the calls. Without a model, and for an unknown name, a run counts with the estimator
/// and follows the rules of Chat Completions. It takes the window to be 128,000 tokens
/// ([`WINDOW_DEFAULT`](epitome_core::WINDOW_DEFAULT)) until the provider refuses a request and reports another one.
///
/// ```
/// use epitome_core::Profile;
/// use epitome_std::provider::HistoryProvider;
/// use epitome_std::run::RunSettings;
///
/// let settings = RunSettings::new("helper")
///     .with_instructions("You help.")
///     .with_provider(HistoryProvider::in_memory())?
///     .with_model("claude-sonnet-4-5");
/// assert_eq!((settings.profile(), settings.budget().window()), (Profile::Anthropic, 200_000));
/// assert!(settings.counter().name().ends_with("@claude-sonnet-4-5"));
/// assert!(settings.compaction.is_none());
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RunSettings {
    /// The agent's id.
    pub id: Box<str>,
    /// Its name, if it has one.
    pub name: Option<Box<str>>,
    /// The instructions that every request begins with.
    pub instructions: Option<Str>,
    /// Its own tools.
    pub tools: Vec<Tool>,
    /// Its providers.
    pub providers: Providers,
    /// The compaction of its runs; none by default.
    pub compaction: Option<AutoCompaction>,
    /// The time at which its runs store messages.
    pub persistence: Persistence,
    /// Whether the model has a tool to read messages that a compaction has hidden: see
    /// [`RecallTool`](super::RecallTool); no by default.
    pub recall: bool,
    /// The most tokens of a tool result that requests hold: see [`with_tool_result_limit`](Self::with_tool_result_limit); no limit by
    /// default.
    pub tool_result_limit: Option<Tokens>,
    /// Whether a request over its limit is refused: see [`with_enforced_limit`](Self::with_enforced_limit); no by default.
    pub is_limit_enforced: bool,
    model: Str,
    /// The figures of the model, if they are known.
    row: Option<Model>,
    /// Whether the figures are the caller's own.
    has_own_row: bool,
    profile: Option<Profile>,
    own_counter: Option<Arc<dyn TokenCounter + Send + Sync>>,
    /// The counter of the model, or the estimator.
    model_counter: Arc<dyn TokenCounter + Send + Sync>,
    /// The source of ids for sessions and runs; by default random UUIDs.
    pub ids: Arc<dyn IdSource>,
    /// The clock that measures the idle time of a session. The default is the system's, as in
    /// [`History::with_clock`](crate::history::History::with_clock). It is read for models whose provider publishes how
    /// long it caches a request.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl RunSettings {
    /// The agent of this id, without instructions, tools and providers. Without a provider, each session keeps its
    /// history in memory.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>) -> Self {
        Self {
            id: id.into(),
            name: None,
            instructions: None,
            tools: Vec::new(),
            providers: Providers::default(),
            compaction: None,
            persistence: Persistence::PerRun,
            recall: false,
            tool_result_limit: None,
            is_limit_enforced: false,
            model: Str::default(),
            row: None,
            has_own_row: false,
            profile: None,
            own_counter: None,
            model_counter: Arc::new(ClassEstimator::new()),
            ids: Arc::new(UuidSource),
            clock: Arc::new(Timestamp::now),
        }
    }

    /// Sets the providers.
    #[must_use]
    pub fn with_providers(mut self, providers: Providers) -> Self {
        self.providers = providers;
        self
    }

    /// Sets the name of the agent.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a provider behind the others.
    ///
    /// # Errors
    /// As [`Providers::push`].
    pub fn with_provider(mut self, provider: impl ContextProvider + 'static) -> Result<Self, SessionError> {
        self.providers.push(provider)?;
        Ok(self)
    }

    /// Sets the instructions.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<Str>) -> Self {
        self.instructions = Some(text.into());
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the compaction of the runs.
    #[must_use]
    pub fn with_compaction(mut self, compaction: AutoCompaction) -> Self {
        self.compaction = Some(compaction);
        self
    }

    /// Gives the model a tool that reads messages which compactions have hidden or shortened: see
    /// [`RecallTool`](super::RecallTool). [`Agent`](crate::agent::Agent) answers its calls; in a [`Run`](super::Run)
    /// call [`run_own_calls`](super::Run::run_own_calls).
    ///
    /// A tool of the caller with the same name takes precedence.
    #[must_use]
    pub const fn with_recall(mut self) -> Self {
        self.recall = true;
        self
    }

    /// Shows each tool result of more than `limit` tokens shortened, from the first request that holds it: its first and last lines, and
    /// between them lines that report an error or name something that no other line names; JSON stays JSON. The history stores the whole
    /// result. With [`with_recall`](Self::with_recall) the note of the cut names the message, and the model can read the rest.
    ///
    /// A compaction shortens old results when the history is large. This limit is for the single result that would fill
    /// the window, or is paid for with every request: 8,000 tokens are some 800 lines of source code. Pinned results
    /// stay whole, and so do results that are large for their media alone. The run reports the shortened results:
    /// [`RunEvent::ResultsShortened`](super::RunEvent::ResultsShortened).
    ///
    /// A limit below [`ELIDED_TOKENS_MAX`](epitome_core::ELIDED_TOKENS_MAX), the size of a note, counts as that size.
    /// With [`with_recall`](Self::with_recall), a limit below [`RecallTool::TOKENS_MAX`](super::RecallTool::TOKENS_MAX)
    /// counts as that one.
    ///
    /// ```
    /// use epitome_core::Tokens;
    /// use epitome_std::run::RunSettings;
    ///
    /// let settings = RunSettings::new("coder").with_tool_result_limit(Tokens(8_000)).with_recall();
    /// assert_eq!(settings.tool_result_limit, Some(Tokens(8_000)));
    /// ```
    #[must_use]
    pub const fn with_tool_result_limit(mut self, limit: Tokens) -> Self {
        self.tool_result_limit = Some(limit);
        self
    }

    /// Refuses each request that is larger than its limit, with [`RunError::OverLimit`](super::RunError::OverLimit).
    /// The limit is the window without the reserve for the answer.
    ///
    /// The runs compact before each request, also if [`RunPoints`](crate::compaction::RunPoints) names other points and
    /// if another trigger is set. A request that is still too large then is refused: the protected messages are larger,
    /// the run has no compaction or a failed one, a hook refused it, or a service keeps the history. The limit is that
    /// of [`Run::budget`](super::Run::budget); the window of an unknown model counts as 128,000 tokens.
    ///
    /// Without this setting such a request is sent, and the run reports it: [`RunEvent::OverLimit`](super::RunEvent::OverLimit).
    /// The size is an estimate until the provider has reported the usage of a request, so that the provider may accept a refused request.
    ///
    /// ```
    /// # use epitome_std::message::Message;
    /// use epitome_std::compaction::{AutoCompaction, CompactionOptions};
    /// use epitome_std::run::{Run, RunError, RunOptions, RunSettings};
    /// # use epitome_std::compaction::{Held, MessagesCompactor};
    /// # use epitome_std::session::AgentSession;
    /// # futures::executor::block_on(async {
    /// # let keeps_all = MessagesCompactor::new("all", |messages: Vec<Held>, _: CompactionOptions| async move { Ok(messages) });
    ///
    /// let compaction = AutoCompaction::new(keeps_all).with_options(CompactionOptions::default().with_window(1_000));
    /// let settings = RunSettings::new("helper").with_compaction(compaction).with_enforced_limit();
    /// let mut session = AgentSession::new();
    /// let input = vec![Message::user("word ".repeat(2_000))];
    /// let mut run = Run::begin(&settings, &mut session, input, &RunOptions::default()).await?;
    /// let budget = run.budget();
    /// match run.prompt().await {
    ///     Err(RunError::OverLimit { size, limit }) => assert!(size > limit && limit == budget.limit()),
    ///     other => unreachable!("{other:?}"),
    /// }
    /// # Ok::<(), RunError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub const fn with_enforced_limit(mut self) -> Self {
        self.is_limit_enforced = true;
        self
    }

    /// Sets the time at which messages are stored.
    #[must_use]
    pub const fn with_persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// Sets the source of ids.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Sets the clock. The default is the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl AgentInfo for RunSettings {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Debug for RunSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSettings")
            .field("id", &self.id)
            .field("providers", &self.providers)
            .field("tools", &self.tools.len())
            .field("compaction", &self.compaction)
            .field("persistence", &self.persistence)
            .field("model", &self.model)
            .field("profile", &self.profile())
            .finish_non_exhaustive()
    }
}

/// The options of one run.
///
/// ```
/// use epitome_std::compaction::Compaction;
/// use epitome_std::run::RunOptions;
///
/// let options = RunOptions::default()
///     .with_compaction(Compaction::Off)
///     .with_option("temperature", 0.2)
///     .with_run_token("request-17");
/// assert_eq!(options.options["temperature"], 0.2);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The compaction of the run; by default that of the agent.
    pub compaction: Compaction,
    /// Tools of this run, behind the agent's.
    pub tools: Vec<Tool>,
    /// Options for the client; providers can read them. `store: true` asks the service to keep the history. The number
    /// of tokens in `max_tokens`, `max_completion_tokens` or `max_output_tokens` stays free in the window for the
    /// answer.
    pub options: Map<String, Value>,
    /// The idempotency token of the run; by default a new id. To repeat a run safely, set the token of the first
    /// attempt: nothing is then stored twice.
    pub run_token: Option<Str>,
    /// The time at which the run stores messages; by default that of the agent.
    pub persistence: Option<Persistence>,
}

impl RunOptions {
    /// Sets the compaction of this run.
    #[must_use]
    pub fn with_compaction(mut self, compaction: Compaction) -> Self {
        self.compaction = compaction;
        self
    }

    /// Sets the tools of this run.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets an option for the client.
    #[must_use]
    pub fn with_option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Sets whether the service is asked to keep the history.
    #[must_use]
    pub fn with_store(self, store: bool) -> Self {
        self.with_option("store", store)
    }

    /// Sets the idempotency token of the run.
    #[must_use]
    pub fn with_run_token(mut self, token: impl Into<Str>) -> Self {
        self.run_token = Some(token.into());
        self
    }

    /// Sets the time at which messages are stored.
    #[must_use]
    pub const fn with_persistence(mut self, persistence: Persistence) -> Self {
        self.persistence = Some(persistence);
        self
    }
}
