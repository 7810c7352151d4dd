//! Compaction at the points of a run, and compaction on demand: both make a pass in the same way.

use core::mem::discriminant;
use std::sync::Arc;

use epitome_core::{Budget, Pass, Stamp};
use tracing::{Instrument, debug, debug_span, warn};

use super::due::{self, Measure};
use super::handles::handles_of_log;
use super::live::Run;
use super::pass::{Look, Passed, Remarks, Setup, Task, pass};
use super::served::service_managed;
use super::{Point, RunEvent, RunSettings, Skipped, render, scratch};
use crate::compaction::{
    Began, CompactionCx, CompactionOptions, CompactionOutcome, CompactionResult, Compactor, Discarded,
    LiveRequest,
};
use crate::history::{History, Pins};
use crate::provider::{ContextProvider, HistoryProvider, Providers, open_history};
use crate::session::{AgentSession, SessionContext, SessionError};

/// Compacts the stored history of a session now, whether or not a compaction is due.
///
/// The history is that of the only provider of `settings` that loads. If there is no history provider at all, there is
/// nothing to compact, and the result is (0, 0). Without a goal, the compactor decides how much stays.
///
/// ```
/// # use epitome_std::compaction::{CompactionOptions, CompactionResult, Held, MessagesCompactor};
/// # use epitome_std::provider::{ClosureProvider, Providers};
/// # use epitome_std::run::{RunSettings, compact};
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let last_two = MessagesCompactor::new("last two", |messages: Vec<Held>, _: CompactionOptions| async move {
///     let older = messages.len().saturating_sub(2);
///     Ok(messages.into_iter().skip(older).collect())
/// });
/// let mut session = AgentSession::new();
/// let settings = RunSettings::new("helper");
/// let result = compact(&settings, &mut session, &last_two, CompactionOptions::default()).await?;
/// assert_eq!((result.original_count, result.compacted_count), (0, 0), "nothing was said yet");
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// `Invalid` if the service keeps the session's history, or if there are history providers and none of them, or
/// several, load; otherwise the error of the compactor. The history is then as it was.
///
/// # Cancel safety
/// As [`Compactor`].
pub async fn compact(
    settings: &RunSettings,
    session: &mut AgentSession,
    compactor: &dyn Compactor,
    options: CompactionOptions,
) -> Result<CompactionResult, SessionError> {
    let Some(mut history) = stored_history(settings, session).await? else {
        return Ok(CompactionResult::new(0, 0));
    };
    history.set_pins(options.pins().clone())?;
    history.set_handles(handles_of_log(settings, &settings.tools));
    let (counted, stamp) = (history.index().tokens(), stamp_of(&history));
    let whole = due::budget(settings, session, Some(&options), None);
    let measure = Measure::of(session, settings.model_key(), whole, counted, stamp);
    let ledger = session.ledger_for(settings.model_key(), whole);
    let budget = due::plan_budget(&whole, &options, None, measure.size.tokens, counted, ledger);
    let kind = Pass::Manual;
    let task = Task { compactor, options: &options, whole, budget, kind, request: None, payback: None };
    let Passed { outcome, remarks, .. } = pass(&mut history, session, settings, task).await;
    if !remarks.losses.is_empty() {
        warn!(losses = remarks.losses.len(), "compacted without knowing all");
    }
    // An error may have come after the commit.
    if history.revision() != stamp.revision {
        session.note_compaction();
    }
    match outcome? {
        CompactionOutcome::Compacted(result) => Ok(result),
        CompactionOutcome::Unchanged(_) | CompactionOutcome::UnderWay | CompactionOutcome::DoesNotPay(_) => {
            let cx = CompactionCx::new(&mut history, budget, Pass::Manual);
            Ok(cx.result_since(cx.measure()))
        }
    }
}

/// Stored history of a session that a run would compact; `None` if there is no history provider.
pub(super) async fn stored_history(
    settings: &RunSettings,
    session: &mut AgentSession,
) -> Result<Option<History>, SessionError> {
    match compacted_provider(settings, session)? {
        Some(provider) => open_history(&provider, session).await.map(Some),
        None => Ok(None),
    }
}

/// The provider of the history that a run would compact; `None` if there is no history provider.
pub(super) fn compacted_provider(
    settings: &RunSettings,
    session: &mut AgentSession,
) -> Result<Option<HistoryProvider>, SessionError> {
    let context = SessionContext::new(session, "", Vec::new());
    session.counter = Some(Arc::clone(settings.counter()));
    compacted_of(&settings.providers.for_run(session, &context), session)
}

/// Provider of the history that a run with these providers would compact; `None` if there is no history provider.
pub(super) fn compacted_of(
    providers: &Providers,
    session: &AgentSession,
) -> Result<Option<HistoryProvider>, SessionError> {
    if session.service_session_id().is_some() {
        return Err(service_managed());
    }
    match (providers.primary_history(), skipped(providers)) {
        (Some(primary), _) => Ok(Some(primary.clone())),
        (None, Some(reason)) => Err(SessionError::invalid(format!("compact: {}", reason.as_str()))),
        (None, None) => Ok(None),
    }
}

impl Run<'_> {
    /// Checks the stored history, and compacts it if a compaction is due.
    pub(super) async fn compact_stored(&mut self, point: Point) {
        let Some(setup) = self.setup_at(point) else { return };
        if self.renews() {
            return;
        }
        let Some(primary) = self.primary_at(point) else { return };
        let source_id = primary.source_id();
        let history = match self.context.take_history(source_id) {
            Some(history) => Ok(history),
            None => open_history(&primary, self.session).await,
        };
        let pinned = history.and_then(|mut history| {
            history.set_pins(setup.auto.options.pins().clone())?;
            history.set_handles(handles_of_log(self.settings, self.context.tools()));
            Ok(history)
        });
        let mut history = match pinned {
            Ok(history) => history,
            Err(error) => return self.failed(point, &error),
        };
        let (counted, stamp) = (self.counted(history.index().tokens(), point), stamp_of(&history));
        let look = Look::at(self.session, self.settings, &setup, history.index(), counted, stamp);
        let mut budget = look.budget;
        if !self.is_due(point, &look) {
            let looks = look.begins_early(self.session, &setup.auto, stamp);
            if !looks || self.begin_early(point, &setup, &mut history, (&look, None)) != Began::Come {
                return self.context.put_history(source_id, history);
            }
            budget = look.early_budget;
        }
        let task = Task::of(&setup, budget, Pass::Proactive, None);
        let Passed { outcome, remarks, discarded, .. } =
            pass(&mut history, self.session, self.settings, task)
                .instrument(debug_span!("compaction", point = point.as_str()))
                .await;
        self.tell_discarded(point, discarded);
        let compacted = history.revision() != stamp.revision;
        // After a failure the state of this handle is unknown: the next user loads the history again.
        if outcome.is_ok() {
            self.context.put_history(source_id, history);
        }
        self.note(point, compacted, outcome, remarks);
    }

    /// Checks the whole request, and compacts it if a compaction is due.
    pub(super) async fn compact_request(&mut self) {
        if self.renews() {
            self.renew(false).await;
            return;
        }
        let point = Point::BeforeCall;
        let Some(setup) = self.setup_at(point) else { return };
        if self.primary_at(point).is_none() {
            return;
        }
        let (index, stamp) = (self.working.index(), self.working.stamp());
        let counted = self.request_tokens();
        let look = Look::at(self.session, self.settings, &setup, index, counted, stamp);
        let mut budget = look.budget;
        if !self.is_due(point, &look) {
            let looks = look.begins_early(self.session, &setup.auto, stamp);
            if !looks || self.begin_over_request(&setup, &look).await != Began::Come {
                return;
            }
            budget = look.early_budget;
        }
        match self.pass_over_request(&setup, budget, Pass::Proactive).await {
            Ok((compacted, outcome, remarks)) => self.note(point, compacted, Ok(outcome), remarks),
            Err(error) => self.failed(point, &error),
        }
    }

    /// Makes a pass over the whole request. Returns whether the request is smaller then.
    pub(super) async fn pass_over_request(
        &mut self,
        setup: &Setup,
        budget: Budget,
        kind: Pass,
    ) -> Result<(bool, CompactionOutcome, Remarks), SessionError> {
        let point = Point::BeforeCall;
        let request = Some(Arc::new(self.live_request()));
        let task = Task::of(setup, budget, kind, request);
        async {
            let mut history = self.copy(setup.auto.options.pins()).await?;
            let Passed { compactor, outcome, remarks, discarded } =
                pass(&mut history, self.session, self.settings, task).await;
            self.tell_discarded(point, discarded);
            Ok((scratch::adopt(&mut self.working, &history, &compactor)?, outcome?, remarks))
        }
        .instrument(debug_span!("compaction", point = point.as_str()))
        .await
    }

    /// Copies the whole request into a history.
    pub(super) async fn copy(&self, pins: &Pins) -> Result<History, SessionError> {
        let primary = self.providers.primary_history().map(ContextProvider::source_id);
        let stored = primary.and_then(|source_id| self.context.history(source_id));
        let mut copy = scratch::history_of(&self.working, pins, stored).await?;
        copy.set_handles(self.handles());
        Ok(copy)
    }

    /// Begins a compaction of the whole request before it is due.
    async fn begin_over_request(&mut self, setup: &Setup, look: &Look) -> Began {
        let (point, request) = (Point::BeforeCall, Some(Arc::new(self.live_request())));
        match self.copy(setup.auto.options.pins()).await {
            Ok(mut history) => {
                // Nothing has changed the copy, but the original may have changed: the work is for the revision of the
                // original.
                let began = self.begin_early(point, setup, &mut history, (look, request));
                self.session.begun.holds_at(self.working.stamp().revision);
                began
            }
            Err(error) => {
                self.failed(point, &error);
                Began::Nothing
            }
        }
    }

    fn begin_early(
        &mut self,
        point: Point,
        setup: &Setup,
        history: &mut History,
        (look, request): (&Look, Option<Arc<LiveRequest>>),
    ) -> Began {
        let task = Task::of(setup, look.early_budget, Pass::Proactive, request);
        let _span = debug_span!("early", point = point.as_str()).entered();
        let mut cx = task.cx(history, self.session, self.settings);
        if !look.early {
            cx = cx.for_what_has_come();
        }
        let (began, discarded) = (setup.auto.compactor.begin(&mut cx), cx.discarded());
        self.tell_discarded(point, discarded);
        if began == Began::Now {
            self.tell(RunEvent::Begun { point });
        }
        began
    }

    fn tell_discarded(&mut self, point: Point, why: Option<Discarded>) {
        if let Some(why) = why {
            self.tell(RunEvent::Discarded { point, why });
        }
    }

    /// The request that the run would send now.
    fn live_request(&self) -> LiveRequest {
        let (messages, _) = render::legal(self.settings.profile(), self.settings.model(), &self.projection());
        LiveRequest::new(messages, self.settings.model())
            .with_tools(self.context.tools().to_vec())
            .with_options(self.context.options().clone())
    }

    /// The compaction at this point of the run, if it is configured for the point.
    fn setup_at(&mut self, point: Point) -> Option<Setup> {
        let points = self.compaction.as_ref()?.points;
        let on = match point {
            Point::BeforeRun => points.before_run(),
            Point::BeforeCall => points.before_call() || self.settings.is_limit_enforced,
            Point::AfterRun => points.after_run(),
        };
        if on { self.setup(point) } else { None }
    }

    /// The compaction with the payback rule and the budget of this point, if there is a compaction.
    pub(super) fn setup(&mut self, point: Point) -> Option<Setup> {
        let auto = self.compaction.clone()?;
        let payback = self.payback_at(point);
        if auto.payback.is_some() && payback.is_none() {
            self.tell_once(RunEvent::NoPrices);
        }
        Some(Setup { auto, payback, budget: self.budget() })
    }

    /// The provider whose history is compacted. If no history may be compacted, the run reports the reason once.
    fn primary_at(&mut self, point: Point) -> Option<HistoryProvider> {
        match self.primary() {
            Ok(primary) => primary.cloned(),
            Err(reason) => {
                debug!(point = point.as_str(), "no compaction");
                self.tell_once(RunEvent::Skipped(reason));
                None
            }
        }
    }

    /// The provider whose history is compacted; `None` if there is no history at all.
    pub(super) fn primary(&self) -> Result<Option<&HistoryProvider>, Skipped> {
        let reason =
            if self.served.is_kept() { Some(Skipped::ServiceManaged) } else { skipped(&self.providers) };
        reason.map_or_else(|| Ok(self.providers.primary_history()), Err)
    }

    /// The size of a request with a history of `stored` tokens, as far as it is known outside of the run's index.
    fn counted(&self, stored: u64, point: Point) -> u64 {
        let input = if point == Point::BeforeRun { self.input_tokens } else { 0 };
        stored
            .saturating_add(self.tokens_beside)
            .saturating_add(self.instruction_tokens)
            .saturating_add(input)
    }

    /// Whether a pass is to be made now. Reports once that the limit is near.
    pub(super) fn is_due(&mut self, point: Point, look: &Look) -> bool {
        let size = look.size;
        let _trigger = debug_span!("trigger", point = point.as_str(), size).entered();
        if let Some(fired) = &look.fired {
            debug!(%fired, waits = look.wait.is_some(), "compaction is due");
            if let Some(wait) = look.wait {
                self.tell_once(RunEvent::Resting { point, wait });
            }
            return look.wait.is_none();
        }
        debug!("compaction is not due");
        if let Some(nearest) = look.near {
            self.tell_once(RunEvent::NearLimit { point, size, nearest });
        }
        false
    }

    pub(super) fn note(
        &mut self,
        point: Point,
        compacted: bool,
        outcome: Result<CompactionOutcome, SessionError>,
        remarks: Remarks,
    ) {
        let now = self.session.requests;
        if compacted {
            let Remarks { losses, fell_back } = remarks;
            if !losses.is_empty() {
                self.tell(RunEvent::NotTold { point, losses });
            }
            if let Some(fell_back) = fell_back {
                self.tell(RunEvent::FellBack { point, fell_back });
            }
            self.session.note_compaction();
            self.session.pacing.compacted(now);
        }
        match outcome {
            Ok(CompactionOutcome::Compacted(result)) => self.tell(RunEvent::Compacted { point, result }),
            Ok(CompactionOutcome::Unchanged(reason)) => self.tell(RunEvent::Unchanged { point, reason }),
            Ok(CompactionOutcome::UnderWay) => self.tell_once(RunEvent::UnderWay { point }),
            Ok(CompactionOutcome::DoesNotPay(payback)) => {
                self.tell_once(RunEvent::DoesNotPay { point, payback });
            }
            Err(error) => self.failed(point, &error),
        }
    }

    /// Reports the event, unless the run has reported one of its kind.
    pub(super) fn tell_once(&mut self, event: RunEvent) {
        if !self.events.iter().any(|told| discriminant(told) == discriminant(&event)) {
            self.tell(event);
        }
    }

    pub(super) fn failed(&mut self, point: Point, error: &SessionError) {
        self.session.pacing.failed(self.session.requests);
        self.tell(RunEvent::Failed { point, kind: error.kind(), reason: error.to_string() });
    }
}

/// The reason why no history of these providers is compacted; `None` if one is, or if there is no history at all.
fn skipped(providers: &Providers) -> Option<Skipped> {
    let loaders = providers.histories().filter(|history| history.loads()).count();
    match loaders {
        0 => providers.histories().next().map(|_| Skipped::NoLoader),
        1 => None,
        _ => Some(Skipped::SeveralLoaders),
    }
}

fn stamp_of(history: &History) -> Stamp {
    Stamp::new(history.revision(), history.head())
}
