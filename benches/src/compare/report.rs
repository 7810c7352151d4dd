//! The report of all measurements, as Markdown.

use core::fmt::Write as _;
use core::time::Duration;

use epitome_core::message::Role;

use super::clock::{Times, grouped, ratio, shown};
use super::contender::{Keeping, Unit};
use super::loops::Looped;
use super::sizes::{COMMON_COUNTER, Measured, Outcome, Row, Sized};
use super::sweep::{LIMITS, Swept, TURNS};
use super::targets;

/// All results of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Results for each size of history, the smallest first.
    pub sizes: Vec<Sized>,
    /// Results of the sweep: library, call, unit and faults.
    pub sweep: Vec<(String, String, Unit, Swept)>,
    /// Number of turns of the loop.
    pub turns: usize,
    /// Results of the loops.
    pub loops: Vec<Looped>,
    /// The contenders that could not run, each with the reason.
    pub not_run: Vec<(String, String)>,
}

/// Suffix of the names of Python packages.
pub const PYTHON: &str = "(Python)";

impl Report {
    /// Writes the whole report.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        for (name, why) in &self.not_run {
            let _ = writeln!(out, "- {name}: not run: {why}");
        }
        if !self.not_run.is_empty() {
            out.push('\n');
        }
        self.sweep_table(&mut out);
        for sized in &self.sizes {
            given_and_returned(sized, &mut out);
            times(sized, &mut out);
            targets::write(self, sized, &mut out);
        }
        self.loop_table(&mut out);
        out
    }

    /// Calls of Epitome's own strategies in which the sweep found faults.
    pub fn faults_of_ours(&self) -> impl Iterator<Item = &str> {
        let ours = self.sweep.iter().filter(|(name, ..)| is_ours(name));
        ours.filter(|(.., swept)| !swept.is_clean()).map(|(_, call, ..)| call.as_str())
    }

    fn sweep_table(&self, out: &mut String) {
        let (first, last) = (LIMITS.start(), LIMITS.end());
        let _ = writeln!(
            out,
            "### Validity\n\n{TURNS} turns with two calls at once in each; {} limits, from {first} to {last} messages or as \
             many tokens as these have in the mean by the contender's own count, or 0 to {} tool uses. A cell counts the \
             limits at which what is returned has that fault.\n",
            last - first + 1,
            last - first,
        );
        out.push_str("| library | call | limit in | limits | result without call | call without result | answer without request | no system message | nobody speaks | first is not the user | over its own limit | refused with an error |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for (name, call, unit, swept) in &self.sweep {
            let over = swept.over.map_or("-".to_owned(), |over| over.to_string());
            let Swept { limits, refused, orphans, unanswered, unasked, system_lost, empty, not_user, .. } =
                swept;
            let unit = unit.as_str();
            let _ = writeln!(
                out,
                "| {name} | {call} | {unit} | {limits} | {orphans} | {unanswered} | {unasked} | {system_lost} | {empty} | {not_user} | {over} | {refused} |"
            );
        }
        out.push('\n');
    }

    pub(super) fn swept(&self, row: &Row) -> Option<&Swept> {
        let found = self.sweep.iter().find(|(name, call, ..)| *name == row.name && *call == row.call);
        found.map(|(.., swept)| swept)
    }

    fn loop_table(&self, out: &mut String) {
        if self.loops.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "### A loop of {} turns\n\nAfter each turn what was said is appended, the history is brought within its limit, and \
             every message of the next request is looked at. Who takes too long is stopped; no figure is extrapolated.\n",
            grouped(self.turns)
        );
        out.push_str("| library | call | history | turns made | time | time of a turn | Epitome's for as many turns | ratio |\n|---|---|---|---|---|---|---|---|\n");
        let ours = self.loops.iter().find(|looped| is_ours(&looped.name));
        for looped in &self.loops {
            let keeping = match looped.keeping {
                Keeping::Whole => "stays",
                Keeping::Result => "is replaced by the result",
            };
            let mine = ours.and_then(|ours| time_after(ours, looped.turns));
            let _ = writeln!(
                out,
                "| {} | {} | {keeping} | {} | {} | {} | {} | {} |",
                looped.name,
                looped.call,
                grouped(looped.turns),
                shown(looped.time),
                shown(looped.time / looped.turns.max(1) as u32),
                mine.map_or("-".to_owned(), shown),
                mine.map_or("-".to_owned(), |mine| ratio(looped.time, mine)),
            );
        }
        out.push('\n');
    }
}

