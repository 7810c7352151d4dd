//! Compaction by a model provider. The result goes back to this provider byte for byte, and to no other one.
//!
//! [`Managed`] is the compactor. It calls a [`CompactionService`]; each provider has its own implementation of this
//! trait. The result of a service is an [`Artefact`]: a [`CompactionPart`](epitome_std::message::CompactionPart)
//! with the name of its provider. In requests to another provider, the text of the artefact replaces it; an
//! artefact without a text is left out.

pub mod anthropic;
mod error;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod http;
pub mod openai;
mod refusal;
mod server;
mod service;
mod value;
mod writer;

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::format;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::Tokens;
use epitome_std::compaction::{
    Began, Begun, CompactionCx, CompactionOutcome, Compactor, FellBack, KeptSession, UnchangedReason,
};
use epitome_std::message::{Message, Str};
use epitome_std::session::{SessionError, Tool};
use tracing::debug;

use crate::gap::TextFiller;
use crate::summarization::Demands;
use crate::{Background, BackgroundTask, Engine, Summarization, Summarizer};
use writer::ServiceWriter;

pub use error::{ServiceError, ServiceErrorKind};
pub use server::ServerCompaction;
pub use service::{Artefact, Capabilities, CompactionService, Cut, Position, ServiceRequest};

/// A compactor that uses the compaction of a model provider, through a [`CompactionService`].
///
/// The replaced span is chosen as by [`Summarization`], within the limits of the service: whole groups, no open
/// calls, no pins, no instructions. One message of the model, which contains the artefact of the service, replaces
/// the span. It has the lowest authority of the replaced messages, and records which messages it covers. Conflicts
/// are resolved as by [`Engine`].
///
/// *If the service fails*: a transient error is retried at most twice, within the deadline and after the pause that
/// the service asks for. Then the fallback compacts, if there is one; otherwise the error is returned and the
/// history is unchanged. The source of the error is a [`ServiceError`]. The usage of failed requests is added to
/// the session's costs.
///
/// *If the service keeps the session* (OpenAI's `previous_response_id`), and its [`Capabilities`] allow it, the
/// service compacts its own copy: the run starts a new session of the service with the result. See
/// [`Compactor::compact_kept`].
///
/// *If the provider changes*: other providers read the text of the artefact. A service that writes no text needs
/// [`Managed::with_portable_text`] for this.
///
/// *Cancel safety*: as [`Compactor`]. If the future is dropped, the request ends; the service may still charge for
/// it.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use epitome_compactors::Managed;
/// use epitome_compactors::managed::{
///     Artefact, Capabilities, CompactionService, Cut, Position, ServiceError, ServiceRequest,
/// };
/// use epitome_core::{Budget, ClassEstimator, Pass};
/// use epitome_std::compaction::{CompactionCx, CompactionOutcome, Compactor};
/// use epitome_std::history::{AppendToken, History, MemoryStore, SessionId};
/// use epitome_std::message::{CompactionPart, Message, Part};
///
/// #[derive(Debug)]
/// struct Mine;
///
/// #[async_trait]
/// impl CompactionService for Mine {
///     fn provider(&self) -> &str {
///         "mine"
///     }
///
///     fn capabilities(&self) -> Option<Capabilities> {
///         Some(Capabilities::new(Position::InPlace, Cut::Group))
///     }
///
///     async fn compact(&self, _: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
///         Ok(Artefact::new(CompactionPart::new("mine", "", Some("c2VhbGVk".into()))))
///     }
/// }
///
/// # futures::executor::block_on(async {
/// let store = Arc::new(MemoryStore::new());
/// let mut history = History::open(store, SessionId::new("s"), Arc::new(ClassEstimator::new())).await?;
/// for turn in 0..9 {
///     let said = vec![Message::user("And then?"), Message::assistant("A long answer. ".repeat(40))];
///     history.append(&AppendToken::new(format!("{turn}")), said).await?;
/// }
/// let budget = Budget::builder().window(4_000).trigger(1_000).without_goal().build()?;
/// let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
/// let outcome = Managed::new(Arc::new(Mine))?.compact(&mut cx).await?;
/// assert!(matches!(outcome, CompactionOutcome::Compacted(_)));
/// let left = history.projection().nth(1).ok_or("nothing")?;
/// assert!(matches!(left.parts(), [Part::Compaction(part)] if part.opaque.as_deref() == Some("c2VhbGVk")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Managed {
    name: Str,
    /// Sends the requests to the service; `None` if the endpoint has no compaction.
    writer: Option<Arc<ServiceWriter>>,
    /// Chooses the messages that the service compacts.
    rule: Summarization,
    /// The executor of early requests, if there are any.
    spawn: Option<Arc<dyn Fn(BackgroundTask) + Send + Sync>>,
    /// Makes plans, requests the artefacts through the writer, and commits.
    engine: Option<Background>,
    fallback: Option<Arc<dyn Compactor>>,
}

