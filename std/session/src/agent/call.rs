//! The loop between the model and the tools.

use core::future::Future;
use core::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::stream::{RunUpdate, Updates};
use super::{
    Agent, ChatRequest, ClientError, Input, OVERFLOW_COMPACTIONS_MAX, SessionForgotten, SharedSession,
};
use crate::message::{Message, Part};
use crate::provider::Failures;
use crate::run::{Delta, Prompt, RequestHandle, Run, RunError, RunEvent, RunOptions, RunOutcome};
use crate::session::AgentSession;
use crate::wire::ContextOverflow;

impl Agent {
    /// Runs the agent: asks the model, runs the tools that it calls, and asks again until the model calls no tool.
    ///
    /// If the client reports that the request is longer than the model's window ([`ContextOverflow`]), the agent
    /// compacts the request and sends it again, at most [`OVERFLOW_COMPACTIONS_MAX`] times.
    ///
    /// # Errors
    /// - [`RunError::PendingCalls`] if calls of the turn have no result and the agent cannot answer them: there is no
    ///   tool runner, or a person must allow them.
    /// - [`RunError::Model`] if the client failed.
    /// - [`RunError::ContextOverflow`] if compactions could not make the request fit.
    /// - [`RunError::ToolRounds`] if the model does not stop calling tools.
    /// - [`RunError::EndFailed`], with the answer, if a provider failed after the answer. A run with the same token
    ///   then returns [`RunError::AlreadyStored`], with the answer, if the loading history has stored it.
    /// - Otherwise as [`Run::begin`] and [`Run::prompt`].
    ///
    /// After the first four errors and after [`RunError::OverLimit`], the messages before the error are stored.
    ///
    /// # Cancel safety
    /// The session can be used, written and loaded. The agent's [`Persistence`](crate::run::Persistence) decides which
    /// messages are stored.
    pub async fn run(
        &self,
        session: &mut AgentSession,
        input: impl Into<Input> + Send,
        options: &RunOptions,
    ) -> Result<RunOutcome, RunError> {
        self.drive(session, input.into(), options, None).await
    }

    /// Runs the agent on a session that other tasks use too. Otherwise as [`Agent::run`].
    ///
    /// ```
    /// # use async_trait::async_trait;
    /// # use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError, SharedSession};
    /// # use epitome_std::message::Message;
    /// # use epitome_std::run::{ModelResponse, RunOptions};
    /// # struct Echo;
    /// # #[async_trait]
    /// # impl ChatClient for Echo {
    /// #     async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
    /// #         Ok(ModelResponse::new(vec![Message::assistant("Yes.")]))
    /// #     }
    /// # }
    /// # futures::executor::block_on(async {
    /// let agent = Agent::new("assistant", Echo);
    /// let session = SharedSession::new(agent.create_session(Some("s-1"), None));
    /// let options = RunOptions::default();
    /// let both = futures::future::try_join(
    ///     agent.run_shared(&session, "Are you there?", &options),
    ///     agent.run_shared(&session, "And now?", &options),
    /// );
    /// both.await?; // one after the other
    /// # Ok::<(), epitome_std::run::RunError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`RunError::Busy`] if another run has the session and the agent rejects a second run; otherwise as
    /// [`Agent::run`].
    ///
    /// # Cancel safety
    /// As [`Agent::run`]; the session is free again.
    pub async fn run_shared(
        &self,
        session: &SharedSession,
        input: impl Into<Input> + Send,
        options: &RunOptions,
    ) -> Result<RunOutcome, RunError> {
        let input = input.into();
        let mut session = session.take(self.concurrency).await.ok_or(RunError::Busy)?;
        self.drive(&mut session, input, options, None).await
    }

    /// Runs the agent without a session. The run leaves no data, except the data that providers store elsewhere.
    ///
    /// # Errors
    /// As [`Agent::run`].
    ///
    /// # Cancel safety
    /// As [`Agent::run`].
    pub async fn run_once(
        &self,
        input: impl Into<Input> + Send,
        options: &RunOptions,
    ) -> Result<RunOutcome, RunError> {
        let mut session = AgentSession::with_id_source(&*self.settings.ids);
        self.drive(&mut session, input.into(), options, None).await
    }

