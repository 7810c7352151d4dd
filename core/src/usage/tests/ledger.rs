//! Events that invalidate an anchor, and the learning of the correction.

use super::{Named, key, ledger, stamp};
use crate::{Basis, Budget, Correction, ModelKey, OpenAiTokens, Usage, UsageLedger};

/// A ledger whose last request had 1,000 tokens by the counter and 1,500 by the provider, at revision 3.
fn anchored() -> UsageLedger {
    let mut ledger = ledger();
    let request = ledger.begin_request(1_000, stamp(3, 10));
    ledger.record(request, &Usage::new(1_500, 60));
    ledger
}

fn sizes(ledger: &UsageLedger) -> (u64, u64) {
    (ledger.size(1_000, stamp(3, 10)).tokens, ledger.size(1_200, stamp(3, 12)).tokens)
}

#[test]
fn without_a_report_the_counter_is_believed() {
    let size = ledger().size(1_000, stamp(0, 4));
    assert_eq!((size.tokens, size.basis), (1_000, Basis::Estimated));
    let exact = ModelKey::new("m", &Named("o200k_base", Basis::Counted));
    let size = UsageLedger::new(exact, Budget::default()).size(1_000, stamp(0, 4));
    assert_eq!((size.tokens, size.basis), (1_000, Basis::Counted));
}

#[test]
fn what_came_since_is_added_and_what_went_is_taken_away() {
    let ledger = anchored();
    assert_eq!(ledger.size(1_200, stamp(3, 12)).tokens, 1_800);
    assert_eq!(ledger.size(800, stamp(3, 12)).tokens, 1_200);
    assert_eq!(ledger.size(0, stamp(3, 12)).tokens, 0);
}

#[test]
fn only_the_reported_request_is_reported() {
    let ledger = anchored();
    assert_eq!(ledger.size(1_000, stamp(3, 10)).basis, Basis::Reported);
    assert_eq!(ledger.size(1_000, stamp(3, 11)).basis, Basis::Estimated);
    assert_eq!(ledger.size(1_001, stamp(3, 10)).basis, Basis::Estimated);
    assert_eq!(ledger.size(1_000, stamp(4, 10)).basis, Basis::Estimated);
}

#[test]
fn a_counter_that_is_right_stays_counted() {
    let mut ledger =
        UsageLedger::new(ModelKey::new("m", &Named("o200k_base", Basis::Counted)), Budget::default());
    let request = ledger.begin_request(1_000, stamp(0, 10));
    ledger.record(request, &Usage::new(1_000, 60));
    assert_eq!(ledger.size(1_100, stamp(0, 11)).basis, Basis::Counted);
    let request = ledger.begin_request(1_100, stamp(0, 11));
    ledger.record(request, &Usage::new(1_101, 60));
    assert_eq!(ledger.size(1_200, stamp(0, 12)).basis, Basis::Estimated);
}

#[test]
fn another_revision_voids_the_report_but_not_what_was_learned() {
    let ledger = anchored();
    assert_eq!(ledger.size(400, stamp(4, 12)).tokens, 600);
    assert_eq!(ledger.correction(), Correction::of(3, 2).unwrap());
}

#[test]
fn a_commit_between_request_and_report_voids_it_too() {
    let mut ledger = ledger();
    let request = ledger.begin_request(1_000, stamp(3, 10));
    // A compaction commits revision 4 now. The report is about the messages before it.
    ledger.record(request, &Usage::new(1_500, 60));
    let size = ledger.size(400, stamp(4, 10));
    assert_eq!((size.tokens, size.basis), (600, Basis::Estimated));
}

#[test]
fn a_report_that_cannot_be_believed_leaves_no_anchor() {
    let below = OpenAiTokens { input: Some(99), cached: Some(100), ..OpenAiTokens::NONE };
    for usage in [Usage::new(0, 5), Usage::openai(below), Usage::new(9_000, 5).of_server_steps(None)] {
        let mut ledger = anchored();
        let request = ledger.begin_request(1_200, stamp(3, 12));
        ledger.record(request, &usage);
        assert_eq!(sizes(&ledger), (1_500, 1_800), "k x count, not {usage:?}");
        assert_eq!(ledger.size(1_000, stamp(3, 10)).basis, Basis::Estimated);
    }
}

#[test]
fn a_report_that_is_silent_about_the_input_changes_nothing() {
    let mut ledger = anchored();
    let request = ledger.begin_request(1_200, stamp(3, 12));
    ledger.record(request, &Usage::NONE);
    assert_eq!(ledger.size(1_000, stamp(3, 10)).basis, Basis::Reported);
}

