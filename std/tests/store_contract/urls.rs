//! Stores that are opened by their urls.

use epitome_std::history::StoreErrorKind::Invalid;
use epitome_std::history::open_store;

use crate::support::fill;
#[cfg(feature = "sqlite")]
use crate::support::keys;

#[test]
fn a_store_is_opened_by_its_url() {
    let store = open_store("memory:").unwrap();
    fill(&*store, 1);
    for url in ["", "memory", "memory:x", "mysql://user:secret@host", "redis:secret", "sqlite:"] {
        let error = open_store(url).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        assert!(!error.to_string().contains("secret"));
    }
    let message = open_store("mysql:x").unwrap_err().to_string();
    for known in ["memory:", "jsonl:DIR", "sqlite:PATH", "postgres://", "redis://HOST"] {
        assert!(message.contains(known), "{message}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn an_sqlite_file_is_opened_by_its_url() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("store.db").display());
    fill(&*open_store(&url).unwrap(), 2);
    assert_eq!(keys(&*open_store(&url).unwrap()), [0, 1]);
}

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
