//! The report as text for people.

use core::fmt::Write as _;

use epitome::core::GroupKind;
use epitome::core::attribution::SourceKind;

use super::{Figures, GroupDetail, LossRow, Pays, Picture, RepairCounts, Report, WhyRow, share};
use crate::amount::{counted, grouped};
use crate::scan::Uncounted;
use crate::visible::Printable;

impl Report {
    /// The report as text for people.
    pub(crate) fn to_text(&self, picture: &Picture) -> Printable {
        let mut out = String::new();
        let (basis, tokenizer) = (self.token_basis.as_str(), &self.tokenizer);
        let _ = writeln!(
            out,
            "was       {}, {}{} ({basis} by {tokenizer}); {} in {}",
            counted(self.messages_before, "message"),
            self.about(),
            counted(self.tokens_before, "token"),
            counted(self.groups.total, "group"),
            counted(self.turns.into(), "turn")
        );
        if let Some(Uncounted { messages, tokens_before_min, tokens_before_max, .. }) = self.uncounted {
            let (least, most) = (grouped(tokens_before_min), grouped(tokens_before_max));
            let _ = writeln!(
                out,
                "uncounted {} of them, whose sizes are estimates; it was {least} to {most} tokens",
                grouped(messages)
            );
        }
        let _ = writeln!(out, "budget    {} (in tokens)", self.budget_line());
        let _ = writeln!(out, "strategy  {}", self.strategies.join(", then "));
        if let Some(reason) = self.unchanged_reason {
            let _ = writeln!(out, "unchanged {}{}", self.explain(reason), self.verdict_on_goal());
        }
        if let Some(repair) = self.repair {
            let _ = writeln!(out, "repaired  {}", repair_line(repair));
        }
        if self.unchanged_reason.is_none() || self.is_repaired() {
            out += &self.outcome();
        }
        if !self.loss.is_empty() {
            let removed: Vec<_> = self.loss.iter().map(|row| row.to_text()).collect();
            let _ = writeln!(out, "removed   {}", removed.join(", "));
        }
        if self.unchanged_reason.is_none() {
            let _ = write!(out, "\n{}", self.by_kind());
        }
        let mut page = Printable::from(out);
        page.push_drawing(&format!("\n{}\n", picture.draw(&self.groups_detail)));
        for WhyRow { first, last, verdict, because } in &self.why {
            let place = if first == last { first.to_string() } else { format!("{first}-{last}") };
            page.push(&format!("{verdict} {place:<11} {because}\n"));
        }
        page
    }

    fn is_repaired(&self) -> bool {
        self.repair.is_some_and(|repair| !repair.is_none())
    }

    fn budget_line(&self) -> String {
        let Figures { window, reserve, trigger, goal, floor, floor_hard } = self.budget;
        let by_default = |is: bool| if is { " (default)" } else { "" };
        let defaults = self.defaults;
        let trigger = match trigger {
            None => "compact now".to_owned(),
            Some(trigger) => format!("trigger {}{}", grouped(trigger), by_default(defaults.trigger)),
        };
        let goal = goal.map_or_else(|| "none".to_owned(), grouped);
        let pressed = match floor > window.saturating_sub(reserve) {
            true => format!(", or {} where the window is too small for it", grouped(floor_hard)),
            false => String::new(),
        };
        format!(
            "window {}{}, reserve {}{}, {trigger}, goal {goal}{}, floor {}{pressed}",
            grouped(window),
            by_default(defaults.window),
            grouped(reserve),
            by_default(defaults.reserve),
            by_default(defaults.goal),
            grouped(floor)
        )
    }

