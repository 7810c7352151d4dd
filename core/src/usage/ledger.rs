//! The size of the next request: the last report, and the counter's amount for later changes.

use super::correction::{Correction, Learned};
use super::{Spend, Usage};
use crate::{Basis, Budget, Head, Revision, TokenCounter};

/// Computes the size of the next request.
///
/// The size is the provider's report of the last request, and the counter's amount for the changes since, corrected by
/// the error of the counter so far.
///
/// `count` is the counter's amount of a whole request (instructions, tool schemas, context, projected history,
/// framing):
///
/// ```text
/// size(next) = reported(last) + k * (count(next) - count(last))     while the last report is valid
/// size(next) = k * count(next)                                      otherwise
/// ```
///
/// The difference may be negative. `k` is the [`Correction`], learned from every valid report. The size is never a sum
/// of inputs, and the usage of compaction calls is spend, not size.
///
/// ```
/// use epitome_core::{Basis, Budget, ClassEstimator, Head, ModelKey, Revision, Stamp, Usage, UsageLedger};
///
/// let mut ledger = UsageLedger::new(ModelKey::new("gpt-5.1", &ClassEstimator::new()), Budget::default());
/// let before = Stamp::new(Revision(0), Head::default());
/// let request = ledger.begin_request(1_000, before);
/// ledger.record(request, &Usage::new(1_200, 80));
/// assert_eq!((ledger.size(1_000, before).tokens, ledger.size(1_000, before).basis), (1_200, Basis::Reported));
///
/// // An answer and a tool result of 500 tokens by the counter, which has been short of a fifth.
/// let after = Stamp::new(Revision(0), Head::default().next().next());
/// assert_eq!((ledger.size(1_500, after).tokens, ledger.size(1_500, after).basis), (1_800, Basis::Estimated));
/// // A compaction makes a new revision: the report no longer holds, the correction does.
/// let compacted = Stamp::new(Revision(1), after.head);
/// assert_eq!(ledger.size(600, compacted).tokens, 720);
/// ```
///
/// A report belongs to its own request, and to one only:
///
/// ```compile_fail,E0382
/// # use epitome_core::{Budget, ClassEstimator, Head, ModelKey, Revision, Stamp, Usage, UsageLedger};
/// # let mut ledger = UsageLedger::new(ModelKey::new("gpt-5.1", &ClassEstimator::new()), Budget::default());
/// let request = ledger.begin_request(1_000, Stamp::new(Revision(0), Head::default()));
/// ledger.record(request, &Usage::new(1_200, 80));
/// ledger.record(request, &Usage::new(1_300, 80));
/// ```
#[derive(Debug, Clone)]
pub struct UsageLedger {
    known: SavedUsageLedger,
    budget: Budget,
}

/// The contents of a [`UsageLedger`] as plain data.
///
/// Stored with a session, they outlive the process ([`UsageLedger::save`], [`UsageLedger::restore`]). With the feature
/// `serde` the type is a serde value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedUsageLedger {
    model: ModelKey,
    anchor: Option<Anchor>,
    learned: Learned,
    /// Number of requests that have begun, which orders them.
    begun: u64,
    /// Number of these requests that were for another model than the current one, or for this one before it was left.
    former: u64,
    /// The latest request whose report contained the input.
    recorded: u64,
    spend: Spend,
    compaction_spend: Spend,
}

/// A request and its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Anchor {
    reported: u64,
    counted: u64,
    stamp: Stamp,
}

impl Anchor {
    /// Whether a request made at `stamp` begins with the content of the reported one: nothing was edited or taken back.
    fn holds_at(&self, stamp: Stamp) -> bool {
        self.stamp.revision == stamp.revision && self.stamp.head <= stamp.head
    }
}

impl UsageLedger {
    /// A ledger without a report.
    #[must_use]
    pub fn new(model: ModelKey, budget: Budget) -> Self {
        let known = SavedUsageLedger {
            model,
            anchor: None,
            learned: Learned::default(),
            begun: 0,
            former: 0,
            recorded: 0,
            spend: Spend::default(),
            compaction_spend: Spend::default(),
        };
        Self { known, budget }
    }

