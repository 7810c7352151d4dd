//! Memory files over stores with fewer functions, and other operations on the session of a folder.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use async_trait::async_trait;
use epitome::core::{Revision, Seq};
use epitome::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, HistoryStore, HistoryStoreExt, JsonlStore,
    Keep, KeptState, Loaded, LogPage, MemoryStore, NewState, SessionId, SessionInfo, SqliteStore,
    StateOutcome, StateRevision, StoreError, StoreErrorKind,
};
use epitome::memory::{MemoryFolder, MemoryTool};
use epitome::message::ToolCall;
use epitome::session::SessionErrorKind;
use epitome_tests::around::{Around, StoreWith};
use futures::executor::block_on;
use serde_json::json;

use super::{folder, say};

/// A store that keeps states in a separate step, or keeps no states.
#[derive(Debug)]
struct Plain {
    store: MemoryStore,
    keeps_states: bool,
    /// The next saves of a state that fail: one bit for each, the lowest first.
    failures: AtomicU32,
}

impl Plain {
    fn new(keeps_states: bool, failures: u32) -> Self {
        Self { store: MemoryStore::new(), keeps_states, failures: failures.into() }
    }

    fn states(&self) -> Result<&MemoryStore, StoreError> {
        let unsupported = || StoreError::new(StoreErrorKind::Unsupported, "this store keeps no states");
        self.keeps_states.then_some(&self.store).ok_or_else(unsupported)
    }
}

#[async_trait]
impl HistoryStore for Plain {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        self.store.append(session, append).await
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        self.store.load(session).await
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.store.appended(session, token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        self.store.commit(session, record).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        self.store.log(session, range, limit.min(2)).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        self.store.records(session, after, limit).await
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let failures = self.failures.load(Ordering::Relaxed);
        self.failures.store(failures >> 1, Ordering::Relaxed);
        if failures & 1 == 1 {
            return Err(StoreError::new(StoreErrorKind::Unavailable, "on purpose"));
        }
        self.states()?.save_state(session, state).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        self.states()?.state(session).await
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        self.store.list(after, limit).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.store.delete(session).await
    }
}

#[test]
fn a_store_without_states_is_named_with_the_remedy() {
    let store: Arc<dyn HistoryStore> = Arc::new(Plain::new(false, 0));
    let error = block_on(folder(&store, "al").write("/memories/a", "text")).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
    let said = error.to_string();
    assert!(
        said.starts_with("the store keeps no states, which memory files need: use one that does"),
        "{said}"
    );
    assert!(block_on(folder(&store, "al").versions("/memories/a")).is_err());
    assert_eq!(block_on(store.list(None, 9)).unwrap(), []);
}

/// A process may end between the two steps of such a store. The change is then in the log and not in the state, and is
/// not lost.
#[test]
fn a_change_whose_state_was_not_kept_is_not_lost() {
    for failures in [0, 0b1, 0b11, 0b1_0110, 0b10_0100, 0b11_1110, 0b11_1111] {
        let store: Arc<dyn HistoryStore> = Arc::new(Plain::new(true, failures));
        let al = folder(&store, "al");
        for number in 0..6 {
            block_on(al.write(&format!("/memories/{}", number % 4), &format!("text {number}"))).unwrap();
        }
        let texts: Vec<String> = block_on(folder(&store, "al").files()).unwrap().into_values().collect();
        assert_eq!(texts, ["text 4", "text 5", "text 2", "text 3"], "failures {failures:b}");
        assert_eq!(block_on(al.versions("/memories/0")).unwrap().len(), 2);
        // This store lists no times.
        assert!(block_on(al.versions("/memories/0")).unwrap().iter().all(|version| version.time.is_none()));
        let kept = block_on(store.state(al.owner())).unwrap();
        assert_eq!(kept.is_some(), failures != 0b11_1111);
    }
}

/// A store that appends, and loses the answer.
#[derive(Debug, Default)]
struct LosesAnswers;

#[async_trait]
impl Around for LosesAnswers {
    async fn append_with_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        store.append_with_state(session, append, state).await?;
        Err(StoreError::new(StoreErrorKind::Unavailable, "the answer is lost"))
    }
}

