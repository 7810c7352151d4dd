//! The loop from the model to tools and back.

use core::future::Future;
use core::ops::ControlFlow;
use core::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::{Agent, ChatRequest, ClientError, Input, SessionForgotten, SharedSession, ToolOutput};
use crate::message::{Message, Part, ToolCall};
use crate::run::{Delta, ModelResponse, Prompt, Run, RunError, RunOptions, RunOutcome};
use crate::session::AgentSession;

/// Looks at an answer while it arrives.
type Listener<'a> = dyn FnMut(&Delta) -> ControlFlow<()> + Send + 'a;

impl Agent {
    /// Runs: asks the model, runs the tools that it calls, and so on, until it calls none.
    ///
    /// # Errors
    /// [`RunError::Model`] if the client failed, and [`RunError::ToolRounds`] if the model does not stop calling tools:
    /// what was said is stored. Otherwise as [`Run::begin`], [`Run::prompt`] and [`Run::finish`]; a failure of the latter
    /// comes when the model has answered. A run with the same token then says [`RunError::AlreadyStored`] if the history
    /// that loads has stored it.
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

    /// The same, and `on_delta` sees the answers as they arrive. When it breaks, the run ends: what has arrived is stored,
    /// marked incomplete.
    ///
    /// # Errors
    /// As [`Agent::run`].
    ///
    /// # Cancel safety
    /// As [`Agent::run`].
    pub async fn run_streaming(
        &self,
        session: &mut AgentSession,
        input: impl Into<Input> + Send,
        options: &RunOptions,
        mut on_delta: impl FnMut(&Delta) -> ControlFlow<()> + Send,
    ) -> Result<RunOutcome, RunError> {
        self.drive(session, input.into(), options, Some(&mut on_delta)).await
    }

    /// The same on a session that others run on too.
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

    /// The same without a session: nothing is remembered of it but what providers keep elsewhere.
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

    async fn drive(
        &self,
        session: &mut AgentSession,
        input: Input,
        options: &RunOptions,
        mut listener: Option<&mut Listener<'_>>,
    ) -> Result<RunOutcome, RunError> {
        let mut run = Run::begin(&self.settings, session, input.into_messages(), options).await?;
        let mut rounds = 0_u32;
        loop {
            let calls = run.pending_calls();
            if !calls.is_empty() {
                if rounds >= self.tool_rounds_max {
                    run.fail().await?;
                    return Err(RunError::ToolRounds { rounds_max: self.tool_rounds_max });
                }
                rounds = rounds.saturating_add(1);
                self.run_tools(&mut run, calls).await?;
            }
            let stopped = match listener.as_deref_mut() {
                Some(listener) => self.ask_streaming(&mut run, options, listener).await?,
                None => self.ask(&mut run, options).await?,
            };
            if stopped.is_break() {
                return run.abandon().await;
            }
            if self.tool_runner.is_none() || run.pending_calls().is_empty() {
                return run.finish().await;
            }
        }
    }

    async fn run_tools(&self, run: &mut Run<'_>, calls: Vec<ToolCall>) -> Result<(), RunError> {
        let Some(tool_runner) = &self.tool_runner else { return Err(RunError::pending(calls)) };
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let id = call.id.clone();
            // A tool that panics has failed, as far as the model is told.
            let output = AssertUnwindSafe(async { tool_runner(call).await }).catch_unwind().await;
            results.push(output.unwrap_or_else(|_| ToolOutput::failed("the tool panicked")).into_message(id));
        }
        run.answer(results)
    }

    async fn ask(&self, run: &mut Run<'_>, options: &RunOptions) -> Result<ControlFlow<()>, RunError> {
        loop {
            let prompt = run.prompt().await?;
            let request = ChatRequest::new(&prompt, &options.options, &self.settings.model);
            match unwinding(async { self.client.complete(&request).await }).await {
                Ok(response) => {
                    run.record(prompt.handle, response).await?;
                    return Ok(ControlFlow::Continue(()));
                }
                // It keeps nothing then, so that this is so once.
                Err(error) if error.is::<SessionForgotten>() && run.can_send_anew() => {
                    run.forgotten(prompt.handle).await?;
                }
                Err(error) => {
                    run.fail().await?;
                    return Err(RunError::Model(error));
                }
            }
        }
    }

    async fn ask_streaming(
        &self,
        run: &mut Run<'_>,
        options: &RunOptions,
        listener: &mut Listener<'_>,
    ) -> Result<ControlFlow<()>, RunError> {
        loop {
            if let Some(stopped) = self.ask_piecemeal(run, options, &mut *listener).await? {
                return Ok(stopped);
            }
        }
    }

    /// Asks once; `None` if the service has forgotten what the request goes on from, and the next sends all.
    async fn ask_piecemeal(
        &self,
        run: &mut Run<'_>,
        options: &RunOptions,
        listener: &mut Listener<'_>,
    ) -> Result<Option<ControlFlow<()>>, RunError> {
        let Prompt { handle, messages, tools, service_session_id, .. } = run.prompt().await?;
        run.begin_response(handle)?;
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            options: &options.options,
            model: &self.settings.model,
            service_session_id: service_session_id.as_ref(),
        };
        let mut stopped = ControlFlow::Continue(());
        let mut sink = |delta: Delta| {
            if stopped.is_continue() && run.extend_response(&delta).is_ok() {
                stopped = listener(&delta);
            }
            stopped
        };
        let answer = unwinding(async { self.client.stream(&request, &mut sink).await }).await;
        match answer {
            _ if stopped.is_break() => return Ok(Some(stopped)),
            Ok(None) => run.finish_response().await?,
            Ok(Some(response)) => {
                for text in texts(&response) {
                    // It is whole: there is nothing left to stop.
                    let _ = listener(&Delta::text(text));
                }
                run.replace_response(response).await?;
            }
            Err(error) if error.is::<SessionForgotten>() && run.can_send_anew() => {
                if let Some(handle) = run.unanswered() {
                    run.forgotten(handle).await?;
                }
                return Ok(None);
            }
            Err(error) => {
                run.abandon().await?;
                return Err(RunError::Model(error));
            }
        }
        Ok(Some(stopped))
    }
}

/// A client that panics has failed; what the panic says is not repeated.
async fn unwinding<T>(answer: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    // What is lent to it is read only, or takes whole pieces.
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.unwrap_or_else(|_| Err("the client panicked".into()))
}

fn texts(response: &ModelResponse) -> impl Iterator<Item = &str> {
    response.messages.iter().flat_map(Message::parts).filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    })
}
