//! The tools that a run answers itself, and the line that reports the remaining tokens to the model. Searches are in
//! `recall`, passes in `compact`.

use epitome_core::message::Role;
use epitome_core::{Pass, TriggerView, count_message};

use super::due;
use super::live::Run;
use super::pass::Setup;
use super::{ApprovalState, Point, RecallTool, RunError, RunEvent};
use crate::compaction::{AutoCompaction, CompactTool, CompactionOutcome, OWN_TOOLS};
use crate::message::{Message, Part, Str, ToolCall, ToolResult};
use crate::session::Tool;

/// The first tenth of the limit at which the model reads how many tokens are left. Each further tenth reports it again.
const TENTH_MIN: u64 = 5;

impl Run<'_> {
    /// Adds the tools that the run answers itself. A tool of the caller or of a provider with the same name takes
    /// precedence.
    pub(super) fn add_own_tools(&mut self) {
        let compacts = self.offers().is_some().then(CompactTool::definition);
        let recalls = self.settings.recall.then(RecallTool::definition);
        for own in compacts.into_iter().chain(recalls) {
            if !self.context.tools().iter().any(|tool| tool.name == own.name) {
                self.context.extend_tools(OWN_TOOLS, [own]);
            }
        }
    }

    /// Answers the calls of [`CompactTool`] and [`RecallTool`] that wait for a result, and returns the results.
    /// [`Agent`](crate::agent::Agent) calls this method by itself. A call whose approval is requested or denied is left
    /// out.
    ///
    /// *Compaction*: the whole request is compacted, and the result tells the model the sizes before and after. The
    /// goal is that of the options, or half of the size of the request, if that is less. The group of the call stays.
    /// If the last compaction was a moment ago ([`AutoCompaction::spacing`]), or if the compaction fails or changes
    /// nothing, the result reports this.
    ///
    /// # Errors
    /// [`RunError::Misuse`] as [`Run::answer`].
    ///
    /// # Cancel safety
    /// The calls have results, or can be answered again. Compactions stay in force.
    pub async fn run_own_calls(&mut self) -> Result<Vec<Message>, RunError> {
        self.check_idle()?;
        let mut results = Vec::new();
        let mut calls = self.pending_calls();
        calls.retain(|call| {
            let must_not_run =
                [ApprovalState::Requested, ApprovalState::Denied].contains(&self.approval_of(call));
            self.answers_call(call) && !must_not_run
        });
        let mut was_compacted = false;
        for call in calls {
            let done = match call.name.as_str() {
                // One compaction is enough for all calls of an answer.
                CompactTool::NAME if was_compacted => Ok(A_MOMENT_AGO.into()),
                CompactTool::NAME => {
                    was_compacted = true;
                    self.compact_for(&call).await
                }
                _ => self.recall_for(&call).await,
            };
            let (text, is_error) = match done {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            let mut result = ToolResult::new(call.id, vec![Part::Text(text)]);
            result.is_error = is_error;
            let result = Message::new(Role::Tool, vec![Part::ToolResult(result)]);
            self.say(vec![result.clone()]);
            results.push(result);
        }
        Ok(results)
    }

    /// Whether a call is one that the run answers by itself.
    pub(crate) fn answers_call(&self, call: &ToolCall) -> bool {
        let is_ours = match call.name.as_str() {
            CompactTool::NAME => self.offers().is_some(),
            RecallTool::NAME => self.settings.recall,
            _ => false,
        };
        let is_own = |tool: &Tool| tool.name == call.name && tool.context_source() == Some(OWN_TOOLS);
        is_ours && self.context.tools().iter().any(is_own)
    }

    /// The compaction of the run, if the model may ask for it.
    fn offers(&self) -> Option<&AutoCompaction> {
        self.compaction.as_ref().filter(|auto| auto.is_tool)
    }

    /// Compacts for a call of [`CompactTool`]. Both texts are for the model.
    async fn compact_for(&mut self, call: &ToolCall) -> Result<Str, Str> {
        let point = Point::BeforeCall;
        if !matches!(self.primary(), Ok(Some(_))) {
            return Err("Nothing was compacted: this conversation is stored elsewhere.".into());
        }
        let Some(mut setup) = self.setup(point) else { return Err("Nothing was compacted.".into()) };
        let size = self.size();
        let view = TriggerView::new(self.working.index(), &setup.budget, size);
        let pacing = self.session.pacing.with_spacing(setup.auto.spacing);
        if pacing.permits(self.session.requests, &view).is_err() {
            return Ok(A_MOMENT_AGO.into());
        }
        let goal = setup.auto.options.goal().map_or(size / 2, |goal| goal.min(size / 2));
        setup.auto.options = setup.auto.options.clone().with_goal(goal);
        if let Some(focus) = CompactTool::focus(call) {
            let focus = match setup.auto.options.focus() {
                Some(own) => {
                    format!("{own}\nThe model asks to keep, where there is room: {}", focus.as_str()).into()
                }
                None => focus,
            };
            setup.auto.options = setup.auto.options.clone().with_focus(focus);
        }
        let whole = setup.budget;
        let ledger = self.session.ledger_for(self.settings.model_key(), whole);
        let tokens = self.working.index().tokens();
        let budget = due::plan_budget(&whole, &setup.auto.options, None, size, tokens, ledger);
        let (compacted, outcome, remarks) = match self.pass_over_request(&setup, budget, Pass::Manual).await {
            Ok(passed) => passed,
            // This failure does not delay compactions that are due.
            Err(error) => {
                self.tell(RunEvent::Failed { point, kind: error.kind(), reason: error.to_string() });
                return Err("Nothing was compacted: the compaction has failed. Go on with the work.".into());
            }
        };
        let unchanged = match &outcome {
            CompactionOutcome::Unchanged(reason) => reason.as_str().replace('_', " "),
            _ => "there is too little to gain".into(),
        };
        let is_made = compacted && matches!(outcome, CompactionOutcome::Compacted(_));
        self.note(point, compacted, Ok(outcome), remarks);
        Ok(match is_made {
            true => {
                let left = self.size();
                format!("Compacted from {size} tokens. {}", room(left, self.limit(&setup))).into()
            }
            false => format!("Nothing was compacted: {unchanged}. Go on with the work.").into(),
        })
    }

    /// Adds the number of remaining tokens to the last tool result of `messages`, if the request with them reaches
    /// another tenth of its limit.
    ///
    /// The line is a part of the result from then on, so that later requests begin with the same bytes.
    pub(super) fn tell_room(&mut self, messages: &mut [Message]) {
        if self.offers().is_none() || !matches!(self.primary(), Ok(Some(_))) {
            return;
        }
        let is_result = |message: &&mut Message| matches!(message.parts().last(), Some(Part::ToolResult(_)));
        let counter = &**self.settings.counter();
        let added: u64 = messages.iter().map(|message| count_message(message, counter).as_u64()).sum();
        let Some(message) = messages.iter_mut().rev().find(is_result) else { return };
        let Some(setup) = self.setup(Point::BeforeCall) else { return };
        let size = self.size().saturating_add(added);
        let limit = self.limit(&setup);
        let tenth = size.saturating_mul(10).checked_div(limit).unwrap_or_default();
        if tenth < TENTH_MIN || tenth <= self.session.tenth_told {
            return;
        }
        self.session.tenth_told = tenth;
        let text = Part::Text(room(size, limit).into());
        let mut parts = message.parts().to_vec();
        if let Some(Part::ToolResult(result)) = parts.last_mut() {
            result.parts = result.parts.iter().cloned().chain([text]).collect();
        }
        *message = message.clone().with_parts(parts);
    }

    /// The size at which a compaction is due, or the limit of the request.
    fn limit(&self, setup: &Setup) -> u64 {
        let (whole, index) = (&setup.budget, self.working.index());
        let fires = |size: u64| {
            let view = TriggerView::new(index, whole, size).with_token_count(size);
            setup.auto.trigger.is_due(&view)
        };
        // A trigger by size fires at all sizes above a threshold: find the threshold by bisection.
        let (mut below, mut above) = (0, whole.limit());
        if fires(below) || !fires(above) {
            return above;
        }
        while above.saturating_sub(below) > 1 {
            let middle = below.midpoint(above);
            if fires(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        below
    }
}

/// Result for a model that asks for compactions too often.
const A_MOMENT_AGO: &str =
    "Nothing was compacted: the last compaction was a moment ago. Go on with the work.";

/// The line that reports the remaining tokens to the model.
fn room(size: u64, limit: u64) -> String {
    format!("[context: {size} of {limit} tokens are used; {} are left]", limit.saturating_sub(size))
}
