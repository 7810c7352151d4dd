//! A store that fails at the commit of a compaction: it then shows the old history or the new one, and whole.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use async_trait::async_trait;
use epitome::compaction::CompactionOutcome;
use epitome::compactors::Managed;
use epitome::compactors::managed::anthropic::ON_DEMAND_BETA;
use epitome::core::Revision;
use epitome::history::{CompactionRecord, HistoryStore, MemoryStore, SessionId, StoreError, StoreErrorKind};
use epitome::message::Message;
use epitome_tests::around::{Around, StoreWith};

use crate::managed::support::{block_on, compact, managed, open, ten_turns};
use crate::managed::{anthropic, openai};

/// Fate of the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Fine,
    /// The commit fails, and nothing has changed.
    Lost,
    /// The commit succeeds, and its answer is lost.
    Unanswered,
    /// The commit succeeds, and the future is dropped before its answer.
    Dropped,
}

const FATES: [Fate; 4] = [Fate::Fine, Fate::Lost, Fate::Unanswered, Fate::Dropped];

/// The fate of the next commit, by its number.
#[derive(Debug, Default)]
pub(crate) struct Next(AtomicU8);

impl Next {
    pub(crate) fn set(&self, fate: Fate) {
        self.0.store(fate as u8, Ordering::Relaxed);
    }
}

fn unavailable() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "on purpose")
}

#[async_trait]
impl Around for Next {
    async fn commit(
        &self,
        store: &MemoryStore,
        session: &SessionId,
        record: &CompactionRecord,
    ) -> Result<Revision, StoreError> {
        let fate = FATES[usize::from(self.0.swap(Fate::Fine as u8, Ordering::Relaxed))];
        if fate == Fate::Lost {
            return Err(unavailable());
        }
        let done = store.commit(session, record).await;
        match fate {
            Fate::Unanswered => Err(unavailable()),
            Fate::Dropped => core::future::pending().await,
            _ => done,
        }
    }
}

/// Messages that a fresh process shows.
pub(crate) async fn fresh(store: &Arc<dyn HistoryStore>) -> Vec<Message> {
    open(store).await.projection().cloned().collect()
}

async fn ends_whole(service: Managed, fate: Fate) -> Vec<Message> {
    let unreliable = Arc::new(StoreWith::<Next>::default());
    let store: Arc<dyn HistoryStore> = Arc::clone(&unreliable) as _;
    let mut history = ten_turns(&store).await;
    let old = fresh(&store).await;
    unreliable.around.set(fate);
    if fate == Fate::Dropped {
        let compacting = Box::pin(compact(&mut history, &service));
        let committed = async {
            while fresh(&store).await == old {
                futures_timer::Delay::new(core::time::Duration::from_millis(5)).await;
            }
        };
        let ended = futures::future::select(compacting, Box::pin(committed)).await;
        assert!(matches!(ended, futures::future::Either::Right(_)), "it hangs");
    } else {
        let (outcome, usage) = compact(&mut history, &service).await;
        assert_eq!(outcome.is_ok(), fate == Fate::Fine, "{fate:?}");
        assert_eq!(usage.len(), 1, "what was paid is told");
    }
    let shown = fresh(&store).await;
    assert_eq!(shown == old, fate == Fate::Lost, "{fate:?}");
    if fate == Fate::Lost {
        let (again, _) = compact(&mut open(&store).await, &service).await;
        assert!(matches!(again, Ok(CompactionOutcome::Compacted(_))), "{again:?}");
        return fresh(&store).await;
    }
    shown
}

#[test]
fn a_store_that_fails_at_the_commit_shows_the_old_history_or_the_new_one() {
    block_on(async {
        let whole = ends_whole(managed(openai::service("openai")), Fate::Fine).await;
        for fate in [Fate::Lost, Fate::Unanswered, Fate::Dropped] {
            assert_eq!(ends_whole(managed(openai::service("openai")), fate).await, whole, "{fate:?}");
            assert_eq!(
                ends_whole(managed(openai::service("openai").in_band()), fate).await.len(),
                whole.len()
            );
            let shown = ends_whole(managed(anthropic::service()), fate).await;
            let body = anthropic::faults::request(&shown);
            let (accepted, answer) = anthropic::client::post(&body, &[ON_DEMAND_BETA], None).await;
            assert!(accepted && answer.contains(" 10 facts"), "{answer}");
        }
    });
}
