//! A decision: what the next request will contain.

use core::cmp::Reverse;
use core::fmt;
use core::ops::Range;

use crate::draft::{Cell, Draft, Floors, Verdict};
use crate::index::{Group, GroupKind, Index};
use crate::{Budget, Strategy, Tokens};

/// Why a pass is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pass {
    /// The trigger says so. A pass that frees less than the budget's `min_reclaim` is not worth it.
    Proactive,
    /// Somebody asked for it. Whatever it frees, it is made.
    Manual,
}

/// Decides what the next request will contain.
///
/// Whether a pass is due is the caller's question ([`Budget::is_due`]). `cells` is memory for the verdicts: at least
/// [`Index::span_count`] of them.
///
/// # Errors
/// [`PlanError::Infeasible`] if what is protected does not fit the window; [`PlanError::CellsTooFew`].
pub fn plan<'a>(
    index: Index<'a>,
    budget: &Budget,
    pass: Pass,
    strategy: &(impl Strategy + ?Sized),
    cells: &'a mut [Cell],
) -> Result<Outcome<'a>, PlanError> {
    let needed = index.span_count();
    let cells = cells.get_mut(..needed).ok_or(PlanError::CellsTooFew { needed })?;
    let mut draft = Draft::new(index, cells, *budget, strategy.protection());
    let floors = draft.floors();
    if floors.hard > budget.limit() {
        return Err(PlanError::Infeasible(Infeasible::new(&draft)));
    }
    if budget.goal().is_some() && draft.is_goal_met() {
        return Ok(Outcome::Unchanged(Unchanged::AtGoal));
    }
    strategy.plan(&mut draft);
    let (before, after) = (index.tokens(), draft.tokens());
    let freed = before.saturating_sub(after);
    if freed == 0 {
        return Ok(Outcome::Unchanged(Unchanged::NothingToDrop));
    }
    if pass == Pass::Proactive && freed < budget.min_reclaim() && before <= budget.limit() {
        return Ok(Outcome::Unchanged(Unchanged::TooLittle { freed }));
    }
    Ok(Outcome::Planned(Plan {
        index,
        budget: *budget,
        floors,
        tokens_after: after,
        cells: draft.into_cells(),
    }))
}

/// What came of planning.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle both, and there is no third")]
pub enum Outcome<'a> {
    /// There is nothing to change.
    Unchanged(Unchanged),
    /// This is to be done.
    Planned(Plan<'a>),
}

/// Why there is nothing to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unchanged {
    /// The goal is met as it is.
    AtGoal,
    /// Everything that is left is protected, or the strategy spares it.
    NothingToDrop,
    /// A proactive pass would free too little to be worth it.
    TooLittle {
        /// What it would free, in tokens.
        freed: u64,
    },
}

impl Unchanged {
    /// The word for it: `at_goal`, `nothing_to_drop` or `too_little`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtGoal => "at_goal",
            Self::NothingToDrop => "nothing_to_drop",
            Self::TooLittle { .. } => "too_little",
        }
    }
}

/// A decision, as data: which groups the next request keeps, and what that costs.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    index: Index<'a>,
    budget: Budget,
    floors: Floors,
    tokens_after: u64,
    cells: &'a [Cell],
}

impl<'a> Plan<'a> {
    /// The conversation that it was made from.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// The verdict on a group.
    #[must_use]
    pub fn verdict(&self, group: &Group<'_>) -> Verdict {
        self.verdict_at(group.leader())
    }

    /// The verdicts on all groups, in order: displayed as a string like `KKDDK`.
    #[must_use]
    pub const fn verdicts(&self) -> Verdicts<'_, 'a> {
        Verdicts(self)
    }

    /// The size of the projection before, in tokens.
    #[must_use]
    pub const fn tokens_before(&self) -> u64 {
        self.index.tokens()
    }

    /// The size of the projection after, in tokens.
    #[must_use]
    pub const fn tokens_after(&self) -> u64 {
        self.tokens_after
    }

    /// What no plan with this protection could go below.
    #[must_use]
    pub const fn floors(&self) -> Floors {
        self.floors
    }

    /// Whether the goal was not met: the floor lies above it, or the strategy did too little.
    #[must_use]
    pub fn is_goal_missed(&self) -> bool {
        self.budget.goal().is_some_and(|goal| self.tokens_after > goal)
    }

