//! The loop from the model to tools and back.

use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::pin;

use futures::{FutureExt, StreamExt, stream};

use super::stream::{RunUpdate, Updates};
use super::{
    Agent, ChatRequest, ClientError, DENIED, INTERRUPTED, Input, OVERFLOW_COMPACTIONS_MAX, OpenCallAction,
    SessionForgotten, SharedSession, ToolOutput,
};
use crate::message::{Message, Part, ToolCall};
use crate::provider::Failures;
use crate::run::{
    ApprovalState, Delta, Prompt, RequestHandle, Run, RunError, RunEvent, RunOptions, RunOutcome,
};
use crate::session::AgentSession;
use crate::wire::ContextOverflow;

impl Agent {
    /// Runs: asks the model, runs the tools that it calls, and so on, until it calls none.
    ///
    /// If the client says that the request is longer than the model's window
    /// ([`ContextOverflow`]), the agent compacts it and asks again, at most
    /// [`OVERFLOW_COMPACTIONS_MAX`] times.
    ///
    /// # Errors
    /// [`RunError::PendingCalls`] if calls of the turn have no result and cannot be answered here: there is no tool runner, or a person must
    /// allow them; the input is stored. [`RunError::Model`] if the client failed, [`RunError::ContextOverflow`] if the request could not be made to fit, and
    /// [`RunError::ToolRounds`] if the model does not stop calling tools: what was said is stored, as it is with
    /// [`RunError::OverLimit`]. [`RunError::EndFailed`], with the answer, if a provider failed after it; a run with the same token then
    /// says [`RunError::AlreadyStored`], with the answer, if the history that loads has stored it. Otherwise as [`Run::begin`] and
    /// [`Run::prompt`].
    ///
    /// # Cancel safety
    /// The session can be used, written and loaded. What is stored is what the agent's
    /// [`Persistence`](crate::run::Persistence) says.
    pub async fn run(
        &self,
        session: &mut AgentSession,
        input: impl Into<Input> + Send,
        options: &RunOptions,
    ) -> Result<RunOutcome, RunError> {
        self.drive(session, input.into(), options, None).await
    }

    /// Runs on a session that others run on too. Otherwise as [`Agent::run`].
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
    /// [`RunError::Busy`] if another run has the session and the agent rejects; otherwise as [`Agent::run`].
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

