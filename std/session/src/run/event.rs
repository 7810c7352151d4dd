//! Events of a run.

use epitome_core::{Fired, Wait};
use tracing::{info, warn};

use crate::compaction::{CompactionResult, Discarded, FellBack, Payback, UnchangedReason};
use crate::session::SessionErrorKind;
use crate::wire::{ContextOverflow, ConversionLoss};

/// An event of a run, for the caller. It holds no text of messages.
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
    /// The next request has more than 80 % of the size that makes a compaction due. Reported once in a run.
    NearLimit {
        /// Point of the run.
        point: Point,
        /// The size of the next request, in the provider's tokens.
        size: u64,
        /// The trigger that would fire if the request were a quarter larger, with the amounts of that larger request:
        /// for a request of 1,241 tokens and a trigger of 1,500 tokens, 1,551 and 1,500.
        nearest: Fired,
    },
    /// A request is larger than its limit, by its known size: no compaction was due at this point of the run, the
    /// compaction failed, or it left too many tokens. The provider may refuse the request. Reported once in a run.
    OverLimit {
        /// The size of the request, in the provider's tokens.
        size: u64,
        /// The window of the model less the reserve for the answer.
        limit: u64,
    },
    /// A compaction has made the history smaller, though perhaps not as small as its goal: see [`CompactionResult::is_goal_missed`].
    Compacted {
        /// Point of the run.
        point: Point,
        /// The sizes before and after.
        result: CompactionResult,
    },
    /// Tool results have more tokens than [`RunSettings::tool_result_limit`](super::RunSettings::tool_result_limit): they are shown
    /// shortened, and stored whole.
    ResultsShortened {
        /// The number of results.
        results: u32,
        /// The number of tokens that this saves in each request.
        tokens: u64,
    },
    /// The compactor did not receive all messages, because a format has no form for some of their content. The stand-in
    /// does not contain the lost content. The log does.
    NotTold {
        /// Point of the run.
        point: Point,
        /// The lost content.
        losses: Vec<ConversionLoss>,
    },
    /// The intended strategy or service failed, and another strategy compacted. `Compacted` follows.
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
        /// The reason.
        reason: UnchangedReason,
    },
    /// A compaction was due and does not pay within the expected number of requests. It waits until it pays or the next
    /// request does not fit. Reported once in a run.
    DoesNotPay {
        /// Point of the run.
        point: Point,
        /// The number of requests after which it pays, and the number that is expected.
        payback: Payback,
    },
    /// A compaction should pay for itself, but the prices of the model are unknown: the rule does not apply. Reported
    /// once in a run.
    NoPrices,
    /// The provider has refused a request as too large for the model. The run tries a compaction.
    Refused {
        /// The size of the request, as the run has computed it.
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
        /// The text of the compactor's error. It may contain text of a service, so it is not logged.
        reason: String,
    },
    /// A compaction was due and has to wait: the last one was too recent, the last ones failed, or the last one was
    /// undone. Reported once in a run. A request that does not fit does not wait.
    Resting {
        /// Point of the run.
        point: Point,
        /// The reason, and the request of the session at which the wait ends.
        wait: Wait,
    },
    /// A compaction was begun before it is due: see [`Compactor::begin`](crate::compaction::Compactor::begin).
    Begun {
        /// Point of the run.
        point: Point,
    },
    /// A compaction is due, and its early work is not ready. The request fits without it. Reported once in a run.
    UnderWay {
        /// Point of the run.
        point: Point,
    },
    /// Early work is not used.
    Discarded {
        /// Point of the run.
        point: Point,
        /// The reason.
        why: Discarded,
    },
    /// The service has compacted the session that it keeps: the next request begins a new session with the messages
    /// that are left.
    Renewed {
        /// Point of the run.
        point: Point,
    },
    /// The service no longer knew the session that it kept: the whole stored history is sent.
    Forgotten,
    /// The service was asked to keep the conversation (`store: true`) and has returned no id of it, and no history
    /// provider stores it. If the agent has no provider, the session itself keeps the run, as without such a request.
    /// Reported when the run ends.
    ServiceSessionMissing,
    /// The service has returned the id of a conversation that it keeps, although it was asked not to (`store: false`).
    /// The id is not used: the session continues from the stored history. Reported once in a run.
    ServiceSessionIgnored,
    /// A history provider that keeps the session's state could not store it; the messages are stored. Reported when the
    /// run ends, once for each provider.
    StateNotKept {
        /// The provider.
        source_id: Box<str>,
        /// The kind of the failure: `Conflict` if the session has gone on elsewhere since it was loaded, so that
        /// another state is stored. A session that [`Agent::create_session`](crate::agent::Agent::create_session) made
        /// under a stored id never had the stored state: begin with
        /// [`HistoryProvider::load_session`](crate::provider::HistoryProvider::load_session).
        kind: SessionErrorKind,
    },
    /// This run does not check for compactions, for this reason. Reported once.
    Skipped(Skipped),
}

/// A point in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Point {
    /// Before the providers are called.
    BeforeRun,
    /// Before a call of the model.
    BeforeCall,
    /// After the histories have stored the run.
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

/// The reason why a run that should compact does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Skipped {
    /// The service keeps the history.
    ServiceManaged,
    /// No history provider loads, so there is no history to compact.
    NoLoader,
    /// Several history providers load: the history to compact is ambiguous.
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
    /// Logs the event.
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
