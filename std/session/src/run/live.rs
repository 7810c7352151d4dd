//! The run, from its beginning to its answers.

use core::fmt;
use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_core::{Budget, count_message};
use tracing::{Instrument, debug, debug_span};

use super::due::{self, Measure};
use super::partial::Left;
use super::served::Served;
use super::working::Working;
use super::{
    ModelResponse, Persistence, Point, Prompt, RequestHandle, RunError, RunEvent, RunOptions, RunSettings,
    render,
};
use crate::compaction::AutoCompaction;
use crate::message::{Message, Part, Str, ToolCall};
use crate::provider::{ContextProvider, LastStored, Providers};
use crate::session::{AgentSession, SessionContext};

/// One exchange with an agent. See the [module](super).
///
/// *Cancel safety*: if a future or the run itself is dropped, the session can be used, written and loaded. Stored
/// messages stay stored. Messages that are not stored yet are lost, with one exception: if an answer was arriving, the
/// [`AgentSession`] keeps the input, the messages so far and the pieces of the answer, marked incomplete. The next run
/// of this session stores them, also after the session was written and read again. The providers' state is as they left
/// it.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &RunOptions::default()).await?;
/// let prompt = run.prompt().await?;
/// assert_eq!(prompt.messages, [Message::user("Hi")]);
/// // The model's client has failed.
/// run.fail().await?;
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
pub struct Run<'a> {
    pub(super) settings: &'a RunSettings,
    pub(super) session: &'a mut AgentSession,
    pub(super) context: SessionContext,
    pub(super) providers: Providers,
    pub(super) compaction: Option<AutoCompaction>,
    pub(super) persistence: Persistence,
    pub(super) working: Working,
    pub(super) events: Vec<RunEvent>,
    pub(super) partial: Option<RequestHandle>,
    /// Number of times that the provider has refused the open request.
    pub(super) refusals: u32,
    /// The number of the latest request. An answer increases it too, so that its handle is used up.
    latest: u64,
    /// State of the conversation that a service keeps.
    pub(super) served: Served,
    /// Tokens of a request beside its messages.
    pub(super) tokens_beside: u64,
    pub(super) instruction_tokens: u64,
    pub(super) input_tokens: u64,
    pub(super) is_over: bool,
}

impl<'a> Run<'a> {
    /// Begins a run on `input`: compacts the stored history if a compaction is due, and calls the providers in order.
    ///
    /// # Errors
    /// - [`RunError::Provider`] of the first provider that fails; nothing of the run is stored then.
    /// - [`RunError::AlreadyStored`] if a run of this token has stored its input, with its answer if that run has
    ///   ended.
    /// - [`RunError::Misuse`] if a user message answers a call that is not shown and has other content too: that
    ///   content would not be sent.
    /// - [`RunError::Providers`] if the messages that a dropped run has left in the session cannot be stored; they stay
    ///   there.
    /// - [`RunError::Session`] if the history cannot be read.
    ///
    /// A compaction that fails is an event, not an error: see [`Run::events`].
    ///
    /// # Cancel safety
    /// Nothing of the run is stored.
    pub async fn begin(
        settings: &'a RunSettings,
        session: &'a mut AgentSession,
        input: Vec<Message>,
        options: &RunOptions,
    ) -> Result<Self, RunError> {
        let mut run = Self::new(settings, session, input, options);
        let span = debug_span!("begin", session = %run.session.session_id(), run = run.context.run_token());
        run.prepare().instrument(span).await?;
        Ok(run)
    }

