//! Each invariant catches a plan that breaks it: a check that never fails checks nothing.
#![expect(clippy::indexing_slicing, reason = "a panic is how a test reports")]

use std::collections::BTreeMap;

use epitome_core::attribution::Retention;
use epitome_core::{GroupKind, Profile, Repair};
use epitome_tests::generate::{Scale, seeded};
use epitome_tests::invariants::{ALL, Subject};
use epitome_tests::live;
use epitome_tests::message::repaired;
use epitome_tests::naive::{Outcome, Planned, begins_turn, is_answer, violations};
use epitome_tests::scenario::Scenario;
use epitome_tests::spec::Spec;

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

#[test]
fn every_check_catches_its_mutant() {
    let mut caught: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 1..100_u64 {
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 40, Scale::Small);
        let scenario = Scenario::new(messages, [255, 0, 100, 0, 0], Spec::truncate());
        let (index, _) = live::index_of(&scenario.messages);
        let Outcome::Planned(plan) = live::plan(index.view(), &scenario.request) else { continue };
        let subject = Subject::new(&scenario, plan);
        assert_eq!(subject.check(), Ok(()));
        for (name, mutant) in MUTANTS {
            let mut mutated = subject.clone();
            mutant(&subject, &mut mutated.plan);
            *caught.entry(name).or_default() += u32::from(mutated.failing().contains(name));
        }
    }
    println!("caught: {caught:#?}");
    // What a repair writes is legal whatever it is given, so a plan cannot break it: a repair can, below.
    for (name, _) in ALL.iter().filter(|(name, _)| *name != "1 repaired") {
        assert!(caught.get(name).is_some_and(|caught| *caught >= 3), "{name}: {caught:?}");
    }
}

/// Leaves out the results of no call, and invents nothing.
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
