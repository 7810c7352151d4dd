//! Plans: decisions about the content of the next request.
//!
//! An [`Index`] and a [`Strategy`] make a [`Plan`]. A plan with its stand-ins for the removed content is a
//! [`ReadyPlan`]. [`plan_with`] has an example of all steps.

mod error;
mod loss;
#[cfg(feature = "alloc")]
mod planner;
mod ready;

pub use error::{Contributor, Infeasible, PlanError};
pub use loss::{Loss, LossKind, LossReport};
#[cfg(feature = "alloc")]
pub use planner::Planner;
pub use ready::{
    ClampGap, ElisionGap, FillError, Gap, PartEdit, Placeholders, PlannedEdit, ReadyPlan, StandIn, StandIns,
    SummaryEdit, SummaryGap,
};

use core::fmt;
use core::ops::Range;

use crate::draft::{self, Cell, Draft, Floors, PartVerdict, Scratch, Verdict};
use crate::index::{Group, GroupKind, Index, IndexedPart};
use crate::{Budget, Pass, Strategy};

/// Makes a plan, which decides the content of the next request.
///
/// The caller decides whether a pass is due ([`Budget::is_due`]). `cells` is memory for the verdicts: at least
/// [`Index::cell_count`] cells. There is no memory for summaries; for these use [`plan_with`].
///
/// # Errors
/// [`PlanError::Infeasible`] if the protected messages exceed the limit; [`PlanError::CellsTooFew`] if `cells` is
/// too short.
pub fn plan<'a>(
    index: Index<'a>,
    budget: &Budget,
    pass: Pass,
    strategy: &(impl Strategy + ?Sized),
    cells: &'a mut [Cell],
) -> Result<Outcome<'a>, PlanError> {
    plan_with(index, budget, pass, strategy, Scratch::new(cells))
}

