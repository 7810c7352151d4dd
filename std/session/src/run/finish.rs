//! The ways in which a run is stored and ends.

use core::fmt;

use epitome_core::Size;
use tracing::{Instrument, debug, debug_span};

use super::live::Run;
use super::{Persistence, Point, RunError, RunEvent};
use crate::provider::Failures;
use crate::session::AgentResponse;

/// The result of a run.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &RunOptions::default()).await?;
/// let prompt = run.prompt().await?;
/// run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Hello.")])).await?;
/// let outcome = run.finish().await?;
/// assert_eq!(outcome.response.messages, [Message::assistant("Hello.")]);
/// assert!(outcome.events.is_empty() && outcome.context_size.is_some());
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[derive(Default)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The messages of the run, results of tools included.
    pub response: AgentResponse,
    /// The events of the run.
    pub events: Vec<RunEvent>,
    /// The size of the latest request, as it was computed before it was sent: without the answer to it.
    pub context_size: Option<Size>,
}

impl fmt::Debug for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOutcome")
            .field("messages", &self.response.messages.len())
            .field("events", &self.events)
            .field("context_size", &self.context_size)
            .finish_non_exhaustive()
    }
}

impl Run<'_> {
    /// Ends the run: calls the providers in reverse order, whose histories store the messages. Then compacts the stored
    /// history if a compaction is due. Calls without a result may be answered in the next run.
    ///
    /// # Errors
    /// [`RunError::Providers`] if some providers failed; all others have done their part. The call may be repeated:
    /// stored messages are not stored again. [`RunError::Misuse`] if an answer is arriving, or the run is over.
    ///
    /// # Cancel safety
    /// Messages that are not stored yet stay unstored. The call may be repeated, as after a failure. Where a service
    /// keeps the conversation, the session continues from the answer of this run.
    pub async fn finish(&mut self) -> Result<RunOutcome, RunError> {
        self.check_idle()?;
        // The run has an answer, if only an empty one.
        self.context.response_mut();
        let span = debug_span!("finish", run = self.context.run_token());
        async {
            self.keep_what_no_service_keeps(self.served.is_kept());
            // The stored state of the session has to contain the position in the service.
            let before = self.settle_served();
            let Self { settings, session, context, providers, .. } = &mut *self;
            if let Err(error) = providers.after_run(*settings, session, context).await {
                self.unsettle_served(before);
                return Err(error.into());
            }
            self.commit_pending().await;
            self.compact_stored(Point::AfterRun).await;
            self.keep_states().await;
            Ok(self.over())
        }
        .instrument(span)
        .await
    }

    /// Ends the run after a failed call of the model. The messages before the call are stored: the input, earlier
    /// answers and tool results. Providers without a history are not called. Where a service keeps the conversation,
    /// the session continues from its position before the run: the service does not receive the messages that this run
    /// has stored.
    ///
    /// # Errors
    /// As [`Run::finish`].
    ///
    /// # Cancel safety
    /// Messages that are not stored yet stay unstored. The call may be repeated, as after a failure.
    pub async fn fail(&mut self) -> Result<RunOutcome, RunError> {
        drop(self.take_partial());
        self.store_and_end("failed").await
    }

    /// Ends the run in the middle of an answer. The messages so far are stored, and the pieces of the answer that have
    /// arrived, marked incomplete. Providers without a history are not called. A service that keeps the conversation is
    /// treated as in [`Run::fail`].
    ///
    /// # Errors
    /// As [`Run::finish`].
    ///
    /// # Cancel safety
    /// As [`Run::fail`].
    pub async fn abandon(&mut self) -> Result<RunOutcome, RunError> {
        if let Some((handle, arrived)) = self.take_partial() {
            self.take_in(handle, arrived.abandon())?;
        }
        self.store_and_end("abandoned").await
    }

    /// Ends the run without storing. Messages that are not stored yet are lost, with the compactions of them.
    pub fn abort(mut self) {
        drop(self.take_partial());
        debug!(run = self.context.run_token(), "aborted");
    }

    /// Whether messages are stored before each call of the model.
    pub(crate) fn stores_per_call(&self) -> bool {
        self.persistence == Persistence::PerModelCall
    }

    /// Stores the messages so far.
    pub(crate) async fn store_now(&mut self) -> Result<(), RunError> {
        Ok(self.providers.store(self.session, &mut self.context).await?)
    }

    pub(super) async fn store_if_per_call(&mut self) -> Result<(), RunError> {
        if self.stores_per_call() { self.store_now().await } else { Ok(()) }
    }

    async fn store_and_end(&mut self, how: &'static str) -> Result<RunOutcome, RunError> {
        self.check_idle()?;
        let goes_on = self.session.service_session_id().is_some() || self.session.renewed.is_some();
        self.keep_what_no_service_keeps(goes_on);
        let span = debug_span!("end", run = self.context.run_token(), how);
        async {
            self.providers.store(self.session, &mut self.context).await?;
            self.commit_pending().await;
            self.keep_states().await;
            Ok(self.over())
        }
        .instrument(span)
        .await
    }

    /// Stores the session again in the histories that keep it, if it has changed since they have stored.
    async fn keep_states(&mut self) {
        for history in self.providers.histories() {
            history.keep_changed_state(self.session, &mut self.context).await;
        }
        for (source_id, kind) in self.context.states_not_kept().to_vec() {
            self.tell(RunEvent::StateNotKept { source_id: source_id.as_str().into(), kind });
        }
    }

    /// Ends a run at whose end providers have failed, and that is not ended again. Stores as much as possible. `cause`
    /// is the error that ended the run before, if there was one.
    pub(crate) async fn ended_by(&mut self, failures: Failures, cause: Option<RunError>) -> RunError {
        let ended = self.store_and_end("provider failed").await;
        let outcome = Box::new(ended.unwrap_or_else(|_| self.over()));
        RunError::EndFailed { outcome, failures, cause: cause.map(Box::new) }
    }

    fn over(&mut self) -> RunOutcome {
        self.is_over = true;
        RunOutcome {
            response: self.context.response().cloned().unwrap_or_default(),
            events: core::mem::take(&mut self.events),
            context_size: self.session.context_size(),
        }
    }
}
