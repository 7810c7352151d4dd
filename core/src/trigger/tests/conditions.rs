//! The cases in which each condition holds, and the condition that is reported as the cause.

use super::{Buf, index, words};
use crate::{Budget, Pass, Trigger, TriggerKind, TriggerView};

fn due(trigger: Trigger<'_>, letters: &str) -> bool {
    let (index, budget) = (index(letters), Budget::default());
    trigger.is_due(&TriggerView::new(index.view(), &budget, 0))
}

fn due_at(trigger: Trigger<'_>, size: u64, token_count: u64) -> bool {
    let (index, budget) = (Buf::new(), Budget::default());
    trigger.is_due(&TriggerView::new(index.view(), &budget, size).with_token_count(token_count))
}

#[test]
fn amounts_are_compared_strictly() {
    assert!(!due_at(Trigger::default(), 100_000, 0) && due_at(Trigger::default(), 100_001, 0));
    assert!(!due_at(Trigger::budget(), 100_000, 0) && due_at(Trigger::budget(), 100_001, 0));
    assert!(!due_at(Trigger::reported(500), 9_000, 500) && due_at(Trigger::reported(500), 0, 501));
    assert!(!due_at(Trigger::tokens(u64::MAX), u64::MAX, 0) && due_at(Trigger::tokens(0), 1, 0));
    assert!(!due(Trigger::messages(4), "suau") && due(Trigger::messages(3), "suau"));
    assert!(!due(Trigger::groups(3), "sucr") && due(Trigger::groups(2), "sucr"));
}

#[test]
fn a_share_of_the_window_is_exact() {
    let half = Trigger::window_per_mille(500);
    assert!(!due_at(half, 64_000, 0) && due_at(half, 64_001, 0));
    assert!(due_at(Trigger::window_per_mille(0), 1, 0));
    let index = Buf::new();
    // 33.3 % of 1,001 are 333.333 tokens; the largest window does not overflow.
    let odd = Budget::builder().window(1_001).build().unwrap();
    let third = Trigger::window_per_mille(333);
    assert!(!third.is_due(&TriggerView::new(index.view(), &odd, 333)));
    assert!(third.is_due(&TriggerView::new(index.view(), &odd, 334)));
    let huge = Budget::builder().window(u64::MAX).build().unwrap();
    assert!(!Trigger::window_per_mille(u32::MAX).is_due(&TriggerView::new(index.view(), &huge, u64::MAX)));
}

#[test]
fn turns_are_those_that_are_left() {
    for (letters, turns) in
        [("", 0), ("sa", 0), ("u", 1), ("uu", 2), ("su", 1), ("uaua", 2), ("aucrauoau", 3), ("ucru", 2)]
    {
        assert!(!due(Trigger::turns(turns), letters), "{letters}");
        assert!(turns == 0 || due(Trigger::turns(turns - 1), letters), "{letters}");
    }
}

#[test]
fn calls_and_their_age() {
    assert!(!due(Trigger::has_tool_calls(), "suao") && due(Trigger::has_tool_calls(), "suc"));
    // The age is the number of steps after the oldest exchange, with any messages between them.
    for (letters, age) in [("ucr", 0), ("uacr", 0), ("ucra", 1), ("uacracrua", 3), ("ucrcrcr", 2)] {
        assert!(!due(Trigger::tool_result_age(age), letters), "{letters}");
        assert!(age == 0 || due(Trigger::tool_result_age(age - 1), letters), "{letters}");
    }
    assert!(!due(Trigger::tool_result_age(0), "uaaa"));
}

#[test]
fn passes() {
    let (index, budget) = (Buf::new(), Budget::default());
    let check = TriggerView::new(index.view(), &budget, 0);
    let (manual, overflow) = (check.with_pass(Pass::Manual), check.with_pass(Pass::Overflow));
    let due = |trigger: Trigger<'_>| [check, manual, overflow].map(|view| trigger.is_due(&view));
    assert_eq!(due(Trigger::always()), [true, true, true]);
    assert_eq!(due(Trigger::never()), [false, false, false]);
    assert_eq!(due(Trigger::manual()), [false, true, false]);
    assert_eq!(due(Trigger::overflow()), [false, false, true]);
}

#[test]
fn all_and_any_follow_logic() {
    const YES: Trigger<'static> = Trigger::always();
    const NO: Trigger<'static> = Trigger::never();
    let sets: [&[Trigger<'_>]; 7] = [&[], &[YES], &[NO], &[YES, YES], &[YES, NO], &[NO, YES], &[NO, NO]];
    for set in sets {
        let expected: [bool; 2] = [set.iter().all(|one| *one == YES), set.contains(&YES)];
        assert_eq!([due(Trigger::all(set), ""), due(Trigger::any(set), "")], expected, "{set:?}");
        // Nested in each other, and exchanged.
        let (all, any) = ([Trigger::all(set)], [Trigger::any(set)]);
        assert_eq!([due(Trigger::any(&all), ""), due(Trigger::all(&any), "")], expected, "{set:?}");
    }
}

#[test]
fn the_condition_that_fired_is_named() {
    const NESTED: Trigger<'static> = Trigger::any(&[
        Trigger::all(&[Trigger::tokens(50), Trigger::turns(9)]),
        Trigger::all(&[Trigger::groups(1), Trigger::has_tool_calls()]),
        Trigger::always(),
    ]);
    let (index, budget) = (index("ucra"), Budget::default());
    let view = TriggerView::new(index.view(), &budget, 60);
    let fired = NESTED.fired(&view).unwrap();
    assert_eq!((fired.kind(), fired.amounts()), (TriggerKind::Groups, Some((3, 1))));
    let flat = [
        Trigger::tokens(1),
        Trigger::window_per_mille(0),
        Trigger::messages(1),
        Trigger::turns(0),
        Trigger::groups(1),
        Trigger::has_tool_calls(),
        Trigger::tool_result_age(0),
        Trigger::always(),
        Trigger::all(&[]),
    ];
    let named = words(flat.iter().map(|trigger| trigger.fired(&view).unwrap().kind().as_str()));
    assert_eq!(named, "tokens window messages turns groups tool_calls tool_result_age always all");
}