impl Managed {
    /// A compactor that calls `service`.
    ///
    /// # Errors
    /// `Unsupported` if the service's endpoint has no compaction: see [`Managed::or_else`].
    pub fn new(service: Arc<dyn CompactionService>) -> Result<Self, ServiceError> {
        let name = Str::from(format!("managed:{}", service.provider()));
        let Some(able) = service.capabilities() else {
            let context = format!("{}: the endpoint has no compaction of its own", service.provider());
            return Err(ServiceError::new(ServiceErrorKind::Unsupported, context));
        };
        let rule = Summarization::new().summary_tokens_max(Tokens(u32::MAX)).demanding(Demands {
            users_stay: able.position == Position::AfterUserMessages,
            whole_turns: able.cut == Cut::Turn,
            from_first: able.position == Position::First,
        });
        let writer = ServiceWriter {
            service,
            able,
            deadline: writer::DEADLINE,
            instructions: Vec::new(),
            tools: Vec::new(),
            model: Str::default(),
            text: None,
        };
        let writer = Some(Arc::new(writer));
        Ok(Self { name, writer, rule, spawn: None, engine: None, fallback: None }.built())
    }

    /// A compactor that calls `service`, and `fallback` if the endpoint has no compaction or the service fails.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use epitome_compactors::managed::CompactionService;
    /// use epitome_compactors::{Engine, Managed, Truncation};
    ///
    /// fn compactor(service: Arc<dyn CompactionService>) -> Managed {
    ///     Managed::or_else(service, Arc::new(Engine::new(Truncation::new()))).preserve_recent(2)
    /// }
    /// ```
    #[must_use]
    pub fn or_else(service: Arc<dyn CompactionService>, fallback: Arc<dyn Compactor>) -> Self {
        let name = Str::from(format!("managed:{}", service.provider()));
        let fallback = Some(fallback);
        match Self::new(service) {
            Ok(managed) => Self { fallback, ..managed },
            Err(_) => {
                let rule = Summarization::new();
                Self { name, writer: None, rule, spawn: None, engine: None, fallback }
            }
        }
    }

    /// Preserves this number of the newest turns, if the goal can be met without them: three by default.
    #[must_use]
    pub fn preserve_recent(mut self, turns: u32) -> Self {
        self.rule = self.rule.preserve_recent(turns);
        self.built()
    }

    /// Sends the request before the compaction is due, while the conversation continues.
    ///
    /// At a line below the trigger ([`AutoCompaction::early`](epitome_std::compaction::AutoCompaction::early)) the
    /// request is given to `spawn`, as by [`Background`]. The artefact is committed before the first request after
    /// its arrival, due or not; the messages since then stay behind it. If its messages or the model have changed
    /// meanwhile, it is discarded, and this is reported.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use epitome_compactors::Managed;
    /// # use epitome_compactors::managed::CompactionService;
    /// # fn ahead(service: Arc<dyn CompactionService>) -> Result<Managed, epitome_compactors::managed::ServiceError> {
    /// // On tokio: `|task| drop(tokio::spawn(task))`.
    /// Ok(Managed::new(service)?.in_background(|task| drop(std::thread::spawn(|| futures::executor::block_on(task)))))
    /// # }
    /// ```
    #[must_use]
    pub fn in_background(mut self, spawn: impl Fn(BackgroundTask) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self.built()
    }