    /// Whether the request fits its limit.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.tokens_after <= self.budget.limit()
    }

    /// The messages of the next request, in order, as ranges of positions.
    pub fn projection(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let (index, cells) = (self.index, self.cells);
        index.project(move |leader, _| {
            cells.get(leader as usize).is_none_or(|cell| cell.verdict() == Verdict::Keep)
        })
    }

    /// The messages of the next request that stand as they stood in the last one: what a provider's cache still holds.
    #[must_use]
    pub fn stable_prefix(&self) -> StablePrefix {
        let mut prefix = StablePrefix::default();
        let visible = self.index.project_spans(|_, kind| kind != GroupKind::Orphan);
        for at in visible.take_while(|at| self.leader_verdict(*at) == Verdict::Keep) {
            let positions = self.index.positions(at);
            prefix.messages = prefix.messages.saturating_add(positions.end.saturating_sub(positions.start));
            prefix.tokens = prefix.tokens.saturating_add(self.index.own_tokens(at));
        }
        prefix
    }

    fn leader_verdict(&self, at: usize) -> Verdict {
        self.index.spans.get(at).map_or(Verdict::Keep, |span| self.verdict_at(span.leader))
    }

    fn verdict_at(&self, leader: u32) -> Verdict {
        self.cells.get(leader as usize).map_or(Verdict::Keep, |cell| cell.verdict())
    }
}

impl PartialEq for Plan<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.index.spans == other.index.spans
            && self.index.totals == other.index.totals
            && self.budget == other.budget
            && self.tokens_after == other.tokens_after
            && self.index.groups().all(|group| self.verdict(&group) == other.verdict(&group))
    }
}

impl Eq for Plan<'_> {}

/// The part of a projection that a plan leaves as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StablePrefix {
    /// How many messages.
    pub messages: u32,
    /// How many tokens.
    pub tokens: u64,
}

/// Displays the verdicts of a plan, one letter a group: `K` keep, `D` drop.
#[derive(Debug, Clone, Copy)]
pub struct Verdicts<'p, 'a>(&'p Plan<'a>);

impl fmt::Display for Verdicts<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.index.groups().try_for_each(|group| write!(f, "{}", self.0.verdict(&group).letter()))
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// What is protected does not fit the window.
    Infeasible(Infeasible),
    /// The caller brought too little memory.
    CellsTooFew {
        /// How many cells are needed.
        needed: usize,
    },
}

/// What is protected does not fit the window: no compaction helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Infeasible {
    /// What is protected, in tokens.
    pub floor: u64,
    /// What a request may have: the window less the reserve.
    pub limit: u64,
    /// The largest groups that are protected, largest first.
    pub largest: [Option<Contributor>; 3],
}

/// A protected group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contributor {
    /// The position of its first message.
    pub position: u32,
    /// What it is.
    pub kind: GroupKind,
    /// Its size.
    pub tokens: Tokens,
}

impl Contributor {
    /// The larger one is higher, and of equals the first.
    const fn rank(&self) -> (Tokens, Reverse<u32>) {
        (self.tokens, Reverse(self.position))
    }
}

impl Infeasible {
    fn new(draft: &Draft<'_>) -> Self {
        let mut largest: [Option<Contributor>; 3] = [None; 3];
        for group in draft.index().groups().filter(|group| draft.is_protected(group)) {
            let position = draft.index().span(group.leader()).map_or(0, |span| span.first);
            let mut rest = Contributor { position, kind: group.kind(), tokens: group.tokens() };
            for place in &mut largest {
                match place {
                    Some(there) if there.rank() >= rest.rank() => {}
                    Some(there) => core::mem::swap(there, &mut rest),
                    None => {
                        *place = Some(rest);
                        break;
                    }
                }
            }
        }
        Self { floor: draft.floors().hard, limit: draft.budget().limit(), largest }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CellsTooFew { needed } => write!(f, "a plan needs {needed} cells"),
            Self::Infeasible(Infeasible { floor, limit, largest }) => {
                write!(
                    f,
                    "what is protected has {floor} tokens, and a request may have {limit}; the largest:"
                )?;
                for Contributor { position, kind, tokens } in largest.iter().flatten() {
                    write!(f, " {} of {tokens} tokens at message {position};", kind.as_str())?;
                }
                f.write_str(" raise the window, or shorten these")
            }
        }
    }
}

impl core::error::Error for PlanError {}