    pub(super) async fn drive(
        &self,
        session: &mut AgentSession,
        input: Input,
        options: &RunOptions,
        updates: Option<&Updates>,
    ) -> Result<RunOutcome, RunError> {
        let begun = Run::begin(&self.settings, session, input.into_messages(), options);
        let Some(run) = unless_stopped(updates, begun).await else { return Ok(RunOutcome::default()) };
        let mut run = run?;
        tell(updates, run.events());
        self.settle_open_calls(&mut run, updates).await?;
        let is_stopped = || updates.is_some_and(Updates::is_stopped);
        let mut rounds = 0_u32;
        loop {
            let calls = run.pending_calls();
            if !calls.is_empty() {
                let waiting = calls.iter().filter(|call| !self.can_answer(&run, call));
                let waiting: Vec<_> = waiting.cloned().collect();
                if !waiting.is_empty() {
                    return Err(failed(&mut run, updates, RunError::pending(waiting)).await);
                }
                if rounds >= self.tool_rounds_max {
                    let error = RunError::ToolRounds { rounds_max: self.tool_rounds_max };
                    return Err(failed(&mut run, updates, error).await);
                }
                rounds = rounds.saturating_add(1);
                self.run_tools(&mut run, calls, updates).await?;
            }
            if !is_stopped() {
                self.ask(&mut run, options, updates).await?;
            }
            let calls = run.pending_calls();
            if !is_stopped() && !calls.is_empty() && calls.iter().all(|call| self.can_answer(&run, call)) {
                continue;
            }
            let ended = match is_stopped() {
                true => None,
                // A stop may come in the middle of a compaction.
                false => unless_stopped(updates, run.finish()).await,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => run.abandon().await,
            };
            return match ended {
                Ok(outcome) => {
                    tell(updates, &outcome.events);
                    Ok(outcome)
                }
                Err(RunError::Providers(failures)) => {
                    if !is_stopped() {
                        // Where a service keeps the conversation, the session continues from the answer of this run.
                        run.settle_served();
                    }
                    Err(ended_by(&mut run, updates, failures, None).await)
                }
                Err(error) => Err(error),
            };
        }
    }

    /// Asks the model for one answer. Sends the request again after a refusal that the run can repair.
    async fn ask(
        &self,
        run: &mut Run<'_>,
        options: &RunOptions,
        updates: Option<&Updates>,
    ) -> Result<(), RunError> {
        let mut compactions = 0_u32;
        loop {
            let Some(prompt) = unless_stopped(updates, run.prompt()).await else { return Ok(()) };
            tell(updates, run.events());
            let prompt = match prompt {
                Ok(prompt) => prompt,
                // The messages could not be stored before the call. The end of the run tries once more.
                Err(RunError::Providers(failures)) => {
                    return Err(ended_by(run, updates, failures, None).await);
                }
                Err(error @ RunError::OverLimit { .. }) => return Err(failed(run, updates, error).await),
                Err(error) => return Err(error),
            };
            let refused = match updates {
                Some(updates) => self.stream_once(run, options, prompt, updates).await?,
                None => self.complete_once(run, options, prompt).await?,
            };
            tell(updates, run.events());
            let Some((handle, error)) = refused else { return Ok(()) };
            if let Some(overflow) = error.downcast_ref::<ContextOverflow>().copied() {
                let cause = match compactions < OVERFLOW_COMPACTIONS_MAX {
                    true => match unless_stopped(updates, run.refused(handle, overflow)).await {
                        None => return Ok(()),
                        Some(Ok(())) => {
                            compactions = compactions.saturating_add(1);
                            continue;
                        }
                        Some(Err(error)) => Some(Box::new(error)),
                    },
                    false => None,
                };
                let error = RunError::ContextOverflow { overflow, compactions, cause };
                return Err(failed(run, updates, error).await);
            }
            // After this the service keeps no conversation, so the whole history is sent only once.
            if error.is::<SessionForgotten>() && run.can_send_anew() {
                run.forgotten(handle).await?;
                continue;
            }
            return Err(failed(run, updates, RunError::Model(error)).await);
        }
    }

    async fn complete_once(
        &self,
        run: &mut Run<'_>,
        options: &RunOptions,
        prompt: Prompt,
    ) -> Result<Option<Refused>, RunError> {
        let request = ChatRequest::new(&prompt, &options.options, self.settings.model());
        Ok(match unwinding(async { self.client.complete(&request).await }).await {
            Ok(response) => {
                recorded(run.record(prompt.handle, response).await)?;
                None
            }
            Err(error) => Some((prompt.handle, error)),
        })
    }

