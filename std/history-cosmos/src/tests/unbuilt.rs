//! The errors for stores that a build of `epitome-std` lacks. This crate builds it without any store; the workspace
//! builds every store.

use epitome_history::StoreErrorKind::Invalid;
use epitome_std::history::open_store;

#[test]
fn an_error_names_the_feature_and_no_password() {
    for (url, feature) in [
        ("sqlite:sessions.db", "sqlite"),
        ("postgres://user:secret@host/db", "postgres"),
        ("postgresql://user:secret@host/db", "postgres"),
        ("redis://user:secret@host", "redis"),
    ] {
        let error = open_store(url).unwrap_err();
        assert_eq!(error.kind(), Invalid);
        let message = error.to_string();
        let names = message.contains(&format!("build it with the feature `{feature}`"));
        assert!(names && !message.contains("secret"), "{message}");
    }
}
