//! The outcome of a compaction: the new size of a history, or the reason why the history is unchanged.

use std::borrow::Cow;

use epitome_core::{Basis, Unchanged};

use super::Payback;
use crate::session::SessionErrorKind;

/// A fallback: the strategy that failed, and the strategy that compacted in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FellBack {
    /// The name of the strategy or service that failed.
    pub failed: Box<str>,
    /// The kind of the failure: `Unavailable` if there was no summary.
    pub kind: SessionErrorKind,
    /// The name of the strategy that compacted instead.
    pub stood_in: Box<str>,
}

impl FellBack {
    /// Records that `stood_in` compacted because `failed` failed in this way.
    pub fn new(failed: impl Into<Box<str>>, kind: SessionErrorKind, stood_in: impl Into<Box<str>>) -> Self {
        Self { failed: failed.into(), kind, stood_in: stood_in.into() }
    }
}

/// The outcome of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// The history is unchanged, for this reason.
    Unchanged(UnchangedReason),
    /// The history is smaller.
    Compacted(CompactionResult),
    /// The history is unchanged for now: the early work is not ready, and the request fits without it.
    UnderWay,
    /// The history is unchanged: the plan does not pay within the expected number of requests, and the request fits
    /// without it.
    DoesNotPay(Payback),
}

/// The reason why a compactor has left a history as it was.
///
/// A compactor of your own gives the reason in its own words: `CompactionOutcome::Unchanged("nothing to drop".into())`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnchangedReason {
    /// The plan changes nothing.
    Plan(Unchanged),
    /// A function from messages to messages has returned all of them.
    AllReturned,
    /// There is no compactor for this history.
    NoCompactor,
    /// The server compacted nothing during its answer.
    NothingByServer,
    /// The service that keeps the session has left no message of it.
    NothingByService,
    /// The hook of the options refused the compaction, for its own reason.
    Vetoed(Cow<'static, str>),
    /// A reason in the compactor's own words.
    Other(Cow<'static, str>),
}

impl UnchangedReason {
    /// The reason in words; for a plan, the word of [`Unchanged::as_str`].
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plan(why) => why.as_str(),
            Self::AllReturned => "nothing is missing",
            Self::NoCompactor => "there is nobody to compact",
            Self::NothingByServer => "the server has compacted nothing",
            Self::NothingByService => "the service has left nothing",
            Self::Vetoed(reason) | Self::Other(reason) => reason,
        }
    }
}

impl From<&'static str> for UnchangedReason {
    fn from(words: &'static str) -> Self {
        Self::Other(words.into())
    }
}

/// The sizes of a history before and after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactionResult {
    /// Number of messages before.
    pub original_count: u64,
    /// Number of messages after.
    pub compacted_count: u64,
    /// Number of tokens before; `None` if they were not counted.
    pub original_tokens: Option<u64>,
    /// Number of tokens after.
    pub compacted_tokens: Option<u64>,
    /// The goal of the history, in tokens: the goal of the request less the parts of the request outside the history.
    /// `None` if there was no goal.
    pub goal: Option<u64>,
    /// The basis of the token counts; `None` if there are none.
    pub basis: Option<Basis>,
    /// The planned payback; `None` without a [`PaybackRule`](super::PaybackRule).
    pub payback: Option<Payback>,
    /// Number of tokens in the text of the [`CompactionHook`](super::CompactionHook); `None` if there is no such text.
    pub reloaded_tokens: Option<u64>,
}

impl CompactionResult {
    /// A result with these numbers of messages before and after.
    #[must_use]
    pub const fn new(original_count: u64, compacted_count: u64) -> Self {
        Self {
            original_count,
            compacted_count,
            original_tokens: None,
            compacted_tokens: None,
            goal: None,
            basis: None,
            payback: None,
            reloaded_tokens: None,
        }
    }

    /// Whether the history is still larger than the goal: the protected messages exceed it, or the compactor did too
    /// little.
    ///
    /// ```
    /// use epitome_std::compaction::CompactionResult;
    ///
    /// let mut result = CompactionResult::new(40, 12);
    /// (result.compacted_tokens, result.goal) = (Some(2_500), Some(2_000));
    /// assert!(result.is_goal_missed());
    /// ```
    #[must_use]
    pub const fn is_goal_missed(&self) -> bool {
        matches!((self.compacted_tokens, self.goal), (Some(tokens), Some(goal)) if tokens > goal)
    }
}
