//! A decision while it is being written.

use crate::index::{Group, GroupKind, Index};
use crate::strategy::Protection;
use crate::{Budget, Tokens, Turn};

/// What becomes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Verdict {
    /// It stays as it is.
    Keep,
    /// It is hidden.
    Drop,
}

impl Verdict {
    /// Its letter in a plan's string.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Keep => 'K',
            Self::Drop => 'D',
        }
    }
}

/// The memory for one group's verdict, one byte. A plan needs [`Index::span_count`] of them from its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cell(u8);

impl Cell {
    /// A cell before any verdict is written.
    pub(crate) const EMPTY: Self = Self(0);

    const DROP: u8 = 1;
    const HELD: u8 = 1 << 1;
    const HARD: u8 = 1 << 2;

    pub(crate) const fn verdict(self) -> Verdict {
        if self.0 & Self::DROP == 0 { Verdict::Keep } else { Verdict::Drop }
    }

    const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// Why a group cannot be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no group with this number.
    NoGroup,
    /// It is protected: a standing instruction, a pin, open work, the task, the last request or the newest step.
    Protected,
    /// It is one of the newest steps, which go only before the request would not fit.
    NewestStep,
    /// It is dropped already.
    Dropped,
}

/// Verdicts in the making: the only place where they are written. Illegal ones are refused.
#[derive(Debug)]
pub struct Draft<'a> {
    index: Index<'a>,
    cells: &'a mut [Cell],
    budget: Budget,
    tokens: u64,
    floors: Floors,
    /// Whether the newest steps may be dropped too, because the request does not fit with them.
    overflow: bool,
}

/// What a plan cannot go below, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Floors {
    /// What is protected without exception.
    pub hard: u64,
    /// The same with the newest steps, which stay as long as the request fits: where a pass toward a goal ends.
    pub goal: u64,
}

impl<'a> Draft<'a> {
    /// A draft that keeps everything but orphans. `cells` has one cell for each span of the index.
    pub(crate) fn new(
        index: Index<'a>,
        cells: &'a mut [Cell],
        budget: Budget,
        protection: Protection,
    ) -> Self {
        let mut draft =
            Self { index, cells, budget, tokens: index.tokens(), floors: Floors::default(), overflow: false };
        draft.mark(protection);
        draft
    }

    /// Hides a group.
    ///
    /// # Errors
    /// [`Refusal`] if that would not be legal; nothing is changed then.
    pub fn drop_group(&mut self, leader: u32) -> Result<(), Refusal> {
        let span = self.index.span(leader).filter(|span| span.leader == leader).ok_or(Refusal::NoGroup)?;
        let cell = self.cells.get(leader as usize).ok_or(Refusal::NoGroup)?;
        if cell.has(Cell::HARD) {
            return Err(Refusal::Protected);
        }
        if cell.has(Cell::HELD) && !self.overflow {
            return Err(Refusal::NewestStep);
        }
        if cell.has(Cell::DROP) {
            return Err(Refusal::Dropped);
        }
        self.hide(leader, Tokens(span.tokens));
        Ok(())
    }

    /// Hides the oldest groups that may be hidden, until the goal is met or none is left.
    pub fn drop_oldest(&mut self) {
        self.drop_oldest_before(None);
    }

    /// The same, sparing the groups of the newest `turns` turns.
    pub fn drop_oldest_sparing(&mut self, turns: u32) {
        let first_spared = self.index.turn().0.saturating_add(1).saturating_sub(turns);
        self.drop_oldest_before(Some(Turn(first_spared)));
    }

    /// Hides the oldest groups that may be hidden, and after them the newest steps if need be, until the request fits
    /// its limit. A strategy that is to guarantee a fitting request ends with it.
    pub fn drop_to_fit(&mut self) {
        let limit = self.budget.limit();
        for overflow in [false, true] {
            self.overflow = overflow;
            self.drop_while(None, |draft| draft.tokens > limit);
        }
        // It fits now: what is left of the newest steps stays, whoever comes next.
        self.overflow = false;
    }

