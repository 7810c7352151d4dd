//! From a strategy to a record that can be committed.

use std::format;
use std::vec::Vec;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{Outcome, Plan, Planner, ReadyPlan, StandIn, Strategy, SummaryGap, Unchanged, Writer};
use epitome_std::compaction::{CompactionCx, CompactionOutcome, Payback, PaybackRule, UnchangedReason};
use epitome_std::history::{Committed, CompactionRecord, Live};
use epitome_std::message::Message;
use epitome_std::models::Cache;
use epitome_std::session::{SessionError, SessionErrorKind};

use super::Engine;
use super::again::{Again, Key, key_of};
use super::written::Written;
use crate::gap::{GapCx, GapFilling};
use crate::summary::is_ledger;

/// Divisor of the request's tokens: a proactive pass frees at least this share of them.
const GAIN_MIN: u64 = 20;

/// One pass over the current state of a history.
pub(super) struct Attempt<'a, 'c> {
    pub(super) engine: &'a Engine,
    pub(super) cx: &'a CompactionCx<'c>,
}

/// Record that can be committed.
pub(super) struct Ready {
    pub(super) record: CompactionRecord,
    /// The verdicts of its plan.
    pub(super) verdicts: Again,
    /// The payback of the plan, if the options have a payback rule.
    pub(super) payback: Option<Payback>,
}

/// The result of a successful attempt.
pub(super) enum Attempted {
    /// There is a record to commit.
    Ready(Ready),
    /// There is nothing to commit.
    Ended(CompactionOutcome),
}

impl Attempt<'_, '_> {
    /// Makes a plan, fills its gaps, and returns the record.
    pub(super) async fn make(
        &self,
        rule: &(dyn Strategy + Send + Sync),
        written: &mut Written,
    ) -> Result<Attempted, SessionError> {
        let (history, budget, pass) = (self.cx.as_history(), self.cx.budget(), self.cx.pass());
        let mut planner = Planner::new();
        let plan = match planner.plan(history.index(), budget, pass, rule) {
            Ok(Outcome::Planned(plan)) => plan,
            Ok(Outcome::Unchanged(why)) => return Ok(Attempted::Ended(unchanged(why))),
            Err(error) => {
                let context = format!("{}: there is no plan", rule.name());
                return Err(SessionError::new(SessionErrorKind::Infeasible, context).with_source(error));
            }
        };
        let payback = self.payback(&plan, written);
        if let Some(outcome) = self.holds_back(&plan, payback) {
            return Ok(Attempted::Ended(outcome));
        }
        let verdicts = Again::of(&plan, history.live(), rule);
        let record = self.filled(plan, rule.name(), written).await?;
        Ok(Attempted::Ready(Ready { record, verdicts, payback }))
    }

    /// Applies the verdicts of an earlier plan again, if their messages are unchanged and the verdicts are still
    /// legal.
    pub(super) async fn rebase(&self, again: &Again, written: &mut Written) -> Option<Ready> {
        let Ok(Attempted::Ready(ready)) = self.make(&again.on(self.cx.as_history())?, written).await else {
            return None;
        };
        let fits = ready.record.tokens_after <= self.cx.budget().limit();
        (fits && ready.verdicts == *again).then_some(ready)
    }

    /// The outcome if the plan frees too little or does not pay, and the pass can wait.
    fn holds_back(&self, plan: &Plan<'_>, payback: Option<Payback>) -> Option<CompactionOutcome> {
        let before = plan.tokens_before();
        if !self.cx.pass().can_wait(before, self.cx.budget()) {
            return None;
        }
        let freed = before.saturating_sub(plan.tokens_after());
        // The planner has already enforced a `min_reclaim` of the caller.
        if self.cx.options().min_reclaim().is_none() && freed.saturating_mul(GAIN_MIN) < before {
            return Some(unchanged(Unchanged::TooLittle { freed }));
        }
        payback.filter(|payback| !payback.is_expected()).map(CompactionOutcome::DoesNotPay)
    }

    /// The payback of a plan, if there is a payback rule. Summaries that are already written cost nothing.
    fn payback(&self, plan: &Plan<'_>, written: &Written) -> Option<Payback> {
        let rule = self.cx.payback()?;
        let asked = plan.summaries().filter(|gap| {
            gap.writer == Writer::Summarizer && written.known(&self.keys(gap), gap.allowance).is_none()
        });
        let made = asked.map(|gap| self.price(&gap, plan, rule)).fold(0, u64::saturating_add);
        let stable = plan.stable_prefix().tokens;
        Some(rule.payback(plan.tokens_before(), plan.tokens_after(), stable, made))
    }

