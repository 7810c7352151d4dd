//! The compactor that a run calls.

mod again;
mod attempt;
mod background;
mod region;
mod summarizing;
mod written;

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::format;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::{Budget, Draft, Pass, Protection, Strategy, Unchanged};
use epitome_std::compaction::{
    CompactionCx, CompactionOutcome, Compactor, Discarded, FellBack, UnchangedReason,
};
use epitome_std::history::{CompactionRecord, Notes, StoreErrorKind};
use epitome_std::message::Str;
use epitome_std::session::{SessionError, SessionErrorKind};
use tracing::debug;

use crate::gap::{FillGap, TextFiller};
use crate::{AnyStrategy, Ledger, Pipeline, StrategySpec, Summarizer};
use again::Again;
use attempt::{Attempt, Attempted, Ready};
use written::Written;

pub use background::{Background, BackgroundTask};

/// A compactor that applies a strategy: it makes a plan, requests the summaries, checks them, and commits.
///
/// *Concurrent changes of the session*: an append is no conflict. After another compaction or a late answer, the
/// engine uses the plan and its summaries again if their groups are unchanged; otherwise it makes a new plan. After
/// three such conflicts, the next one is an error.
///
/// *Fallbacks*: the engine tries the next fallback if the strategy finds nothing to compact, if the request would
/// still not fit, or if there is no summary (the summarizer fails, panics, exceeds its deadline, or writes a text
/// that cannot be used). A fallback for a missing summary leaves a [`Ledger`], in which the next summary finds the
/// identifiers of the hidden messages and the text of the previous summary.
///
/// *Without a successful fallback*, the engine returns the error and the history is unchanged. A result that does
/// not fit is committed all the same.
///
/// *After the provider refused the request as too large*, the committed result fits; otherwise the error contains
/// the size and the limit.
///
/// *Another strategy for one pass*: a [`StrategySpec`] in the [own
/// options](epitome_std::compaction::CompactionOptions::with_own) of the pass replaces the engine's strategy. The
/// summarizer and the fallbacks stay.
///
/// *A proactive pass* must free at least
/// [`CompactionOptions::min_reclaim`](epitome_std::compaction::CompactionOptions::min_reclaim). If this is not
/// set, it must also free 5 % of the history that is compacted, because each pass voids the provider's cache. Under a
/// [`PaybackRule`](epitome_std::compaction::PaybackRule), a pass must also pay off within the expected number of
/// requests. If it does not, the outcome is [`CompactionOutcome::DoesNotPay`], no summary is written, and no
/// fallback is tried. The price of a summary is [`Summarizer::price`] at its greatest length.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_compactors::{DigestSummarizer, Engine, Summarization, Truncation};
/// use epitome_std::compaction::{AutoCompaction, Compactor};
///
/// let engine = Engine::new(Summarization::new())
///     .with_summarizer(Arc::new(DigestSummarizer))
///     .with_fallback(Truncation::new());
/// assert_eq!(engine.name(), "summarize");
/// let auto = AutoCompaction::new(engine);
/// ```
pub struct Engine {
    name: Str,
    /// The strategies that the engine tries, in this order.
    strategies: Vec<AnyStrategy>,
    texts: TextFiller,
    /// The filler of gaps that replaces `texts`, if there is one.
    filler: Option<Arc<dyn FillGap>>,
    notes: Notes,
}

/// The outcome of a strategy that finds nothing to compact.
const NOTHING: UnchangedReason = UnchangedReason::Plan(Unchanged::NothingToDrop);

/// Maximum number of retries after another writer has changed the session.
const CONFLICTS_MAX: usize = 3;

impl Engine {
    /// A compactor that applies `strategy`. It has no summarizer.
    ///
    /// ```
    /// use epitome_compactors::{AnyStrategy, Engine, Truncation};
    /// use epitome_std::compaction::Compactor;
    ///
    /// assert_eq!(Engine::new(Truncation::new()).name(), "truncate");
    /// let engine = Engine::new("supersede | tool-results:keep=5".parse::<AnyStrategy>()?);
    /// assert_eq!(engine.name(), "pipeline");
    /// # Ok::<(), epitome_compactors::SpecError>(())
    /// ```
    pub fn new(strategy: impl Into<AnyStrategy>) -> Self {
        let strategy = strategy.into();
        Self {
            name: Str::from(strategy.name()),
            strategies: Vec::from([strategy]),
            texts: TextFiller::default(),
            filler: None,
            notes: Notes::default(),
        }
    }

