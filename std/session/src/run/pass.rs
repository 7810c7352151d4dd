//! The check whether a compaction is due or should begin, and one pass of a compactor.

use core::panic::AssertUnwindSafe;
use std::sync::Arc;

use epitome_core::{Budget, Fired, Index, ModelKey, Pass, Stamp, Trigger, TriggerView, Wait};
use futures::FutureExt;
use tracing::debug;

use super::RunSettings;
use super::due::{self, Measure};
use crate::compaction::{
    AutoCompaction, BeforeCompaction, CompactionCx, CompactionOptions, CompactionOutcome, Compactor,
    Discarded, FellBack, LiveRequest, PaybackRule, UnchangedReason,
};
use crate::history::History;
use crate::message::Str;
use crate::models::Cache;
use crate::session::{AgentSession, SessionError};
use crate::wire::ConversionLoss;

/// A run's compaction at one of its points.
pub(super) struct Setup {
    pub(super) auto: AutoCompaction,
    /// The rule that a compaction has to pay, as it stands at this point.
    pub(super) payback: Option<PaybackRule>,
    /// The budget of the whole request.
    pub(super) budget: Budget,
}

/// Result of checking the trigger on a request.
pub(super) struct Look {
    /// Size of the whole request, in the provider's tokens.
    pub(super) size: u64,
    pub(super) fired: Option<Fired>,
    pub(super) near: Option<Fired>,
    /// Budget that a pass over the index has to reach.
    pub(super) budget: Budget,
    /// Budget of a pass that is begun now and made when it is due.
    pub(super) early_budget: Budget,
    /// Whether early work should begin now, if none is under way.
    pub(super) early: bool,
    model: ModelKey,
    /// The reason why a due compaction has to wait: its spacing, failed passes, or an undone one.
    pub(super) wait: Option<Wait>,
}

impl Look {
    /// Checks a request of `counted` tokens. `index` is the part that may be compacted.
    pub(super) fn at(
        session: &mut AgentSession,
        settings: &RunSettings,
        setup: &Setup,
        index: Index<'_>,
        counted: u64,
        stamp: Stamp,
    ) -> Self {
        let (Setup { auto, payback, budget: whole }, model) = (setup, settings.model_key());
        let measure = Measure::of(session, model, *whole, counted, stamp);
        let view = TriggerView::new(index, whole, measure.size.tokens);
        let wait = session.pacing.with_spacing(auto.spacing).permits(session.requests, &view).err();
        let own = || measure.fired_by(auto.condition.as_ref().filter(|_| wait.is_none())?, index, whole);
        let mut fired = measure.fired(&auto.trigger, index, whole).or_else(own);
        if settings.is_limit_enforced || due::told_window(settings, session).is_some() {
            // A trigger that was set for a larger window, or for something else, would let the request grow over its limit.
            fired = fired.or_else(|| measure.fired(&Trigger::tokens(whole.limit()), index, whole));
        }
        let near = measure.near(&auto.trigger, index, whole);
        let (size, ledger) = (measure.size.tokens, session.ledger_for(model, *whole));
        // With an expired cache all tokens are paid for anew: a compacted request is better.
        let is_cold = payback.is_some_and(|rule| rule.cache == Cache::Cold);
        let begins = auto.compactor.begins_early();
        let (mut due, mut early, mut early_budget) = (fired, false, None);
        if fired.is_none() && (is_cold || begins) {
            let line = auto.early.map_or(near, |it| measure.fired(&it, index, whole));
            due = measure.when_large(&auto.trigger, index, whole);
            fired = line.filter(|_| is_cold);
            early = begins && line.is_some();
            early_budget =
                Some(due::early_budget(whole, &auto.options, due.as_ref(), size, index.tokens(), ledger));
        }
        let budget = due::plan_budget(
            whole,
            &auto.options,
            fired.and(due.or(fired)).as_ref(),
            size,
            index.tokens(),
            ledger,
        );
        let early_budget = early_budget.unwrap_or(budget);
        Self { size, fired, near, budget, early_budget, early, model, wait }
    }

