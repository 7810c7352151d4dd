//! Every scenario of the contract.

use std::sync::Arc;

use epitome_conformance::OneStore;
use futures::executor::block_on;

use super::server::{Room, suite};

/// A test for each scenario.
macro_rules! tests {
    ($store:ident: $($scenario:ident)*) => {
        mod $store {
            $(#[test] fn $scenario() { super::passes(stringify!($scenario)); })*
        }
    };
}

epitome_conformance::conformance_scenarios!(tests! { redis: });

#[track_caller]
fn passes(scenario: &str) {
    if let Some(room) = Room::new() {
        block_on(suite().run_one(scenario, &room)).assert_passed();
    }
}

/// The store also passes with other sessions under the same prefix.
#[test]
fn one_store_passes_beside_others() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    super::server::fill(&store, 3);
    let report = block_on(suite().with_cases(10).run(&OneStore::new(Arc::new(room.store()))));
    report.assert_passed();
    assert!(report.passed() >= 100, "{report}");
    // The suite leaves only the keys from before: those of one session, the index and the layout.
    assert_eq!(room.keys().len(), 8, "{:?}", room.keys());
}
