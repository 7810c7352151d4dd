//! Events of a run.

use epitome_core::{Fired, Wait};
use tracing::{info, warn};

use crate::compaction::{CompactionResult, Discarded, FellBack, Payback, UnchangedReason};
use crate::session::SessionErrorKind;
use crate::wire::{ContextOverflow, ConversionLoss};

/// Something that the caller may want to know of a run. It holds no text of messages.
///
/// ```
/// use epitome_std::run::{RunEvent, Skipped};
///
/// let happened = |events: &[RunEvent]| events.iter().any(|event| matches!(event, RunEvent::Compacted { .. }));
/// assert!(!happened(&[RunEvent::Skipped(Skipped::ServiceManaged)]));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// The next request has more than 80 % of what makes a compaction due. Told once in a run.
    NearLimit {
        /// Point of the run.
        point: Point,
        /// The size of the next request, in the provider's tokens.
        size: u64,
        /// The trigger that would make a compaction due at five quarters of that size. Its amounts are those of a request of five quarters: at
        /// a size of 1,241 tokens under a trigger of 1,500 they are 1,551 and 1,500.
        nearest: Fired,
    },
    /// A request is larger than its limit, as far as the run knows it: no compaction was due at this point of the run, it failed, or it left
    /// too much. The provider may refuse it. Told once in a run.
    OverLimit {
        /// The size of the request, in the provider's tokens.
        size: u64,
        /// The window of the model without what is reserved for the answer.
        limit: u64,
    },
    /// A compaction has made the history smaller, though perhaps not as small as its goal: see [`CompactionResult::is_goal_missed`].
    Compacted {
        /// Point of the run.
        point: Point,
        /// By how much.
        result: CompactionResult,
    },
    /// Tool results have more tokens than [`RunSettings::tool_result_limit`](super::RunSettings::tool_result_limit): they are shown
    /// shortened, and stored whole.
    ResultsShortened {
        /// The number of results.
        results: u32,
        /// The number of tokens that requests are smaller for it.
        tokens: u64,
    },
    /// The compactor did not receive all messages, because a format has no form for some of their content. The stand-in knows nothing of
    /// the lost content. The log does.
    NotTold {
        /// Point of the run.
        point: Point,
        /// The lost content.
        losses: Vec<ConversionLoss>,
    },
    /// Another compacted than was to, because that failed. `Compacted` follows.
    FellBack {
        /// Point of the run.
        point: Point,
        /// The compactor that failed, and the one that stood in.
        fell_back: FellBack,
    },
    /// A compaction was due, and there was nothing to gain.
    Unchanged {
        /// Point of the run.
        point: Point,
        /// Why.
        reason: UnchangedReason,
    },
    /// A compaction was due and does not pay within the requests that are expected. It waits until it pays or the next request
    /// does not fit. Told once in a run.
    DoesNotPay {
        /// Point of the run.
        point: Point,
        /// The number of requests after which it pays, and the number that is expected.
        payback: Payback,
    },
    /// A compaction has to pay, and the prices of the model are not known: it need not. Told once in a run.
    NoPrices,
    /// The provider has refused a request because the model cannot take so much. A compaction is tried.
    Refused {
        /// The size of the request, as it was known here.
        size: u64,
        /// The answer of the provider.
        overflow: ContextOverflow,
    },
    /// A compaction was due and failed. The history is as it was.
    Failed {
        /// Point of the run.
        point: Point,
        /// The kind of the failure.
        kind: SessionErrorKind,
        /// Why, in the compactor's words. A service's own words may be among them: this is not logged.
        reason: String,
    },
    /// A compaction was due, and none was tried: the last ones failed, or the last one was undone. Told once in a run. A request that does
    /// not fit does not wait.
    Resting {
        /// Point of the run.
        point: Point,
        /// Until which of the session's requests.
        wait: Wait,
    },
    /// A compaction was begun before it is due: see [`Compactor::begin`](crate::compaction::Compactor::begin).
    Begun {
        /// Point of the run.
        point: Point,
    },
    /// A compaction is due, and what was begun before it was is not ready; the request fits without it. Told once.
    UnderWay {
        /// Point of the run.
        point: Point,
    },
    /// Early work is not used.
    Discarded {
        /// Point of the run.
        point: Point,
        /// Why.
        why: Discarded,
    },
    /// The service has compacted the session that it keeps: the next request begins a new one with what it left.
    Renewed {
        /// Point of the run.
        point: Point,
    },
    /// The service no longer knew the session that it kept: the history that is stored here is sent whole.
    Forgotten,
    /// The service was asked to keep the conversation (`store: true`) and has told no id of it, and no history provider stores it. Of an
    /// agent without any provider the session itself keeps the run, as where no service is asked to. Told when the run ends.
    ServiceSessionMissing,
    /// The service has told the id of a conversation that it keeps, though it was asked not to (`store: false`). The id is not used: the
    /// session goes on from what is stored here. Told once in a run.
    ServiceSessionIgnored,
    /// A history provider that keeps the session's state has not kept it; what was said is stored. Told when the run ends, once
    /// for each.
    StateNotKept {
        /// The provider.
        source_id: Box<str>,
        /// Why: `Conflict` if the session has gone on elsewhere since it was loaded, so that its state there is another one. A session
        /// that [`Agent::create_session`](crate::agent::Agent::create_session) made under an id that is stored already never had that
        /// state: begin with [`HistoryProvider::load_session`](crate::provider::HistoryProvider::load_session).
        kind: SessionErrorKind,
    },
    /// Compactions are not looked at in this run. Told once.
    Skipped(Skipped),
}

