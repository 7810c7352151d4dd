//! The draft of a plan, into which a strategy writes its verdicts.

mod cell;
mod cut;
mod hold;
mod parts;
mod refusal;
mod replace;

pub(crate) use cell::Clamps;
pub use cell::{CLAMPS_MAX, Cell, Clamp, ELIDED_TOKENS_MAX, PartVerdict, Verdict};
pub use hold::{Floors, floors};
pub(crate) use parts::left_of;
pub use refusal::Refusal;
pub(crate) use replace::Quoting;
pub use replace::{Replacement, Writer};

use core::ops::Range;

use crate::index::{Flags, Group, GroupKind, Index, NONE, Span};
use crate::strategy::Protection;
use crate::{Budget, Turn};

use hold::{Hold, Rule};

/// The draft of a plan: the only place where verdicts are written. Illegal verdicts are refused.
#[derive(Debug)]
pub struct Draft<'a> {
    index: Index<'a>,
    /// One cell for each span; the cell of a group's leader counts.
    cells: &'a mut [Cell],
    /// One cell for each part.
    parts: &'a mut [Cell],
    clamps: Clamps,
    quoting: Option<Quoting>,
    replacements: &'a mut [Replacement],
    /// Number of replacements in use, in the order of their groups.
    replaced: usize,
    /// Function that joins adjacent summaries, set by the first replacement: a program that replaces nothing does not
    /// contain it.
    join: Option<fn(&mut Self)>,
    /// Whether a user message or a summary waits for the steps behind it, to be hidden with them.
    waits: bool,
    budget: Budget,
    /// Tokens by which the goal is lowered.
    held_back: u64,
    tokens: u64,
    floors: Floors,
}

/// The marks of groups that may not be hidden. The newest steps may be hidden if the request does not fit with them.
const BARRED: u8 = BARRED_ALWAYS | Cell::HELD;
const BARRED_ALWAYS: u8 = Cell::DROP | Cell::REPLACE | Cell::HARD;

impl<'a> Draft<'a> {
    /// A draft that keeps everything except orphans. `None` if `scratch` has too few cells for the index.
    pub(crate) fn new(
        index: Index<'a>,
        scratch: Scratch<'a>,
        budget: Budget,
        protection: Protection,
    ) -> Option<Self> {
        let Scratch { cells, elisions, replacements } = scratch;
        let (cells, rest) = cells.split_at_mut_checked(index.span_count())?;
        let clamps = if elisions.is_some() { Clamps::NONE } else { Clamps::default() };
        let parts = elisions.unwrap_or(rest).get_mut(..index.part_count())?;
        parts.fill(Cell::EMPTY);
        let mut draft = Self {
            index,
            cells,
            parts,
            clamps,
            quoting: None,
            replacements,
            replaced: 0,
            join: None,
            waits: false,
            budget,
            held_back: 0,
            tokens: index.tokens(),
            floors: Floors::default(),
        };
        draft.mark(protection);
        Some(draft)
    }

    /// Hides a group.
    ///
    /// No answer stays without its question. A user message or a summary is hidden with the last step that follows it
    /// before the next user message. Until then its verdict is [`Verdict::Keep`], and while such a step stays, it stays
    /// too.
    ///
    /// # Errors
    /// [`Refusal`] if there is no such group, or if the group is protected, one of the newest steps, dropped or
    /// replaced. The draft is unchanged then.
    pub fn drop_group(&mut self, leader: u32) -> Result<(), Refusal> {
        let group = self.index.group(leader).ok_or(Refusal::NoGroup)?;
        let cell = self.cell(leader).ok_or(Refusal::NoGroup)?;
        if cell.has(Cell::HARD) {
            return Err(Refusal::Protected);
        }
        if cell.has(Cell::HELD) {
            return Err(Refusal::NewestStep);
        }
        self.check_kept(cell)?;
        if group.span().opens() {
            self.cells.get_mut(leader as usize).ok_or(Refusal::NoGroup)?.set(Cell::LAST);
            self.waits = true;
        } else {
            self.hide(leader, group.span());
        }
        Ok(())
    }

    /// Hides the oldest groups that may be hidden, until the goal is met or none is left.
    ///
    /// Summaries go last: a summary stands for many messages, and is all that is left of them.
    pub fn drop_oldest(&mut self) {
        self.drop_oldest_before(None);
        self.drop_while(None, self.budget.goal().unwrap_or(u64::MAX), BARRED);
    }

    /// Hides the oldest groups until the goal is met, except those of the newest `turns` turns, and except summaries.
    pub fn drop_oldest_sparing(&mut self, turns: u32) {
        let first_spared = self.index.turn().0.saturating_add(1).saturating_sub(turns);
        self.drop_oldest_before(Some(Turn(first_spared)));
    }