/// Makes a plan as [`plan`] does, with memory for summaries too.
///
/// The stand-ins for messages and parts are still missing in a [`Plan`]. [`Plan::fill`] takes them and gives a
/// [`ReadyPlan`], whose [`edits`](ReadyPlan::edits) are the changes that a store has to write.
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{
///     ArrayTable, Budget, Cell, ClassEstimator, Draft, IndexBuf, OpenCallSlots, Outcome, PartKind, PartSpan, Pass,
///     Placeholders, PlannedEdit, Replacement, Scratch, Span, StandIn, StandIns, Strategy, TokenCounter, Tokens,
///     count_message, count_part, plan_with,
/// };
///
/// /// Summarizes the first answer, and clears what tools returned.
/// #[derive(Debug)]
/// struct Example;
///
/// impl Strategy for Example {
///     fn name(&self) -> &'static str {
///         "example"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         for part in draft.index().parts().filter(|part| part.kind() == PartKind::ToolResult) {
///             // What is protected, or too small to be worth it, is refused.
///             let _ = draft.elide(&part, Tokens(8));
///         }
///         let _ = draft.replace(1, 1, Tokens(12));
///     }
/// }
///
/// // Index: every message, once.
/// let (spans, parts) = (ArrayTable::<Span, 16>::default(), ArrayTable::<PartSpan, 16>::default());
/// let mut index = IndexBuf::with_parts(spans, OpenCallSlots::<4>::new(), parts);
/// let counter = ClassEstimator::new();
/// let calls = [ToolCallView::new("c1", "list", "{}")];
/// let long = "one.txt two.txt three.txt ".repeat(20);
/// for message in [
///     SimpleMessage::user("Compare all the files here."),
///     SimpleMessage::assistant("I shall do so. First I have to know which files there are, and so I list them."),
///     SimpleMessage::calls(&calls),
///     SimpleMessage::result("c1", &long),
///     SimpleMessage::assistant("There are sixty."),
///     SimpleMessage::user("And which is the longest?"),
///     SimpleMessage::assistant("One."),
///     SimpleMessage::assistant("Two."),
///     SimpleMessage::assistant("Three."),
/// ] {
///     let tokens = count_message(&message, &counter);
///     index.push_with_parts(&message, tokens, |_, part| count_part(part, &counter))?;
/// }
/// let view = index.view();
///
/// // Draft and plan: verdicts, and what they come to at most.
/// let (mut cells, mut replacements) = ([Cell::default(); 32], [Replacement::default(); 1]);
/// let scratch = Scratch::new(&mut cells).with_replacements(&mut replacements);
/// let budget = Budget::builder().window(1_000).trigger(500).without_goal().build()?;
/// let Outcome::Planned(plan) = plan_with(view, &budget, Pass::Manual, &Example, scratch)? else { unreachable!() };
/// assert_eq!(plan.verdicts().to_string(), "KREKKKKK");
/// let bound = plan.tokens_after();
///
/// // Fill: the note that stands for every result, and the summary that a model has written.
/// let note = StandIn::new("[cleared]", counter.count("[cleared]"));
/// let summary = [StandIn::new("I list the files.", count_message(&SimpleMessage::assistant("I list the files."), &counter))];
/// let stand_ins = StandIns::new(Placeholders::new().with_tool_result(note)).with_summaries(&summary);
/// let ready = plan.fill(stand_ins)?;
/// assert!(ready.tokens_after() <= bound);
///
/// // Edits: what a store writes, in one step.
/// for edit in ready.edits() {
///     match edit {
///         PlannedEdit::Hide(positions) => assert_eq!(positions, 1..2),
///         PlannedEdit::Summary(summary) => {
///             assert_eq!((summary.position, summary.stand_in.text), (1, "I list the files."));
///             assert!(summary.covers().flatten().eq([1]));
///         }
///         PlannedEdit::Part(part) => {
///             assert_eq!((part.position, part.ordinal), (3, 0));
///             assert_eq!(part.stand_in.map(|note| note.text), Some("[cleared]"));
///         }
///         _ => unreachable!(),
///     }
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Errors
/// As [`plan`].
pub fn plan_with<'a>(
    index: Index<'a>,
    budget: &Budget,
    pass: Pass,
    strategy: &(impl Strategy + ?Sized),
    scratch: Scratch<'a>,
) -> Result<Outcome<'a>, PlanError> {
    plan_cutting(index, budget, pass, strategy, scratch, Draft::cut_results)
}

/// Makes a plan as [`plan_with`] does. `cut` may cut results before the strategy runs, and returns whether it did. A
/// small device passes a function that does nothing, and does not contain the code of the other.
pub(crate) fn plan_cutting<'a>(
    index: Index<'a>,
    budget: &Budget,
    pass: Pass,
    strategy: &(impl Strategy + ?Sized),
    scratch: Scratch<'a>,
    cut: impl FnOnce(&mut Draft<'a>) -> bool,
) -> Result<Outcome<'a>, PlanError> {
    let few = PlanError::CellsTooFew { needed: index.cell_count() };
    let mut draft = Draft::new(index, scratch, *budget, strategy.protection()).ok_or(few)?;
    let is_cut = cut(&mut draft);
    let floors = draft.floors();
    if floors.hard > budget.limit() {
        return Err(PlanError::Infeasible(Infeasible::new(&draft)));
    }
    if budget.goal().is_none() || !draft.is_goal_met() {
        strategy.plan(&mut draft);
        draft.settle();
    } else if !is_cut {
        return Ok(Outcome::Unchanged(Unchanged::AtGoal));
    }
    let (before, after) = (index.tokens(), draft.tokens());
    let freed = before.saturating_sub(after);
    if freed == 0 {
        return Ok(Outcome::Unchanged(Unchanged::NothingToDrop));
    }
    if freed < budget.min_reclaim() && pass.can_wait(before, budget) {
        return Ok(Outcome::Unchanged(Unchanged::TooLittle { freed }));
    }
    Ok(Outcome::Planned(Plan {
        index,
        budget: *budget,
        floors,
        tokens_after: after,
        verdicts: draft.into_verdicts(),
    }))
}

