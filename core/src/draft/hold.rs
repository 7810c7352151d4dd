//! Why a group stays.

use core::ops::Range;

use crate::Turn;
use crate::index::{Flags, GroupKind, Index, NONE, Span};
use crate::strategy::Protection;

/// The sizes of the groups that a plan keeps whatever its strategy wants, in tokens.
///
/// Both count groups whole. Of what is protected without exception no strategy may shorten a part, so that [`hard`] is a bound for
/// every plan. If it is more than a request may have, the plan itself cuts the results of tools in it
/// ([`Protection`](crate::Protection)), and [`Plan::floors`](crate::Plan::floors) counts them as they are then; where that is not
/// enough, no compaction helps. Of the newest steps parts may be shortened, so that [`goal`] is a bound only for plans that keep or
/// hide whole groups: one that clears tool results in these steps, or clamps what is huge in them, goes below it, and meets a goal
/// that lies between the two.
///
/// [`hard`]: Self::hard
/// [`goal`]: Self::goal
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{ArrayTable, IndexBuf, OpenCallSlots, Protection, Span, Tokens, floors};
///
/// let mut index = IndexBuf::<ArrayTable<Span, 8>, OpenCallSlots<4>>::new();
/// index.push(&SimpleMessage::user("Read it."), Tokens(10))?;
/// let calls = [ToolCallView::new("c1", "read", "a.txt")];
/// index.push(&SimpleMessage::calls(&calls), Tokens(20))?;
/// index.push(&SimpleMessage::result("c1", "a long text"), Tokens(900))?;
/// index.push(&SimpleMessage::assistant("It is fine."), Tokens(5))?;
/// // The task and the newest step; and the step before it, of which a plan may still clear the result.
/// let floors = floors(index.view(), Protection::default());
/// assert_eq!((floors.hard, floors.goal), (15, 935));
/// # Ok::<(), epitome_core::Full>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Floors {
    /// The size of everything that is protected without exception, with the requests of protected steps: no plan goes below it.
    pub hard: u64,
    /// The size of the floor with the newest steps, and with the summaries that a protected step relies on, which stay as long as the
    /// request fits: where a pass toward a goal ends that hides whole groups and shortens none.
    pub goal: u64,
}

/// The groups that a plan of this index keeps whatever its strategy wants, as long as they fit.
#[must_use]
pub fn floors(index: Index<'_>, protection: Protection) -> Floors {
    let mut rule = Rule::new(index, protection);
    for group in index.groups() {
        rule.hold(group.leader(), group.span());
    }
    rule.floors
}

/// Why a group stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    No,
    /// The group does not stay: it is never projected.
    Orphan,
    NewestStep,
    Hard,
}

/// Says of each group, asked in order, whether and why it stays.
#[derive(Debug)]
pub(super) struct Rule<'a> {
    protection: Protection,
    /// The first user message, if it stays, and the last; [`NONE`] where there is none.
    users: [u32; 2],
    /// The newest step, and the oldest of those that are held.
    newest: u32,
    held_from: u32,
    /// Whether only system messages have come.
    leading: bool,
    /// The last group without exception that was a step, and the request that it brings, if nothing else protects that.
    brought_to: u32,
    pub(super) request: Option<u32>,
    pub(super) floors: Floors,
    index: Index<'a>,
}

impl<'a> Rule<'a> {
    pub(super) fn new(index: Index<'a>, protection: Protection) -> Self {
        let first = index.totals.first_user.filter(|_| protection.first_user);
        let users = [first.unwrap_or(NONE), index.totals.last_user.unwrap_or(NONE)];
        let (mut newest, mut held_from, mut steps) = (NONE, NONE, 0_u32);
        let mut turn = Turn(u32::MAX);
        for (at, span) in index.spans.iter().enumerate().rev() {
            if steps > 0 && steps >= protection.keep_steps {
                break;
            }
            if span.is_step() && span.leader as usize == at {
                if steps > 0 && span.turn != turn {
                    break;
                }
                (newest, held_from) = (if steps == 0 { span.leader } else { newest }, span.leader);
                (turn, steps) = (span.turn, steps.saturating_add(1));
            }
        }
        let floors = Floors::default();
        Self {
            protection,
            users,
            newest,
            held_from,
            leading: true,
            brought_to: 0,
            request: None,
            floors,
            index,
        }
    }

    /// The spans that anything may hold, in order: no other need be asked about. What is held by its place is among the
    /// newest, but for the task.
    pub(super) fn asked(&self, index: Index<'_>) -> [Range<u32>; 3] {
        let [first, last] = self.users;
        let marked_to = index.totals.marked_to;
        let newest = index.totals.turn_from.min(self.held_from).min(last).max(marked_to);
        let task = if (marked_to..newest).contains(&first) { first..first.saturating_add(1) } else { 0..0 };
        [0..marked_to, task, newest..NONE]
    }

    /// The group that `span` leads. What it looks at fits into registers, which a group does not; and most groups are done
    /// after a look at one word.
    #[inline]
    pub(super) fn hold(&mut self, leader: u32, span: &Span) -> Hold {
        let [first, last] = self.users;
        if leader >= self.held_from || leader == first || leader == last || span.is_marked() {
            return self.look(leader, span);
        }
        if span.is(GroupKind::Orphan) {
            return Hold::Orphan;
        }
        self.leading &= span.is(GroupKind::System);
        Hold::No
    }

    /// Reason why a group stays, for a group that may have to.
    fn look(&mut self, leader: u32, span: &Span) -> Hold {
        if span.is(GroupKind::Orphan) {
            return Hold::Orphan;
        }
        self.leading &= span.is(GroupKind::System);
        let named = leader == self.newest || self.users.contains(&leader);
        let instruction = span.has(Flags::INSTRUCTION) && (self.protection.system || self.leading);
        let open = span.unanswered() > 0 && span.turn == self.index.turn();
        let tokens = u64::from(span.tokens);
        if named || instruction || span.has(Flags::PINNED) || open {
            self.floors.hard = self.floors.hard.saturating_add(tokens);
            self.floors.goal = self.floors.goal.saturating_add(tokens);
            if span.is_step() {
                self.bring(leader);
            }
            return Hold::Hard;
        }
        if span.is_step() && leader >= self.held_from {
            self.floors.goal = self.floors.goal.saturating_add(tokens);
            return Hold::NewestStep;
        }
        Hold::No
    }

    /// A step that stays without exception brings the request of its turn, and the summaries between them: nothing else shows
    /// what it answers. Spans are looked at once, however many such steps there are.
    fn bring(&mut self, leader: u32) {
        let index = self.index;
        for at in (self.brought_to..leader).rev() {
            let Some(span) = index.span(at).filter(|span| span.leader == at && span.opens()) else {
                continue;
            };
            let tokens = u64::from(span.tokens);
            let held = self.users.contains(&at) || span.has(Flags::PINNED);
            if !held {
                self.floors.goal = self.floors.goal.saturating_add(tokens);
            }
            if span.has(Flags::REQUEST) {
                if !held {
                    self.floors.hard = self.floors.hard.saturating_add(tokens);
                    self.request = Some(at);
                }
                break;
            }
        }
        self.brought_to = leader;
    }
}
