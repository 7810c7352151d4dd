//! Every scenario of the contract, on every store.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_conformance::{OneStore, ScenarioOutcome, Subject, Suite};
use epitome_core::Seq;
use epitome_std::history::{Append, AppendToken, MemoryStore, SessionId, SessionInfo};
use futures::executor::block_on;

use crate::subjects;
use crate::support::user;

/// A test for each scenario.
macro_rules! tests {
    ($store:ident: $($scenario:ident)*) => {
        mod $store {
            $(#[test] fn $scenario() { super::passes(&super::suite_of::$store(), &crate::subjects::$store(), stringify!($scenario)); })*
        }
    };
}

epitome_conformance::conformance_scenarios!(tests! { memory: });
epitome_conformance::conformance_scenarios!(tests! { simple: });
epitome_conformance::conformance_scenarios!(tests! { jsonl: });
#[cfg(feature = "sqlite")]
epitome_conformance::conformance_scenarios!(tests! { sqlite: });
#[cfg(feature = "encryption")]
epitome_conformance::conformance_scenarios!(tests! { jsonl_encrypted: });
#[cfg(all(feature = "encryption", feature = "sqlite"))]
epitome_conformance::conformance_scenarios!(tests! { sqlite_encrypted: });

/// A test for each scenario, if a server is available.
#[cfg(feature = "postgres")]
macro_rules! tests_on_a_server {
    ($store:ident: $($scenario:ident)*) => {
        mod $store {
            $(#[test] fn $scenario() {
                if let Some(subject) = crate::subjects::$store() {
                    super::passes(&super::suite_of::$store(), &subject, stringify!($scenario));
                }
            })*
        }
    };
}

#[cfg(feature = "postgres")]
epitome_conformance::conformance_scenarios!(tests_on_a_server! { postgres: });

/// Suite with this number of series of operations, or the number in `EPITOME_CASES`.
fn suite(cases: u32) -> Suite {
    let asked = std::env::var_os("EPITOME_CASES").and_then(|cases| cases.to_str()?.parse().ok());
    Suite::new().with_cases(asked.unwrap_or(cases))
}

#[track_caller]
fn passes(suite: &Suite, subject: &dyn Subject, scenario: &str) {
    block_on(suite.run_one(scenario, subject)).assert_passed();
}

/// The suite of each store.
mod suite_of {
    use super::{Suite, suite};

    pub(super) fn memory() -> Suite {
        suite(200)
    }

    pub(super) fn simple() -> Suite {
        suite(60)
    }

    pub(super) fn jsonl() -> Suite {
        suite(200)
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn sqlite() -> Suite {
        suite(200)
    }

    #[cfg(feature = "encryption")]
    pub(super) fn jsonl_encrypted() -> Suite {
        suite(20)
    }

    #[cfg(all(feature = "encryption", feature = "sqlite"))]
    pub(super) fn sqlite_encrypted() -> Suite {
        suite(20)
    }

    #[cfg(feature = "postgres")]
    pub(super) fn postgres() -> Suite {
        suite(30)
    }
}

/// Runs the whole suite on one store with other sessions, and checks that these are unchanged.
pub(crate) fn passes_beside_others(suite: Suite, subject: &dyn Subject) {
    let store = block_on(subject.open("theirs")).unwrap();
    let names = ["", "a", "conformance", "s", "z", "\u{10ffff}"].map(SessionId::new);
    for name in &names {
        block_on(store.append(name, &Append::new(&AppendToken::new("t"), Seq(0), &[user(0)]))).unwrap();
    }
    let all = || -> Vec<SessionInfo> { block_on(store.list(None, 99)).unwrap() };
    let before = all();
    assert_eq!(before.len(), names.len());
    let report = block_on(suite.with_cases(5).run(subject));
    report.assert_passed();
    assert!(report.passed() >= 80, "{report}");
    assert_eq!(all(), before);
}

#[test]
fn one_store_in_memory_passes_beside_others() {
    passes_beside_others(suite_of::memory(), &OneStore::new(Arc::new(MemoryStore::new())));
}

#[test]
fn one_folder_passes_beside_others() {
    passes_beside_others(suite_of::jsonl(), &subjects::jsonl_unsynced(false));
}

#[cfg(feature = "sqlite")]
#[test]
fn one_file_passes_beside_others() {
    passes_beside_others(suite_of::sqlite(), &subjects::sqlite_files(false));
}

#[test]
fn scenarios_have_names_of_their_own() {
    let names: BTreeSet<&str> = Suite::scenarios().map(|(_, name)| name).collect();
    assert_eq!(names.len(), Suite::scenarios().count());
    assert!(names.len() >= 115, "{}", names.len());
    // The name of a place is that of its scenario, with 33 bytes more.
    assert!(names.iter().all(|name| name.len() <= 115));
}

#[test]
fn a_group_is_skipped_by_its_name() {
    let store = OneStore::new(Arc::new(MemoryStore::new()));
    let report = block_on(Suite::new().with_skip("times", "there is no clock").with_cases(1).run(&store));
    let of_group = Suite::scenarios().filter(|(group, _)| *group == "times");
    let of_group: Vec<_> = of_group.map(|(_, name)| name).collect();
    let skipped = ScenarioOutcome::Skipped("there is no clock".to_owned());
    let found = report.outcomes().filter(|(_, outcome)| **outcome == skipped).map(|(name, _)| name);
    assert!(of_group.len() > 1 && found.eq(of_group));
    report.assert_passed();
}

#[test]
fn nothing_is_skipped_but_what_is_declared() {
    let store = OneStore::new(Arc::new(MemoryStore::new()));
    let suite = Suite::new()
        .with_skip("a_log_has_pages", "it has no pages")
        .with_skip("an_empty_token_is_a_token", " ")
        .with_skip("a_log_has_paegs", "it has no pages")
        .with_cases(20);
    let report = block_on(suite.run(&store));
    assert_eq!(report.passed(), Suite::scenarios().count() - 2);
    let skipped = ScenarioOutcome::Skipped("it has no pages".to_owned());
    assert!(report.outcomes().any(|outcome| outcome == ("a_log_has_pages", &skipped)));
    let failures: Vec<_> = report.failures().collect();
    let unknown = ("a_log_has_paegs", "there is no scenario and no group of this name to skip");
    assert_eq!(failures, [unknown, ("an_empty_token_is_a_token", "skipped without a reason")]);
    let said = report.to_string();
    assert!(
        said.ends_with("2 failed, 1 were skipped") && said.contains("\nskipped a_log_has_pages: it has no")
    );
    assert!(std::panic::catch_unwind(|| report.assert_passed()).is_err());
    let unknown = block_on(suite.run_one("no_such_scenario", &store));
    assert_eq!((unknown.passed(), unknown.failures().count()), (0, 1));
}