/// The result of planning: a plan, or the reason why there is none.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "a caller must handle both, and there is no third")]
pub enum Outcome<'a> {
    /// There is nothing to change.
    Unchanged(Unchanged),
    /// A plan that is to be carried out.
    Planned(Plan<'a>),
}

/// The reason why there is nothing to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unchanged {
    /// The goal is met already.
    AtGoal,
    /// All remaining groups are protected or spared by the strategy, or the strategy writes summaries and has no memory
    /// for them.
    NothingToDrop,
    /// A proactive pass would free too little: less than the budget's `min_reclaim`, or than a limit of the compactor.
    TooLittle {
        /// The tokens that the pass would free.
        freed: u64,
    },
}

impl Unchanged {
    /// The name of the reason: `at_goal`, `nothing_to_drop` or `too_little`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtGoal => "at_goal",
            Self::NothingToDrop => "nothing_to_drop",
            Self::TooLittle { .. } => "too_little",
        }
    }
}

/// A plan as data: the groups and parts that the next request keeps, and the size of the request.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    index: Index<'a>,
    budget: Budget,
    floors: Floors,
    tokens_after: u64,
    verdicts: draft::Verdicts<'a>,
}

impl<'a> Plan<'a> {
    /// The index from which the plan was made.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// The verdict on a group.
    #[must_use]
    pub fn verdict(&self, group: &Group<'_>) -> Verdict {
        self.verdict_at(group.leader())
    }

    /// The verdict on a part of a group that is kept.
    #[must_use]
    pub fn part_verdict(&self, part: &IndexedPart<'_>) -> PartVerdict {
        let cell = self.verdicts.parts.get(part.at() as usize);
        cell.map_or(PartVerdict::Keep, |cell| self.verdicts.clamps.verdict(*cell))
    }

    /// The verdicts on all groups, in order: displayed as a string like `KKDDERRK`.
    #[must_use]
    pub const fn verdicts(&self) -> Verdicts<'_, 'a> {
        Verdicts(self)
    }

    /// The size of the projection before the compaction, in tokens.
    #[must_use]
    pub const fn tokens_before(&self) -> u64 {
        self.index.tokens()
    }

    /// The size of the projection after the compaction, in tokens: an upper bound if the plan has stand-ins, and exact
    /// without them.
    ///
    /// Stand-ins for parts and groups count with their maximum sizes. The amount is by the plan's counter, like all its
    /// amounts; [`Correction::reported_from`](crate::Correction::reported_from) converts it to the provider's.
    #[must_use]
    pub const fn tokens_after(&self) -> u64 {
        self.tokens_after
    }

    /// The bounds of the size of a plan with this protection: both floors for a plan that hides whole groups alone, the
    /// hard floor for a plan that also shortens parts.
    #[must_use]
    pub const fn floors(&self) -> Floors {
        self.floors
    }

    /// Whether the goal was not met: the floor lies above it, or the strategy freed too little.
    #[must_use]
    pub fn is_goal_missed(&self) -> bool {
        self.budget.goal().is_some_and(|goal| self.tokens_after > goal)
    }