    /// Runs without a session: nothing is remembered of the run but what providers keep elsewhere.
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
        let mut calls = run.pending_calls();
        // Without the rest of an answer it is not known whether a person must allow its calls. A call that waited for an approval, or got
        // none, has not run.
        calls.retain(|call| {
            let reports = self.open_calls == OpenCallAction::Report;
            let is_unrun = run.waited_for_approval(call) || run.approval_of(call) == ApprovalState::Denied;
            run.is_cut_off(call) || reports && !is_unrun
        });
        report(&mut run, updates, calls, INTERRUPTED)?;
        self.store_approvals(&mut run, updates).await?;
        let is_stopped = || updates.is_some_and(Updates::is_stopped);
        let mut rounds = 0_u32;
        loop {
            let calls = run.pending_calls();
            if !calls.is_empty() {
                let waiting: Vec<_> =
                    calls.iter().filter(|call| !self.can_answer(&run, call)).cloned().collect();
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
                // It may be in the middle of a compaction when it is stopped.
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
                        // Where a service keeps the conversation, it goes on from what was answered.
                        run.settle_served();
                    }
                    Err(ended_by(&mut run, updates, failures, None).await)
                }
                Err(error) => Err(error),
            };
        }
    }

    /// Stores the approvals of the input before their calls run, if no call may run twice or no more than a call is to be lost.
    async fn store_approvals(&self, run: &mut Run<'_>, updates: Option<&Updates>) -> Result<(), RunError> {
        let is_new = |call: &ToolCall| {
            run.waited_for_approval(call) && run.approval_of(call) == ApprovalState::Approved
        };
        let stores = self.open_calls == OpenCallAction::Report || run.stores_per_call();
        if !stores || !run.pending_calls().iter().any(is_new) {
            return Ok(());
        }
        match run.store_now().await {
            Err(RunError::Providers(failures)) => Err(ended_by(run, updates, failures, None).await),
            stored => stored,
        }
    }

    /// Whether the call can be answered here, now.
    fn can_answer(&self, run: &Run<'_>, call: &ToolCall) -> bool {
        match run.approval_of(call) {
            ApprovalState::Requested => false,
            ApprovalState::Denied => true,
            _ => self.tool_runner.is_some() || run.answers_call(call),
        }
    }

    async fn run_tools(
        &self,
        run: &mut Run<'_>,
        calls: Vec<ToolCall>,
        updates: Option<&Updates>,
    ) -> Result<(), RunError> {
        let is_denied = |call: &ToolCall| run.approval_of(call) == ApprovalState::Denied;
        let (denied, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_denied);
        report(run, updates, denied, DENIED)?;
        let (own, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| run.answers_call(call));
        if !calls.is_empty() {
            self.run_own_tools(run, calls, updates, own.len()).await?;
        }
        if !own.is_empty() {
            let results = unless_stopped(updates, run.run_own_calls()).await.unwrap_or(Ok(Vec::new()))?;
            if let Some(updates) = updates {
                results.into_iter().for_each(|result| updates.push(RunUpdate::ToolResult(result)));
            }
        }
        Ok(())
    }

    /// Runs calls by the tool runner. `later` is the number of calls of the same answer that are answered after them.
    async fn run_own_tools(
        &self,
        run: &mut Run<'_>,
        calls: Vec<ToolCall>,
        updates: Option<&Updates>,
        later: usize,
    ) -> Result<(), RunError> {
        let Some(tool_runner) = &self.tool_runner else { return Err(RunError::pending(calls)) };
        let count = calls.len().saturating_add(later);
        let results = calls.into_iter().enumerate().map(|(at, call)| async move {
            let id = call.id.clone();
            // A tool that panics has failed, as far as the model is told.
            let output = AssertUnwindSafe(async { tool_runner(call).await }).catch_unwind().await;
            (at, output.unwrap_or_else(|_| ToolOutput::failed("the tool panicked")).into_message(id))
        });
        let mut results = pin!(stream::iter(results).buffer_unordered(self.parallel_calls_max));
        let (mut done, mut left) = (Vec::new(), count);
        while let Some(Some((at, result))) = unless_stopped(updates, results.next()).await {
            if let Some(updates) = updates {
                updates.push(RunUpdate::ToolResult(result.clone()));
            }
            left = left.saturating_sub(1);
            done.push((at, result));
            // Other tools may run for long: what is there is not lost with them.
            if left > 0 && run.stores_per_call() {
                run.answer(done.drain(..).map(|(_, result)| result).collect())?;
                recorded(run.store_now().await)?;
            }
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        run.answer(done.into_iter().map(|(_, result)| result).collect())
    }

    /// Asks the model for one answer. A request that a service refuses in a way that can be helped is made again.
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
                // What was said could not be stored before the call. It is tried once more, at the end.
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
            // The service keeps nothing then, so that this is so once.
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
            // The run is abandoned, with what has arrived.
            None => return Ok(None),
            Some(Ok(None)) => recorded(run.finish_response().await)?,
            Some(Ok(Some(response))) => {
                // What was heard piece by piece is not said again.
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
                // A part of an answer is no refusal: it stays, and nothing is asked again.
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

/// A request that has no answer, and why. It may be made again.
type Refused = (RequestHandle, ClientError);

fn tell(updates: Option<&Updates>, events: &[RunEvent]) {
    if let Some(updates) = updates {
        updates.push_events(events);
    }
}

/// Gives this failure to the calls as their result.
fn report(
    run: &mut Run<'_>,
    updates: Option<&Updates>,
    calls: Vec<ToolCall>,
    failure: &str,
) -> Result<(), RunError> {
    let told = |call: ToolCall| ToolOutput::failed(failure).into_message(call.id);
    let results: Vec<_> = calls.into_iter().map(told).collect();
    if let Some(updates) = updates {
        results.iter().cloned().for_each(|result| updates.push(RunUpdate::ToolResult(result)));
    }
    run.answer(results)
}

/// Output of the future; `None` if its stream is stopped before.
async fn unless_stopped<T>(updates: Option<&Updates>, future: impl Future<Output = T>) -> Option<T> {
    match updates {
        Some(updates) => updates.unless_stopped(future).await,
        None => Some(future.await),
    }
}

/// Ends a run that has failed. Returns why, with the providers that failed beside it.
async fn failed(run: &mut Run<'_>, updates: Option<&Updates>, error: RunError) -> RunError {
    let ended = run.fail().await;
    after(run, updates, ended, error).await
}

/// Error of a run that has failed, and was ended in this way.
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
async fn ended_by(
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

/// An answer that could not be stored at once is recorded, and stored with what comes next.
fn recorded(done: Result<(), RunError>) -> Result<(), RunError> {
    match done {
        Err(RunError::Providers(_)) => Ok(()),
        done => done,
    }
}

/// A client that panics has failed; what the panic says is not repeated.
async fn unwinding<T>(answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    // What is lent to it is read only, or takes whole pieces.
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.unwrap_or_else(|_| Err("the client panicked".into()))
}