    async fn stream_once(
        &self,
        run: &mut Run<'_>,
        options: &RunOptions,
        prompt: Prompt,
        updates: &Updates,
    ) -> Result<Option<Refused>, RunError> {
        let Prompt { handle, messages, tools, service_session_id, .. } = prompt;
        run.begin_response(handle)?;
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            options: &options.options,
            model: self.settings.model(),
            service_session_id: service_session_id.as_ref(),
        };
        let mut is_heard = false;
        let mut sink = |delta: Delta| {
            if run.extend_response(&delta).is_ok() {
                is_heard |= delta.says();
                updates.push(RunUpdate::Delta(delta));
            }
        };
        let answer = unwinding(async { self.client.stream(&request, &mut sink).await });
        match updates.unless_stopped(answer).await {
            // The caller abandons the run and stores the pieces that have arrived.
            None => return Ok(None),
            Some(Ok(None)) => recorded(run.finish_response().await)?,
            Some(Ok(Some(response))) => {
                // Pieces that were pushed already are not pushed again.
                for part in response.messages.iter().flat_map(Message::parts).filter(|_| !is_heard) {
                    updates.push(RunUpdate::Delta(match part {
                        Part::Text(text) => Delta::text(text.as_str()),
                        part => Delta::part(part.clone()),
                    }));
                }
                recorded(run.replace_response(response).await)?;
            }
            Some(Err(error)) => match if is_heard { None } else { run.unanswered() } {
                Some(handle) => return Ok(Some((handle, error))),
                // A part of an answer is no refusal: the run stores it and does not repeat the request.
                None => {
                    let (ended, error) = (run.abandon().await, RunError::Model(error));
                    return Err(after(run, Some(updates), ended, error).await);
                }
            },
        }
        updates.push(RunUpdate::AnswerEnded);
        Ok(None)
    }
}

/// A request without an answer, and the error of the client. The request may be sent again.
type Refused = (RequestHandle, ClientError);

fn tell(updates: Option<&Updates>, events: &[RunEvent]) {
    if let Some(updates) = updates {
        updates.push_events(events);
    }
}

/// Output of the future; `None` if its stream is stopped before.
pub(super) async fn unless_stopped<T>(
    updates: Option<&Updates>,
    future: impl Future<Output = T>,
) -> Option<T> {
    match updates {
        Some(updates) => updates.unless_stopped(future).await,
        None => Some(future.await),
    }
}

/// Ends a failed run. Returns its error, with the errors of providers that failed at the end.
async fn failed(run: &mut Run<'_>, updates: Option<&Updates>, error: RunError) -> RunError {
    let ended = run.fail().await;
    after(run, updates, ended, error).await
}

/// Error of a failed run. `ended` is the result of ending it.
async fn after(
    run: &mut Run<'_>,
    updates: Option<&Updates>,
    ended: Result<RunOutcome, RunError>,
    error: RunError,
) -> RunError {
    match ended {
        Err(RunError::Providers(failures)) => ended_by(run, updates, failures, Some(error)).await,
        Err(other) => other,
        Ok(outcome) => {
            tell(updates, &outcome.events);
            error
        }
    }
}

/// Ends a run at whose end providers have failed.
pub(super) async fn ended_by(
    run: &mut Run<'_>,
    updates: Option<&Updates>,
    failures: Failures,
    cause: Option<RunError>,
) -> RunError {
    let error = run.ended_by(failures, cause).await;
    if let RunError::EndFailed { outcome, .. } = &error {
        tell(updates, &outcome.events);
    }
    error
}

/// Ignores a failure to store an answer: the answer is recorded, and the next step that stores includes it.
pub(super) fn recorded(done: Result<(), RunError>) -> Result<(), RunError> {
    match done {
        Err(RunError::Providers(_)) => Ok(()),
        done => done,
    }
}

/// Turns a panic of the client into an error, without the text of the panic.
async fn unwinding<T>(answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    // The future only reads borrowed data, or adds whole pieces to it.
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.unwrap_or_else(|_| Err("the client panicked".into()))
}
