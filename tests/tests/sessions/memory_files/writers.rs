//! Several writers of one folder at once.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use epitome::history::{
    Append, Appended, HistoryStore, JsonlStore, MemoryStore, NewState, SessionId, SqliteStore, StateOutcome,
    StoreError,
};
use epitome::memory::{MemoryFolder, MemoryTool};
use epitome::message::ToolCall;
use epitome_tests::around::{Around, StoreWith, pause};
use futures::executor::block_on;
use futures::future::join_all;
use serde_json::json;

use super::{folder, say};

/// Lets other writers run before each append, and counts the appends that come too late.
#[derive(Debug, Default)]
struct Racing {
    conflicts: AtomicUsize,
}

#[async_trait]
impl Around for Racing {
    async fn append_with_state(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        pause().await;
        let done = store.append_with_state(session, append, state).await;
        self.conflicts.fetch_add(usize::from(done.is_err()), Ordering::Relaxed);
        done
    }
}

#[test]
fn edits_of_two_agents_in_different_places_both_hold() {
    let racing = Arc::new(StoreWith::<Racing>::default());
    let store: Arc<dyn HistoryStore> = racing.clone();
    block_on(folder(&store, "al").write("/memories/f", "tea: none\ncoffee: none\n")).unwrap();
    let replace = |old: &str, new: &str| {
        let of_own = folder(&store, "al");
        let command =
            json!({"command": "str_replace", "path": "/memories/f", "old_str": old, "new_str": new});
        async move { say(&of_own, &command).await }
    };
    let both = [replace("tea: none", "tea: green"), replace("coffee: none", "coffee: black")];
    let answers = block_on(join_all(both));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(racing.around.conflicts.load(Ordering::Relaxed), 1, "they did not meet");
    let al = folder(&store, "al");
    assert_eq!(block_on(al.files()).unwrap()["/memories/f"], "tea: green\ncoffee: black\n");
    assert_eq!(block_on(al.versions("/memories/f")).unwrap().len(), 3);
    // Of two edits at one place, the second one does not find its text, and gets an error.
    let answers = block_on(join_all([replace("green", "white"), replace("green", "mint")]));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(block_on(al.versions("/memories/f")).unwrap().len(), 4);
}

/// One call that several processes make at once is executed once: for example after a run that was taken for dead.
#[test]
fn one_call_that_is_made_twice_at_once_is_executed_once() {
    let racing = Arc::new(StoreWith::<Racing>::default());
    let store: Arc<dyn HistoryStore> = racing.clone();
    block_on(folder(&store, "al").write("/memories/f", "")).unwrap();
    let insert = json!({"command": "insert", "path": "/memories/f", "insert_line": 0, "insert_text": "once"});
    let (insert, store) = (&insert.to_string(), &store);
    let calls = (0..4).map(|_| async move {
        let tool = MemoryTool::new(folder(store, "al")).with_run_token("run-1");
        tool.answer(&ToolCall::new("c1", MemoryTool::NAME, insert.as_str())).await.is_error
    });
    assert_eq!(block_on(join_all(calls)), [false; 4]);
    assert_eq!(block_on(folder(store, "al").files()).unwrap()["/memories/f"], "once\n");
}

#[test]
fn no_line_of_many_threads_is_lost() {
    const WRITERS: usize = 4;
    const LINES: usize = 12;
    let path = std::env::temp_dir().join(format!("epitome-memory-writers-{}", std::process::id()));
    let stores: [Arc<dyn HistoryStore>; 3] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqliteStore::open_in_memory().unwrap()),
        Arc::new(JsonlStore::open(&path).unwrap()),
    ];
    for store in stores {
        let al: MemoryFolder = folder(&store, "al");
        block_on(al.write("/memories/f", "")).unwrap();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let al = al.clone();
                scope.spawn(move || {
                    for line in 0..LINES {
                        let text = format!("{writer}-{line}");
                        let insert = json!({
                            "command": "insert", "path": "/memories/f", "insert_line": 0, "insert_text": text,
                        });
                        block_on(say(&al, &insert)).unwrap();
                    }
                });
            }
        });
        let files = block_on(al.files()).unwrap();
        let mut lines: Vec<&str> = files["/memories/f"].lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), WRITERS * LINES);
        assert_eq!(block_on(al.versions("/memories/f")).unwrap().len(), WRITERS * LINES + 1);
    }
    std::fs::remove_dir_all(path).unwrap();
}
