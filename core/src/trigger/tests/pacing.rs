//! Spacing of permitted passes.

use super::Buf;
use crate::{Budget, Cell, Draft, Outcome, Pacing, Pass, Strategy, TriggerView, WaitReason, plan};

/// Drops the oldest step, for any goal.
#[derive(Debug)]
struct One;

impl Strategy for One {
    fn name(&self) -> &'static str {
        "one"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let _ = draft.drop_group(1);
    }
}

const PROACTIVE: u64 = 100_001;

fn permits(pacing: &Pacing, now: u32) -> Result<(), (WaitReason, u32)> {
    let (index, budget) = (Buf::new(), Budget::default());
    pacing
        .permits(now, &TriggerView::new(index.view(), &budget, PROACTIVE))
        .map_err(|wait| (wait.reason, wait.until))
}

#[test]
fn one_pass_in_two_turns() {
    let mut pacing = Pacing::default();
    let mut made = 0;
    for turn in 0..100 {
        // Several checks in each turn: before the run, before calls, after it.
        for _ in 0..3 {
            if permits(&pacing, turn).is_ok() {
                pacing.compacted(turn);
                made += 1;
            }
        }
    }
    assert_eq!(made, 50);
}

#[test]
fn three_failures_end_the_attempts_for_ten_turns() {
    let mut pacing = Pacing::default();
    pacing.failed(4);
    pacing.failed(4);
    assert_eq!(permits(&pacing, 4), Ok(()));
    pacing.failed(5);
    assert_eq!(permits(&pacing, 5), Err((WaitReason::Failures, 15)));
    assert_eq!(permits(&pacing, 14), Err((WaitReason::Failures, 15)));
    // One attempt is permitted. It fails, and the wait begins again.
    assert_eq!(permits(&pacing, 15), Ok(()));
    pacing.failed(15);
    assert_eq!(permits(&pacing, 16), Err((WaitReason::Failures, 25)));
    pacing.compacted(25);
    pacing.failed(27);
    pacing.failed(27);
    assert_eq!(permits(&pacing, 27), Ok(()));
}

#[test]
fn what_was_undone_is_not_done_again_for_ten_turns() {
    let mut pacing = Pacing::default();
    pacing.compacted(3);
    pacing.undone(4);
    assert_eq!(permits(&pacing, 13), Err((WaitReason::Undone, 14)));
    assert_eq!(permits(&pacing, 14), Ok(()));
    pacing.undone(20);
    // A requested compaction has changed the history: the usual spacing applies.
    pacing.compacted(22);
    assert_eq!(permits(&pacing, 23), Err((WaitReason::Spacing, 24)));
    assert_eq!(permits(&pacing, 24), Ok(()));
}

#[test]
fn what_cannot_wait_does_not() {
    let (index, budget) = (Buf::new(), Budget::default());
    let mut pacing = Pacing::default();
    pacing.compacted(1);
    (0..3).for_each(|_| pacing.failed(1));
    let check = TriggerView::new(index.view(), &budget, PROACTIVE);
    assert!(pacing.permits(1, &check).is_err());
    assert!(pacing.permits(1, &check.with_pass(Pass::Manual)).is_ok());
    assert!(pacing.permits(1, &check.with_pass(Pass::Overflow)).is_ok());
    let limit = budget.limit();
    assert!(pacing.permits(1, &TriggerView::new(index.view(), &budget, limit)).is_err());
    assert!(pacing.permits(1, &TriggerView::new(index.view(), &budget, limit + 1)).is_ok());
}

/// The plan and the pacing permit the same passes.
#[test]
fn a_plan_waits_exactly_when_the_pacing_does() {
    let index = super::index("uaaaaaaa");
    let mut pacing = Pacing::default();
    pacing.compacted(1);
    // 80 tokens, of which the strategy frees 10: less than the required 15.
    for (window, fits) in [(80, true), (79, false)] {
        let budget = Budget::builder().window(window).reserve(0).trigger(75).goal(60);
        let strict = budget.min_reclaim(15).build().unwrap();
        for pass in Pass::ALL {
            let view = TriggerView::new(index.view(), &strict, 80).with_pass(pass);
            let mut cells = [Cell::default(); 8];
            let outcome = plan(index.view(), &strict, pass, &One, &mut cells).unwrap();
            let planned = matches!(outcome, Outcome::Planned(_));
            assert_eq!(planned, !(fits && pass == Pass::Proactive), "{} in {window}", pass.as_str());
            assert_eq!(pacing.permits(2, &view).is_ok(), planned);
        }
    }
}

#[test]
fn zero_is_no_limit() {
    let mut free = Pacing::new(0, 0, 0);
    free.compacted(5);
    (0..9).for_each(|_| free.failed(5));
    assert_eq!(permits(&free, 5), Ok(()));
}

#[test]
fn counts_at_the_end_and_counts_begun_anew() {
    let mut pacing = Pacing::default();
    pacing.compacted(u32::MAX);
    assert_eq!(permits(&pacing, u32::MAX), Err((WaitReason::Spacing, u32::MAX)));
    // The history was cleared, and its turns count from the start.
    assert_eq!(permits(&pacing, 0), Ok(()));
}
