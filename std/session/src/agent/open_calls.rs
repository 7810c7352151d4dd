//! Calls of a run without a result: execution of the calls that run here, and results for the others.

use core::panic::AssertUnwindSafe;
use core::pin::pin;

use futures::{FutureExt, StreamExt, stream};

use super::call::{ended_by, recorded, unless_stopped};
use super::stream::{RunUpdate, Updates};
use super::{Agent, DENIED, INTERRUPTED, OpenCallAction, ToolOutput};
use crate::message::ToolCall;
use crate::run::{ApprovalState, Run, RunError};

impl Agent {
    /// Answers the calls of an earlier run that have no result and must not run. If the answer with a call was cut off,
    /// a request for approval may be missing: the call is reported as interrupted. [`OpenCallAction::Report`] reports
    /// all calls that may have run, but no call that waited for an approval or was denied.
    pub(super) async fn settle_open_calls(
        &self,
        run: &mut Run<'_>,
        updates: Option<&Updates>,
    ) -> Result<(), RunError> {
        let reports = self.open_calls == OpenCallAction::Report;
        let mut calls = run.pending_calls();
        calls.retain(|call| {
            let is_unrun = run.waited_for_approval(call) || run.approval_of(call) == ApprovalState::Denied;
            run.is_cut_off(call) || reports && !is_unrun
        });
        report(run, updates, calls, INTERRUPTED)?;
        // After a crash the next run has to know that an allowed call may have run.
        let is_new = |call: &ToolCall| {
            run.waited_for_approval(call) && run.approval_of(call) == ApprovalState::Approved
        };
        if !(reports || run.stores_per_call()) || !run.pending_calls().iter().any(is_new) {
            return Ok(());
        }
        match run.store_now().await {
            Err(RunError::Providers(failures)) => Err(ended_by(run, updates, failures, None).await),
            stored => stored,
        }
    }

    /// Whether the call can be answered here, now.
    pub(super) fn can_answer(&self, run: &Run<'_>, call: &ToolCall) -> bool {
        match run.approval_of(call) {
            ApprovalState::Requested => false,
            ApprovalState::Denied => true,
            _ => self.tool_runner.is_some() || run.answers_call(call),
        }
    }

    /// Gives each of these calls a result, all of which [can be answered](Self::can_answer).
    pub(super) async fn run_tools(
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
            self.ask_tool_runner(run, calls, updates, own.len()).await?;
        }
        if !own.is_empty() {
            let results = unless_stopped(updates, run.run_own_calls()).await.unwrap_or(Ok(Vec::new()))?;
            if let Some(updates) = updates {
                results.into_iter().for_each(|result| updates.push(RunUpdate::ToolResult(result)));
            }
        }
        Ok(())
    }

    /// Runs calls with the tool runner. `later` is the number of calls of the same answer that are answered after them.
    async fn ask_tool_runner(
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
            // The model reads a panic of a tool as a failure of the tool.
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
            // Other tools may run for long: store the results so far, so that they are not lost with them.
            if left > 0 && run.stores_per_call() {
                run.answer(done.drain(..).map(|(_, result)| result).collect())?;
                recorded(run.store_now().await)?;
            }
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        run.answer(done.into_iter().map(|(_, result)| result).collect())
    }
}

/// Answers the calls with this failure as their result.
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
