//! The report of a compaction, for people and for programs.

use std::collections::BTreeSet;

use epitome::core::{
    Basis, Floors, Group, GroupKind, Index, Outcome, PartVerdict, Plan, Repair, Tokens, Turn, Unchanged,
    Verdict,
};
use epitome::models::Prices;
use serde::Serialize;

use crate::budget::{Asked, Defaults};
use crate::failure::{Failure, Result};
use crate::filled::Filled;
use crate::scan::Uncounted;
use crate::strategy::Strategies;

mod lost;
mod pays;
mod picture;
mod rows;
mod text;

pub(crate) use lost::LossRow;
pub(crate) use pays::Pays;
pub(crate) use picture::Picture;
pub(crate) use rows::{Row, place_of, table};

/// The report of one conversation. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The number of the conversation among several, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<usize>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    pub(crate) messages_before: u64,
    pub(crate) messages_after: u64,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) token_basis: Basis,
    pub(crate) tokenizer: String,
    /// The messages that were not counted: sizes before, and those of dropped groups, are then estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uncounted: Option<Uncounted>,
    pub(crate) groups: GroupCounts,
    pub(crate) stable_prefix_messages: u64,
    pub(crate) stable_prefix_tokens: u64,
    pub(crate) budget: Figures,
    pub(crate) goal_missed: bool,
    /// Price and saving of the compaction, if the prices of the model are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pays: Option<Pays>,
    pub(crate) strategies: Vec<String>,
    pub(crate) unchanged_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repair: Option<RepairCounts>,
    /// Hidden and shortened groups, by kind and source, without any text.
    pub(crate) loss: Vec<LossRow>,
    /// One letter per group: K kept, E kept with shortened parts, D dropped, R replaced by a summary.
    pub(crate) verdicts: String,
    pub(crate) groups_detail: Vec<GroupDetail>,
    /// Reasons of the verdicts, if `--why` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<WhyRow>,
    #[serde(skip)]
    pub(crate) turns: u32,
    #[serde(skip)]
    pub(crate) defaults: Defaults,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct GroupCounts {
    pub(crate) total: u64,
    pub(crate) kept: u64,
    pub(crate) dropped: u64,
    pub(crate) elided: u64,
    pub(crate) replaced: u64,
}

/// The budget in force, in tokens.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figures {
    pub(crate) window: u64,
    pub(crate) reserve: u64,
    /// `None`, in JSON `null`: compact now, at any size.
    pub(crate) trigger: Option<u64>,
    pub(crate) goal: Option<u64>,
    /// The smallest size that a pass toward a goal can reach.
    pub(crate) floor: u64,
    /// The smallest size that any pass can reach: more than `window - reserve` is infeasible.
    pub(crate) floor_hard: u64,
}

impl Figures {
    pub(crate) fn new(asked: &Asked, floors: Floors) -> Self {
        let budget = asked.budget;
        Self {
            window: budget.window(),
            reserve: budget.reserve(),
            trigger: if asked.now { None } else { Some(budget.trigger()) },
            goal: budget.goal(),
            floor: floors.goal,
            floor_hard: floors.hard,
        }
    }
}

/// Counts of the repair steps.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct RepairCounts {
    pub(crate) left_out: u64,
    pub(crate) moved: u64,
    pub(crate) aborted: u64,
    /// Calls without a result; the result may be in a later message.
    pub(crate) unrecorded: u64,
    pub(crate) merged: u64,
    /// Messages that were inserted because the provider's rules require them.
    pub(crate) put_between: u64,
    pub(crate) without_reasoning: u64,
    /// Number of violations that are left.
    pub(crate) violations_left: u64,
}

impl RepairCounts {
    /// Counts the repair steps on `messages` messages.
    pub(crate) fn of(steps: &[Repair], messages: usize) -> Self {
        let (mut counts, mut newest) = (Self { left_out: messages as u64, ..Self::default() }, 0);
        for step in steps {
            match *step {
                Repair::Keep(at)
                | Repair::Merge { position: at }
                | Repair::DropReasoning { position: at } => {
                    counts.left_out -= 1;
                    counts.moved += u64::from(at < newest);
                    newest = newest.max(at);
                    counts.merged += u64::from(matches!(step, Repair::Merge { .. }));
                    counts.without_reasoning += u64::from(matches!(step, Repair::DropReasoning { .. }));
                }
                Repair::Abort { .. } => counts.aborted += 1,
                Repair::Unrecorded { .. } => counts.unrecorded += 1,
                Repair::BridgeUser | Repair::BridgeAssistant => counts.put_between += 1,
                _ => {}
            }
        }
        counts
    }

