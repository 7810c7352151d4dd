//! The error for a store that this build does not contain. A program of its own, because the workspace builds every store: `./check
//! stores` builds this program from the facade alone, which has none of them by default.

#![cfg(not(all(feature = "postgres", feature = "redis")))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use epitome::history::StoreErrorKind::Invalid;
use epitome::history::open_store;

#[cfg(not(feature = "postgres"))]
#[test]
fn what_this_build_has_not_is_told_by_its_feature() {
    for url in ["postgres://user:secret@host/db", "postgresql://user:secret@host/db"] {
        let error = open_store(url).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        let said = error.to_string();
        assert!(said.contains("build it with the feature `postgres`") && !said.contains("secret"), "{said}");
    }
}

#[cfg(not(feature = "redis"))]
#[test]
fn what_is_not_built_in_names_its_feature() {
    let error = open_store("redis://user:secret@host").unwrap_err();
    assert_eq!(error.kind(), Invalid);
    assert!(error.to_string().contains("feature `redis`") && !error.to_string().contains("secret"));
}