    /// Hides the oldest groups that may be hidden, then summaries, then the newest steps, until the request fits its
    /// limit.
    ///
    /// A strategy that guarantees a fitting request ends with this method.
    pub fn drop_to_fit(&mut self) {
        self.release();
        let limit = self.budget.limit();
        for barred in [BARRED | Cell::SPARED, BARRED, BARRED_ALWAYS] {
            self.drop_while(None, limit, barred);
        }
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

    /// The size of the request now, in tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The bounds of the size of a plan: both floors for a plan that hides whole groups alone, the hard floor for a
    /// plan that also shortens parts.
    #[must_use]
    pub const fn floors(&self) -> Floors {
        self.floors
    }

    /// Lowers the goal by `tokens`, to leave room for a later [`record`](Self::record).
    ///
    /// The amount replaces that of an earlier call; 0 restores the goal. Without a goal the method does nothing.
    pub fn hold_back(&mut self, tokens: u64) {
        let Some(goal) = self.budget.goal() else { return };
        let whole = goal.saturating_add(self.held_back);
        self.held_back = tokens.min(whole);
        self.budget = self.budget.with_lower_goal(whole.saturating_sub(self.held_back));
    }

    /// Number of tokens that must still go to meet the goal; without a goal, 0.
    #[must_use]
    pub fn must_free(&self) -> u64 {
        self.budget.goal().map_or(0, |goal| self.tokens.saturating_sub(goal))
    }

    /// Whether the goal is met. Without a goal the result is true.
    #[must_use]
    pub fn is_goal_met(&self) -> bool {
        self.must_free() == 0
    }

    /// The present verdict on a group.
    #[must_use]
    pub fn verdict(&self, group: &Group<'_>) -> Verdict {
        self.cell(group.leader()).map_or(Verdict::Keep, Cell::verdict)
    }

    /// Whether a group is kept now and may be hidden.
    #[must_use]
    pub fn is_candidate(&self, group: &Group<'_>) -> bool {
        self.cells.get(group.leader() as usize).is_some_and(|cell| !cell.has(BARRED))
    }

    /// Whether parts of a group are shortened.
    #[must_use]
    pub fn is_shortened(&self, group: &Group<'_>) -> bool {
        self.cells.get(group.leader() as usize).is_some_and(|cell| cell.has(Cell::EDITED))
    }

    /// Whether a group is protected without exception.
    #[must_use]
    pub fn is_protected(&self, group: &Group<'_>) -> bool {
        self.cells.get(group.leader() as usize).is_some_and(|cell| cell.has(Cell::HARD))
    }

    /// Completes the draft: releases user messages and summaries that wait for hidden steps, and joins adjacent
    /// summaries.
    pub(crate) fn settle(&mut self) {
        self.release();
        if let Some(join) = self.join {
            join(self);
        }
    }

    pub(crate) fn into_verdicts(self) -> Verdicts<'a> {
        let Self { cells, parts, clamps, quoting, replacements, replaced, .. } = self;
        let replacements = replacements.get(..replaced).unwrap_or_default();
        Verdicts { cells, parts, clamps, quoting, replacements }
    }

    fn cell(&self, leader: u32) -> Option<Cell> {
        self.cells.get(leader as usize).copied()
    }

    /// Refuses a group that is dropped or replaced already.
    fn check_kept(&self, cell: Cell) -> Result<(), Refusal> {
        match cell.verdict() {
            Verdict::Keep => Ok(()),
            Verdict::Drop => Err(Refusal::Dropped),
            Verdict::Replace => Err(Refusal::Replaced),
        }
    }

    /// Hides the openers (user messages and summaries) that wait for steps of which none is left, before anything is
    /// counted.
    fn release(&mut self) {
        if self.waits {
            self.drop_while(Some(Turn(0)), 0, BARRED);
        }
    }

    fn drop_oldest_before(&mut self, turn: Option<Turn>) {
        self.release();
        self.drop_while(turn, self.budget.goal().unwrap_or(u64::MAX), BARRED | Cell::SPARED);
    }

