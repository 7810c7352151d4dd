//! What a compaction did, for people and for programs.

use core::fmt::Write as _;

use epitome::core::{Basis, Floors, Group, GroupKind, Index, Plan, Verdict};
use serde::Serialize;

use crate::amount::grouped;
use crate::budget::{Asked, Defaults};

mod picture;

pub(crate) use picture::Picture;

/// The report of one conversation. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    pub(crate) messages_before: u64,
    pub(crate) messages_after: u64,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) token_basis: Basis,
    pub(crate) tokenizer: String,
    pub(crate) groups: GroupCounts,
    pub(crate) stable_prefix_messages: u64,
    pub(crate) stable_prefix_tokens: u64,
    pub(crate) budget: Figures,
    pub(crate) goal_missed: bool,
    pub(crate) strategies: Vec<String>,
    pub(crate) unchanged_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repair: Option<RepairCounts>,
    pub(crate) verdicts: String,
    pub(crate) groups_detail: Vec<GroupDetail>,
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

/// The budget in force, in tokens. A trigger of 0 stands for "now".
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figures {
    pub(crate) window: u64,
    pub(crate) reserve: u64,
    pub(crate) trigger: u64,
    pub(crate) goal: Option<u64>,
    /// What a pass toward a goal cannot go below.
    pub(crate) floor: u64,
    /// What no pass can go below: more than `window - reserve` is infeasible.
    pub(crate) floor_hard: u64,
}

impl Figures {
    pub(crate) fn new(asked: &Asked, floors: Floors) -> Self {
        let budget = asked.budget;
        Self {
            window: budget.window(),
            reserve: budget.reserve(),
            trigger: if asked.now { 0 } else { budget.trigger() },
            goal: budget.goal(),
            floor: floors.goal,
            floor_hard: floors.hard,
        }
    }
}

/// What making the result legal took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct RepairCounts {
    pub(crate) left_out: u64,
    pub(crate) moved: u64,
    pub(crate) aborted: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct GroupDetail {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) kind: GroupKind,
    pub(crate) tokens: u32,
    pub(crate) verdict: char,
}

/// The verdicts of a plan, or of none: then everything stays.
pub(crate) fn details(index: Index<'_>, plan: Option<&Plan<'_>>) -> Vec<GroupDetail> {
    let letter = |group: &Group<'_>| plan.map_or(Verdict::Keep, |plan| plan.verdict(group)).letter();
    let groups = index.groups().map(|group| {
        let first = group.positions().map(|run| run.start).min().unwrap_or(0);
        let end = group.positions().map(|run| run.end).max().unwrap_or(0);
        let (kind, tokens, verdict) = (group.kind(), group.tokens().0, letter(&group));
        GroupDetail { first, last: end.saturating_sub(1), kind, tokens, verdict }
    });
    groups.collect()
}

pub(crate) fn counts(details: &[GroupDetail]) -> GroupCounts {
    let with = |letter| details.iter().filter(|group| group.verdict == letter).count() as u64;
    GroupCounts {
        total: details.len() as u64,
        kept: with('K'),
        dropped: with('D'),
        elided: with('E'),
        replaced: with('R'),
    }
}

impl Report {
    /// The report as people read it.
    pub(crate) fn to_text(&self, picture: &Picture) -> String {
        let mut out = String::new();
        let (before, after) = (grouped(self.tokens_before), grouped(self.tokens_after));
        let basis = format!("{}, {}", self.token_basis.as_str(), self.tokenizer);
        let _ = writeln!(
            out,
            "was       {} messages in {} groups and {} turns, {before} tokens ({basis})",
            grouped(self.messages_before),
            grouped(self.groups.total),
            self.turns
        );
        let _ = writeln!(out, "budget    {}", self.budget_line());
        let _ = writeln!(out, "strategy  {}", self.strategies.join(", "));
        if let Some(reason) = self.unchanged_reason {
            let _ = writeln!(out, "unchanged {}", self.explain(reason));
        } else {
            let _ = writeln!(
                out,
                "is        {} messages, {after} tokens, {} of what it was{}",
                grouped(self.messages_after),
                share(self.tokens_after, self.tokens_before),
                self.verdict_on_goal()
            );
            let _ = writeln!(out, "kept      {} groups: {}", self.groups.kept, self.by_kind('K'));
            let _ = writeln!(out, "dropped   {} groups: {}", self.groups.dropped, self.by_kind('D'));
            let _ =
                writeln!(out, "replaced  {} groups, elided in {}", self.groups.replaced, self.groups.elided);
            let _ = writeln!(
                out,
                "stable    the first {} messages, {} tokens, are as they were: a prompt cache keeps them",
                grouped(self.stable_prefix_messages),
                grouped(self.stable_prefix_tokens)
            );
        }
        if let Some(repair) = self.repair {
            let RepairCounts { left_out, moved, aborted } = repair;
            let _ = writeln!(
                out,
                "repaired  {left_out} results left out, {moved} moved, {aborted} calls answered as aborted"
            );
        }
        let _ = writeln!(out, "\n{}", picture.draw(&self.groups_detail));
        out
    }

    fn budget_line(&self) -> String {
        let Figures { window, reserve, trigger, goal, floor, .. } = self.budget;
        let by_default = |is: bool| if is { " (default)" } else { "" };
        let trigger = if trigger == 0 { "now".to_owned() } else { grouped(trigger) };
        let goal = goal.map_or_else(|| "none".to_owned(), grouped);
        let defaults = self.defaults;
        format!(
            "window {}{}, reserve {}{}, trigger {trigger}{}, goal {goal}{}, floor {}",
            grouped(window),
            by_default(defaults.window),
            grouped(reserve),
            by_default(defaults.reserve),
            by_default(defaults.trigger && self.budget.trigger != 0),
            by_default(defaults.goal),
            grouped(floor)
        )
    }

    fn verdict_on_goal(&self) -> &'static str {
        match self.goal_missed {
            true if self.budget.goal.is_some_and(|goal| goal < self.budget.floor) => {
                "; the goal is under the floor"
            }
            true => "; the goal is missed",
            false => "",
        }
    }

    fn explain(&self, reason: &str) -> String {
        let why = match reason {
            "not_due" => format!("{} tokens are not more than the trigger", grouped(self.tokens_before)),
            "at_goal" => "the goal is met as it is".to_owned(),
            "nothing_to_drop" => {
                "everything is protected: instructions, pins, open work, the first and the last \
                                  request, the newest steps"
                    .to_owned()
            }
            _ => "it would free too little to be worth voiding the prompt cache".to_owned(),
        };
        format!("{reason}: {why}")
    }

    /// How many groups of each kind have a verdict, and their tokens.
    fn by_kind(&self, verdict: char) -> String {
        let with = || self.groups_detail.iter().filter(move |group| group.verdict == verdict);
        let kinds = [
            GroupKind::System,
            GroupKind::User,
            GroupKind::Assistant,
            GroupKind::Exchange,
            GroupKind::Summary,
            GroupKind::Orphan,
        ];
        let lines = kinds.into_iter().filter_map(|kind| {
            let count = with().filter(|group| group.kind == kind).count();
            (count > 0).then(|| format!("{count} {}", kind.as_str()))
        });
        let tokens = with().map(|group| u64::from(group.tokens)).sum();
        format!("{}; {} tokens", lines.collect::<Vec<_>>().join(", "), grouped(tokens))
    }
}

/// `part` of `whole` in percent, for people.
pub(crate) fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => "100 %".to_owned(),
        whole => format!("{} %", (u128::from(part) * 100 + u128::from(whole) / 2) / u128::from(whole)),
    }
}
