//! Another writer changes the session before each commit: after four commits the engine returns a `Conflict` error.

use core::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use epitome::core::Revision;
use epitome::history::{CompactionRecord, SessionId, StoreError, StoreErrorKind};
use epitome_tests::around::{Around, StoreWith};

use super::*;

/// Refuses every commit with a conflict, as if another writer had committed first.
#[derive(Debug, Default)]
struct NeverFirst {
    commits: AtomicUsize,
}

#[async_trait]
impl Around for NeverFirst {
    async fn commit(
        &self,
        _: &MemoryStore,
        _: &SessionId,
        _: &CompactionRecord,
    ) -> Result<Revision, StoreError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        Err(StoreError::new(StoreErrorKind::Conflict, "commit: somebody else was first"))
    }
}

#[test]
fn a_conflict_that_comes_again_and_again_is_an_error_after_four_commits() {
    let with = Arc::new(StoreWith::<NeverFirst>::default());
    let store: Arc<dyn HistoryStore> = with.clone();
    let mut history = history(&store);
    talk(&mut history, 30);
    let (before, budget) = (shown(&history), budget(&history, 40));
    let scripted = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let summarizing = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&scripted) as _);
    for (nth, engine) in [Engine::new(Truncation::new()), summarizing].iter().enumerate() {
        let error = compact(&mut history, engine, budget, Pass::Manual).unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Conflict);
        assert_eq!(with.around.commits.load(Ordering::Relaxed), 4 * (nth + 1));
        assert_eq!(shown(&history), before);
    }
    // The summary was paid for once.
    assert_eq!(scripted.calls.load(Ordering::Relaxed), 1);
}
