//! The code and its naive twin give equal results: groups, sums, floors, verdicts, projections, violations, repairs.
#![expect(clippy::indexing_slicing, reason = "a panic is how a test reports")]

use epitome_core::attribution::SourceKind;
use epitome_core::{CLAMP_MARKER, OpenCallSlots, OpenCalls, OpenKind, Pending, Strategy as _, repair};
use epitome_tests::cases::{self, Census, NASTY};
use epitome_tests::generate::conversation;
use epitome_tests::live::{self, GroupFacts};
use epitome_tests::message::{Message, Part};
use epitome_tests::naive::{self, Naive};
use epitome_tests::scenario::{
    Scenario, crowded_scenario, ledger_scenario, scenario, summarizing_scenario, writing_scenario,
};
use proptest::prelude::*;

#[test]
fn groups_and_sums() {
    cases::check("groups and sums", conversation(60), NASTY, |messages, census| {
        census.conversation(&messages);
        let (index, placed) = live::index_of(&messages);
        let naive = Naive::new(&messages);
        let groups = naive.groups();
        let expected: Vec<GroupFacts> = groups
            .iter()
            .map(|group| GroupFacts {
                positions: in_projection_order(&naive, group),
                kind: group.kind,
                turn: group.turn,
                tokens: naive.tokens(group),
                marks: (
                    naive.is_pinned(group),
                    naive.is_open(group),
                    naive.is_unanswered(group) && !naive.is_open(group),
                ),
            })
            .collect();
        prop_assert_eq!(live::groups(index.view()), expected);
        let size = |orphans: bool| {
            let of_kind =
                groups.iter().filter(|group| (group.kind == epitome_core::GroupKind::Orphan) == orphans);
            of_kind.map(|group| naive.tokens(group)).sum::<u64>()
        };
        let view = index.view();
        prop_assert_eq!((view.tokens(), view.orphan_tokens()), (size(false), size(true)));
        prop_assert_eq!(view.turn().0, naive.turn);
        prop_assert_eq!(view.messages() as usize, messages.len());
        prop_assert_eq!(view.group_count() as usize, groups.len());
        prop_assert_eq!(view.steps() as usize, view.groups().filter(|group| group.is_step()).count());
        let visible = naive.visible();
        prop_assert_eq!(live::flat(view.projection()), naive.projection(&|anchor| visible.contains(&anchor)));
        for (at, placed) in placed.iter().enumerate() {
            prop_assert_eq!(placed.anchor.0 as usize, naive.anchors[at]);
            prop_assert_eq!(placed.turn.0, naive.turns[at]);
            prop_assert_eq!(
                placed.orphan,
                naive::claims_to_answer(&messages[at]) && naive.answers[at].is_none()
            );
        }
        Ok(())
    });
}

fn in_projection_order(naive: &Naive<'_>, group: &naive::Group) -> Vec<usize> {
    if group.kind == epitome_core::GroupKind::Orphan {
        return group.members.clone();
    }
    naive.projection(&|anchor| anchor == group.members[0])
}

#[test]
fn open_calls() {
    cases::check("open calls", conversation(60), &[], |messages, _| {
        let (index, _) = live::index_of(&messages);
        let naive = Naive::new(&messages);
        let mut calls = Vec::new();
        index.open_calls().for_each(&mut |id, call| {
            calls.push(((call.kind(), id.to_vec()), call.anchor.0 as usize, call.turn.0));
        });
        let mut expected: Vec<((OpenKind, Vec<u8>), usize, u32)> = naive
            .unanswered()
            .into_iter()
            .map(|call| {
                let (kind, id) = naive.awaited(call);
                ((kind, id.as_bytes().to_vec()), naive.anchors[call.message], naive.turns[call.message])
            })
            .collect();
        expected.sort_by_key(|call| call.1);
        prop_assert_eq!(calls, expected);
        Ok(())
    });
}

#[test]
fn plans() {
    let outcomes = [
        ("planned", 160),
        ("replaced", 15),
        ("infeasible", 25),
        ("at_goal", 50),
        ("nothing_to_drop", 50),
        ("too_little", 25),
    ];
    cases::check("plans", scenario(50), &[NASTY, &outcomes].concat(), |scenario, census| {
        census.conversation(&scenario.messages);
        plans_alike(&scenario, census)
    });
}

