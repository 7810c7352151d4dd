//! Spacing of proactive passes, and a rest after failures.

use core::fmt;

use super::TriggerView;

/// Spaces proactive passes, and rests after failures.
///
/// Time is a count of turns or of steps that only grows: there is no clock.
///
/// A pass that was requested, or that the request needs to fit ([`Pass::can_wait`](crate::Pass::can_wait)), is never
/// delayed. After a pass was undone, the other passes rest as after failures. A pass that changes nothing is neither a
/// success nor a failure.
///
/// ```
/// use epitome_core::{ArrayTable, Budget, IndexBuf, OpenCallSlots, Pacing, Span, TriggerView, WaitReason};
///
/// let index = IndexBuf::<ArrayTable<Span, 8>, OpenCallSlots<4>>::new();
/// let budget = Budget::default();
/// let view = TriggerView::new(index.view(), &budget, 100_001);
///
/// let mut pacing = Pacing::default();
/// pacing.compacted(7);
/// let wait = pacing.permits(8, &view).unwrap_err();
/// assert_eq!((wait.reason, wait.until), (WaitReason::Spacing, 9));
/// assert_eq!(pacing.permits(9, &view), Ok(()));
/// // A request that does not fit cannot wait.
/// assert_eq!(pacing.permits(8, &TriggerView::new(index.view(), &budget, 120_001)), Ok(()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pacing {
    spacing: u32,
    failures_max: u32,
    rest: u32,
    /// Time of the last pass that changed something.
    compacted: Option<u32>,
    /// Time of the last failure, if no pass has changed something since.
    failed: Option<u32>,
    /// Number of failures since the last success.
    failures: u32,
    /// Time at which the last pass was undone, if no pass has changed something since.
    undone: Option<u32>,
}

impl Default for Pacing {
    fn default() -> Self {
        Self::new(Self::SPACING_TURNS, Self::FAILURES_MAX, Self::REST_TURNS)
    }
}

impl Pacing {
    /// By default one pass in two turns: every pass voids the provider's prompt cache, which should be used at least
    /// once.
    /// (In a log of one system, 132 of 372 requests were compaction passes.)
    pub const SPACING_TURNS: u32 = 2;
    /// By default the third failure in a row ends the attempts for the length of a rest.
    pub const FAILURES_MAX: u32 = 3;
    /// By default a rest has ten turns.
    pub const REST_TURNS: u32 = 10;

    /// Allows one pass in `spacing` turns (or steps). After `failures_max` failures in a row there is none for `rest`
    /// turns, then one attempt for each `rest` turns until one succeeds. A spacing, a rest or a number of failures of
    /// zero is no limit.
    #[must_use]
    pub const fn new(spacing: u32, failures_max: u32, rest: u32) -> Self {
        Self { spacing, failures_max, rest, compacted: None, failed: None, failures: 0, undone: None }
    }

    /// Sets the spacing.
    #[must_use]
    pub const fn with_spacing(mut self, spacing: u32) -> Self {
        self.spacing = spacing;
        self
    }

    /// Records a pass that changed something, at `now`.
    pub const fn compacted(&mut self, now: u32) {
        (self.compacted, self.failed, self.failures, self.undone) = (Some(now), None, 0, None);
    }

    /// Records that the last pass was undone, at `now`. The messages that it hid are wanted, so no pass is made for the
    /// length of the rest that follows failures.
    pub const fn undone(&mut self, now: u32) {
        self.undone = Some(now);
    }

    /// Records a pass that failed, at `now`.
    pub const fn failed(&mut self, now: u32) {
        (self.failed, self.failures) = (Some(now), self.failures.saturating_add(1));
    }

    /// Whether a pass may be made at `now`.
    ///
    /// # Errors
    /// [`Wait`] if it is too early. No action is needed: call again at the next occasion.
    pub fn permits(&self, now: u32, view: &TriggerView<'_>) -> Result<(), Wait> {
        if !view.can_wait() {
            return Ok(());
        }
        let tripped = self.failures_max > 0 && self.failures >= self.failures_max;
        if let Some(until) = self.failed.filter(|_| tripped).and_then(|at| pending(at, self.rest, now)) {
            return Err(Wait { reason: WaitReason::Failures, until });
        }
        if let Some(until) = self.undone.and_then(|at| pending(at, self.rest, now)) {
            return Err(Wait { reason: WaitReason::Undone, until });
        }
        match self.compacted.and_then(|at| pending(at, self.spacing, now)) {
            Some(until) => Err(Wait { reason: WaitReason::Spacing, until }),
            None => Ok(()),
        }
    }
}

/// The end of `length` after `at`, if it is later than `now`. A count that went back has begun anew: nothing is
/// pending.
fn pending(at: u32, length: u32, now: u32) -> Option<u32> {
    let elapsed = now.checked_sub(at)?;
    (elapsed < length).then_some(at.saturating_add(length))
}

/// The reason why a pass has to wait, and the end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The reason for the wait.
    pub reason: WaitReason,
    /// The first turn (or step) at which the pass may be made.
    pub until: u32,
}

/// The reason why a pass has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum WaitReason {
    /// The last pass was made too recently.
    Spacing,
    /// The last passes have failed.
    Failures,
    /// The last pass was undone.
    Undone,
}

impl WaitReason {
    /// The name of the reason: `spacing`, `failures` or `undone`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spacing => "spacing",
            Self::Failures => "failures",
            Self::Undone => "undone",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no proactive pass before {} ({})", self.until, self.reason.as_str())
    }
}

impl core::error::Error for Wait {}
