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
