//! A counter with a large error in either direction: the number of requests until sizes are right, with the report and
//! without it.

use super::{ledger, stamp};
use crate::Usage;

/// Tokens that the provider counts for `tokens`: half of them, times `halves`, with up to 2 % of noise.
fn seen(tokens: u64, halves: u64, at: u64) -> u64 {
    let exact = tokens * halves / 2;
    exact * (98 + at * 3 % 5) / 100
}

fn off_per_mille(size: u64, actual: u64) -> u64 {
    size.abs_diff(actual) * 1_000 / actual
}

#[test]
fn sizes_converge_whatever_the_counter() {
    for halves in [1, 2, 3, 4, 8] {
        let mut ledger = ledger();
        let mut counted = 2_000;
        for at in 0..40 {
            let (now, after) = (stamp(0, at), stamp(1, at));
            let actual = seen(counted, halves, at);
            if at >= 4 {
                // Both the size with the anchor of a report and the size after a compaction have an error of a few
                // percent.
                assert!(off_per_mille(ledger.size(counted, now).tokens, actual) <= 50, "{halves} {at}");
                assert!(off_per_mille(ledger.size(counted, after).tokens, actual) <= 50, "{halves} {at}");
            }
            let request = ledger.begin_request(counted, now);
            ledger.record(request, &Usage::new(actual, 10));
            counted += 300;
        }
    }
}

#[test]
fn a_counter_whose_error_changes_is_followed() {
    let mut ledger = ledger();
    for at in 0..30 {
        // Prose for fifteen requests, then text of which the counter counts half.
        let actual = 50_000 * if at < 15 { 1 } else { 2 };
        let request = ledger.begin_request(50_000, stamp(0, at));
        ledger.record(request, &Usage::new(actual, 10));
    }
    assert!(off_per_mille(ledger.size(50_000, stamp(1, 30)).tokens, 100_000) <= 20);
}

#[test]
fn a_size_is_never_a_sum() {
    let mut ledger = ledger();
    for at in 0..1_000 {
        let request = ledger.begin_request(5_000, stamp(0, at));
        ledger.record(request, &Usage::new(6_000, 10));
        assert_eq!(ledger.size(5_000, stamp(0, at)).tokens, 6_000);
    }
    assert_eq!(ledger.spend().input, 6_000_000);
}
