//! One pass over a conversation: its groups and sizes.

use epitome::core::message::{MessageView, PartView};
use epitome::core::{
    Basis, Full, GroupKind, IndexBuf, OpenCallTree, PartSpan, Placed, Span, TokenCounter, Tokens,
    count_message, floors, measure_message,
};
use epitome::tokens::{LazyIndex, counter_by_name, measure_with_parts, message_bounds};
use serde::Serialize;

use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::pins::{Pin, Pins};
use crate::report::{Decided, sum};
use crate::strategy::Strategies;
use crate::transcript::Transcript;

/// The index of a conversation, one position for each message.
pub(crate) type Index = IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>;

/// An index without parts, for uses without a plan.
pub(crate) type Groups = IndexBuf<Vec<Span>, OpenCallTree>;

/// A token counter that is selected by name.
pub(crate) type Counter = Box<dyn TokenCounter + Send + Sync>;

/// The name of the default counter.
pub(crate) const ESTIMATE: &str = "estimate";

/// The counter of this name.
pub(crate) fn counter(name: &str) -> Result<Counter> {
    counter_by_name(name).map_err(|error| Failure::input(format!("--tokenizer: {error}")))
}

/// Result of one pass over a conversation.
pub(crate) struct Scan {
    pub(crate) index: Index,
    /// Size of each message.
    pub(crate) sizes: Vec<Tokens>,
    /// The least certain basis of the sizes that were counted.
    pub(crate) basis: Basis,
    /// The messages that were not counted: their sizes are estimates.
    pub(crate) uncounted: Option<Uncounted>,
    /// Whether a compaction is due.
    pub(crate) is_due: bool,
}

/// Messages that no verdict depends on.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Uncounted {
    /// Number of these messages.
    pub(crate) messages: u64,
    /// Lower bound of the whole conversation, in tokens.
    pub(crate) tokens_before_min: u64,
    /// Upper bound of the whole conversation, in tokens.
    pub(crate) tokens_before_max: u64,
    /// Basis of the size after the compaction: all messages that a plan keeps were counted.
    pub(crate) tokens_after_basis: Basis,
}

impl Uncounted {
    /// The figures after this decision about the conversation, with the basis of its sizes.
    pub(crate) const fn after(self, decided: Decided<'_>, basis: Basis) -> Self {
        match decided {
            Decided::Planned(_) => Self { tokens_after_basis: basis, ..self },
            _ => self,
        }
    }
}

/// Groups and counts a conversation. `asked` makes the budget from the size.
pub(crate) fn whole(
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
    pins: &[Pin],
    asked: impl FnOnce(u64) -> Result<Asked>,
) -> Result<(Scan, Asked)> {
    let mut index = Index::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
    let (mut sizes, mut basis, mut pins) = (Vec::new(), counter.basis(), Pins::new(pins));
    transcript.for_each(|message| {
        let (amount, parts) = measure_with_parts(message, counter);
        sizes.push(amount.tokens);
        basis = basis.min(amount.basis);
        let size =
            |ordinal: u32, _: PartView<'_>| parts.get(ordinal as usize).copied().unwrap_or(Tokens::ZERO);
        let placed = placed(index.push_with_parts(&pins.next(message), amount.tokens, size))?;
        pins.placed(message, placed.orphan);
        Ok(())
    })?;
    pins.check()?;
    // A result without a call is part of the request until it is left out.
    let own = sum(&sizes);
    let asked = asked(own)?;
    Ok((Scan { index, sizes, basis, uncounted: None, is_due: asked.is_due(own) }, asked))
}

/// Groups a conversation, and counts only the messages that verdicts depend on. The sizes of the others come from
/// `estimator`.
///
/// `None` if all messages have to be counted: for strategies that use more than the total, for orphans, because the
/// report on them needs all sizes, and if results have to be cut to fit.
pub(crate) fn lazily(
    transcript: &mut Transcript<'_>,
    (counter, estimator): (&dyn TokenCounter, &dyn TokenCounter),
    asked: &Asked,
    strategies: &Strategies,
    pins: &[Pin],
) -> Result<Option<Scan>> {
    if !strategies.with(|strategy| strategy.is_monotone()) {
        return Ok(None);
    }
    let (mut lazy, mut estimates, mut basis) = (LazyIndex::new(), Vec::new(), counter.basis());
    let mut pins = Pins::new(pins);
    transcript.for_each(|message| {
        estimates.push(count_message(message, estimator));
        let placed = placed(lazy.push(&pins.next(message), message_bounds(message, counter)))?;
        pins.placed(message, placed.orphan);
        Ok(())
    })?;
    pins.check()?;
    if lazy.index().groups().any(|group| group.kind() == GroupKind::Orphan) {
        return Ok(None);
    }
    let mut count = |at: u32| -> Result<Tokens> {
        let size = transcript.with_message(at as usize, |message| measure_message(message, counter))?;
        basis = basis.min(size.basis);
        Ok(size.tokens)
    };
    let is_due = asked.now || lazy.exceeds(asked.budget.trigger(), &mut count)?;
    if is_due {
        strategies.with(|strategy| lazy.settle(&asked.budget, asked.pass(), strategy, &mut count))?;
        let protection = strategies.with(|strategy| strategy.protection());
        if floors(lazy.index(), protection).hard > asked.budget.limit() {
            return Ok(None);
        }
    }
    let (tokens_before_min, tokens_before_max) = lazy.tokens();
    let messages = lazy.sizes().iter().filter(|bounds| !bounds.is_exact()).count() as u64;
    let tokens_after_basis = Basis::Estimated;
    let uncounted = Uncounted { messages, tokens_before_min, tokens_before_max, tokens_after_basis };
    let estimate = |at: u32| estimates.get(at as usize).copied().unwrap_or(Tokens::ZERO);
    let (index, sizes) = lazy.estimated(estimate);
    Ok(Some(Scan {
        index,
        sizes,
        basis,
        uncounted: Some(uncounted).filter(|rest| rest.messages > 0),
        is_due,
    }))
}

/// Adds a message to an index without plans.
pub(crate) fn push(index: &mut Groups, message: &impl MessageView, tokens: Tokens) -> Result<()> {
    place(index, message, tokens).map(|_| ())
}

/// Adds a message to an index without plans, and returns its place there.
pub(crate) fn place(index: &mut Groups, message: &impl MessageView, tokens: Tokens) -> Result<Placed> {
    placed(index.push(message, tokens))
}

pub(crate) fn placed(placed: core::result::Result<Placed, Full>) -> Result<Placed> {
    placed.map_err(|_| too_long())
}

fn too_long() -> Failure {
    Failure::input("a conversation of more than 4,294,967,294 messages")
}