#[test]
fn after_a_compaction_by_the_provider_sizes_are_measured_from_what_it_left() {
    let mut ledger = anchored();
    let learned = ledger.correction();
    let request = ledger.begin_request(180_000, stamp(3, 12));
    ledger.record(request, &Usage::new(23_000, 1_000).after_compaction(Some(23_000)));
    assert_eq!(ledger.correction(), learned, "nobody has counted what was read");
    assert_eq!(ledger.size(180_000, stamp(3, 12)).tokens, 23_000);
    // The whole history is sent again, with 1,000 more by the counter. The provider counts half as much again.
    assert_eq!(ledger.size(181_000, stamp(3, 14)).tokens, 24_500);
    // The messages that the provider skips are no longer sent.
    let size = ledger.size(16_000, stamp(4, 14));
    assert_eq!((size.tokens, size.basis), (24_000, Basis::Estimated));
    for unknown in [None, Some(0), Some(23_001)] {
        let request = ledger.begin_request(180_000, stamp(3, 12));
        ledger.record(request, &Usage::new(23_000, 1_000).after_compaction(unknown));
        assert_eq!(ledger.size(180_000, stamp(3, 12)).tokens, 270_000, "{unknown:?}");
    }
}

#[test]
fn of_server_steps_the_first_is_the_request() {
    let mut ledger = ledger();
    let request = ledger.begin_request(1_000, stamp(0, 10));
    ledger.record(request, &Usage::new(9_000, 60).of_server_steps(Some(1_100)));
    assert_eq!(ledger.size(1_000, stamp(0, 10)).tokens, 1_100);
    assert_eq!(ledger.spend().input, 9_000);
}

#[test]
fn the_latest_request_counts_not_the_latest_report() {
    let mut ledger = ledger();
    let first = ledger.begin_request(1_000, stamp(0, 10));
    let second = ledger.begin_request(2_000, stamp(0, 20));
    ledger.record(second, &Usage::new(2_000, 60));
    ledger.record(first, &Usage::new(0, 60));
    assert_eq!(ledger.size(2_000, stamp(0, 20)).basis, Basis::Reported);
    assert_eq!(ledger.spend().reports, 2);
}

#[test]
fn another_model_or_counter_begins_anew() {
    let others = [key(1), ModelKey::new("", &Named("estimate-v0", Basis::Estimated))];
    for other in others {
        let mut ledger = anchored();
        let late = ledger.begin_request(1_100, stamp(3, 11));
        ledger.set_model(other, Budget::default());
        assert_eq!((sizes(&ledger), ledger.correction()), ((1_000, 1_200), Correction::ONE));
        // A report on a request to the former model counts as spend, and nothing else.
        ledger.record(late, &Usage::new(1_700, 60));
        assert_eq!((sizes(&ledger), ledger.correction()), ((1_000, 1_200), Correction::ONE));
        assert_eq!(ledger.spend().input, 3_200);
    }
}

#[test]
fn another_budget_changes_no_size() {
    let mut ledger = anchored();
    let small = Budget::builder().window(8_000).build().unwrap();
    ledger.set_model(key(0), small);
    assert_eq!((sizes(&ledger), ledger.budget()), ((1_500, 1_800), &small));
}

#[test]
fn usage_of_compactions_is_spend_not_size() {
    let mut ledger = anchored();
    ledger.record_compaction(&Usage::new(90_000, 2_000));
    assert_eq!(sizes(&ledger), (1_500, 1_800));
    assert_eq!((ledger.spend().input, ledger.compaction_spend().input), (1_500, 90_000));
    assert_eq!(ledger.spend().plus(ledger.compaction_spend()).output, 2_060);
}

#[test]
fn what_must_be_freed_is_in_the_units_of_the_counter() {
    assert_eq!(anchored().must_free(100_000, 50_000), 33_334);
    assert_eq!(anchored().must_free(50_000, 50_000), 0);
    assert_eq!(anchored().must_free(1, 2), 0);
    assert_eq!(ledger().must_free(u64::MAX, 0), u64::MAX);
}

#[test]
fn a_tiny_first_request_does_not_decide() {
    // Most of this request is framing that the counter does not see.
    let mut ledger = ledger();
    let request = ledger.begin_request(5, stamp(0, 1));
    ledger.record(request, &Usage::new(400, 1));
    assert_eq!(ledger.correction(), Correction::MAX);
    let request = ledger.begin_request(10_000, stamp(0, 2));
    ledger.record(request, &Usage::new(10_400, 1));
    assert!(ledger.correction().per_mille() < 1_050);
}

#[test]
fn a_model_that_is_come_back_to_begins_anew() {
    let mut ledger = anchored();
    let late = ledger.begin_request(1_100, stamp(3, 11));
    ledger.set_model(key(1), Budget::default());
    ledger.set_model(key(0), Budget::default());
    ledger.record(late, &Usage::new(1_700, 60));
    assert_eq!((sizes(&ledger), ledger.correction()), ((1_000, 1_200), Correction::ONE));
}