#[test]
fn results_that_do_not_fit() {
    let minimums = [
        ("planned", 500),
        ("cut", 250),
        ("cut, goal missed", 20),
        ("cut, and more", 100),
        ("infeasible", 50),
    ];
    cases::check("results that do not fit", crowded_scenario(20), &minimums, |scenario, census| {
        let Scenario { messages, request } = &scenario;
        let index = live::index_of(messages).0;
        let floors = epitome_core::floors(index.view(), request.strategy.protection());
        if let naive::Outcome::Planned(plan) = naive::plan(&Naive::new(messages), request) {
            let is_cut = floors.hard > request.budget.limit();
            let missed = request.budget.goal().is_some_and(|goal| plan.tokens_after > goal);
            census.count("cut", is_cut);
            census.count("cut, goal missed", is_cut && missed);
            census.count("cut, and more", is_cut && plan.verdicts.contains(['D', 'R']));
        }
        plans_alike(&scenario, census)
    });
}

#[test]
fn arguments_that_do_not_fit() {
    let minimums = [("long ends", 40), ("short ends", 4)];
    cases::check("arguments that do not fit", writing_scenario(40), &minimums, |scenario, census| {
        let naive = Naive::new(&scenario.messages);
        if let naive::Outcome::Planned(plan) = naive::plan(&naive, &scenario.request) {
            let is_call =
                |message: usize, part: usize| matches!(scenario.messages[message].parts[part], Part::Call(_));
            let left = |size: u32| {
                plan.shortened.iter().any(|(message, part, left)| *left == size && is_call(*message, *part))
            };
            let marker = CLAMP_MARKER.len() as u32;
            census.count("long ends", left(600 + marker));
            census.count("short ends", left(90 + marker));
        }
        plans_alike(&scenario, census)
    });
}

#[test]
fn summaries() {
    let minimums = [
        ("replaced", 200),
        ("replaced, goal missed", 100),
        ("replaced, without a goal", 40),
        ("at_goal", 100),
        ("nothing_to_drop", 150),
    ];
    cases::check("summaries", summarizing_scenario(60), &minimums, |scenario, census| {
        plans_alike(&scenario, census)
    });
}

#[test]
fn ledgers_and_media() {
    let minimums = [("replaced", 44), ("after a summary", 30), ("shortened", 32)];
    cases::check("ledgers and media", ledger_scenario(60), &minimums, |scenario, census| {
        if let naive::Outcome::Planned(plan) = naive::plan(&Naive::new(&scenario.messages), &scenario.request)
        {
            let is_summary = |at: &usize| scenario.messages[*at].source == SourceKind::Compaction;
            census.count(
                "after a summary",
                plan.summaries.iter().any(|(covered, _)| covered.iter().any(is_summary)),
            );
            census.count("shortened", !plan.shortened.is_empty());
        }
        plans_alike(&scenario, census)
    });
}

fn plans_alike(scenario: &Scenario, census: &Census) -> Result<(), TestCaseError> {
    let (index, _) = live::index_of(&scenario.messages);
    let naive = Naive::new(&scenario.messages);
    let expected = naive::plan(&naive, &scenario.request);
    match &expected {
        naive::Outcome::Infeasible { .. } => census.count("infeasible", true),
        naive::Outcome::Unchanged(why) => census.count(why, true),
        naive::Outcome::Planned(plan) => {
            let (replaced, goal) = (plan.verdicts.contains('R'), scenario.request.budget.goal());
            census.count("planned", true);
            census.count("replaced", replaced);
            census.count(
                "replaced, goal missed",
                replaced && goal.is_some_and(|goal| plan.tokens_after > goal),
            );
            census.count("replaced, without a goal", replaced && goal.is_none());
            census.count("nothing stands as it stood", plan.stable == 0);
        }
    }
    prop_assert_eq!(live::plan(index.view(), &scenario.request), expected, "{}", scenario.request.strategy);
    Ok(())
}

#[test]
fn violations() {
    cases::check("violations", conversation(40), NASTY, |messages, census| {
        census.conversation(&messages);
        for profile in naive::PROFILES {
            let expected = naive::violations(profile, &messages);
            for (_, kind) in &expected {
                census.count(kind.as_str(), true);
            }
            prop_assert_eq!(&live::violations(profile, &messages), &expected);
            if messages.iter().flat_map(Message::calls).all(|id| id.len() <= 64) {
                prop_assert_eq!(&live::violations_with::<OpenCallSlots<256>>(profile, &messages), &expected);
            }
        }
        Ok(())
    });
}

#[test]
fn repairs() {
    cases::check("repairs", conversation(40), NASTY, |messages, census| {
        census.conversation(&messages);
        for profile in naive::PROFILES {
            for pending in [Pending::Running, Pending::Over] {
                let repairs = repair(profile, &messages, pending);
                prop_assert_eq!(repairs, naive::repair(profile, &messages, pending));
            }
        }
        Ok(())
    });
}
