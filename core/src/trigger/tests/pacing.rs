//! How often passes are permitted.

use super::Buf;
use crate::{Budget, Occasion, Pacing, TriggerView, WaitReason};

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
    // One attempt; it fails, and the rest begins anew.
    assert_eq!(permits(&pacing, 15), Ok(()));
    pacing.failed(15);
    assert_eq!(permits(&pacing, 16), Err((WaitReason::Failures, 25)));
    pacing.compacted(25);
    pacing.failed(27);
    pacing.failed(27);
    assert_eq!(permits(&pacing, 27), Ok(()));
}

#[test]
fn what_cannot_wait_does_not() {
    let (index, budget) = (Buf::new(), Budget::default());
    let mut pacing = Pacing::default();
    pacing.compacted(1);
    (0..3).for_each(|_| pacing.failed(1));
    let check = TriggerView::new(index.view(), &budget, PROACTIVE);
    assert!(pacing.permits(1, &check).is_err());
    assert!(pacing.permits(1, &check.with_occasion(Occasion::Manual)).is_ok());
    assert!(pacing.permits(1, &check.with_occasion(Occasion::Overflow)).is_ok());
    let limit = budget.limit();
    assert!(pacing.permits(1, &TriggerView::new(index.view(), &budget, limit)).is_err());
    assert!(pacing.permits(1, &TriggerView::new(index.view(), &budget, limit + 1)).is_ok());
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