/// Time of `turns` turns, interpolated between the two points of the course around them.
fn time_after(looped: &Looped, turns: usize) -> Option<Duration> {
    let after = looped.course.partition_point(|(made, _)| *made < turns);
    let (made, time) = *looped.course.get(after)?;
    let (before, start) = *looped.course.get(after.checked_sub(1)?)?;
    let share = (turns - before) as f64 / (made - before) as f64;
    Some(start + (time - start).mul_f64(share))
}

pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with("epitome")
}

pub(super) fn measured(row: &Row) -> Option<&Measured> {
    match &row.outcome {
        Outcome::Returned(measured) => Some(measured),
        Outcome::NotRun(_) => None,
    }
}

fn given_and_returned(sized: &Sized, out: &mut String) {
    let limits = sized.limits;
    let _ = writeln!(
        out,
        "### {} messages\n\nEverybody was given the same {} messages, {} tokens by {COMMON_COUNTER}, and one limit: {} tokens \
         by its own count, or as many messages as Epitome keeps then, {}, or {} tool uses.\n",
        grouped(sized.messages),
        grouped(sized.messages),
        grouped(sized.tokens),
        grouped(limits.tokens),
        grouped(limits.messages),
        grouped(limits.tool_uses),
    );
    let _ = writeln!(
        out,
        "| library | call | limit | given, by its own count | returned | messages | {COMMON_COUNTER} | results without call, calls without result | system message | first to speak | changed messages |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for row in &sized.rows {
        let limit = format!("{} {}", grouped(limits.of(row.unit)), row.unit.as_str());
        let (name, call) = (&row.name, &row.call);
        let _ = match &row.outcome {
            Outcome::NotRun(why) => {
                writeln!(out, "| {name} | {call} | {limit} | not run: {why} | | | | | | | |")
            }
            Outcome::Returned(measured) => {
                let verdict = &measured.verdict;
                let tokens = |own: Option<u64>| own.map_or("-".to_owned(), grouped);
                writeln!(
                    out,
                    "| {name} | {call} | {limit} | {} | {} | {} | {} | {}, {} | {} | {} | {} |",
                    tokens(measured.own_given),
                    tokens(measured.own_returned),
                    grouped(verdict.messages),
                    grouped(verdict.tokens),
                    verdict.orphans,
                    verdict.unanswered,
                    if verdict.system_kept { "kept" } else { "**lost**" },
                    verdict.first.map_or("nobody", Role::as_str),
                    verdict.changed,
                )
            }
        };
    }
    out.push('\n');
}

fn times(sized: &Sized, out: &mut String) {
    let Some(ours) = sized.rows.first().and_then(measured) else { return };
    let rounds = ours.kept.rounds();
    let _ = writeln!(
        out,
        "Medians of {rounds} rounds (Python's of as many as its row says), in brackets the first and last quartile; `n x` is the ratio to Epitome's \
         first row.\n"
    );
    out.push_str("| library | call | as called, the history stays | | the history is given away | | without cloning and dropping | |\n|---|---|---|---|---|---|---|---|\n");
    for row in &sized.rows {
        let Some(measured) = measured(row) else { continue };
        let cell = |times: &Times, mine: &Times| match (times.median(), mine.median()) {
            (Some(time), Some(mine)) => (times.to_string(), ratio(time, mine)),
            _ => (times.to_string(), String::new()),
        };
        let kept = cell(&measured.kept, &ours.kept);
        let given_away = cell(&measured.given_away, &ours.kept);
        let bare = cell(&measured.bare, &ours.bare);
        let name = match measured.kept.rounds() {
            made if made == rounds => row.name.clone(),
            made => format!("{}, {made} rounds", row.name),
        };
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            row.call, kept.0, kept.1, given_away.0, given_away.1, bare.0, bare.1
        );
    }
    let (count, group) = (&sized.counting, &sized.grouping);
    let _ = writeln!(
        out,
        "\nEpitome from scratch, apart: counting {count}, grouping {group}. Both are done once for each message, when it is \
         appended.\n"
    );
}
