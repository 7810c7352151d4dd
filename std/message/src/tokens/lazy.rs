//! Counts only of the messages that a decision depends on.

use core::cell::Cell as Slot;
use core::mem::{Discriminant, discriminant};

use epitome_core::message::MessageView;
use epitome_core::{
    Basis, Budget, Cell, Framing, Full, Group, GroupKind, Index, IndexBuf, MediaRules, OpenCallTree, Outcome,
    PartSpan, Pass, Placed, PlanError, Span, Strategy, TokenBounds, TokenCounter, Tokens, Unchanged, Verdict,
    count_message, plan,
};

/// Bounds of the size of a message: that of [`count_message`], with bounds instead of counts for the texts.
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
    // Sizes are sums: the slack of the texts is the slack of the message.
    let lower = upper.as_u64().saturating_sub(bracket.slack.get());
    let lower = if upper == Tokens::MAX { Tokens::ZERO } else { Tokens::from_u64(lower) };
    TokenBounds::new(lower, upper)
}

/// Counts with upper bounds, and adds up their distance from the lower bounds.
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

/// An index of messages with bounds instead of sizes. [`LazyIndex::settle`] counts only the messages that a plan
/// depends on; the plan is the same as with exact sizes of all messages.
///
/// It holds two indexes, one with the lower and one with the upper bounds. If a trigger, a floor and a monotone
/// strategy ([`Strategy::is_monotone`]) decide alike on both, they decide alike on all sizes in between. For a
/// strategy that is not monotone, all messages are counted. The index has no parts: a strategy that shortens parts
/// finds none, and no results are cut if the protected messages do not fit. Kept messages are always counted,
/// newest first. A plan that keeps 100,000 tokens counts little more than these, for a conversation of any length.
///
/// Positions are those of the index, in the order of [`LazyIndex::push`].
#[derive(Debug, Clone, Default)]
pub struct LazyIndex {
    lower: IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>,
    upper: IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>,
    sizes: Vec<TokenBounds>,
}

impl LazyIndex {
    /// An index without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next message to its group, in constant time. The size of the message is within `bounds`.
    ///
    /// # Errors
    /// [`Full`] if there are more messages than positions. The index is then unusable.
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

    /// The index with the lower bounds, which are exact for counted messages. After [`LazyIndex::settle`], plans
    /// are made from it.
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

    /// Whether the projection has more than `line` tokens. It counts messages, newest first, until the result is
    /// certain; far from the line, none.
    ///
    /// # Errors
    /// The errors of `count`.
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

    /// Counts messages until a plan from [`LazyIndex::index`] is the plan from exact sizes: the same verdicts, or
    /// the same reason for none, and the exact size after.
    ///
    /// The plan's size before is then still a lower bound ([`LazyIndex::tokens`] has both bounds), unless no group
    /// can be dropped at the current sizes and all messages had to be counted, as for [`PlanError`]. `count`
    /// returns the exact size of the message at a position.
    ///
    /// # Errors
    /// The errors of `count`.
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
                // All kept messages are known. Only sizes of dropped messages are unknown.
                Decision::Planned(_) if self.count_newest(batch, &mut count)? => {}
                Decision::Planned(_) => break,
            }
            batch = batch.saturating_mul(2);
        }
        self.count_newest(usize::MAX, &mut count)?;
        Ok(())
    }

    /// An index with exact sizes for counted messages, and with estimates within the bounds for the others; also
    /// all these sizes, by position. After [`LazyIndex::settle`], a plan from it is the plan from exact sizes too,
    /// and its size before is an estimate instead of a bound.
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

    /// Counts the kept messages, newest first, until they exceed `line` tokens and `batch` messages have been
    /// counted. Older messages are then dropped, or counted the next time. Returns whether any message was counted.
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

    /// Counts the newest uncounted messages. Returns whether there were any.
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

/// The outcome of a plan, without the sizes that may vary.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Infeasible,
    /// Unchanged for this reason.
    Unchanged(Discriminant<Unchanged>),
    /// Whether each group is dropped, by span.
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

/// Minimum number of messages that are counted between two plans; doubled each time.
const BATCH_MESSAGES: usize = 64;