    fn new(
        settings: &'a RunSettings,
        session: &'a mut AgentSession,
        input: Vec<Message>,
        options: &RunOptions,
    ) -> Self {
        let token = options.run_token.clone().unwrap_or_else(|| settings.ids.new_id().into());
        let counter = &**settings.counter();
        let input_tokens = input.iter().map(|message| count_message(message, counter).as_u64()).sum();
        let instructions = settings.instructions.iter();
        let instruction_tokens = instructions.map(|text| counter.count(text).as_u64()).sum();
        let compaction = settings.compaction.as_ref().or_else(|| settings.providers.compaction());
        let compaction = options.compaction.resolve(compaction).cloned();
        let tools = settings.tools.iter().chain(&options.tools).cloned().collect();
        let (mut context, served) =
            (SessionContext::new(session, token, input).with_tools(tools), Served::of(session));
        if let Some(text) = &settings.instructions {
            context = context.with_instructions(text.clone());
        }
        context = context.with_options(options.options.clone());
        session.counter = Some(Arc::clone(settings.counter()));
        Self {
            settings,
            providers: settings.providers.for_run(session, &context),
            session,
            compaction,
            persistence: options.persistence.unwrap_or(settings.persistence),
            tokens_beside: due::tokens_beside(context.tools(), counter),
            context,
            working: Working::empty(Arc::clone(settings.counter())),
            events: Vec::new(),
            partial: None,
            refusals: 0,
            latest: 0,
            served,
            instruction_tokens,
            input_tokens,
            is_over: false,
        }
    }

    async fn prepare(&mut self) -> Result<(), RunError> {
        self.store_left().await?;
        self.compact_stored(Point::BeforeRun).await;
        let Self { settings, session, context, providers, .. } = self;
        providers.before_run(*settings, session, context).await?;
        self.add_own_tools();
        let Self { context, providers, .. } = self;
        for history in providers.histories().filter(|it| it.loads()) {
            let answer = match history.last_stored(context).await? {
                LastStored::Nothing => continue,
                LastStored::Pruned => None,
                LastStored::Message(last) => Some(last).filter(is_answer).map(Box::new),
            };
            return Err(RunError::AlreadyStored { answer });
        }
        self.tokens_beside = due::tokens_beside(self.context.tools(), &**self.settings.counter());
        let primary = self.providers.primary_history().map(ContextProvider::source_id);
        self.working = Working::begin(&self.context, primary, Arc::clone(self.settings.counter()))?;
        if !self.served.is_kept() && self.working.loses_input() {
            return Err(RunError::Misuse(
                "a message of the input answers no call that is shown and says more beside: give that as a message of its own",
            ));
        }
        self.measure_served();
        Ok(())
    }

    /// Stores the messages of a run that was dropped in the middle of an answer.
    async fn store_left(&mut self) -> Result<(), RunError> {
        let Some(left) = self.session.left.take() else { return Ok(()) };
        let mut kept = PutBack { session: &mut *self.session, left: Some(left) };
        if self.providers.is_empty() && kept.session.service_session_id().is_none() {
            // If neither a provider nor a service keeps the conversation, the session keeps it, from this run on.
            self.providers = Providers::in_memory();
        }
        if let Some(left) = &mut kept.left {
            left.take_in();
            self.providers.store(kept.session, &mut left.context).await?;
        }
        kept.left = None;
        Ok(())
    }

    /// Returns the next request. Compacts it first if a compaction is due.
    ///
    /// A repeated call without an answer returns another request; only the answer to the latest request is accepted.
    ///
    /// # Errors
    /// [`RunError::PendingCalls`] as long as calls have no result. [`RunError::Providers`] if the messages could not be
    /// stored before the call ([`Persistence::PerModelCall`]). [`RunError::OverLimit`] if the settings [enforce the
    /// limit](RunSettings::with_enforced_limit) and the request is over it: end the run with [`Run::fail`].
    ///
    /// # Cancel safety
    /// The call may be repeated.
    pub async fn prompt(&mut self) -> Result<Prompt, RunError> {
        self.check_idle()?;
        let pending = self.pending_calls();
        if !pending.is_empty() {
            return Err(RunError::pending(pending));
        }
        let span = debug_span!("prompt", run = self.context.run_token());
        async {
            self.store_if_per_call().await?;
            self.shorten_results().await;
            self.compact_request().await;
            if self.persistence == Persistence::PerModelCall {
                self.commit_pending().await;
            }
            self.check_limit()?;
            Ok(self.request())
        }
        .instrument(span)
        .await
    }