    /// Sets the summarizer, which writes the summaries that the strategy requests.
    #[must_use]
    pub fn with_summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.texts.summarizer = Some(summarizer);
        self
    }

    /// Replaces the filler of the gaps that the strategy leaves.
    pub(crate) fn with_filler(mut self, filler: Arc<dyn FillGap>) -> Self {
        self.filler = Some(filler);
        self
    }

    fn filler(&self) -> &dyn FillGap {
        self.filler.as_deref().unwrap_or(&self.texts)
    }

    /// Adds a strategy that is tried after those before it have failed.
    #[must_use]
    pub fn with_fallback(mut self, strategy: impl Into<AnyStrategy>) -> Self {
        self.strategies.push(strategy.into());
        self
    }

    /// Sets the time limit of one summary, which may take several calls: ten minutes by default. Calls before a
    /// timeout produce no summary; the session's costs include them, as far as the summarizer has reported them.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.texts.deadline = deadline;
        self
    }

    /// Sets the notes in the place of cleared parts.
    #[must_use]
    pub fn with_notes(mut self, notes: Notes) -> Self {
        self.notes = notes;
        self
    }

    /// The strategy that the caller sets for this pass; none if another filler is set, which fills only the gaps of
    /// the engine's own strategy.
    fn own_strategy(&self, cx: &CompactionCx<'_>) -> Option<AnyStrategy> {
        let own = cx.options().own::<StrategySpec>().filter(|_| self.filler.is_none())?;
        Some(own.clone().into())
    }

    /// The record of the first strategy whose request fits; if there is none, the first record of any strategy.
    async fn ready(&self, cx: &CompactionCx<'_>, written: &mut Written) -> Result<Attempted, SessionError> {
        let (budget, pass) = (*cx.budget(), cx.pass());
        let mut too_large = None::<Ready>;
        let mut failed = None::<(&str, SessionError)>;
        let own = self.own_strategy(cx);
        for tried in own.iter().chain(self.strategies.iter().skip(usize::from(own.is_some()))) {
            let strategy = tried.for_messages(cx.live().iter().map(|live| &live.entry.message));
            let attempt = Attempt { engine: self, cx };
            let recorded = Recorded(&*strategy);
            // A fallback for a missing summary leaves a ledger of the hidden messages.
            let strategy: &(dyn Strategy + Send + Sync) = match failed.is_some() && !strategy.replaces() {
                true => &recorded,
                false => &*strategy,
            };
            match attempt.make(strategy, written).await {
                Ok(Attempted::Ready(ready)) if ready.record.tokens_after <= budget.limit() => {
                    if let Some((failed, error)) = &failed {
                        written.fell_back = Some(FellBack::new(*failed, error.kind(), strategy.name()));
                    }
                    return Ok(Attempted::Ready(ready));
                }
                Ok(Attempted::Ready(ready)) => {
                    let tokens = ready.record.tokens_after;
                    debug!(strategy = strategy.name(), tokens, "the request would not fit");
                    too_large = too_large.or(Some(ready));
                }
                // This strategy has nothing to compact; the next one may have.
                Ok(Attempted::Ended(CompactionOutcome::Unchanged(NOTHING))) => {}
                // The error is returned in the end, so that the failed strategy is not tried again before each
                // request.
                Ok(Attempted::Ended(CompactionOutcome::DoesNotPay(_))) if failed.is_some() => {}
                Ok(ended) => return Ok(ended),
                Err(error) => {
                    debug!(strategy = tried.name(), kind = ?error.kind(), "a strategy has failed");
                    failed = failed.or(Some((tried.name(), error)));
                }
            }
        }
        match (too_large, failed) {
            (Some(ready), _) if pass == Pass::Overflow => Err(does_not_fit(&ready.record, &budget)),
            (Some(ready), _) => Ok(Attempted::Ready(ready)),
            (None, Some((_, error))) => Err(error),
            (None, None) => Ok(Attempted::Ended(CompactionOutcome::Unchanged(NOTHING))),
        }
    }
}