    /// The conversation.
    #[must_use]
    pub const fn index(&self) -> Index<'a> {
        self.index
    }

    /// The budget.
    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    /// What the request would have now, in tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// What a plan cannot go below.
    #[must_use]
    pub const fn floors(&self) -> Floors {
        self.floors
    }

    /// How many tokens must still go to meet the goal; without a goal, none.
    #[must_use]
    pub fn must_free(&self) -> u64 {
        self.budget.goal().map_or(0, |goal| self.tokens.saturating_sub(goal))
    }

    /// Whether the goal is met. Without a goal it is.
    #[must_use]
    pub fn is_goal_met(&self) -> bool {
        self.must_free() == 0
    }

    /// The verdict on a group, as it stands.
    #[must_use]
    pub fn verdict(&self, group: &Group<'_>) -> Verdict {
        self.cells.get(group.leader() as usize).map_or(Verdict::Keep, |cell| cell.verdict())
    }

    /// Whether a group is kept now and may be hidden.
    #[must_use]
    pub fn is_candidate(&self, group: &Group<'_>) -> bool {
        let cell = self.cells.get(group.leader() as usize);
        let barred = Cell::DROP | Cell::HARD | if self.overflow { 0 } else { Cell::HELD };
        cell.is_some_and(|cell| !cell.has(barred))
    }

    /// Whether a group is protected without exception.
    #[must_use]
    pub fn is_protected(&self, group: &Group<'_>) -> bool {
        self.cells.get(group.leader() as usize).is_some_and(|cell| cell.has(Cell::HARD))
    }

    pub(crate) fn into_cells(self) -> &'a [Cell] {
        self.cells
    }

    fn drop_oldest_before(&mut self, turn: Option<Turn>) {
        self.drop_while(turn, |draft| !draft.is_goal_met());
    }

    fn drop_while(&mut self, before: Option<Turn>, more: impl Fn(&Self) -> bool) {
        for group in self.index.groups() {
            if !more(self) {
                return;
            }
            if before.is_none_or(|turn| group.turn() < turn) && self.is_candidate(&group) {
                self.hide(group.leader(), group.tokens());
            }
        }
    }

    /// Hides a group that may be hidden.
    fn hide(&mut self, leader: u32, tokens: Tokens) {
        if let Some(cell) = self.cells.get_mut(leader as usize) {
            cell.0 |= Cell::DROP;
            self.tokens = self.tokens.saturating_sub(tokens.as_u64());
        }
    }

    /// Marks what is protected, and the orphans as hidden.
    fn mark(&mut self, protection: Protection) {
        let mut rule = Rule::new(self.index, protection);
        self.cells.fill(Cell::default());
        for group in self.index.groups() {
            let Some(cell) = self.cells.get_mut(group.leader() as usize) else { continue };
            match rule.hold(&group) {
                Hold::Orphan => cell.0 = Cell::DROP,
                Hold::Hard => cell.0 = Cell::HARD | Cell::HELD,
                Hold::NewestStep => cell.0 = Cell::HELD,
                Hold::No => {}
            }
        }
        self.floors = rule.floors;
    }
}

/// What a plan of this index cannot go below.
#[must_use]
pub fn floors(index: Index<'_>, protection: Protection) -> Floors {
    let mut rule = Rule::new(index, protection);
    for group in index.groups() {
        rule.hold(&group);
    }
    rule.floors
}

/// Why a group stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    No,
    /// It does not stay: it is never projected.
    Orphan,
    NewestStep,
    Hard,
}

/// Says of each group, asked in order, whether and why it stays.
#[derive(Debug)]
struct Rule {
    protection: Protection,
    first_user: Option<u32>,
    last_user: Option<u32>,
    /// How many steps are still to come.
    steps: u32,
    /// Whether only system messages have come.
    leading: bool,
    floors: Floors,
}

impl Rule {
    fn new(index: Index<'_>, protection: Protection) -> Self {
        let first_user = index.totals.first_user.filter(|_| protection.first_user);
        let (last_user, steps) = (index.totals.last_user, index.steps());
        Self { protection, first_user, last_user, steps, leading: true, floors: Floors::default() }
    }

    fn hold(&mut self, group: &Group<'_>) -> Hold {
        let to_come = self.steps;
        let named = match group.kind() {
            GroupKind::Orphan => return Hold::Orphan,
            GroupKind::Assistant | GroupKind::Exchange => {
                self.steps = self.steps.saturating_sub(1);
                to_come == 1
            }
            GroupKind::User => [self.first_user, self.last_user].contains(&Some(group.leader())),
            GroupKind::System | GroupKind::Summary => false,
        };
        self.leading &= group.kind() == GroupKind::System;
        let instruction = group.is_instruction() && (self.protection.system || self.leading);
        let tokens = group.tokens().as_u64();
        if named || instruction || group.is_pinned() || group.is_open() {
            self.floors.hard = self.floors.hard.saturating_add(tokens);
            self.floors.goal = self.floors.goal.saturating_add(tokens);
            return Hold::Hard;
        }
        if group.is_step() && to_come <= self.protection.keep_steps {
            self.floors.goal = self.floors.goal.saturating_add(tokens);
            return Hold::NewestStep;
        }
        Hold::No
    }
}