    /// Records the model's answer to a request.
    ///
    /// # Errors
    /// [`RunError::Misuse`] if the handle is not that of the latest request of this run; nothing is recorded then.
    /// [`RunError::Providers`] if the answer could not be stored ([`Persistence::PerModelCall`]): it is recorded, and
    /// stored with the next messages.
    ///
    /// # Cancel safety
    /// The answer is recorded, and stored with the next messages.
    pub async fn record(&mut self, handle: RequestHandle, response: ModelResponse) -> Result<(), RunError> {
        self.check_idle()?;
        self.take_in(handle, response)?;
        self.store_if_per_call().await
    }

    /// Records tool results, or other messages between two calls of the model.
    ///
    /// # Errors
    /// [`RunError::Misuse`] if a result answers no call; nothing is recorded then.
    pub fn answer(&mut self, mut messages: Vec<Message>) -> Result<(), RunError> {
        self.check_idle()?;
        // The calls of a session that the service keeps are not all known here.
        let is_orphan = |message| !self.served.is_kept() && self.working.is_orphan(message);
        if messages.iter().any(is_orphan) {
            return Err(RunError::Misuse("a result answers no call of this session: give it the id of one"));
        }
        self.tell_room(&mut messages);
        self.say(messages);
        Ok(())
    }

    /// The calls that wait for a result, in order.
    #[must_use]
    pub fn pending_calls(&self) -> Vec<ToolCall> {
        self.working.calls_without_result(true)
    }

