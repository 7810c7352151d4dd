//! From a strategy to a record that can be committed.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{
    Budget, Outcome, Pass, Plan, Planner, StandIn, Strategy, SummaryGap, Unchanged, Writer, measure_message,
};
use epitome_std::compaction::{CompactionCx, CompactionOutcome, LiveRequest, Payback, PaybackRule};
use epitome_std::history::{Committed, CompactionRecord, History, Live};
use epitome_std::message::{Message, Str};
use epitome_std::models::Cache;
use epitome_std::session::{SessionError, SessionErrorKind};

use super::Engine;
use super::again::{Again, Key, key_of};
use super::written::{StandsIn, Written};
use crate::summary::is_ledger;
use crate::{SummaryError, SummaryWriter};

/// A proactive pass frees at least this share of what there is.
const GAIN_MIN: u64 = 20;

/// A pass over a history as it is now.
pub(super) struct Attempt<'a> {
    engine: &'a Engine,
    /// The conversation's; empty where it is not known.
    model: Str,
    history: &'a History,
    budget: Budget,
    pass: Pass,
    live: Option<Arc<LiveRequest>>,
    focus: Option<Str>,
    /// Whether the caller has set what a pass has to free at least.
    has_least: bool,
    payback: Option<PaybackRule>,
}

/// What can be committed.
pub(super) struct Ready {
    pub(super) record: CompactionRecord,
    /// The verdicts that it was made of.
    pub(super) verdicts: Again,
    /// When it pays, if that matters.
    pub(super) payback: Option<Payback>,
}

/// Why there is nothing to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotMade {
    /// The strategy has found nothing to take.
    Nothing,
    /// There is too little to gain, or another reason.
    Because(&'static str),
    DoesNotPay(Payback),
}

impl From<NotMade> for CompactionOutcome {
    fn from(why: NotMade) -> Self {
        match why {
            NotMade::Nothing => Self::Unchanged(Unchanged::NothingToDrop.as_str().into()),
            NotMade::Because(why) => Self::Unchanged(why.into()),
            NotMade::DoesNotPay(payback) => Self::DoesNotPay(payback),
        }
    }
}

pub(super) type Made = Result<Result<Ready, NotMade>, SessionError>;

impl<'a> Attempt<'a> {
    pub(super) fn new(engine: &'a Engine, cx: &'a mut CompactionCx<'_>) -> Self {
        let (budget, pass) = (*cx.budget(), cx.pass());
        let (model, live, payback) = (cx.model().clone(), cx.request().cloned(), cx.payback().copied());
        let focus = cx.options().focus().map(Str::from);
        let has_least = cx.options().min_reclaim().is_some();
        Self { engine, model, history: cx.history(), budget, pass, live, focus, has_least, payback }
    }

    /// Plans, fills and records.
    pub(super) async fn make(&self, rule: &(dyn Strategy + Send + Sync), written: &mut Written) -> Made {
        let index = self.history.index();
        let mut planner = Planner::new();
        let plan = match planner.plan(index, &self.budget, self.pass, rule) {
            Ok(Outcome::Planned(plan)) => plan,
            Ok(Outcome::Unchanged(Unchanged::NothingToDrop)) => return Ok(Err(NotMade::Nothing)),
            Ok(Outcome::Unchanged(why)) => return Ok(Err(NotMade::Because(why.as_str()))),
            Err(error) => {
                let context = format!("{}: there is no plan", rule.name());
                return Err(SessionError::new(SessionErrorKind::Infeasible, context).with_source(error));
            }
        };
        let payback = self.payback(&plan, written);
        if let Some(why) = self.holds_back(&plan, payback) {
            return Ok(Err(why));
        }
        let verdicts = Again::of(&plan, self.history.live(), rule);
        let record = self.filled(plan, rule.name(), written).await?;
        Ok(Ok(Ready { record, verdicts, payback }))
    }

    /// Gives the verdicts of a plan again, if what they are about is as it was and they are still legal.
    pub(super) async fn rebase(&self, again: &Again, written: &mut Written) -> Option<Ready> {
        let ready = self.make(&again.on(self.history)?, written).await.ok()?.ok()?;
        let fits = ready.record.tokens_after <= self.budget.limit();
        (fits && ready.verdicts == *again).then_some(ready)
    }

    /// Why a plan is not carried out, if it is not worth it and can wait.
    fn holds_back(&self, plan: &Plan<'_>, payback: Option<Payback>) -> Option<NotMade> {
        let before = plan.tokens_before();
        if !self.pass.can_wait(before, &self.budget) {
            return None;
        }
        let freed = before.saturating_sub(plan.tokens_after());
        // Of a least amount that the caller has set, the plan has seen to.
        if !self.has_least && freed.saturating_mul(GAIN_MIN) < before {
            return Some(NotMade::Because("too_little"));
        }
        payback.filter(|payback| !payback.is_expected()).map(NotMade::DoesNotPay)
    }

