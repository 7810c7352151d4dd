//! Compaction by the provider: what it leaves in the place of messages goes back to it byte for byte, and to nobody else.
//!
//! [`Managed`] is the compactor, a [`CompactionService`] whom it asks; another provider is another implementation of that trait. What a
//! service leaves is an [`Artefact`]: a [`CompactionPart`](epitome_std::message::CompactionPart) with the name of its provider. Where a
//! conversation is written for another provider, the text beside it stands in its place; if it has none, nothing does.

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

/// Compacts with a [`CompactionService`].
///
/// What is replaced is chosen as [`Summarization`] chooses it, within what the service asks for: whole groups, no open work,
/// no pins, no instructions. In its place stands one message of the model that holds what the service left. It has the
/// least authority of what it stands for, and says what that is. Conflicts are resolved as [`Engine`] does.
///
/// *If the service fails*: what may pass is tried again, twice at most and within the deadline, as late as the service asks; then the
/// fallback compacts, if there is one, and otherwise the error is returned. The history is as it was. The error's source is a
/// [`ServiceError`]. What was paid is told to the session all the same.
///
/// *If the service keeps the session* (OpenAI's `previous_response_id`), and its [`Capabilities`] say that it can, it compacts
/// what it keeps: the run begins a new session of the service with what is left. See [`Compactor::compact_kept`].
///
/// *If the provider changes*: the text beside what the service left is what others read. A service that writes none needs
/// [`Managed::with_portable_text`] for that.
///
/// *Cancel safety*: as [`Compactor`]. The request ends where the future is dropped; the service may ask for its price.
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
    /// Asks the service; none where the endpoint compacts nothing.
    writer: Option<Arc<ServiceWriter>>,
    /// Chooses the messages for which the service is to stand.
    rule: Summarization,
    /// The executor of requests that are made before they are due, if any are.
    spawn: Option<Arc<dyn Fn(BackgroundTask) + Send + Sync>>,
    /// Plans, has the writer ask, and commits.
    engine: Option<Background>,
    fallback: Option<Arc<dyn Compactor>>,
}

impl Managed {
    /// A compactor that asks `service`.
    ///
    /// # Errors
    /// `Unsupported` if the service's endpoint compacts nothing: see [`Managed::or_else`].
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

    /// A compactor that asks `service`, and lets `fallback` compact where it cannot: where its endpoint compacts nothing, and
    /// where it fails.
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

    /// Spares this many of the newest turns, if the goal can be met without them: three by default.
    #[must_use]
    pub fn preserve_recent(mut self, turns: u32) -> Self {
        self.rule = self.rule.preserve_recent(turns);
        self.built()
    }

    /// Asks before it is due, while the conversation goes on: at a line below the trigger
    /// ([`AutoCompaction::early`](epitome_std::compaction::AutoCompaction::early)) the request is given to `spawn`, as
    /// [`Background`] does it. What comes is put in place in the first request after that, whether it is due or not; behind
    /// it stands all that was said meanwhile. If what it stands for was changed, or the model, it is discarded, which is told.
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

    /// Has a text written beside what the service leaves: what other providers read in its place. It costs a call of the
    /// summarizer for each pass, and the pass fails if there is no text.
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

    /// The conversation's instructions, tools and model, for passes over what is stored: the service is told of them as
    /// the conversation's requests are. Before a call of the model, the request says so itself.
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
        // Without an executor it begins nothing early.
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
    /// As [`Engine`], with a [`ServiceError`] as the source if the service has failed: `Invalid` if another try fails alike,
    /// `Unavailable` otherwise.
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
                // Who stood in for the fallback has told so.
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
