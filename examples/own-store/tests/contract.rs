//! The contract of a history store, on the store of this example.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use epitome_conformance::{Subject, Suite};
use epitome_core::{Basis, Seq, Tokens, Turn};
use epitome_history::{
    Append, AppendToken, Entry, HistoryStore, SessionId, StoreError, StoreErrorKind, TokenCount,
};
use epitome_message::Message;
use futures::executor::block_on;
use own_store::RedbStore;
use redb::Database;
use redb::backends::InMemoryBackend;

/// A database in memory for each place.
#[derive(Default)]
struct Databases(Mutex<HashMap<String, RedbStore>>);

#[async_trait]
impl Subject for Databases {
    async fn open(&self, place: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        let mut databases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = databases.get(place) {
            return Ok(Arc::new(store.clone()));
        }
        let database = Database::builder().create_with_backend(InMemoryBackend::new());
        let database = database
            .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "redb").with_source(error))?;
        let store = RedbStore::over(database)?;
        databases.insert(place.to_owned(), store.clone());
        Ok(Arc::new(store))
    }

    fn is_apart(&self) -> bool {
        true
    }
}

#[test]
fn every_scenario_passes() {
    let report = block_on(Suite::new().with_cases(60).run(&Databases::default()));
    report.assert_passed();
    println!("{report}");
}

#[test]
fn a_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.redb");
    let session = SessionId::new("demo");
    let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
    let entry = Entry::new(Message::user("Hello"), Seq(0), Turn(1), count);
    let token = AppendToken::new("first");
    block_on(async {
        let append = Append::new(&token, Seq(0), core::slice::from_ref(&entry));
        RedbStore::open(&path)?.append(&session, &append).await?;
        let loaded = HistoryStore::load(&RedbStore::open(&path)?, &session).await?;
        assert_eq!((loaded.head, &loaded.live[0].entry), (Seq(1), &entry));
        Ok::<(), StoreError>(())
    })
    .unwrap();
}