    /// The word before a figure that includes estimates.
    const fn about(&self) -> &'static str {
        if self.uncounted.is_some() { "about " } else { "" }
    }

    /// The size now, and the part of it that a prompt cache still holds.
    fn outcome(&self) -> String {
        let pays = self.pays.map(Pays::to_text).unwrap_or_default();
        format!(
            "now       {}, {}, {}{} of what it was{}\nstable    {}\n{pays}",
            counted(self.messages_after, "message"),
            counted(self.tokens_after, "token"),
            self.about(),
            share(self.tokens_after, self.tokens_before),
            if self.unchanged_reason.is_none() { self.verdict_on_goal() } else { "" },
            match self.stable_prefix_messages {
                0 => "nothing: the first message has changed".to_owned(),
                messages => format!(
                    "the first {}, {}, as before: a prompt cache keeps them",
                    counted(messages, "message"),
                    counted(self.stable_prefix_tokens, "token")
                ),
            }
        )
    }

    fn verdict_on_goal(&self) -> &'static str {
        match self.goal_missed {
            true if self.budget.goal.is_some_and(|goal| goal < self.budget.floor) => {
                "; the goal is missed: it is under the floor"
            }
            true => "; the goal is missed",
            false => "",
        }
    }

    fn explain(&self, reason: &str) -> String {
        match reason {
            super::NOT_DUE => {
                let trigger = self.budget.trigger.unwrap_or_default();
                let (size, trigger) = (counted(self.tokens_before, "token"), grouped(trigger));
                format!("{}{size} are not above the trigger of {trigger}", self.about())
            }
            "at_goal" => "it is no larger than the goal".to_owned(),
            "nothing_to_drop" if matches!(&*self.strategies, [one] if one.starts_with("ledger")) => {
                "a ledger hides nothing by itself: put a strategy before it, as in truncate,ledger".to_owned()
            }
            "nothing_to_drop" if self.budget.floor < self.tokens_before => {
                "it has nothing of the kind that the strategy hides or shortens, or all of that is protected"
                    .to_owned()
            }
            "nothing_to_drop" => {
                "all of it is protected: instructions, pinned messages, open calls, the first and \
                                  the last request, the newest steps"
                    .to_owned()
            }
            _ => "a pass would free too little to be worth voiding the prompt cache".to_owned(),
        }
    }

    /// Number of groups of each kind that are kept, dropped and shortened, and their tokens. A shortened group counts
    /// with its remaining tokens.
    fn by_kind(&self) -> String {
        let verdicts = [('K', "kept"), ('D', "dropped"), ('E', "shortened"), ('R', "replaced")];
        let shown = verdicts
            .into_iter()
            .filter(|(letter, _)| "KD".contains(*letter) || self.verdicts.contains(*letter));
        let shown: Vec<_> = shown.collect();
        let mut text = format!("{:<22}", "groups");
        for (_, name) in &shown {
            let width = name.len().max(8).saturating_add(1);
            let _ = write!(text, "{name:>width$}{:>11}", "tokens");
        }
        let rows = KINDS.into_iter().map(|(kind, name)| (Some(kind), name)).chain([(None, "all")]);
        for (kind, name) in rows {
            let is = |other: GroupKind| kind.is_none_or(|kind| kind == other);
            if !self.groups_detail.iter().any(|group| is(group.kind)) {
                continue;
            }
            let _ = write!(text, "\n{name:<22}");
            for (letter, name) in &shown {
                let width = name.len().max(8).saturating_add(1);
                let with =
                    || self.groups_detail.iter().filter(|group| is(group.kind) && group.verdict == *letter);
                let size = |group: &GroupDetail| match letter {
                    'E' => group.tokens_after,
                    _ => u64::from(group.tokens),
                };
                let tokens = with().map(size).sum();
                let _ = write!(text, "{:>width$}{:>11}", grouped(with().count() as u64), grouped(tokens));
            }
        }
        text + "\n"
    }
}

impl LossRow {
    fn to_text(self) -> String {
        let group = KINDS.iter().find(|(kind, _)| kind.as_str() == self.kind);
        let kind = group.map_or_else(|| self.kind.replace('_', " "), |(_, name)| (*name).to_owned());
        let source = match self.source {
            SourceKind::Context => " of context",
            SourceKind::History => " of history",
            SourceKind::Tool => " of a tool",
            SourceKind::Compaction => " of a compaction",
            _ => "",
        };
        format!("{} {kind}{source} ({} tokens)", grouped(self.count.into()), grouped(self.tokens))
    }
}

/// Names of the kinds of groups for people.
pub(super) const KINDS: [(GroupKind, &str); 7] = [
    (GroupKind::System, "instructions"),
    (GroupKind::User, "user"),
    (GroupKind::Assistant, "assistant"),
    (GroupKind::Exchange, "calls with results"),
    (GroupKind::Hosted, "hosted calls"),
    (GroupKind::Summary, "summary"),
    (GroupKind::Orphan, "result without call"),
];

/// The repair steps as a line. Steps that only some providers require are named if there were any.
fn repair_line(repair: RepairCounts) -> String {
    let RepairCounts {
        left_out,
        moved,
        aborted,
        unrecorded,
        merged,
        put_between,
        without_reasoning,
        violations_left,
    } = repair;
    let mut line = format!(
        "{} left out, {moved} moved, {} answered as aborted",
        counted(left_out, "result"),
        counted(aborted, "call")
    );
    if unrecorded > 0 {
        line += &format!(", {} answered as not recorded", counted(unrecorded, "call"));
    }
    let rest =
        [(merged, "merged"), (put_between, "put between"), (without_reasoning, "without its reasoning")];
    for (count, what) in rest.iter().filter(|(count, _)| *count > 0) {
        line += &format!(", {} {what}", counted(*count, "message"));
    }
    if violations_left > 0 {
        let left = counted(violations_left, "violation");
        line += &format!("; {left} left: `epitome validate` lists them");
    }
    line
}