/// A fallback for a strategy without its summaries: a ledger replaces the missing summary.
struct Recorded<'a>(&'a (dyn Strategy + Send + Sync));

impl Strategy for Recorded<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn protection(&self) -> Protection {
        self.0.protection()
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        Pipeline::of(&[self.0, &Ledger::new()]).plan(draft);
    }
}

/// Divisor of the freed tokens: a reloaded text has at most this share of them, so that most of the freed tokens
/// stay free.
const RELOADED_SHARE: u64 = 4;

/// Adds the text that the hook of the options reloads for the model to the record; returns the record, and the
/// tokens of the text.
///
/// The text has at most a share of the freed tokens, and leaves the request below the trigger.
async fn reloaded(
    cx: &mut CompactionCx<'_>,
    mut record: CompactionRecord,
) -> Result<(CompactionRecord, Option<u64>), SessionError> {
    let Some(hook) = cx.options().hook().cloned() else { return Ok((record, None)) };
    let most = cx.budget().limit().min(cx.budget().trigger()).saturating_sub(1);
    let freed = record.tokens_before.saturating_sub(record.tokens_after);
    let tokens_max = most.saturating_sub(record.tokens_after).min(freed / RELOADED_SHARE);
    let text = hook.reload(cx, &record, tokens_max).await?.filter(|text| !text.trim().is_empty());
    let reloaded = text.and_then(|text| cx.history().add_text(&mut record, &text, tokens_max));
    Ok((record, reloaded))
}

fn does_not_fit(record: &CompactionRecord, budget: &Budget) -> SessionError {
    let (after, limit) = (record.tokens_after, budget.limit());
    let context =
        format!("{}: the request would have {after} tokens, and {limit} fit", record.strategy.as_str());
    SessionError::new(SessionErrorKind::Infeasible, context)
}

#[async_trait]
impl Compactor for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let mut written = Written::default();
        self.compact_from(cx, None, &mut written).await
    }
}

impl Engine {
    /// Compacts; uses the verdicts `again` if there are any and they still apply.
    async fn compact_from(
        &self,
        cx: &mut CompactionCx<'_>,
        mut again: Option<Again>,
        written: &mut Written,
    ) -> Result<CompactionOutcome, SessionError> {
        let (before, early) = (cx.measure(), again.is_some());
        let mut conflicts = 0;
        loop {
            let rebased = match again.take() {
                Some(again) => {
                    let rebased = Attempt { engine: self, cx }.rebase(&again, written).await;
                    if early && rebased.is_none() {
                        let holds = again.on(cx.history()).is_some();
                        cx.discard(if holds { Discarded::NothingToGain } else { Discarded::PrefixEdited });
                    }
                    rebased
                }
                None => None,
            };
            let Ready { record, verdicts, payback } = match rebased {
                Some(ready) => ready,
                None => match self.ready(cx, written).await? {
                    Attempted::Ready(ready) => ready,
                    Attempted::Ended(outcome) => return Ok(outcome),
                },
            };
            let (record, reloaded_tokens) = reloaded(cx, record).await?;
            match cx.history().commit(&record).await {
                Ok(_) => {
                    debug!(compactor = self.name(), conflicts, "compacted");
                    written.losses().for_each(|loss| cx.lost(loss.clone()));
                    written.fell_back.take().into_iter().for_each(|fell_back| cx.fall_back(fell_back));
                    let mut result = cx.result_since(before);
                    (result.payback, result.reloaded_tokens) = (payback, reloaded_tokens);
                    return Ok(CompactionOutcome::Compacted(result));
                }
                Err(error) if error.kind() == StoreErrorKind::Conflict && conflicts < CONFLICTS_MAX => {
                    debug!(compactor = self.name(), conflicts, "somebody else was there first");
                    (conflicts, again) = (conflicts.saturating_add(1), Some(verdicts));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("strategies", &self.strategies)
            .field("filler", &self.filler())
            .finish_non_exhaustive()
    }
}