    /// The calls of earlier turns without a result: of a run that crashed, or was left. The model reads that they were
    /// aborted. A late result may still be given to [`Run::answer`].
    #[must_use]
    pub fn unfinished_calls(&self) -> Vec<ToolCall> {
        self.working.calls_without_result(false)
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> &[RunEvent] {
        &self.events
    }

    /// The session context of the run.
    #[must_use]
    pub const fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The session.
    #[must_use]
    pub const fn session(&self) -> &AgentSession {
        self.session
    }

    /// The messages of the next request, before repairs.
    #[must_use]
    pub fn projection(&self) -> Vec<&Message> {
        match self.served.is_kept() {
            true => {
                self.working.instructions().into_iter().chain(self.served.unseen(&self.context)).collect()
            }
            false => self.working.projection(),
        }
    }

    fn request(&mut self) -> Prompt {
        let messages = self.projection();
        // The messages that a service keeps are unknown here: a repair would treat the results of its calls as orphans.
        let (messages, repairs) = match self.served.is_kept() {
            true => (render::continued(&self.working.projection(), &messages), Vec::new()),
            false => render::legal(self.settings.profile(), self.settings.model(), &messages),
        };
        let counted = self.request_tokens();
        let (model, stamp) = (self.settings.model_key(), self.working.stamp());
        let budget = self.budget();
        let measure = Measure::of(self.session, model, budget, counted, stamp);
        let ledger = self.session.ledger_for(model, budget);
        let request = ledger.begin_request(counted, stamp);
        self.served.asked(self.said());
        self.latest = self.latest.saturating_add(1);
        self.session.requests = self.session.requests.saturating_add(1);
        self.note_request();
        let (size, limit) = (measure.size.tokens, budget.limit());
        debug!(messages = messages.len(), repairs = repairs.len(), size, "request");
        if size > limit {
            self.tell_once(RunEvent::OverLimit { size, limit });
        }
        let run_token = Str::from(self.context.run_token());
        Prompt {
            handle: RequestHandle { request, run_token, number: self.latest },
            messages,
            tools: self.context.tools().to_vec(),
            size: measure.size,
            repairs,
            service_session_id: self.served.id().cloned(),
        }
    }

    /// The budget of the next request: that of the model, with the window and the reserve of the compaction's options
    /// and with room for the answer that the options of the run ask for. Its limit is the largest size of a request.
    /// The trigger and the goal of the run's compaction are set apart from it.
    #[must_use]
    pub fn budget(&self) -> Budget {
        let options = self.compaction.as_ref().map(|auto| &auto.options);
        due::budget(self.settings, self.session, options, due::answer_max(self.context.options()))
    }

    /// Records an answer without storing it.
    pub(super) fn take_in(&mut self, handle: RequestHandle, response: ModelResponse) -> Result<(), RunError> {
        self.check_handle(&handle)?;
        // The handle is used up: no second answer to the request.
        self.latest = self.latest.saturating_add(1);
        self.refusals = 0;
        let ModelResponse {
            messages,
            response_id,
            usage,
            service_session_id,
            finish_reason,
            created_at,
            raw_response,
        } = response;
        debug!(messages = messages.len(), reported = usage.is_some(), "answer");
        let service_session_id = self.wanted(service_session_id);
        let said = self.said();
        if self.served.answered(said..said.saturating_add(messages.len()), service_session_id) {
            // The latest report is about the session that the service has compacted.
            self.session.note_compaction();
        }
        self.session.record_usage(usage.as_ref());
        if let Some(usage) = &usage {
            self.unlearn_window(usage);
            let budget = self.budget();
            let ledger = self.session.ledger_for(self.settings.model_key(), budget);
            ledger.record(handle.request, usage);
        }
        let told = self.context.response_mut();
        told.usage_details = usage.or(told.usage_details);
        told.response_id = response_id.clone().or_else(|| told.response_id.take());
        (told.finish_reason, told.created_at, told.raw_response) = (finish_reason, created_at, raw_response);
        told.agent_id = Some(Str::from(&*self.settings.id));
        self.say(messages.into_iter().map(|message| of_response(message, response_id.as_ref())).collect());
        Ok(())
    }

    /// Number of messages in the response of the run.
    fn said(&self) -> usize {
        self.context.response().map_or(0, |response| response.messages.len())
    }

    pub(super) fn say(&mut self, messages: Vec<Message>) {
        self.context.response_mut().messages.extend(messages.iter().cloned());
        self.working.push(messages);
    }

    pub(super) fn check_idle(&self) -> Result<(), RunError> {
        if self.is_over {
            return Err(RunError::Misuse("the run is over: begin another one"));
        }
        match self.partial {
            Some(_) => Err(RunError::Misuse("an answer is arriving: finish or abandon it first")),
            None => Ok(()),
        }
    }

    pub(super) fn check_handle(&self, handle: &RequestHandle) -> Result<(), RunError> {
        let is_latest = handle.run_token == *self.context.run_token() && handle.number == self.latest;
        if is_latest {
            Ok(())
        } else {
            Err(RunError::Misuse("the handle is not that of the latest request of this run"))
        }
    }

    pub(super) fn tell(&mut self, event: RunEvent) {
        event.log();
        self.events.push(event);
    }
}

/// Rest of a dropped run while it is stored: it goes back into the session if that fails or is dropped.
struct PutBack<'s> {
    session: &'s mut AgentSession,
    left: Option<Box<Left>>,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        if let Some(left) = self.left.take() {
            self.session.left = Some(left);
        }
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("context", &self.context)
            .field("latest", &self.latest)
            .field("events", &self.events)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

/// Marks a message of the model as a part of the response.
pub(super) fn of_response(message: Message, response_id: Option<&Str>) -> Message {
    match response_id {
        Some(id) if message.role() == Role::Assistant && message.response_id().is_none() => {
            message.with_response_id(id.clone())
        }
        _ => message,
    }
}

/// Whether a message of the model ends a run: it is complete, and has no calls for the caller to run.
fn is_answer(message: &Message) -> bool {
    let calls = |part: &Part| matches!(part, Part::ToolCall(call) if call.kind == CallKind::Function);
    message.role() == Role::Assistant && !message.is_incomplete() && !message.parts().iter().any(calls)
}
