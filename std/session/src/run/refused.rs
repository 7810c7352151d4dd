//! A request that is too long: over an enforced limit, or refused by the provider because it is longer than the model's
//! window. This module records the reported window, and decides how much is compacted before the request is made again.
//! A pass is made in `compact`.

use epitome_core::{Budget, Pass, Usage};

use super::due::{self, Measure};
use super::live::Run;
use super::pass::Setup;
use super::{Point, RequestHandle, RunError, RunEvent, Skipped};
use crate::session::{SessionError, SessionErrorKind};
use crate::wire::ContextOverflow;

/// The smallest window that a refusal may report, in tokens. Models take more; a smaller number in a refusal means
/// something else.
const WINDOW_MIN: u64 = 1_024;

impl Run<'_> {
    /// Compacts the request of this handle, because the provider has refused it as too large. Then call [`Run::prompt`]
    /// again.
    ///
    /// `overflow` has the numbers of the refusal: see [`context_overflow`](crate::wire::context_overflow). A limit that
    /// is smaller than the known window holds for the later runs of the session with this model, until a larger request
    /// is answered. If the refusal names no limit, or one that cannot be reached, the limit is taken to be less than
    /// the size of the request.
    ///
    /// The goal is at most half of the limit, if that can be reached. If the protected messages do not fit beside the
    /// reserve for the answer, the reserve is given up, unless the settings [enforce the
    /// limit](super::RunSettings::with_enforced_limit). After each further refusal of the request, the limit is taken
    /// to be half of the size of the request.
    ///
    /// The run needs a compactor; its points do not matter. If a service keeps the conversation and can compact it, the
    /// run asks the service to compact.
    ///
    /// # Errors
    /// [`RunError::Misuse`] as [`Run::record`], if the run has no compactor, if no history or more than one could be
    /// compacted, or if the limit of the answer takes the whole window. [`RunError::Session`] if the compactor failed,
    /// or found nothing to gain (`Infeasible`): the run may be ended with [`Run::fail`].
    ///
    /// # Cancel safety
    /// The request is as it was, or compacted. Call [`Run::prompt`] again.
    pub async fn refused(
        &mut self,
        handle: RequestHandle,
        overflow: ContextOverflow,
    ) -> Result<(), RunError> {
        self.check_idle()?;
        self.check_handle(&handle)?;
        let size = self.size();
        self.tell(RunEvent::Refused { size, overflow });
        self.learn_window(overflow);
        if overflow.answer_max.is_some() && overflow.room() == Some(0) {
            return Err(RunError::Misuse(
                "the answer may have the whole window: lower the limit of the answer",
            ));
        }
        let nothing = SessionError::new(SessionErrorKind::Infeasible, "refused: there is nothing to compact");
        if self.can_renew() {
            return if self.renew(true).await { Ok(()) } else { Err(nothing.into()) };
        }
        let point = Point::BeforeCall;
        let Some(setup) = self.setup(point) else {
            return Err(RunError::Misuse("nothing can be compacted: the run has no compactor"));
        };
        match self.primary() {
            Ok(Some(_)) => {}
            Ok(None) => return Err(RunError::Misuse(Skipped::NoLoader.as_str())),
            Err(reason) => return Err(RunError::Misuse(reason.as_str())),
        }
        // A limit that cannot be reached may be a wrong one; and a short answer is better than none.
        let (reserve, unknown) = (setup.auto.options.reserve(), ContextOverflow::default());
        let told = Some((overflow, reserve)).filter(|_| overflow.limit.is_some());
        // An enforced limit leaves the reserve free.
        let whole = Some((overflow, Some(0))).filter(|_| !self.settings.is_limit_enforced);
        let mut failed = None;
        for (overflow, reserve) in told.into_iter().chain([(unknown, reserve)]).chain(whole) {
            let budget = self.overflow_budget(&setup, size, overflow, reserve);
            match self.pass_over_request(&setup, budget, Pass::Overflow).await {
                Ok((compacted, outcome, remarks)) => {
                    self.note(point, compacted, Ok(outcome), remarks);
                    if compacted {
                        self.refusals = self.refusals.saturating_add(1);
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == SessionErrorKind::Infeasible => failed = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(failed.unwrap_or(nothing).into())
    }

    /// Fails if the next request is over its limit and the settings enforce that.
    pub(super) fn check_limit(&mut self) -> Result<(), RunError> {
        if !self.settings.is_limit_enforced {
            return Ok(());
        }
        let (size, limit) = (self.size(), self.budget().limit());
        if size > limit { Err(RunError::OverLimit { size, limit }) } else { Ok(()) }
    }

    /// Forgets the reported window if the provider has answered a larger request.
    pub(super) fn unlearn_window(&mut self, usage: &Usage) {
        let told = due::told_window(self.settings, self.session);
        if told.zip(usage.request_size()).is_some_and(|(told, size)| size > told) {
            self.session.window_told = None;
        }
    }

    /// Records the limit that the provider has reported, if it is smaller than the known window, and not so small that
    /// it means something else.
    fn learn_window(&mut self, overflow: ContextOverflow) {
        let known = self.budget().window();
        if let Some(limit) = overflow.limit.filter(|limit| (WINDOW_MIN..known).contains(limit)) {
            self.session.window_told = Some((self.settings.model_key(), limit));
        }
    }

    /// The size of the next request, in the provider's tokens.
    pub(super) fn size(&mut self) -> u64 {
        let (model, counted, stamp) =
            (self.settings.model_key(), self.request_tokens(), self.working.stamp());
        let budget = self.budget();
        Measure::of(self.session, model, budget, counted, stamp).size.tokens
    }

    /// Budget of a compaction after the refusal of a request of `size` tokens.
    fn overflow_budget(
        &mut self,
        setup: &Setup,
        size: u64,
        overflow: ContextOverflow,
        reserve: Option<u64>,
    ) -> Budget {
        let options = &setup.auto.options;
        let told = overflow.room().map(|limit| match overflow.sent {
            // The provider counts more tokens than this run: scale its limit down to the tokens of this run.
            Some(sent) if sent > size => scaled(limit, size, sent),
            _ => limit,
        });
        let known = self.settings.budget_under(Some(options)).window();
        let window = told.unwrap_or_else(|| size.saturating_sub(1)).min(known);
        // A compacted request that is refused again has to fit half of its size.
        let window = if self.refusals == 0 { window } else { window.min(size / 2) };
        let whole = self.settings.budget_of(window, reserve, None);
        let half = whole.limit().min(size.saturating_sub(1)) / 2;
        let options = options.clone().with_goal(options.goal().map_or(half, |goal| goal.min(half)));
        let tokens = self.working.index().tokens();
        let ledger = self.session.ledger_for(self.settings.model_key(), setup.budget);
        due::plan_budget(&whole, &options, None, size, tokens, ledger)
    }
}

/// `amount` by the ratio of `numerator` to `denominator`, rounded down.
fn scaled(amount: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
