//! What holds of every plan, whatever the strategy: section by section of the design's list of invariants.
//!
//! Each check looks at a plan as data, so that a broken plan can be shown to it: `tests/mutants.rs` does.

use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;
use epitome_core::{GroupKind, Pass, Pending, Profile, Strategy, ViolationKind, repair};

use crate::live;
use crate::message::{Message, repaired};
use crate::naive::{Group, Naive, Planned, begins_turn, is_answer};
use crate::scenario::Scenario;

/// A plan, and what it was made from.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// Messages, budget, pass and strategy.
    pub scenario: &'a Scenario,
    /// The conversation in its groups.
    pub naive: Naive<'a>,
    /// The groups.
    pub groups: Vec<Group>,
    /// The request without the plan.
    pub before: Vec<usize>,
    /// The plan.
    pub plan: Planned,
}

/// Says what is wrong.
pub type Check = fn(&Subject<'_>) -> Result<(), String>;

/// All checks, with the numbers of the invariants that they are about.
pub const ALL: &[(&str, Check)] = &[
    ("1 pairing", pairing),
    ("1 repaired", is_legal_once_repaired),
    ("2 whole groups", whole_groups),
    ("2 order", order),
    ("3 open work", open_work),
    ("5 legality", legality),
    ("5 a user message", user_message),
    ("6 instructions", instructions),
    ("7 task", task),
    ("9 progress", progress),
    ("11 pins", pins),
    ("14 tokens", tokens),
    ("14 floors", floors),
];

impl<'a> Subject<'a> {
    /// A plan for a scenario.
    #[must_use]
    pub fn new(scenario: &'a Scenario, plan: Planned) -> Self {
        let naive = Naive::new(&scenario.messages);
        let (groups, visible) = (naive.groups(), naive.visible());
        let before = naive.projection(&|anchor| visible.contains(&anchor));
        Self { scenario, naive, groups, before, plan }
    }

    /// The first check that fails.
    ///
    /// # Errors
    /// Its name, and what it says.
    pub fn check(&self) -> Result<(), String> {
        ALL.iter().try_for_each(|(name, check)| check(self).map_err(|why| format!("{name}: {why}")))
    }

    /// The names of all checks that fail.
    #[must_use]
    pub fn failing(&self) -> Vec<&'static str> {
        ALL.iter().filter(|(_, check)| check(self).is_err()).map(|(name, _)| *name).collect()
    }

    fn messages(&self, projection: &[usize]) -> Vec<Message> {
        projection.iter().map(|at| self.scenario.messages[*at].clone()).collect()
    }

    fn holds(&self, at: usize) -> bool {
        self.plan.projection.contains(&at)
    }

    fn all_held(&self, which: impl Fn(&Group) -> bool) -> Result<(), String> {
        let lost = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan && which(group));
        let mut lost = lost.filter(|group| !group.members.iter().all(|at| self.holds(*at)));
        lost.next().map_or(Ok(()), |group| Err(format!("{group:?} is not held")))
    }

    fn first(&self, group: &Group) -> &Message {
        &self.scenario.messages[group.members[0]]
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Every result has its call before it, and between them only messages of their own group.
fn pairing(subject: &Subject<'_>) -> Result<(), String> {
    let projection = &subject.plan.projection;
    for (place, at) in projection.iter().enumerate() {
        if !is_answer(&subject.scenario.messages[*at]) {
            continue;
        }
        let call = subject.naive.answers[*at].ok_or(format!("{at} answers no call"))?;
        let host = projection[..place].iter().position(|other| *other == call.message);
        let host = host.ok_or(format!("{at} comes before its call, or without it"))?;
        let own = |other: &usize| subject.naive.anchors[*other] == subject.naive.anchors[*at];
        ensure(projection[host..place].iter().all(own), || format!("{at} stands apart from its call"))?;
    }
    Ok(())
}

fn is_legal_once_repaired(subject: &Subject<'_>) -> Result<(), String> {
    let request = subject.messages(&subject.plan.projection);
    for profile in Profile::ALL {
        let repairs = repair(profile, &request, Pending::Over);
        let left = live::violations(profile, &repaired(&request, &repairs));
        ensure(left.is_empty(), || format!("{}: {left:?}", profile.as_str()))?;
    }
    Ok(())
}

fn whole_groups(subject: &Subject<'_>) -> Result<(), String> {
    for (group, letter) in subject.groups.iter().zip(subject.plan.verdicts.chars()) {
        let all = group.members.iter().all(|at| subject.holds(*at));
        let none = !group.members.iter().any(|at| subject.holds(*at));
        ensure(if letter == 'K' { all } else { none }, || format!("{letter} {group:?}"))?;
    }
    Ok(())
}

fn order(subject: &Subject<'_>) -> Result<(), String> {
    let kept: Vec<usize> = subject.before.iter().copied().filter(|at| subject.holds(*at)).collect();
    ensure(kept == subject.plan.projection, || format!("{:?}", subject.plan.projection))
}

fn open_work(subject: &Subject<'_>) -> Result<(), String> {
    subject.all_held(|group| subject.naive.is_open(group))
}

/// No violation that the request did not have before. That a call has no result is one violation, whether the request
/// ends with it or goes on.
fn legality(subject: &Subject<'_>) -> Result<(), String> {
    for profile in crate::naive::PROFILES {
        let count = |projection: &[usize]| {
            let found = live::violations(profile, &subject.messages(projection));
            let of = |kinds: &[ViolationKind]| found.iter().filter(|(_, kind)| kinds.contains(kind)).count();
            [
                of(&[ViolationKind::OrphanResult]),
                of(&[ViolationKind::DuplicateResult]),
                of(&[ViolationKind::UnansweredCall, ViolationKind::PendingCall]),
            ]
        };
        let (before, after) = (count(&subject.before), count(&subject.plan.projection));
        let fewer = before.iter().zip(&after).all(|(before, after)| after <= before);
        ensure(fewer, || format!("{}: {before:?} became {after:?}", profile.as_str()))?;
    }
    Ok(())
}

fn user_message(subject: &Subject<'_>) -> Result<(), String> {
    let messages = &subject.scenario.messages;
    let had = messages.iter().any(begins_turn);
    let has = subject.plan.projection.iter().any(|at| messages[*at].role == Role::User);
    ensure(!had || has, || "no user message".to_owned())
}

/// Those of the caller; with `preserve_system(false)` those that stand first.
fn instructions(subject: &Subject<'_>) -> Result<(), String> {
    let all = subject.scenario.request.spec.protection().system;
    let visible = subject.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
    let leading = visible.take_while(|group| group.kind == GroupKind::System).count();
    let of_caller =
        |group: &Group| group.kind == GroupKind::System && subject.first(group).source == SourceKind::Caller;
    let visible: Vec<&Group> =
        subject.groups.iter().filter(|group| group.kind != GroupKind::Orphan).collect();
    subject.all_held(|group| of_caller(group) && (all || visible[..leading].contains(&group)))
}

/// The first user message, if it is preserved, and the last one.
fn task(subject: &Subject<'_>) -> Result<(), String> {
    let mut users =
        (0..subject.scenario.messages.len()).filter(|at| begins_turn(&subject.scenario.messages[*at]));
    let first = users.next();
    let last = users.next_back().or(first);
    let first = first.filter(|_| subject.scenario.request.spec.protection().first_user);
    let kept = [first, last].into_iter().flatten().all(|at| subject.holds(at));
    ensure(kept, || format!("{first:?} or {last:?} is lost"))
}

fn progress(subject: &Subject<'_>) -> Result<(), String> {
    let before: u64 = subject.tokens_of(&subject.before);
    let freed = before.saturating_sub(subject.plan.tokens_after);
    let request = &subject.scenario.request;
    let least = match request.pass {
        Pass::Proactive if before <= request.budget.limit() => request.budget.min_reclaim().max(1),
        _ => 1,
    };
    ensure(freed >= least, || format!("{freed} freed, at least {least} asked for"))
}

fn pins(subject: &Subject<'_>) -> Result<(), String> {
    let pinned = |at: &usize| subject.scenario.messages[*at].retention == Retention::Pinned;
    subject.all_held(|group| group.members.iter().any(pinned))
}

/// The size that a plan states is that of its request.
fn tokens(subject: &Subject<'_>) -> Result<(), String> {
    let counted = subject.tokens_of(&subject.plan.projection);
    ensure(counted == subject.plan.tokens_after, || format!("{counted}, not {}", subject.plan.tokens_after))
}

/// Every plan fits, and truncation reaches every goal that is not under the floor.
fn floors(subject: &Subject<'_>) -> Result<(), String> {
    let (hard, soft) = subject.plan.floors;
    let (budget, after) = (subject.scenario.request.budget, subject.plan.tokens_after);
    ensure(hard <= soft && hard <= after, || format!("floors {hard} and {soft}, but {after} after"))?;
    ensure(after <= budget.limit(), || format!("{after} of {} does not fit", budget.limit()))?;
    let missed = budget.goal().filter(|goal| soft <= *goal && after > *goal);
    ensure(missed.is_none(), || format!("{missed:?} missed, floor {soft}, {after} after"))
}

impl Subject<'_> {
    /// A fresh count. What a group has over the largest amount is not counted: an index cannot hold it.
    fn tokens_of(&self, projection: &[usize]) -> u64 {
        let held = |group: &&Group| group.members.iter().all(|at| projection.contains(at));
        self.groups.iter().filter(held).map(|group| self.naive.tokens(group)).sum()
    }
}
