//! Triggers: the conditions under which a compaction is due, as data.

mod fired;
mod pacing;
#[cfg(test)]
mod tests;
mod view;

pub use fired::{Fired, TriggerKind};
pub use pacing::{Pacing, Wait, WaitReason};
pub use view::TriggerView;

use crate::Pass;

/// A condition on a conversation under which a pass is due.
///
/// A trigger decides when to plan. The goal of a [`Budget`](crate::Budget) is the size to reach.
///
/// Every amount is compared strictly: a trigger of 100,000 tokens is due at 100,001.
///
/// A trigger is a value without memory of its own. A compound one borrows its conditions: make it a constant, or keep
/// the slice as long as the trigger. Its evaluation recurses as deep as the conditions are nested.
///
/// ```
/// use epitome_core::{
///     ArrayTable, Budget, IndexBuf, OpenCallSlots, Pass, Span, Trigger, TriggerKind, TriggerView,
/// };
///
/// const LARGE_OR_LONG: Trigger<'static> = Trigger::any(&[
///     Trigger::tokens(100_000),
///     Trigger::all(&[Trigger::turns(40), Trigger::has_tool_calls()]),
///     Trigger::overflow(),
/// ]);
///
/// let index = IndexBuf::<ArrayTable<Span, 8>, OpenCallSlots<4>>::new();
/// let budget = Budget::default();
/// let view = TriggerView::new(index.view(), &budget, 100_001);
/// let fired = LARGE_OR_LONG.fired(&view).expect("100,001 tokens are more than 100,000");
/// assert_eq!(fired.kind(), TriggerKind::Tokens);
/// assert_eq!(fired.to_string(), "tokens: 100001 > 100000");
///
/// let view = TriggerView::new(index.view(), &budget, 100_000);
/// assert!(!LARGE_OR_LONG.is_due(&view));
/// assert!(LARGE_OR_LONG.is_due(&view.with_pass(Pass::Overflow)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger<'a>(Condition<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Tokens(u64),
    Budget,
    Reported(u64),
    Window { per_mille: u32 },
    Messages(u32),
    Turns(u32),
    Groups(u32),
    ToolCalls,
    ToolResultAge { steps: u32 },
    Always,
    Never,
    Manual,
    Overflow,
    All(&'a [Trigger<'a>]),
    Any(&'a [Trigger<'a>]),
}

impl Default for Trigger<'_> {
    /// [`Trigger::budget`].
    fn default() -> Self {
        Self::budget()
    }
}

impl<'a> Trigger<'a> {
    /// The next request has more than `tokens`, by [`UsageLedger::size`](crate::UsageLedger::size): the last report,
    /// and the content that came since.
    #[must_use]
    pub const fn tokens(tokens: u64) -> Self {
        Self(Condition::Tokens(tokens))
    }

    /// The next request has more tokens than the budget's own trigger, which follows the model's window.
    #[must_use]
    pub const fn budget() -> Self {
        Self(Condition::Budget)
    }

    /// The latest report had more than `tokens` of input, by [`Tally::token_count`](crate::Tally::token_count). Content
    /// that came since does not count.
    #[must_use]
    pub const fn reported(tokens: u64) -> Self {
        Self(Condition::Reported(tokens))
    }

    /// The next request has more than `per_mille` thousandths of the window (of all of it, the reserve included).
    #[must_use]
    pub const fn window_per_mille(per_mille: u32) -> Self {
        Self(Condition::Window { per_mille })
    }

    /// There are more than this many messages in the index.
    #[must_use]
    pub const fn messages(messages: u32) -> Self {
        Self(Condition::Messages(messages))
    }

    /// More than this many turns have a message of the user or of the model left. Hidden turns do not count, nor do
    /// messages before the first turn. Takes one pass over the groups, if there are more groups than that.
    #[must_use]
    pub const fn turns(turns: u32) -> Self {
        Self(Condition::Turns(turns))
    }

    /// There are more than this many groups in the index.
    #[must_use]
    pub const fn groups(groups: u32) -> Self {
        Self(Condition::Groups(groups))
    }

    /// The index holds a call of the model. Calls that the provider runs itself do not count.
    #[must_use]
    pub const fn has_tool_calls() -> Self {
        Self(Condition::ToolCalls)
    }