    /// Restores a ledger from its saved state.
    ///
    /// If `model` is another model or counter than the saved one, this is [`UsageLedger::set_model`]: only the spend is
    /// left. Values that contradict each other are corrected, because the saved state may have been edited by hand.
    ///
    /// ```
    /// use epitome_core::{Basis, Budget, ClassEstimator, Head, ModelKey, Revision, Stamp, Usage, UsageLedger};
    ///
    /// let (model, stamp) = (ModelKey::new("gpt-5.1", &ClassEstimator::new()), Stamp::new(Revision(0), Head::default()));
    /// let mut ledger = UsageLedger::new(model, Budget::default());
    /// let request = ledger.begin_request(1_000, stamp);
    /// ledger.record(request, &Usage::new(1_200, 80));
    ///
    /// let restored = UsageLedger::restore(ledger.save(), model, Budget::default());
    /// assert_eq!((restored.size(1_000, stamp).tokens, restored.size(1_000, stamp).basis), (1_200, Basis::Reported));
    /// let other = ModelKey::new("gpt-5.1-mini", &ClassEstimator::new());
    /// let restored = UsageLedger::restore(ledger.save(), other, Budget::default());
    /// assert_eq!((restored.size(1_000, stamp).tokens, restored.spend().input), (1_000, 1_200));
    /// ```
    #[must_use]
    pub fn restore(mut saved: SavedUsageLedger, model: ModelKey, budget: Budget) -> Self {
        saved.former = saved.former.min(saved.begun);
        saved.recorded = saved.recorded.min(saved.begun);
        let mut ledger = Self { known: saved, budget };
        ledger.set_model(model, budget);
        ledger
    }

    /// The state of the ledger, to be restored later. A request that has no report yet is not part of it: its report is
    /// lost with the process.
    #[must_use]
    pub const fn save(&self) -> SavedUsageLedger {
        self.known
    }

    /// Records a request that is about to be sent: `counted` tokens by the counter, made from the history at `stamp`. A
    /// request without a report leaves no trace: drop its handle.
    #[must_use = "the report on this request is recorded with the handle"]
    pub const fn begin_request(&mut self, counted: u64, stamp: Stamp) -> UsageHandle {
        self.known.begun = self.known.begun.saturating_add(1);
        UsageHandle { number: self.known.begun, counted, stamp }
    }

    /// Records the report on a request.
    ///
    /// The report always counts as spend. Later sizes are measured from it if it is plausible and its request is the
    /// latest one with a report. A report is not plausible if its input is zero or below its own cached part, or if it
    /// contains steps that the provider made itself and does not list. After such a report there is none to measure
    /// from.
    ///
    /// After a report on a request that the provider compacted itself, sizes are measured from the rest of the request.
    /// A report without the input changes no size, and neither does a report on a request that began before the model
    /// was changed.
    pub fn record(&mut self, request: UsageHandle, usage: &Usage) {
        self.known.spend.add(usage);
        if request.number <= self.known.former || !usage.has_input() {
            return;
        }
        if let Some(reported) = usage.request_size() {
            self.known.learned.add(reported, request.counted);
        }
        if request.number > self.known.recorded {
            self.known.recorded = request.number;
            self.known.anchor = usage.context_size().map(|reported| Anchor {
                reported,
                counted: request.counted,
                stamp: request.stamp,
            });
        }
    }

    /// Records the usage of a compaction's own calls, which is spend and no size.
    pub const fn record_compaction(&mut self, usage: &Usage) {
        self.known.compaction_spend.add(usage);
    }

    /// Changes the model, the counter or the budget.
    ///
    /// Reports and corrections of another model or counter are forgotten; the spend is not. Another model has another
    /// window: keep the [`BudgetBuilder`](crate::BudgetBuilder), whose default figures follow from the window.
    ///
    /// ```
    /// use epitome_core::{Budget, BudgetError, ClassEstimator, ModelKey, UsageLedger};
    ///
    /// let figures = Budget::builder().reserve(4_000);
    /// let mut ledger = UsageLedger::new(ModelKey::new("large", &ClassEstimator::new()), figures.build()?);
    /// assert_eq!((ledger.budget().trigger(), ledger.budget().limit()), (100_000, 124_000));
    /// ledger.set_model(ModelKey::new("small", &ClassEstimator::new()), figures.window(32_000).build()?);
    /// assert_eq!((ledger.budget().trigger(), ledger.budget().limit()), (24_960, 28_000));
    /// # Ok::<(), BudgetError>(())
    /// ```
    pub fn set_model(&mut self, model: ModelKey, budget: Budget) {
        if self.known.model != model {
            (self.known.anchor, self.known.learned) = (None, Learned::default());
            self.known.former = self.known.begun;
        }
        (self.known.model, self.budget) = (model, budget);
    }