    /// Price of the text of a gap, in thousandths of an input token of the conversation's model.
    fn price(&self, gap: &SummaryGap<'_>, plan: &Plan<'_>, rule: &PaybackRule) -> u64 {
        // Only the prose has a price: the quoted words of users are copied.
        let (prices, tokens) = (&rule.prices, gap.prose.as_u64());
        let covered = gap.groups().map(|group| group.tokens().as_u64()).fold(0, u64::saturating_add);
        let cached = self.cx.request().filter(|_| rule.cache == Cache::Warm);
        let cached = cached.map(|_| plan.tokens_before().saturating_add(rule.front));
        self.engine.filler().price(prices, covered, tokens, cached)
    }

    async fn filled(
        &self,
        plan: Plan<'_>,
        rule: &str,
        written: &mut Written,
    ) -> Result<CompactionRecord, SessionError> {
        let mut fillings: Vec<GapFilling> = Vec::new();
        let history = self.cx.as_history();
        let messages: Vec<&Message> = history.live().iter().map(|live| &live.entry.message).collect();
        for gap in plan.summaries() {
            let filling = match written.known(&self.keys(&gap), gap.allowance) {
                Some(known) => known,
                None => self.write(&gap, &messages, (rule, &mut *written)).await?,
            };
            fillings.push(filling);
        }
        let summaries: Vec<_> = fillings.iter().map(|it| StandIn::new(it.text(), it.tokens)).collect();
        let parts = fillings.iter().map(|it| it.parts.clone());
        let record = |ready: ReadyPlan<'_, '_>| history.record_with(&ready, rule, parts);
        history.fill_with(plan, &self.engine.notes, &summaries, record).map_err(|error| {
            let context = format!("{rule}: the plan cannot be filled");
            SessionError::new(SessionErrorKind::Invalid, context).with_source(error)
        })
    }

    /// Requests the text of a gap.
    async fn write(
        &self,
        gap: &SummaryGap<'_>,
        messages: &[&Message],
        (rule, written): (&str, &mut Written),
    ) -> Result<GapFilling, SessionError> {
        let mut late = self.unread(gap).await?;
        let mut exchanges = self.cx.as_history().late_answers(gap.covers().flatten()).await?;
        // Answers before the end of the span are already in their group.
        exchanges.retain(|exchange| {
            !late.iter().any(|group| exchange.last().is_some_and(|it| group.contains(it)))
        });
        late.extend(exchanges);
        let cx = GapCx { gap: *gap, compaction: self.cx, messages, rule, late: &late };
        let filling = self.engine.filler().fill(cx).await?;
        written.remember(self.keys(gap), &filling);
        Ok(filling)
    }

    /// The messages that the ledgers in a span cover. The writer of a summary reads them in the log, because no
    /// summary covers them yet. The writer of a ledger needs none: it sees all messages that its own pass hides.
    async fn unread(&self, gap: &SummaryGap<'_>) -> Result<Vec<Vec<Message>>, SessionError> {
        let ledgers = self.live_of(gap).filter(|live| is_ledger(&live.entry.message));
        let first = ledgers.filter_map(|live| live.covers.first()).map(|range| range.first).min();
        let last =
            self.live_of(gap).map(|live| live.covers.last().map_or(live.key, |range| range.last)).max();
        let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
        if gap.writer != Writer::Summarizer {
            return Ok(Vec::new());
        }
        let has_ledger = |committed: &Committed| {
            committed.record.summaries.iter().any(|summary| is_ledger(&summary.message))
        };
        let mut groups = self.cx.as_history().hidden(first..last.next(), has_ledger).await?;
        // Instructions are never summarized. Context is added again in each run.
        let was_said = |message: &Message| {
            message.role() != Role::System && message.attribution().source != SourceKind::Context
        };
        groups.retain(|group| group.iter().all(was_said));
        Ok(groups)
    }

    fn live_of<'s>(&'s self, gap: &SummaryGap<'s>) -> impl Iterator<Item = &'s Live> {
        let positions = gap.covers().flatten();
        positions.filter_map(|position| self.cx.live().get(position as usize))
    }

    fn keys(&self, gap: &SummaryGap<'_>) -> Vec<Key> {
        self.live_of(gap).map(key_of).collect()
    }
}

const fn unchanged(why: Unchanged) -> CompactionOutcome {
    CompactionOutcome::Unchanged(UnchangedReason::Plan(why))
}