    /// Whether to begin early work now, or to check work that was begun.
    pub(super) fn begins_early(&self, session: &AgentSession, auto: &AutoCompaction, stamp: Stamp) -> bool {
        let has_come = auto.compactor.has_come(&session.begun);
        let looks = self.early && !session.begun.is_current(Some(self.model), stamp.revision);
        (looks || has_come) && self.wait.is_none()
    }
}

/// One pass of a compactor.
pub(super) struct Task<'a> {
    pub(super) compactor: &'a dyn Compactor,
    pub(super) options: &'a CompactionOptions,
    /// The budget of the whole request.
    pub(super) whole: Budget,
    /// Budget that the pass has to reach.
    pub(super) budget: Budget,
    pub(super) kind: Pass,
    pub(super) request: Option<Arc<LiveRequest>>,
    pub(super) payback: Option<PaybackRule>,
}

/// Result of a pass.
pub(super) struct Passed {
    /// The name of the compactor that made it.
    pub(super) compactor: Str,
    pub(super) outcome: Result<CompactionOutcome, SessionError>,
    pub(super) remarks: Remarks,
    /// The reason why early work is not used.
    pub(super) discarded: Option<Discarded>,
}

/// Remarks of a compactor about its outcome.
pub(super) struct Remarks {
    pub(super) losses: Vec<ConversionLoss>,
    pub(super) fell_back: Option<FellBack>,
}

impl<'a> Task<'a> {
    pub(super) fn of(
        setup: &'a Setup,
        budget: Budget,
        kind: Pass,
        request: Option<Arc<LiveRequest>>,
    ) -> Self {
        let Setup { auto, payback, budget: whole } = setup;
        let (compactor, payback) = (&*auto.compactor, *payback);
        Self { compactor, options: &auto.options, whole: *whole, budget, kind, request, payback }
    }

    pub(super) fn cx<'c>(
        self,
        history: &'c mut History,
        session: &'c mut AgentSession,
        settings: &RunSettings,
    ) -> CompactionCx<'c> {
        CompactionCx::new(history, self.budget, self.kind)
            .with_options(self.options.clone())
            .with_model(settings.model())
            .with_model_key(settings.model_key())
            .with_request(self.request)
            .with_payback(self.payback)
            .with_costs(session.costs.clone())
            .with_begun(&mut session.begun)
    }
}

/// One pass over a history: the only place that calls a compactor.
pub(super) async fn pass(
    history: &mut History,
    session: &mut AgentSession,
    settings: &RunSettings,
    task: Task<'_>,
) -> Passed {
    let (compactor, whole) = (task.compactor, task.whole);
    let mut cx = task.cx(history, session, settings);
    let before = cx.measure();
    debug!(compactor = compactor.name(), messages = before.0, tokens = before.1, "compaction");
    let mut name = Str::from(compactor.name());
    // A panic can leave only the handle of the history half changed, and the handle knows that it is in doubt.
    let done = AssertUnwindSafe(compact_by(compactor, &mut cx, &mut name)).catch_unwind().await;
    let remarks = Remarks { losses: cx.losses().to_vec(), fell_back: cx.fell_back().cloned() };
    let discarded = cx.discarded();
    // Records the costs in the ledger.
    session.ledger_for(settings.model_key(), whole);
    let outcome = done.unwrap_or_else(|_| Err(SessionError::invalid("the compactor panicked")));
    Passed { compactor: name, outcome, remarks, discarded }
}

/// Compacts as the hook of the options decides. `name` becomes the name of the replacing compactor, if there is one.
async fn compact_by(
    compactor: &dyn Compactor,
    cx: &mut CompactionCx<'_>,
    name: &mut Str,
) -> Result<CompactionOutcome, SessionError> {
    let decision = match cx.options().hook().cloned() {
        Some(hook) => hook.before(cx).await?,
        None => BeforeCompaction::Proceed,
    };
    match decision {
        BeforeCompaction::Proceed => compactor.compact(cx).await,
        BeforeCompaction::Veto(reason) => Ok(CompactionOutcome::Unchanged(UnchangedReason::Vetoed(reason))),
        BeforeCompaction::Replace(other) => {
            *name = Str::from(other.name());
            other.compact(cx).await
        }
    }
}