/// A point in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Point {
    /// Before the providers are asked.
    BeforeRun,
    /// Before a call of the model.
    BeforeCall,
    /// When the histories have stored.
    AfterRun,
}

impl Point {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeRun => "before_run",
            Self::BeforeCall => "before_call",
            Self::AfterRun => "after_run",
        }
    }
}

/// Why a run that should compact does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Skipped {
    /// The service keeps the history.
    ServiceManaged,
    /// No history provider loads, so there is no history to compact.
    NoLoader,
    /// Several history providers load: which of them to compact nobody has said.
    SeveralLoaders,
}

impl Skipped {
    /// The reason, in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServiceManaged => "the service keeps the history of this session",
            Self::NoLoader => "no history provider loads messages",
            Self::SeveralLoaders => "several history providers load messages",
        }
    }
}

impl RunEvent {
    /// Logs it.
    pub(super) fn log(&self) {
        match self {
            Self::NearLimit { point, size, nearest } => {
                info!(point = point.as_str(), size, %nearest, "near the limit");
            }
            Self::OverLimit { size, limit } => warn!(size, limit, "the request is over its limit"),
            Self::Compacted { point, result } => {
                let (before, after) = (result.original_count, result.compacted_count);
                info!(point = point.as_str(), before, after, "compacted");
            }
            Self::ResultsShortened { results, tokens } => info!(results, tokens, "tool results shortened"),
            Self::NotTold { point, losses } => {
                warn!(point = point.as_str(), losses = losses.len(), "compacted without knowing all");
            }
            Self::FellBack { point, fell_back: FellBack { failed, kind, stood_in } } => {
                let (failed, stood_in) = (&**failed, &**stood_in);
                warn!(point = point.as_str(), failed, ?kind, stood_in, "another compacted than was to");
            }
            Self::Unchanged { point, .. } => info!(point = point.as_str(), "nothing to compact"),
            Self::DoesNotPay { point, payback: Payback { after_requests, expected_requests, cache } } => {
                info!(
                    point = point.as_str(),
                    after_requests,
                    expected_requests,
                    ?cache,
                    "a compaction would not pay"
                )
            }
            Self::NoPrices => warn!("the prices of the model are not known: no compaction has to pay"),
            Self::Refused { size, overflow } => {
                warn!(size, limit = overflow.limit, sent = overflow.sent, "the request was too large")
            }
            Self::Failed { point, kind, .. } => warn!(point = point.as_str(), ?kind, "compaction failed"),
            Self::Resting { point, wait } => info!(point = point.as_str(), %wait, "compaction rests"),
            Self::Begun { point } => info!(point = point.as_str(), "compaction begun early"),
            Self::UnderWay { point } => info!(point = point.as_str(), "compaction under way"),
            Self::Discarded { point, why } => info!(point = point.as_str(), %why, "begun in vain"),
            Self::Renewed { point } => {
                info!(point = point.as_str(), "the service has compacted what it keeps")
            }
            Self::ServiceSessionMissing => {
                warn!(
                    "the service was asked to keep the conversation and told no id: it is kept in the session"
                )
            }
            Self::ServiceSessionIgnored => {
                warn!(
                    "the service tells the id of a conversation that it was asked not to keep: it is not used"
                )
            }
            Self::Forgotten => warn!("the service has forgotten what it kept: the whole history is sent"),
            Self::StateNotKept { source_id, kind: SessionErrorKind::Conflict } => warn!(
                source_id = &**source_id,
                "the session's state was not kept, because another one is stored: begin with HistoryProvider::load_session"
            ),
            Self::StateNotKept { source_id, kind } => {
                warn!(source_id = &**source_id, ?kind, "the session's state was not kept");
            }
            Self::Skipped(reason) => info!(reason = reason.as_str(), "compaction skipped"),
        }
    }
}