    /// The size of the next request: `counted` tokens by the counter, to be made from the history at `stamp`.
    ///
    /// At most `u64::MAX`. It is rounded up, so that no request that is too large is found to fit.
    #[must_use]
    pub fn size(&self, counted: u64, stamp: Stamp) -> Size {
        let correction = self.correction();
        let Some(anchor) = self.known.anchor.filter(|anchor| anchor.holds_at(stamp)) else {
            return Size { tokens: correction.reported_from(counted), basis: self.basis() };
        };
        if counted == anchor.counted && stamp == anchor.stamp {
            return Size { tokens: anchor.reported, basis: Basis::Reported };
        }
        let tokens = match counted.checked_sub(anchor.counted) {
            Some(more) => anchor.reported.saturating_add(correction.reported_from(more)),
            None => {
                let less = anchor.counted.saturating_sub(counted);
                anchor.reported.saturating_sub(correction.reported_at_least(less))
            }
        };
        Size { tokens, basis: self.basis() }
    }

    /// The number of tokens, by the counter, that a pass must free so that a request of `size` comes down to `goal`:
    /// `ceil((size - goal) / k)`. Plans count in the counter's units.
    #[must_use]
    pub const fn must_free(&self, size: u64, goal: u64) -> u64 {
        self.correction().counted_from(size.saturating_sub(goal))
    }

    /// The correction of the counter; one before any report.
    #[must_use]
    pub const fn correction(&self) -> Correction {
        self.known.learned.correction()
    }

    /// The model and the counter of the ledger.
    #[must_use]
    pub const fn model(&self) -> ModelKey {
        self.known.model
    }

    /// The budget of that model.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The usage of the requests, without those of compactions.
    #[must_use]
    pub const fn spend(&self) -> Spend {
        self.known.spend
    }

    /// The usage of compactions.
    #[must_use]
    pub const fn compaction_spend(&self) -> Spend {
        self.known.compaction_spend
    }

    /// Basis of an amount of the counter: a correction makes it an estimate.
    fn basis(&self) -> Basis {
        if self.correction() == Correction::ONE { self.known.model.basis } else { Basis::Estimated }
    }
}

/// The handle of a request that was sent. It records the report of the request, once. A caller can neither make nor
/// copy it.
#[derive(Debug)]
#[must_use = "the report on this request is recorded with the handle"]
pub struct UsageHandle {
    number: u64,
    counted: u64,
    stamp: Stamp,
}

/// The state of the log from which a request was made: the messages up to `head`, as visible at `revision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stamp {
    /// A counter of the changes to the visible messages: commits, prunes and late answers.
    pub revision: Revision,
    /// The sequence number that the next message will get.
    pub head: Head,
}

impl Stamp {
    /// The state of the log up to `head`, as visible at `revision`.
    #[must_use]
    pub const fn new(revision: Revision, head: Head) -> Self {
        Self { revision, head }
    }
}

/// The size of a request, and its basis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// The size in the provider's tokens.
    pub tokens: u64,
    /// `Reported` for the very request that was reported; otherwise the basis of the counter, and `Estimated` as soon
    /// as a correction applies.
    pub basis: Basis,
}

/// A model and the counter that counts for it. A report under one key is not used for another key.
///
/// The key holds a digest of both names (FNV-1a, the same in every release), which has a fixed size. Two keys that were
/// wrongly taken for one would share a correction until the next reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ModelKey {
    digest: u64,
    basis: Basis,
}

impl ModelKey {
    /// The model of this name, counted by `counter`.
    #[must_use]
    pub fn new(model: &str, counter: &(impl TokenCounter + ?Sized)) -> Self {
        // FNV-1a; 0xFF occurs in no name, so it separates the two.
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let names = model.bytes().chain(core::iter::once(0xFF)).chain(counter.name().bytes());
        let digest = names.fold(OFFSET, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(PRIME));
        Self { digest, basis: counter.basis() }
    }
}