    /// Whether no repair step was needed.
    pub(crate) const fn is_none(&self) -> bool {
        let Self { left_out, moved, aborted, unrecorded, merged, put_between, without_reasoning, .. } = *self;
        left_out + moved + aborted + unrecorded + merged + put_between + without_reasoning == 0
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct GroupDetail {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) kind: GroupKind,
    pub(crate) tokens: u32,
    pub(crate) tokens_after: u64,
    pub(crate) verdict: char,
}

/// The reason of the verdict on a group.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WhyRow {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) verdict: char,
    pub(crate) because: String,
}

/// Decision about a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decided<'a> {
    /// All messages stay, for this reason.
    Unchanged(&'static str),
    /// Only orphans are dropped: the rest meets the goal, or is protected.
    OrphansDropped,
    Planned(&'a Plan<'a>),
}

impl<'a> Decided<'a> {
    /// Decision of `outcome` about a conversation of `own` tokens, orphans included.
    pub(crate) fn new(outcome: Option<&'a Outcome<'a>>, index: Index<'_>, own: u64, asked: &Asked) -> Self {
        let misses = asked.budget.goal().is_some_and(|goal| own > goal);
        match outcome {
            None => Self::Unchanged(NOT_DUE),
            Some(Outcome::Planned(plan)) => Self::Planned(plan),
            // If a conversation has only orphans, something must stay.
            Some(_) if misses && (1..own).contains(&index.tokens()) => Self::OrphansDropped,
            Some(Outcome::Unchanged(Unchanged::AtGoal)) if misses => {
                Self::Unchanged(Unchanged::NothingToDrop.as_str())
            }
            Some(Outcome::Unchanged(why)) => Self::Unchanged(why.as_str()),
        }
    }

    fn letter(self, group: &Group<'_>) -> char {
        match self {
            Self::Unchanged(_) => Verdict::Keep.letter(),
            Self::OrphansDropped if group.kind() == GroupKind::Orphan => Verdict::Drop.letter(),
            Self::OrphansDropped => Verdict::Keep.letter(),
            Self::Planned(plan) if is_shortened(plan, group) => 'E',
            Self::Planned(plan) => plan.verdict(group).letter(),
        }
    }

    /// The messages that stay, in their order; `None` if all stay.
    pub(crate) fn order(self, index: Index<'_>) -> Option<Vec<u32>> {
        match self {
            Self::Unchanged(_) => None,
            Self::OrphansDropped => Some(index.projection().flatten().collect()),
            Self::Planned(plan) => Some(plan.projection().flatten().collect()),
        }
    }

    const fn tokens_after(self, index: Index<'_>, own: u64, filled: Option<&Filled>) -> u64 {
        match self {
            Self::Unchanged(_) => own,
            Self::OrphansDropped => index.tokens(),
            Self::Planned(plan) => match filled {
                Some(filled) => filled.tokens_after,
                None => plan.tokens_after(),
            },
        }
    }
}

/// The size of the conversation was under the trigger.
pub(crate) const NOT_DUE: &str = "not_due";

fn is_shortened(plan: &Plan<'_>, group: &Group<'_>) -> bool {
    plan.verdict(group) == Verdict::Keep
        && group.parts().any(|part| plan.part_verdict(&part) != PartVerdict::Keep)
}

fn details(index: Index<'_>, decided: Decided<'_>, filled: Option<&Filled>) -> Vec<GroupDetail> {
    let freed = filled.map(Filled::freed).unwrap_or_default();
    let groups = index.groups().map(|group| {
        let first = group.positions().map(|run| run.start).min().unwrap_or(0);
        let end = group.positions().map(|run| run.end).max().unwrap_or(0);
        let (kind, tokens, verdict) = (group.kind(), group.tokens().0, decided.letter(&group));
        let freed = freed.get(&group.leader()).copied().unwrap_or_default();
        let tokens_after = match verdict {
            'D' => 0,
            'R' => filled.map_or(0, |filled| filled.replaced(group.leader())),
            _ => u64::from(tokens).saturating_sub(freed),
        };
        GroupDetail { first, last: end.saturating_sub(1), kind, tokens, tokens_after, verdict }
    });
    groups.collect()
}

/// Number of turns with a visible message. In a session, the number of the latest turn also counts hidden ones.
fn turns(index: Index<'_>) -> u32 {
    let said = index.groups().filter(|group| !group.is_summary() && group.turn() > Turn(0));
    let turns: BTreeSet<Turn> = said.map(|group| group.turn()).collect();
    u32::try_from(turns.len()).unwrap_or(u32::MAX)
}

fn counts(details: &[GroupDetail]) -> GroupCounts {
    let with = |letter| details.iter().filter(|group| group.verdict == letter).count() as u64;
    GroupCounts {
        total: details.len() as u64,
        kept: with('K'),
        dropped: with('D'),
        elided: with('E'),
        replaced: with('R'),
    }
}

