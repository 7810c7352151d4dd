//! Counting only what a decision depends on.

use core::cell::Cell as Slot;
use core::mem::{Discriminant, discriminant};

use epitome_core::message::MessageView;
use epitome_core::{
    Basis, Budget, Cell, Framing, Full, Group, GroupKind, Index, IndexBuf, MediaRules, OpenCallTree, Outcome,
    PartSpan, Pass, Placed, PlanError, Span, Strategy, TokenBounds, TokenCounter, Tokens, Unchanged, Verdict,
    count_message, plan,
};

/// Bounds of the size of a message: that of [`count_message`], with the texts only bracketed.
///
/// ```
/// use epitome_core::message::SimpleMessage;
/// use epitome_core::{ClassEstimator, count_message};
/// use epitome_message::tokens::message_bounds;
///
/// let (message, counter) = (SimpleMessage::user("Hello"), ClassEstimator::new());
/// let bounds = message_bounds(&message, &counter);
/// assert!((bounds.lower..=bounds.upper).contains(&count_message(&message, &counter)));
/// ```
pub fn message_bounds<M: MessageView + ?Sized>(message: &M, counter: &dyn TokenCounter) -> TokenBounds {
    let bracket = Bracket { counter, slack: Slot::new(0) };
    let upper = count_message(message, &bracket);
    // Sizes are sums: what the texts may be less, the message may be less.
    let lower = upper.as_u64().saturating_sub(bracket.slack.get());
    let lower = if upper == Tokens::MAX { Tokens::ZERO } else { Tokens::from_u64(lower) };
    TokenBounds::new(lower, upper)
}

/// Counts by upper bounds, and keeps how much less the texts may have.
struct Bracket<'a> {
    counter: &'a dyn TokenCounter,
    slack: Slot<u64>,
}

impl TokenCounter for Bracket<'_> {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn basis(&self) -> Basis {
        Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        let bounds = self.counter.bounds(text);
        let slack = bounds.upper.as_u64().saturating_sub(bounds.lower.as_u64());
        self.slack.set(self.slack.get().saturating_add(slack));
        bounds.upper
    }

    fn framing(&self) -> Framing {
        self.counter.framing()
    }

    fn media_rules(&self) -> MediaRules {
        self.counter.media_rules()
    }
}

/// An index of messages whose sizes lie between bounds, until they matter: [`LazyIndex::settle`] counts only the messages that a plan
/// depends on, so that the plan is the one that counting everything would give.
///
/// It holds two indexes, one with the lower and one with the upper bounds. Where a trigger, a floor and a strategy decide alike on both,
/// they decide alike on all sizes in between, if the strategy is monotone ([`Strategy::is_monotone`]); for another strategy everything is
/// counted. It knows no parts: a strategy that shortens some finds none here, and where the protected messages do not fit, no results are
/// cut. Kept messages are always counted, newest first: a plan that keeps 100,000 tokens counts little more than those, however long the
/// conversation is.
///
/// Positions are those of the index, in the order of [`LazyIndex::push`].
#[derive(Debug, Clone, Default)]
pub struct LazyIndex {
    lower: IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>,
    upper: IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>,
    sizes: Vec<TokenBounds>,
}