    /// Adds a text to each artefact, for other providers. It costs a call of the summarizer for each pass, and the
    /// pass fails if there is no text.
    #[must_use]
    pub fn with_portable_text(self, summarizer: Arc<dyn Summarizer>) -> Self {
        let text = TextFiller { summarizer: Some(summarizer), ..TextFiller::default() };
        self.asking(|writer| writer.text = Some(text))
    }

    /// Sets the time limit of the service, retries and pauses included: 120 seconds by default.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        self.asking(|writer| writer.deadline = deadline)
    }

    /// Sets the instructions, tools and model of the conversation, for passes over a stored history. The service
    /// receives them as the conversation's requests do. Before a call of the model they come from the request.
    #[must_use]
    pub fn with_conversation(
        self,
        instructions: Vec<Message>,
        tools: Vec<Tool>,
        model: impl Into<Str>,
    ) -> Self {
        let model = model.into();
        self.asking(|writer| (writer.instructions, writer.tools, writer.model) = (instructions, tools, model))
    }

    fn asking(mut self, change: impl FnOnce(&mut ServiceWriter)) -> Self {
        self.writer.as_mut().map(Arc::make_mut).map(change);
        self.built()
    }

    fn built(mut self) -> Self {
        let Some(writer) = &self.writer else { return self };
        let engine = Engine::new(self.rule).with_filler(Arc::<ServiceWriter>::clone(writer));
        // Without an executor, no compaction starts early.
        let spawn = self.spawn.clone().unwrap_or_else(|| Arc::new(drop));
        self.engine = Some(Background::new(engine, move |task| spawn(task)).at_once());
        self
    }
}

#[async_trait]
impl Compactor for Managed {
    fn name(&self) -> &str {
        &self.name
    }

    /// # Errors
    /// As [`Engine`], with a [`ServiceError`] as the source if the service failed: `Invalid` if a retry would fail
    /// too, `NotFound` if the service does not know its session, `Unavailable` otherwise.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let error = match &self.engine {
            Some(engine) => match engine.compact(cx).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => Some(error),
            },
            None => None,
        };
        match (&self.fallback, error) {
            (Some(fallback), error) => {
                let kind = error.map(|error| error.kind());
                debug!(compactor = &*self.name, fallback = fallback.name(), ?kind, "the fallback compacts");
                let outcome = fallback.compact(cx).await;
                // A fallback of the fallback has already reported itself.
                if let (Some(kind), None) = (kind, cx.fell_back()) {
                    cx.fall_back(FellBack::new(&*self.name, kind, fallback.name()));
                }
                outcome
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(CompactionOutcome::Unchanged(UnchangedReason::NoCompactor)),
        }
    }

    fn begins_early(&self) -> bool {
        self.engine.is_some() && self.spawn.is_some()
    }

    fn begin(&self, cx: &mut CompactionCx<'_>) -> Began {
        let engine = self.engine.as_ref().filter(|_| self.begins_early());
        engine.map_or(Began::Nothing, |engine| engine.begin(cx))
    }

    fn has_come(&self, begun: &Begun) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.has_come(begun))
    }

    fn compacts_kept(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.able.kept_sessions)
    }

    /// No other compactor can compact a session that the service keeps: the fallback is not called.
    async fn compact_kept(&self, session: &KeptSession<'_>) -> Result<Vec<Message>, SessionError> {
        match &self.writer {
            Some(writer) => Ok(Vec::from([writer.write_kept(session).await?])),
            None => Ok(Vec::new()),
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("name", &&*self.name)
            .field("engine", &self.engine)
            .field("fallback", &self.fallback)
            .finish_non_exhaustive()
    }
}