    /// Hides groups until at most `target` tokens are left, together with the openers that wait for these groups.
    fn drop_while(&mut self, before: Option<Turn>, target: u64, barred: u8) {
        let spans = self.index.spans;
        // Without a bound, every turn is earlier.
        let before = before.map_or(u64::MAX, |turn| u64::from(turn.0));
        // The first opener behind which no step is left.
        let mut from = NONE;
        for (at, span) in (0_u32..).zip(spans) {
            if span.leader != at {
                continue;
            }
            if span.has(Flags::REQUEST) {
                self.drop_waiting(from..at);
                from = NONE;
                // A call with `before` = 0 only releases waiting openers, and visits all of them.
                if self.tokens <= target && before > 0 {
                    return;
                }
            }
            let Some(cell) = self.cells.get_mut(at as usize) else { break };
            let goes = self.tokens > target && u64::from(span.turn.0) < before && !cell.has(barred);
            // If not even the newest steps are held, a summary is like any other group.
            if span.opens() && (barred & Cell::HELD != 0 || span.has(Flags::REQUEST)) {
                if goes {
                    cell.set(Cell::LAST);
                }
                from = from.min(at);
            } else if goes {
                self.hide(at, span);
            } else if span.is_step() && cell.verdict() == Verdict::Keep {
                from = NONE;
            }
        }
        self.drop_waiting(from..NONE);
    }

    /// Hides the waiting openers among these groups: no step stays behind them.
    fn drop_waiting(&mut self, among: Range<u32>) {
        let from = self.index.spans.get(among.start as usize..).unwrap_or_default();
        for (at, span) in among.zip(from) {
            let waits = self
                .cells
                .get(at as usize)
                .is_some_and(|cell| cell.has(Cell::LAST) && !cell.has(BARRED_ALWAYS));
            if waits {
                self.hide(at, span);
            }
        }
    }

    /// Hides a group that may be hidden.
    fn hide(&mut self, leader: u32, span: &Span) {
        let Some(cell) = self.cells.get_mut(leader as usize) else { return };
        cell.set(Cell::DROP);
        if cell.has(Cell::EDITED) {
            self.forget_edits(leader);
        }
        self.tokens = self.tokens.saturating_sub(u64::from(span.tokens));
    }

    /// Marks the protected groups, and hides the orphans.
    fn mark(&mut self, protection: Protection) {
        let mut rule = Rule::new(self.index, protection);
        self.cells.fill(Cell::EMPTY);
        for asked in rule.asked(self.index) {
            let from = self.index.spans.get(asked.start as usize..).unwrap_or_default();
            // The loop visits spans, because a group is a large value to return.
            let leaders = asked.zip(from).filter(|(at, span)| span.leader == *at);
            for (at, span) in leaders {
                let bits = match rule.hold(at, span) {
                    Hold::No if span.is(GroupKind::Summary) => Cell::SPARED,
                    Hold::No => continue,
                    Hold::Orphan => Cell::DROP,
                    Hold::Hard => Cell::HARD | Cell::HELD,
                    Hold::NewestStep => Cell::HELD,
                };
                let request = rule.request.take();
                for at in [Some(at), request].into_iter().flatten() {
                    if let Some(cell) = self.cells.get_mut(at as usize) {
                        cell.set(bits);
                    }
                }
            }
        }
        self.floors = rule.floors;
    }
}

/// Memory for a plan, provided by the caller.
///
/// ```
/// use epitome_core::{Cell, Replacement, Scratch};
///
/// let (mut cells, mut replacements) = ([Cell::default(); 64], [Replacement::default(); 2]);
/// let scratch = Scratch::new(&mut cells).with_replacements(&mut replacements);
/// ```
#[derive(Debug)]
pub struct Scratch<'a> {
    cells: &'a mut [Cell],
    /// Separate cells for the parts, which are for elisions alone.
    elisions: Option<&'a mut [Cell]>,
    replacements: &'a mut [Replacement],
}

impl<'a> Scratch<'a> {
    /// Memory for verdicts on groups and parts: at least [`Index::cell_count`] cells. There is no memory for
    /// replacements, so that every [`Draft::replace`] is refused.
    #[must_use]
    pub const fn new(cells: &'a mut [Cell]) -> Self {
        Self { cells, elisions: None, replacements: &mut [] }
    }

    /// Memory for verdicts on groups, and separate cells for verdicts on parts, which may be elided but not clamped.
    #[must_use]
    pub(crate) const fn eliding(cells: &'a mut [Cell], elisions: &'a mut [Cell]) -> Self {
        Self { cells, elisions: Some(elisions), replacements: &mut [] }
    }

    /// Adds memory for replacements, one for each span of groups that a summary replaces.
    #[must_use]
    pub const fn with_replacements(mut self, replacements: &'a mut [Replacement]) -> Self {
        self.replacements = replacements;
        self
    }
}

/// The verdicts of a completed draft.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdicts<'a> {
    pub(crate) cells: &'a [Cell],
    pub(crate) parts: &'a [Cell],
    pub(crate) clamps: Clamps,
    pub(crate) quoting: Option<Quoting>,
    /// In the order of their groups.
    pub(crate) replacements: &'a [Replacement],
}
