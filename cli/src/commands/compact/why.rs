//! `epitome compact --why`: the reason of each verdict.

use core::cell::RefCell;

use epitome::core::attribution::SourceKind;
use epitome::core::{Draft, Group, GroupKind, Index, Outcome, Planner, Protection, Strategy, Turn, floors};

use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::report::{NOT_DUE, Report, WhyRow};
use crate::strategy::Strategies;

/// The reason of the verdict on each group.
pub(super) fn explain(
    index: Index<'_>,
    asked: &Asked,
    strategies: &Strategies,
    report: &Report,
) -> Result<Vec<WhyRow>> {
    let due = report.unchanged_reason != Some(NOT_DUE);
    let holds = holds(index, asked, strategies)?;
    let rounds = if due { rounds(index, asked, strategies)? } else { Vec::new() };
    let landmarks = Landmarks::of(index);
    let protection = strategies.with(|strategy| strategy.protection());
    let is_crowded = floors(index, protection).hard > asked.budget.limit();
    let rows = index.groups().zip(&report.groups_detail).enumerate().map(|(at, (group, detail))| {
        let hold = holds.get(at).copied().unwrap_or(Hold::Free);
        // The first strategy with this verdict; without one, the last strategy in its second round.
        let own = rounds.iter().position(|letters| letters.get(at) == Some(&detail.verdict));
        let stage = own.or(rounds.len().checked_sub(1)).and_then(|stage| strategies.names().get(stage));
        let because = match detail.verdict {
            'K' if !due => "nothing is due".to_owned(),
            'K' => kept(&landmarks, &group, hold, protection, report),
            'E' if is_crowded && (group.is_open() || landmarks.newest_step == Some(group.leader())) => {
                "a result is cut, because what is protected does not fit the window".to_owned()
            }
            _ if group.kind() == GroupKind::Orphan => "it answers no call".to_owned(),
            verdict => format!("{}: {}", stage.map_or("", String::as_str), taken(stage, verdict)),
        };
        WhyRow { first: detail.first, last: detail.last, verdict: detail.verdict, because }
    });
    Ok(rows.collect())
}

/// The reason of a verdict, by the name of its strategy.
fn taken(stage: Option<&String>, verdict: char) -> &'static str {
    let name = stage.map_or("", |stage| stage.split(':').next().unwrap_or_default());
    match (name, verdict) {
        ("truncate", _) => "among the oldest, until there was room",
        ("window", _) => "before the window",
        ("tool-results", _) | ("context-window", 'E') => "results older than the newest uses of tools",
        ("supersede", _) => "the same call was made again later",
        ("tool-drop", _) => "an older use of tools",
        ("tool-digest", _) => "an older use of tools, told in the digest",
        ("media", _) => "pictures and documents of an older turn",
        ("reasoning", _) => "reasoning of an older turn",
        ("clamp", _) => "larger than a part may be",
        ("salience", _) | ("chat", 'D') => "worth less for its length than what there was room for",
        ("chat", _) => "results older than the newest uses of tools",
        ("ephemeral", _) => "meant for one run",
        ("summarize", 'D') => "it comes again with the next run",
        (_, 'R') => "among the oldest, told in the summary",
        _ => "among the oldest, until there was room",
    }
}

/// The groups that are kept because of their role, by their first messages.
#[derive(Debug, Default)]
struct Landmarks {
    first_request: Option<u32>,
    last_request: Option<u32>,
    newest_step: Option<u32>,
}

impl Landmarks {
    fn of(index: Index<'_>) -> Self {
        let mut found = Self::default();
        for group in index.groups() {
            let asks = group.kind() == GroupKind::User && group.source() == SourceKind::Caller;
            if asks && group.turn() == Turn(1) {
                found.first_request.get_or_insert(group.leader());
            }
            if asks && group.turn() == index.turn() {
                found.last_request.get_or_insert(group.leader());
            }
            if group.is_step() {
                found.newest_step = Some(group.leader());
            }
        }
        found
    }
}

/// The reason that a group was kept.
fn kept(
    landmarks: &Landmarks,
    group: &Group<'_>,
    hold: Hold,
    protection: Protection,
    report: &Report,
) -> String {
    let leads = |landmark: Option<u32>| landmark == Some(group.leader());
    match hold {
        Hold::Protected if group.is_pinned() => "pinned".to_owned(),
        Hold::Protected if group.is_open() => "it waits for an answer".to_owned(),
        Hold::Protected if group.is_instruction() => "an instruction".to_owned(),
        Hold::Protected if protection.first_user && leads(landmarks.first_request) => {
            "the first request of the user".to_owned()
        }
        Hold::Protected if leads(landmarks.last_request) => "the last request of the user".to_owned(),
        Hold::Protected if leads(landmarks.newest_step) => "the newest step".to_owned(),
        Hold::Protected => "protected".to_owned(),
        Hold::NewestStep => format!(
            "one of the newest {} steps, which stay as long as the request fits",
            protection.keep_steps
        ),
        Hold::Free if report.unchanged_reason == Some("too_little") => {
            "a pass would free too little to be worth it".to_owned()
        }
        Hold::Free if report.budget.goal.is_some() && !report.goal_missed => {
            "the goal was met without it".to_owned()
        }
        Hold::Free => "no strategy takes it".to_owned(),
    }
}

/// The protection of a group before a strategy runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Free,
    Protected,
    NewestStep,
}

/// A strategy that records the protection of groups and hides nothing.
struct Look<'a> {
    protection: Protection,
    holds: &'a RefCell<Vec<Hold>>,
}

impl Strategy for Look<'_> {
    fn name(&self) -> &'static str {
        "look"
    }

    fn protection(&self) -> Protection {
        self.protection
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let holds = draft.index().groups().map(|group| match draft.is_protected(&group) {
            true => Hold::Protected,
            false if draft.is_candidate(&group) || group.kind() == GroupKind::Orphan => Hold::Free,
            false => Hold::NewestStep,
        });
        *self.holds.borrow_mut() = holds.collect();
    }
}

fn holds(index: Index<'_>, asked: &Asked, strategies: &Strategies) -> Result<Vec<Hold>> {
    let holds = RefCell::new(Vec::new());
    let look = Look { protection: strategies.with(|strategy| strategy.protection()), holds: &holds };
    let mut planner = Planner::new();
    let looked = planner.plan(index, &asked.budget, asked.pass(), &look);
    looked.map_err(|error| Failure::plan(&error, &asked.budget))?;
    Ok(holds.into_inner())
}

/// The verdicts of the first strategy, of the first two together, and so on.
fn rounds(index: Index<'_>, asked: &Asked, strategies: &Strategies) -> Result<Vec<Vec<char>>> {
    let mut planner = Planner::new();
    let letters = |stages: usize| {
        let planned = strategies
            .with_first(stages, |strategy| planner.plan(index, &asked.budget, asked.pass(), strategy));
        match planned.map_err(|error| Failure::plan(&error, &asked.budget))? {
            Outcome::Planned(plan) => Ok(plan.verdicts().to_string().chars().collect()),
            Outcome::Unchanged(_) => Ok(Vec::new()),
        }
    };
    (1..=strategies.names().len()).map(letters).collect()
}