#[test]
fn a_change_whose_acknowledgement_is_lost_is_made_once_and_answered() {
    let store: Arc<dyn HistoryStore> = Arc::new(StoreWith::<LosesAnswers>::default());
    let al = folder(&store, "al");
    let create = json!({"command": "create", "path": "/memories/a", "file_text": "x\n"});
    let created = Ok("File created successfully at: /memories/a".to_owned());
    assert_eq!(block_on(say(&al, &create)), created);
    let insert = json!({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "y"});
    let call = ToolCall::new("c1", MemoryTool::NAME, insert.to_string());
    let tool = MemoryTool::new(al.clone()).with_run_token("run-1");
    for _ in 0..2 {
        assert!(!block_on(tool.answer(&call)).is_error);
    }
    assert_eq!(block_on(al.files()).unwrap()["/memories/a"], "y\nx\n");
}

/// The session of a folder is retained, verified, exported and imported like any other session.
#[test]
fn old_versions_are_deleted_exported_and_verified_as_those_of_any_session() {
    let folder_path = std::env::temp_dir().join(format!("epitome-memory-files-{}", std::process::id()));
    let stores: [Arc<dyn HistoryStore>; 3] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open_in_memory().unwrap()),
        Arc::new(JsonlStore::open(&folder_path).unwrap()),
    ];
    for store in stores {
        let al = folder(&store, "al");
        for number in 0..9 {
            block_on(al.write("/memories/a", &format!("text {number}"))).unwrap();
        }
        block_on(al.write("/memories/b", "other")).unwrap();
        let files = block_on(al.files()).unwrap();
        block_on(store.verify(al.owner())).unwrap();
        let hidden = block_on(store.retain(al.owner(), Keep::Messages(3))).unwrap().hidden;
        assert_eq!(hidden, 7);
        block_on(store.verify(al.owner())).unwrap();
        assert_eq!(block_on(al.files()).unwrap(), files);

        let versions = block_on(al.versions("/memories/a")).unwrap();
        assert_eq!(versions.iter().map(|version| version.number.0).collect::<Vec<_>>(), [7, 8]);
        assert_eq!(block_on(al.read_version("/memories/a", Seq(7))).unwrap(), "text 7");
        let pruned = block_on(al.read_version("/memories/a", Seq(0))).unwrap_err();
        assert_eq!(pruned.kind(), SessionErrorKind::NotFound);
        assert!(pruned.to_string().contains("it was pruned"), "{pruned}");

        // A copy goes on from the files of the folder.
        let mut file = Vec::new();
        block_on(store.export(al.owner(), &mut file)).unwrap();
        let other = Arc::new(MemoryStore::new());
        block_on(other.import(&SessionId::new("copy"), &mut &file[..])).unwrap();
        let copy = MemoryFolder::new(other, SessionId::new("copy"));
        assert_eq!(block_on(copy.files()).unwrap(), files);
        block_on(copy.write("/memories/c", "goes on")).unwrap();
        assert_eq!(block_on(copy.files()).unwrap().len(), 3);
    }
    std::fs::remove_dir_all(folder_path).unwrap();
}

/// A fork has no state: its files are those of its log. If a part of the log was pruned, the files are an error and not
/// guessed.
#[test]
fn a_fork_of_a_folder_has_the_files_of_that_moment_unless_they_were_pruned() {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let al = folder(&store, "al");
    for text in ["one", "two", "three"] {
        block_on(al.write("/memories/a", text)).unwrap();
    }
    block_on(store.fork(al.owner(), Seq(2), &SessionId::new("then"))).unwrap();
    let then = folder(&store, "then");
    assert_eq!(block_on(then.files()).unwrap()["/memories/a"], "two");
    block_on(store.retain(then.owner(), Keep::Messages(1))).unwrap();
    let error = block_on(then.files()).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Corrupt);
    assert!(!error.to_string().contains("two"), "{error}");
    // A change keeps the state, so that the files no longer depend on old versions.
    block_on(store.fork(al.owner(), Seq(2), &SessionId::new("again"))).unwrap();
    let again = folder(&store, "again");
    block_on(again.write("/memories/b", "new")).unwrap();
    block_on(store.retain(again.owner(), Keep::Messages(1))).unwrap();
    assert_eq!(block_on(again.files()).unwrap().len(), 2);
}