impl LazyIndex {
    /// Sizes of no messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts the next message in its group, in constant time. Its size lies within `bounds`.
    ///
    /// # Errors
    /// [`Full`] after more messages than positions; the index is of no use then.
    pub fn push<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        bounds: TokenBounds,
    ) -> Result<Placed, Full> {
        self.upper.push(message, bounds.upper)?;
        let placed = self.lower.push(message, bounds.lower)?;
        self.sizes.push(bounds);
        Ok(placed)
    }

    /// The index with the lower bounds; exact where something has been counted. After [`LazyIndex::settle`], plans are
    /// made from it.
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        self.lower.view()
    }

    /// Bounds of the size of the projection, in tokens.
    #[must_use]
    pub fn tokens(&self) -> (u64, u64) {
        (self.lower.view().tokens(), self.upper.view().tokens())
    }

    /// Bounds of the sizes of the messages, by position.
    #[must_use]
    pub fn sizes(&self) -> &[TokenBounds] {
        &self.sizes
    }

    /// Whether the projection has more than `line` tokens. Counts, newest first, until that is certain: far from the line,
    /// nothing.
    ///
    /// # Errors
    /// What `count` says.
    pub fn exceeds<E>(
        &mut self,
        line: u64,
        mut count: impl FnMut(u32) -> Result<Tokens, E>,
    ) -> Result<bool, E> {
        for position in (0..self.lower.view().messages()).rev() {
            match self.tokens() {
                (lower, _) if lower > line => return Ok(true),
                (_, upper) if upper <= line => return Ok(false),
                _ => self.count(position, &mut count)?,
            }
        }
        Ok(self.tokens().0 > line)
    }

    /// Counts until a plan from [`LazyIndex::index`] is the plan from exact sizes: the same verdicts or the same reason
    /// for none, and the exact size after. Its size before is then still a lower bound ([`LazyIndex::tokens`] has both),
    /// unless nothing can be dropped from the sizes as they are and all had to be counted, as for [`PlanError`].
    ///
    /// `count` gives the exact size of the message at a position.
    ///
    /// # Errors
    /// What `count` says.
    pub fn settle<E>(
        &mut self,
        budget: &Budget,
        pass: Pass,
        strategy: &(impl Strategy + ?Sized),
        mut count: impl FnMut(u32) -> Result<Tokens, E>,
    ) -> Result<(), E> {
        let (line, mut batch) = (budget.goal().unwrap_or(budget.limit()), BATCH_MESSAGES);
        while strategy.is_monotone() {
            let low = Decision::of(self.lower.view(), budget, pass, strategy);
            let agree = |lazy: &Self| low == Decision::of(lazy.upper.view(), budget, pass, strategy);
            match &low {
                Decision::Infeasible => break,
                Decision::Unchanged(_) if agree(self) => return Ok(()),
                Decision::Unchanged(_) if self.count_kept(&[], line, batch, &mut count)? => {}
                Decision::Unchanged(_) => break,
                Decision::Planned(dropped) if self.count_kept(dropped, line, batch, &mut count)? => {}
                Decision::Planned(_) if agree(self) => return Ok(()),
                // All that stays is known: what is left to know are sizes among what goes.
                Decision::Planned(_) if self.count_newest(batch, &mut count)? => {}
                Decision::Planned(_) => break,
            }
            batch = batch.saturating_mul(2);
        }
        self.count_newest(usize::MAX, &mut count)?;
        Ok(())
    }

    /// An index with the exact sizes of what has been counted, and of the rest what `estimate` says, held within its
    /// bounds; and all those sizes, by position. After [`LazyIndex::settle`], a plan from it is the plan from exact sizes
    /// too, and its size before is an estimate instead of a bound.
    #[must_use]
    pub fn estimated(
        &self,
        mut estimate: impl FnMut(u32) -> Tokens,
    ) -> (IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>, Vec<Tokens>) {
        let mut index = self.lower.clone();
        let sizes = (0..).zip(&self.sizes).map(|(position, bounds)| {
            if bounds.is_exact() {
                return bounds.lower;
            }
            let size = estimate(position).clamp(bounds.lower, bounds.upper);
            index.recount(position, bounds.lower, size);
            size
        });
        let sizes = sizes.collect();
        (index, sizes)
    }

    /// Counts what stays, newest first, until it has more than `line` tokens and `batch` messages have been counted: what
    /// is older then goes, or is counted the next time. Says whether anything was left to count.
    fn count_kept<E>(
        &mut self,
        dropped: &[bool],
        line: u64,
        batch: usize,
        count: &mut impl FnMut(u32) -> Result<Tokens, E>,
    ) -> Result<bool, E> {
        let index = self.lower.view();
        let is_dropped = |group: &Group<'_>| dropped.get(group.leader() as usize).copied().unwrap_or(false);
        let kept =
            index.groups().rev().filter(|group| group.kind() != GroupKind::Orphan && !is_dropped(group));
        let kept: Vec<u32> = kept.flat_map(|group| group.positions().flatten()).collect();
        let (mut tokens, mut counted) = (0_u64, 0_usize);
        for position in kept {
            if tokens > line && counted >= batch {
                break;
            }
            counted += usize::from(!self.is_known(position));
            self.count(position, count)?;
            let size = self.sizes.get(position as usize).map_or(0, |bounds| bounds.lower.as_u64());
            tokens = tokens.saturating_add(size);
        }
        Ok(counted > 0)
    }

    /// Counts the newest of what is not known. Says whether anything was left to count.
    fn count_newest<E>(
        &mut self,
        batch: usize,
        count: &mut impl FnMut(u32) -> Result<Tokens, E>,
    ) -> Result<bool, E> {
        let positions = (0..self.lower.view().messages()).rev();
        let unknown: Vec<_> = positions.filter(|position| !self.is_known(*position)).take(batch).collect();
        for position in &unknown {
            self.count(*position, count)?;
        }
        Ok(!unknown.is_empty())
    }

    fn is_known(&self, position: u32) -> bool {
        self.sizes.get(position as usize).is_none_or(|bounds| bounds.is_exact())
    }

    fn count<E>(&mut self, position: u32, count: &mut impl FnMut(u32) -> Result<Tokens, E>) -> Result<(), E> {
        let Some(bounds) = self.sizes.get_mut(position as usize).filter(|bounds| !bounds.is_exact()) else {
            return Ok(());
        };
        let (was, now) = (*bounds, count(position)?);
        *bounds = TokenBounds::exact(now);
        self.lower.recount(position, was.lower, now);
        self.upper.recount(position, was.upper, now);
        Ok(())
    }
}

/// The outcome of a plan, as far as sizes must not change it.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Infeasible,
    /// For this reason.
    Unchanged(Discriminant<Unchanged>),
    /// By span, whether a group is dropped.
    Planned(Vec<bool>),
}

impl Decision {
    fn of(index: Index<'_>, budget: &Budget, pass: Pass, strategy: &(impl Strategy + ?Sized)) -> Self {
        let mut cells = vec![Cell::default(); index.span_count()];
        match plan(index, budget, pass, strategy, &mut cells) {
            Ok(Outcome::Planned(plan)) => {
                let mut dropped = vec![false; index.span_count()];
                for group in index.groups().filter(|group| plan.verdict(group) == Verdict::Drop) {
                    if let Some(cell) = dropped.get_mut(group.leader() as usize) {
                        *cell = true;
                    }
                }
                Self::Planned(dropped)
            }
            Ok(Outcome::Unchanged(why)) => Self::Unchanged(discriminant(&why)),
            Err(PlanError::Infeasible(_) | _) => Self::Infeasible,
        }
    }
}

/// Minimum number of messages that are counted between two looks at the plan; twice as many the next time.
const BATCH_MESSAGES: usize = 64;
