//! Each invariant catches a plan that breaks it: a check that never fails checks nothing.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome_core::attribution::Retention;
use epitome_core::{GroupKind, Profile, Repair};
use epitome_tests::generate::{Scale, seeded};
use epitome_tests::invariants::{ALL, Subject};
use epitome_tests::live;
use epitome_tests::message::repaired;
use epitome_tests::naive::{Outcome, Planned, begins_turn, is_answer, violations};
use epitome_tests::scenario::Scenario;
use epitome_tests::strategy::TestStrategy;

type Mutant = fn(&Subject<'_>, &mut Planned);

const MUTANTS: &[(&str, Mutant)] = &[
    ("1 pairing", |subject, plan| {
        let result = |at: &usize| is_answer(&subject.scenario.messages[*at]);
        if let Some(place) = plan.projection.iter().position(result) {
            let result = plan.projection.remove(place);
            plan.projection.insert(0, result);
        }
    }),
    ("2 whole groups", |subject, plan| {
        let last = subject.groups.iter().filter(|group| group.members.len() > 1);
        let last =
            last.map(|group| group.members[group.members.len() - 1]).find(|at| plan.projection.contains(at));
        plan.projection.retain(|at| Some(*at) != last);
    }),
    ("2 order", |_, plan| plan.projection.reverse()),
    ("3 open work", |subject, plan| drop_group(subject, plan, |group| subject.naive.is_open(group))),
    ("3 requests", |subject, plan| {
        let messages = &subject.scenario.messages;
        let asked = |at: &usize| begins_turn(&messages[*at]) && subject.naive.turns[*at] < subject.naive.turn;
        let last = plan.projection.iter().rposition(asked);
        last.map(|place| plan.projection.remove(place));
    }),
    ("5 legality", |subject, plan| {
        let result = |at: &usize| is_answer(&subject.scenario.messages[*at]);
        plan.projection.retain(|at| !result(at));
    }),
    ("5 a user message", |subject, plan| {
        plan.projection.retain(|at| {
            !subject.groups.iter().any(|group| {
                group.members[0] == *at && group.kind == GroupKind::User
                    || group.members.contains(at) && group.members.len() > 1
            })
        });
    }),
    ("6 instructions", |subject, plan| drop_group(subject, plan, |group| group.members[0] == 0)),
    ("7 task", |subject, plan| {
        let last = subject.scenario.messages.iter().rposition(begins_turn);
        plan.projection.retain(|at| Some(*at) != last);
    }),
    ("9 progress", |subject, plan| {
        plan.tokens_after = live::index_of(&subject.scenario.messages).0.view().tokens();
    }),
    ("11 pins", |subject, plan| {
        let pinned = |at: &usize| subject.scenario.messages[*at].retention == Retention::Pinned;
        drop_group(subject, plan, |group| group.members.iter().any(pinned));
    }),
    ("2 whole groups", |_, plan| plan.verdicts = plan.verdicts.replace('E', "K")),
    ("3 open work", |subject, plan| {
        shorten(subject, plan, |at| subject.naive.is_open(group_of(subject, at)))
    }),
    ("4 reasoning", |subject, plan| {
        shorten(subject, plan, |at| {
            subject.naive.turns[at] == subject.naive.turn
                && subject.scenario.messages[at].parts[0].is_reasoning()
        });
    }),
    ("7 task", |subject, plan| {
        let last = subject.scenario.messages.iter().rposition(begins_turn);
        shorten(subject, plan, |at| Some(at) == last);
    }),
    ("11 pins", |subject, plan| {
        shorten(subject, plan, |at| subject.naive.is_pinned(group_of(subject, at)));
    }),
    ("8 summaries", |_, plan| {
        // The summary covers one message fewer than it replaces.
        if let Some((covered, _)) = plan.summaries.first_mut() {
            covered.pop();
        }
    }),
    ("8 summaries", |subject, plan| {
        // The summary is as large as the messages that it replaces.
        if let Some((covered, tokens)) = plan.summaries.first_mut() {
            let size = |at: &usize| subject.scenario.messages[*at].tokens;
            *tokens = covered.iter().map(size).sum();
        }
    }),
    ("14 tokens", |_, plan| plan.summaries.iter_mut().for_each(|(_, tokens)| *tokens += 1)),
    ("14 shortened", |subject, plan| {
        if let Some((at, part, left)) = plan.shortened.first_mut() {
            *left = subject.scenario.messages[*at].part_size(*part).0.max(1);
        }
    }),
    ("14 tokens", |_, plan| {
        plan.shortened.pop();
    }),
    ("14 tokens", |_, plan| plan.tokens_after += 1),
    ("14 floors", |subject, plan| plan.tokens_after = subject.scenario.request.budget.limit() + 1),
];

fn drop_group(
    subject: &Subject<'_>,
    plan: &mut Planned,
    which: impl Fn(&epitome_tests::naive::Group) -> bool,
) {
    let group = subject.groups.iter().find(|group| group.kind != GroupKind::Orphan && which(group));
    plan.projection.retain(|at| !group.is_some_and(|group| group.members.contains(at)));
}

fn group_of<'s>(subject: &'s Subject<'_>, at: usize) -> &'s epitome_tests::naive::Group {
    subject.groups.iter().find(|group| group.members.contains(&at)).unwrap()
}

/// Removes the first part of a message, without a note.
fn shorten(subject: &Subject<'_>, plan: &mut Planned, which: impl Fn(usize) -> bool) {
    let messages = &subject.scenario.messages;
    let whole = |at: &usize| !plan.shortened.iter().any(|(own, ..)| own == at);
    let at = plan.projection.iter().copied().filter(whole);
    let at = at.filter(|at| !messages[*at].parts.is_empty()).find(|at| which(*at));
    plan.shortened.extend(at.map(|at| (at, 0, 0)));
}

#[test]
fn every_check_catches_its_mutants() {
    let mut caught = vec![0_u32; MUTANTS.len()];
    for seed in 1..100_u64 {
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 40, Scale::Small);
        let strategies = [
            "tool-results:keep=0:placeholder=1 | truncate",
            "tool-results:keep=0:placeholder=1 | fixed-summary:preserve-recent=1",
        ];
        let strategy: TestStrategy = strategies[usize::from(seed % 3 == 0)].parse().unwrap();
        let scenario = Scenario::new(messages, [255, 0, 100, 0, 0], strategy);
        let (index, _) = live::index_of(&scenario.messages);
        let Outcome::Planned(plan) = live::plan(index.view(), &scenario.request) else { continue };
        let subject = Subject::new(&scenario, plan);
        assert_eq!(subject.check(), Ok(()));
        for ((name, mutant), caught) in MUTANTS.iter().zip(&mut caught) {
            let mut mutated = subject.clone();
            mutant(&subject, &mut mutated.plan);
            *caught += u32::from(mutated.failing().contains(name));
        }
    }
    println!("caught: {caught:?}");
    for ((name, _), caught) in MUTANTS.iter().zip(&caught) {
        assert!(*caught >= 3, "{name}: {caught}");
    }
    // A repair makes every request legal, so no plan can break that check. The next test breaks the repair.
    for (name, _) in ALL.iter().filter(|(name, _)| *name != "1 repaired") {
        assert!(MUTANTS.iter().any(|(mutant, _)| mutant == name), "{name} has no mutant");
    }
}

/// A repair that leaves out the violating messages, and invents no results, is caught.
#[test]
fn a_lazy_repair_is_caught() {
    let caught = (1..50_u64).filter(|seed| {
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 40, Scale::Small);
        let bad = violations(Profile::OpenaiChat, &messages);
        let kept = (0..40).filter(|at| bad.iter().all(|(bad, _)| bad != at)).map(Repair::Keep);
        let request = repaired(&messages, &kept.collect::<Vec<_>>());
        !live::violations(Profile::OpenaiChat, &request).is_empty()
    });
    assert!(caught.count() >= 15);
}