/// The inputs of a report.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) index: Index<'a>,
    pub(crate) decided: Decided<'a>,
    /// The stand-ins of all shortened parts.
    pub(crate) filled: Option<&'a Filled>,
    pub(crate) asked: &'a Asked,
    pub(crate) strategies: &'a Strategies,
    /// Sizes of all messages, orphans included.
    pub(crate) sizes: &'a [Tokens],
    pub(crate) basis: Basis,
    pub(crate) uncounted: Option<Uncounted>,
    pub(crate) tokenizer: String,
}

impl Report {
    pub(crate) fn new(facts: Facts<'_>) -> Self {
        let Facts { index, decided, filled, asked, strategies, sizes, basis, uncounted, tokenizer } = facts;
        let (messages, tokens) = (sizes.len() as u64, sum(sizes));
        let details = details(index, decided, filled);
        let tokens_after = decided.tokens_after(index, tokens, filled);
        let unchanged_reason = match decided {
            Decided::Unchanged(reason) => Some(reason),
            _ => None,
        };
        let floors = match decided {
            Decided::Planned(plan) => plan.floors(),
            _ => epitome::core::floors(index, strategies.with(|strategy| strategy.protection())),
        };
        let mut report = Self {
            conversation: None,
            path: String::new(),
            messages_before: messages,
            messages_after: messages,
            tokens_before: tokens,
            tokens_after,
            token_basis: if uncounted.is_some() { Basis::Estimated } else { basis },
            tokenizer,
            uncounted: uncounted.map(|rest| rest.after(decided, basis)),
            groups: counts(&details),
            stable_prefix_messages: messages,
            stable_prefix_tokens: tokens,
            budget: Figures::new(asked, floors),
            goal_missed: false,
            pays: None,
            strategies: strategies.names().to_vec(),
            unchanged_reason,
            repair: None,
            loss: lost::rows(index, &details, filled),
            verdicts: details.iter().map(|group| group.verdict).collect(),
            groups_detail: details,
            why: Vec::new(),
            turns: turns(index),
            defaults: asked.defaults,
        };
        report.set_goal_missed();
        if let Some(order) = decided.order(index) {
            let summaries = filled.map_or(0, |filled| filled.summaries.len());
            report.messages_after = order.len() as u64 + summaries as u64;
            let is_edited = |at: &u32| filled.is_some_and(|filled| filled.edits.contains_key(at));
            let stays = |(from, at): &(u32, u32)| from == at && !is_edited(from);
            let stable = order.into_iter().zip(0..).take_while(stays).count();
            report.set_stable_prefix(stable, sizes);
        }
        report
    }

    /// Fails if the goal is missed.
    pub(crate) fn require_goal(&self) -> Result<()> {
        match self.budget.goal.filter(|_| self.goal_missed) {
            Some(goal) => Err(Failure::missed(self.tokens_after, goal, self.budget.floor_hard)),
            None => Ok(()),
        }
    }

    /// Compares the tokens after the compaction with the goal, if a compaction was due.
    pub(crate) fn set_goal_missed(&mut self) {
        self.goal_missed = self.unchanged_reason != Some(NOT_DUE)
            && self.budget.goal.is_some_and(|goal| self.tokens_after > goal);
    }

    /// Sets price and saving by these prices. `asks` is true if a model has written stand-ins of groups.
    pub(crate) fn set_pays(&mut self, prices: &Prices, asks: bool) {
        if self.messages_before == self.messages_after && self.tokens_before == self.tokens_after {
            return;
        }
        let replaced = || self.groups_detail.iter().filter(|group| group.verdict == 'R');
        let covered = replaced().map(|group| u64::from(group.tokens)).sum();
        let made =
            if asks { prices.summary(covered, replaced().map(|group| group.tokens_after).sum()) } else { 0 };
        let (before, after) = (self.tokens_before, self.tokens_after);
        self.pays = Some(Pays::new(prices, (before, after, self.stable_prefix_tokens), made));
    }

    /// Sets the number of violations after the repair.
    pub(crate) fn set_violations_left(&mut self, violations: u64) {
        if let Some(repair) = &mut self.repair {
            repair.violations_left = violations;
        }
    }

    /// Sets the number of messages at the beginning that are unchanged.
    pub(crate) fn set_stable_prefix(&mut self, messages: usize, sizes: &[Tokens]) {
        self.stable_prefix_messages = messages as u64;
        self.stable_prefix_tokens = sum(sizes.get(..messages).unwrap_or_default());
    }
}

pub(crate) fn sum(sizes: &[Tokens]) -> u64 {
    sizes.iter().map(|size| size.as_u64()).sum()
}

/// The share of `part` in `whole` in percent, as text.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "100 %".to_owned(),
        whole => format!("{} %", (u128::from(part) * 100 + u128::from(whole) / 2) / u128::from(whole)),
    }
}
