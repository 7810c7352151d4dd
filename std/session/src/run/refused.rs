//! A request that is too long: over an enforced limit, or refused by the provider because it is longer than the model's window. What is
//! learned of the window stands here, and how much is compacted before the request is made again; how a pass is made stands in `compact`.

use epitome_core::{Budget, Pass, Usage};

use super::due::{self, Measure};
use super::live::Run;
use super::pass::Setup;
use super::{Point, RequestHandle, RunError, RunEvent, Skipped};
use crate::session::{SessionError, SessionErrorKind};
use crate::wire::ContextOverflow;

/// The smallest window that is believed, in tokens. Models take more; a smaller number in a refusal is that of something else.
const WINDOW_MIN: u64 = 1_024;

impl Run<'_> {
    /// Compacts what is sent, because the provider has refused the request of this handle as too large. Then ask for
    /// another prompt.
    ///
    /// `overflow` is what the refusal says: see [`context_overflow`](crate::wire::context_overflow). A limit that is smaller than the
    /// known window is kept in mind for the later runs of the session with this model, until a request that was larger is answered.
    /// Where the refusal names no limit, or one that cannot be reached, it is taken to be less than was sent. What is left is half of
    /// the limit at most, if that can be reached. If the protected messages do not fit beside the reserve for the answer, the reserve is
    /// given up, unless the settings [enforce the limit](super::RunSettings::with_enforced_limit). After each further refusal of the
    /// request, the limit is taken to be half of what was sent. It needs a compactor, and does not ask at which points it runs. If a service keeps the conversation and can compact it, it
    /// is asked to.
    ///
    /// # Errors
    /// [`RunError::Misuse`] as [`Run::record`], or if the run has no compactor. [`RunError::Session`] if the compactor
    /// failed, or found nothing to gain (`Infeasible`): the run may be ended with [`Run::fail`].
    ///
    /// # Cancel safety
    /// The request is as it was, or compacted; ask for another prompt.
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

    /// Forgets a window that the provider has told, because it has answered a larger request.
    pub(super) fn unlearn_window(&mut self, usage: &Usage) {
        let told = due::told_window(self.settings, self.session);
        if told.zip(usage.request_size()).is_some_and(|(told, size)| size > told) {
            self.session.window_told = None;
        }
    }

    /// Keeps a limit in mind that the provider has told, if it is smaller than the known window, and not a number that stands for
    /// something else.
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
            // The provider counts more than is known here: its limit is as much less by the tokens of here.
            Some(sent) if sent > size => scaled(limit, size, sent),
            _ => limit,
        });
        let known = self.settings.budget_under(Some(options)).window();
        let window = told.unwrap_or_else(|| size.saturating_sub(1)).min(known);
        // What was compacted already and is refused again has to fit half of what it is.
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
