//! A ledger and a budget that were saved and restored.

use std::string::ToString;

use serde_json::{Value, from_value, json, to_value};

use super::{Named, key, ledger, stamp};
use crate::{Basis, Budget, ModelKey, SavedUsageLedger, Usage, UsageLedger};

fn anchored() -> UsageLedger {
    let mut ledger = ledger();
    let request = ledger.begin_request(1_000, stamp(3, 10));
    ledger.record(request, &Usage::new(1_500, 60));
    ledger.record_compaction(&Usage::new(9_000, 20));
    ledger
}

fn written(ledger: &UsageLedger) -> Value {
    to_value(ledger.save()).unwrap()
}

fn read(value: Value) -> SavedUsageLedger {
    from_value(value).unwrap()
}

#[test]
fn what_is_read_goes_on_as_if_nothing_had_happened() {
    let (mut live, value) = (anchored(), written(&anchored()));
    let mut reloaded = UsageLedger::restore(read(value), key(0), Budget::default());
    for counted in [0, 999, 1_000, 1_200, u64::MAX] {
        for stamp in [stamp(3, 9), stamp(3, 10), stamp(3, 12), stamp(4, 12)] {
            assert_eq!(reloaded.size(counted, stamp), live.size(counted, stamp));
        }
    }
    assert_eq!(reloaded.size(1_000, stamp(3, 10)).basis, Basis::Reported);
    for ledger in [&mut live, &mut reloaded] {
        let (first, second) =
            (ledger.begin_request(2_000, stamp(3, 12)), ledger.begin_request(2_500, stamp(3, 14)));
        ledger.record(second, &Usage::new(5_000, 60));
        ledger.record(first, &Usage::new(4_000, 60));
    }
    assert_eq!(reloaded.save(), live.save());
    assert_eq!(reloaded.compaction_spend().input, 9_000);
}

#[test]
fn another_model_or_counter_voids_what_was_saved_but_not_what_was_spent() {
    let saved = anchored().save();
    for other in [key(1), ModelKey::new("", &Named("estimate-v0", Basis::Estimated))] {
        let ledger = UsageLedger::restore(saved, other, Budget::default());
        assert_eq!((ledger.size(1_000, stamp(3, 10)).tokens, ledger.model()), (1_000, other));
        assert_eq!((ledger.spend().input, ledger.compaction_spend().input), (1_500, 9_000));
    }
}

/// A log of the same revision with fewer messages than at the report is not the log of the ledger.
#[test]
fn a_log_that_was_taken_back_voids_the_report() {
    let ledger = anchored();
    assert_eq!(ledger.size(1_000, stamp(3, 9)).tokens, 1_500);
    assert_eq!(ledger.size(1_000, stamp(3, 9)).basis, Basis::Estimated);
    assert_eq!(ledger.size(1_200, stamp(3, 9)).tokens, 1_800);
}

#[test]
fn figures_changed_by_hand_break_nothing() {
    let mut value = written(&anchored());
    for name in ["former", "recorded"] {
        value[name] = json!(u64::MAX);
    }
    value["learned"] = json!({ "reported": u64::MAX, "counted": 0 });
    let mut ledger = UsageLedger::restore(read(value), key(0), Budget::default());
    let request = ledger.begin_request(1_000, stamp(5, 20));
    ledger.record(request, &Usage::new(1_700, 60));
    // The next report is valid again.
    assert_eq!(ledger.size(1_000, stamp(5, 20)).tokens, 1_700);
    for (name, wrong) in [("begun", json!(-1)), ("anchor", json!(3)), ("model", json!("gpt"))] {
        let mut value = written(&anchored());
        value[name] = wrong;
        assert!(from_value::<SavedUsageLedger>(value).is_err(), "{name}");
    }
}

#[test]
fn a_budget_is_checked_when_it_is_read() {
    let builder = Budget::builder().window(8_000).trigger(5_000);
    for budget in [Budget::default(), builder.build().unwrap(), builder.without_goal().build().unwrap()] {
        assert_eq!(from_value::<Budget>(to_value(budget).unwrap()).unwrap(), budget);
    }
    let mut contradicts = to_value(Budget::default()).unwrap();
    contradicts["goal"] = json!(100_000);
    let error = from_value::<Budget>(contradicts).unwrap_err().to_string();
    assert!(error.starts_with("the goal (100000) must be under the trigger (100000)"), "{error}");
}