    /// Whether the request fits its limit.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.tokens_after <= self.budget.limit()
    }

    /// Number of groups that stay, perhaps with shortened parts.
    #[must_use]
    pub fn groups_kept(&self) -> u32 {
        let kept = self.index.groups().filter(|group| self.verdict(group) == Verdict::Keep);
        u32::try_from(kept.count()).unwrap_or(u32::MAX)
    }

    /// Number of messages that stay, perhaps with shortened parts.
    #[must_use]
    pub fn messages_kept(&self) -> u32 {
        let lengths = self.projection().map(|positions| positions.end.saturating_sub(positions.start));
        lengths.fold(0, u32::saturating_add)
    }

    /// The present messages that the next request keeps, in order, as ranges of positions. Summaries are not among
    /// them.
    pub fn projection(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let (index, cells) = (self.index, self.verdicts.cells);
        index.project(move |leader, _| {
            cells.get(leader as usize).is_none_or(|cell| cell.verdict() == Verdict::Keep)
        })
    }

    /// The messages at the beginning of the next request that are unchanged since the last one, and that a provider's
    /// cache still holds.
    #[must_use]
    pub fn stable_prefix(&self) -> StablePrefix {
        let mut prefix = StablePrefix::default();
        for at in self.index.project_spans(|_, kind| kind != GroupKind::Orphan) {
            let cell = self.index.spans.get(at).map_or(Cell::EMPTY, |span| self.cell(span.leader));
            if cell.verdict() != Verdict::Keep {
                return prefix;
            }
            let positions = self.index.positions(at);
            let edited = if cell.has(Cell::EDITED) { self.first_edit(positions.clone()) } else { None };
            let end = edited.unwrap_or(positions.end);
            prefix.messages = prefix.messages.saturating_add(end.saturating_sub(positions.start));
            if edited.is_some() {
                return prefix;
            }
            prefix.tokens = prefix.tokens.saturating_add(self.index.own_tokens(at));
        }
        prefix
    }

    /// The tokens of the last request in a provider's cache that the next one cannot use: all from the first
    /// change on.
    #[must_use]
    pub fn lost_cache_tokens(&self) -> u64 {
        self.tokens_before().saturating_sub(self.stable_prefix().tokens)
    }

    /// The messages and parts that the plan hides and shortens.
    #[must_use]
    pub fn loss(&self) -> LossReport {
        LossReport::of(self)
    }

    /// The position of the first of these messages that has a shortened part.
    fn first_edit(&self, positions: Range<u32>) -> Option<u32> {
        let numbers = self.index.parts_in(positions);
        let edited = |at: &usize| self.verdicts.parts.get(*at).is_some_and(|cell| *cell != Cell::EMPTY);
        let first = numbers.into_iter().find(edited)?;
        self.index.parts.get(first).map(crate::index::PartSpan::position)
    }

    /// The shortened parts with their verdicts, in the order of their messages.
    pub fn shortened(&self) -> impl Iterator<Item = (IndexedPart<'a>, PartVerdict)> + use<'a> {
        let (index, plan) = (self.index, *self);
        let parts = index.parts().map(move |part| (part, plan.part_verdict(&part)));
        parts.filter(|(_, verdict)| *verdict != PartVerdict::Keep)
    }

    fn cell(&self, leader: u32) -> Cell {
        self.verdicts.cells.get(leader as usize).copied().unwrap_or(Cell::EMPTY)
    }

    fn verdict_at(&self, leader: u32) -> Verdict {
        self.cell(leader).verdict()
    }
}

impl PartialEq for Plan<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.index.spans == other.index.spans
            && self.index.parts == other.index.parts
            && self.index.totals == other.index.totals
            && self.budget == other.budget
            && self.tokens_after == other.tokens_after
            && self.verdicts.replacements == other.verdicts.replacements
            && self.verdicts.quoting == other.verdicts.quoting
            && self.index.groups().all(|group| self.verdict(&group) == other.verdict(&group))
            && self.index.parts().all(|part| self.part_verdict(&part) == other.part_verdict(&part))
    }
}

impl Eq for Plan<'_> {}

/// The messages at the beginning of a projection that a plan leaves unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StablePrefix {
    /// The number of messages.
    pub messages: u32,
    /// The number of tokens. If the prefix ends within a run of messages of one group, the tokens of that run are not
    /// included.
    pub tokens: u64,
}

/// Displays the verdicts of a plan, one letter a group: `K` keep, `E` keep with shortened parts, `D` drop, `R` replace.
#[derive(Debug, Clone, Copy)]
pub struct Verdicts<'p, 'a>(&'p Plan<'a>);

impl fmt::Display for Verdicts<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.index.groups().try_for_each(|group| write!(f, "{}", self.0.cell(group.leader()).letter()))
    }
}
