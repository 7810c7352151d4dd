//! The errors for stores that are not built in. A program of its own, because a test of the whole workspace builds every store:
//! `./check stores` runs this one for the facade alone, which has none of them by default.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use epitome::history::StoreErrorKind::Invalid;
use epitome::history::open_store;

#[test]
fn a_build_without_postgres_names_its_feature() {
    for url in ["postgres://user:secret@host/db", "postgresql://user:secret@host/db"] {
        let error = open_store(url).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        let said = error.to_string();
        assert!(said.contains("build it with the feature `postgres`") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn a_build_without_redis_names_its_feature() {
    let error = open_store("redis://user:secret@host").unwrap_err();
    assert_eq!(error.kind(), Invalid);
    assert!(error.to_string().contains("feature `redis`") && !error.to_string().contains("secret"));
}