    /// When a plan pays, if that matters. What was written before is paid for.
    fn payback(&self, plan: &Plan<'_>, written: &Written) -> Option<Payback> {
        let rule = self.payback?;
        let asked = plan.summaries().filter(|gap| {
            gap.writer == Writer::Summarizer && written.known(&self.keys(gap), gap.allowance).is_none()
        });
        let made = asked.map(|gap| self.price(&gap, plan, &rule)).fold(0, u64::saturating_add);
        let stable = plan.stable_prefix().tokens;
        Some(rule.payback(plan.tokens_before(), plan.tokens_after(), stable, made))
    }

    /// What the text of a gap costs, in thousandths of an input token of the conversation's model.
    fn price(&self, gap: &SummaryGap<'_>, plan: &Plan<'_>, rule: &PaybackRule) -> u64 {
        // The words of users are written by nobody.
        let (prices, tokens) = (&rule.prices, gap.prose.as_u64());
        let covered = gap.groups().map(|group| group.tokens().as_u64()).fold(0, u64::saturating_add);
        let cached = self.live.as_ref().filter(|_| rule.cache == Cache::Warm);
        let cached = cached.map(|_| plan.tokens_before().saturating_add(rule.front));
        match (&self.engine.service, &self.engine.summarizer) {
            (None, Some(summarizer)) => summarizer.price(prices, covered, tokens, cached),
            (Some(_), _) => prices.summary(covered, tokens),
            (None, None) => 0,
        }
    }

    async fn filled(
        &self,
        plan: Plan<'_>,
        rule: &str,
        written: &mut Written,
    ) -> Result<CompactionRecord, SessionError> {
        let mut texts: Vec<StandsIn> = Vec::new();
        let messages: Vec<&Message> = self.history.live().iter().map(|live| &live.entry.message).collect();
        for gap in plan.summaries() {
            let text = match written.known(&self.keys(&gap), gap.allowance) {
                Some(known) => known,
                None => self.write(&gap, &messages, (rule, &mut *written)).await?,
            };
            texts.push(text);
        }
        let summaries: Vec<_> = texts.iter().map(|it| StandIn::new(&it.text, it.tokens)).collect();
        let record = |ready: epitome_core::ReadyPlan<'_, '_>| self.history.record(&ready, rule);
        let record = self.history.fill_with(plan, &self.engine.notes, &summaries, record);
        let mut record = record.map_err(|error| {
            let context = format!("{rule}: the plan cannot be filled");
            SessionError::new(SessionErrorKind::Invalid, context).with_source(error)
        })?;
        for (summary, it) in record.summaries.iter_mut().zip(texts) {
            if let Some(parts) = it.parts {
                summary.message = summary.message.clone().with_parts(parts);
                (summary.count.tokens, summary.count.basis) =
                    (it.tokens, measure_message(&summary.message, self.history.counter()).basis);
            }
        }
        Ok(record)
    }

    /// Has what stands in a gap written.
    async fn write(
        &self,
        gap: &SummaryGap<'_>,
        messages: &[&Message],
        (rule, written): (&str, &mut Written),
    ) -> Result<StandsIn, SessionError> {
        let mut late = self.unread(gap).await?;
        let mut exchanges = self.history.late_answers(gap.covers().flatten()).await?;
        // What came before the end of the span stands with its group.
        exchanges.retain(|exchange| {
            !late.iter().any(|group| exchange.last().is_some_and(|it| group.contains(it)))
        });
        late.extend(exchanges);
        let writer = SummaryWriter::new(self.history.counter())
            .with_late_answers(&late)
            .with_summarizer(self.engine.summarizer.as_deref())
            .with_deadline(self.engine.deadline)
            .with_model(&self.model)
            .with_live(self.live.as_deref())
            .with_focus(self.focus.as_deref())
            .with_costs(written.costs());
        let summary = match &self.engine.service {
            // A ledger is written by nobody.
            Some(service) if gap.writer != Writer::Ledger => {
                service.write(gap, (self.history, &self.model), &writer, written.costs()).await?
            }
            _ => {
                let (text, tokens) =
                    writer.write(gap, messages).await.map_err(|error| no_summary(rule, error))?;
                StandsIn { text, parts: None, tokens, losses: Vec::new() }
            }
        };
        written.remember(self.keys(gap), &summary);
        Ok(summary)
    }

    /// What the ledgers in a span stand for: whoever writes a summary of it reads that in the log, because nobody has before. A ledger is
    /// written of all that goes in its own pass, which is shown to it.
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
        let mut groups = self.history.hidden(first..last.next(), has_ledger).await?;
        // Instructions are never summarized, and context comes again.
        let was_said = |message: &Message| {
            message.role() != Role::System && message.attribution().source != SourceKind::Context
        };
        groups.retain(|group| group.iter().all(was_said));
        Ok(groups)
    }

    fn live_of<'s>(&'s self, gap: &SummaryGap<'s>) -> impl Iterator<Item = &'s Live> {
        let positions = gap.covers().flatten();
        positions.filter_map(|position| self.history.live().get(position as usize))
    }

    fn keys(&self, gap: &SummaryGap<'_>) -> Vec<Key> {
        self.live_of(gap).map(key_of).collect()
    }
}

/// There is no summary.
pub(crate) fn no_summary(rule: &str, error: SummaryError) -> SessionError {
    let context = format!("{rule}: there is no summary");
    SessionError::new(SessionErrorKind::Unavailable, context).with_source(error)
}