    /// More than this many steps of the model follow the oldest exchange: calls with their results.
    #[must_use]
    pub const fn tool_result_age(steps: u32) -> Self {
        Self(Condition::ToolResultAge { steps })
    }

    /// Always due. The plan decides whether there is anything to gain.
    #[must_use]
    pub const fn always() -> Self {
        Self(Condition::Always)
    }

    /// Never due.
    #[must_use]
    pub const fn never() -> Self {
        Self(Condition::Never)
    }

    /// A person or the program requests a pass now: [`Pass::Manual`].
    #[must_use]
    pub const fn manual() -> Self {
        Self(Condition::Manual)
    }

    /// The provider has refused the request as too large: [`Pass::Overflow`].
    #[must_use]
    pub const fn overflow() -> Self {
        Self(Condition::Overflow)
    }

    /// All of these triggers are due. An empty list is due.
    #[must_use]
    pub const fn all(triggers: &'a [Self]) -> Self {
        Self(Condition::All(triggers))
    }

    /// One of these triggers is due. An empty list is not due.
    #[must_use]
    pub const fn any(triggers: &'a [Self]) -> Self {
        Self(Condition::Any(triggers))
    }

    /// Whether a pass is due.
    #[must_use]
    pub fn is_due(&self, view: &TriggerView<'_>) -> bool {
        self.fired(view).is_some()
    }

    /// The condition that makes a pass due, if there is one. For [`Trigger::any`] it is the first condition that holds;
    /// for [`Trigger::all`], the first of all conditions if all of them hold.
    #[must_use]
    pub fn fired(&self, view: &TriggerView<'_>) -> Option<Fired> {
        let index = view.index();
        let (kind, measured, limit) = match self.0 {
            Condition::Tokens(limit) => (TriggerKind::Tokens, view.size(), limit),
            Condition::Budget => (TriggerKind::Budget, view.size(), view.budget().trigger()),
            Condition::Reported(limit) => (TriggerKind::Reported, view.token_count(), limit),
            Condition::Window { per_mille } => {
                (TriggerKind::Window, view.size(), thousandths(view.budget().window(), per_mille))
            }
            Condition::Messages(limit) => {
                (TriggerKind::Messages, u64::from(index.messages()), u64::from(limit))
            }
            // A turn has at least one group: if there are no more groups than the limit, no pass over them is needed.
            Condition::Turns(limit) if index.group_count() <= limit => return None,
            Condition::Turns(limit) => (TriggerKind::Turns, u64::from(view.turns()), u64::from(limit)),
            Condition::Groups(limit) => {
                (TriggerKind::Groups, u64::from(index.group_count()), u64::from(limit))
            }
            Condition::ToolResultAge { steps } => {
                (TriggerKind::ToolResultAge, u64::from(view.tool_result_age()?), u64::from(steps))
            }
            Condition::ToolCalls => return Fired::when(TriggerKind::ToolCalls, view.has_tool_calls()),
            Condition::Always => return Fired::when(TriggerKind::Always, true),
            Condition::Never => return None,
            Condition::Manual => {
                return Fired::when(TriggerKind::Manual, view.pass() == Pass::Manual);
            }
            Condition::Overflow => {
                return Fired::when(TriggerKind::Overflow, view.pass() == Pass::Overflow);
            }
            Condition::All(triggers) => return all_fired(triggers, view),
            Condition::Any(triggers) => return triggers.iter().find_map(|trigger| trigger.fired(view)),
        };
        Fired::over(kind, measured, limit)
    }
}

fn all_fired(triggers: &[Trigger<'_>], view: &TriggerView<'_>) -> Option<Fired> {
    let Some((first, others)) = triggers.split_first() else {
        return Fired::when(TriggerKind::All, true);
    };
    let fired = first.fired(view)?;
    others.iter().all(|trigger| trigger.is_due(view)).then_some(fired)
}

/// `per_mille` thousandths of `amount`, rounded down, which is exact for "more than"; at most `u64::MAX`.
const fn thousandths(amount: u64, per_mille: u32) -> u64 {
    let whole = (amount / 1_000).saturating_mul(per_mille as u64);
    // Below 1,000 x 2^32: it fits.
    whole.saturating_add((amount % 1_000).saturating_mul(per_mille as u64) / 1_000)
}
