//! The protection of groups.

use core::ops::Range;

use crate::Turn;
use crate::index::{Flags, GroupKind, Index, NONE, Span};
use crate::strategy::Protection;

/// The sizes of the groups that a plan keeps, independent of its strategy, in tokens.
///
/// Both floors count whole groups.
///
/// No strategy may shorten a part of a group that is protected without exception, so that [`hard`] is a bound for every
/// plan. If it exceeds the limit of a request, the plan itself cuts the tool results in it
/// ([`Protection`](crate::Protection)), and [`Plan::floors`](crate::Plan::floors) counts these results with their cut
/// sizes. If that is not enough, no compaction helps.
///
/// Parts of the newest steps may be shortened, so that [`goal`] is a bound only for plans that keep or hide whole
/// groups. A plan that clears tool results in these steps, or clamps huge parts in them, goes below it. Such a plan can
/// meet a goal that lies between the two floors.
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
    /// The size of all messages that are protected without exception, with the user messages of protected steps. No
    /// plan goes below it.
    pub hard: u64,
    /// The size of the hard floor with the newest steps, and with the summaries that a protected step relies on.
    ///
    /// These groups stay as long as the request fits: a pass toward a goal that hides whole groups and shortens none
    /// ends at this size.
    pub goal: u64,
}

/// The floors of an index: the sizes of the groups that a plan keeps as long as they fit, independent of its strategy.
#[must_use]
pub fn floors(index: Index<'_>, protection: Protection) -> Floors {
    let mut rule = Rule::new(index, protection);
    for group in index.groups() {
        rule.hold(group.leader(), group.span());
    }
    rule.floors
}

/// The reason why a group stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    No,
    /// The group does not stay: it is never projected.
    Orphan,
    NewestStep,
    Hard,
}

/// The rule that decides, for one group after the other, whether and why it stays.
#[derive(Debug)]
pub(super) struct Rule<'a> {
    protection: Protection,
    /// The first user message, if it stays, and the last; [`NONE`] where there is none.
    users: [u32; 2],
    /// The newest step, and the oldest step that is held.
    newest: u32,
    held_from: u32,
    /// Whether all groups so far were system messages.
    leading: bool,
    /// The last step that is protected without exception, and the user message of its turn, if nothing else protects
    /// that message.
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

    /// The ranges of spans that may be protected, in order: no other span needs a check. A group that is held for its
    /// position is among the newest spans, except for the first user message.
    pub(super) fn asked(&self, index: Index<'_>) -> [Range<u32>; 3] {
        let [first, last] = self.users;
        let marked_to = index.totals.marked_to;
        let newest = index.totals.turn_from.min(self.held_from).min(last).max(marked_to);
        let task = if (marked_to..newest).contains(&first) { first..first.saturating_add(1) } else { 0..0 };
        [0..marked_to, task, newest..NONE]
    }

    /// The hold on the group that `span` leads. A span fits into registers, and a group does not. For most groups the
    /// check of one word is enough.
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

    /// The hold on a group that may have to stay.
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

    /// Protects the user message of the turn of a step that stays without exception, and the summaries between them:
    /// nothing else shows the question that the step answers. Each span is visited once, independent of the number of
    /// such steps.
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
