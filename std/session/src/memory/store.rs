//! Memories in memory.

use core::fmt;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Memory, MemoryManager, MemoryQuery};
use crate::history::SessionId;
use crate::search::SearchIndex;
use crate::session::SessionError;

/// Keeps memories in memory and finds them by keywords with a [`SearchIndex`]. Of equal ranks the newest is first. It
/// never forgets memories by itself.
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_std::history::SessionId;
/// use epitome_std::memory::{InMemoryStore, Memory, MemoryManager, MemoryQuery};
///
/// # futures::executor::block_on(async {
/// let (store, session) = (InMemoryStore::default(), SessionId::new("s"));
/// store.add(&session, "run-1", vec![Memory::new(Role::User, "My dog is called Rex.")]).await?;
/// let found = store.search(&MemoryQuery::new("what is my DOG called?", 5)).await?;
/// assert_eq!(found.len(), 1);
/// # Ok::<(), epitome_std::session::SessionError>(())
/// # }).unwrap();
/// ```
#[derive(Default)]
pub struct InMemoryStore {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    memories: Vec<Slot>,
    index: SearchIndex,
    tokens: HashSet<(SessionId, Box<str>)>,
}

/// A memory with its session and its token.
pub(super) struct Slot {
    pub(super) session: SessionId,
    pub(super) token: Box<str>,
    pub(super) memory: Memory,
}

impl InMemoryStore {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `visit` with the memories of a session and their tokens, oldest first.
    pub(super) fn for_each(&self, session: &SessionId, visit: &mut dyn FnMut(&str, &Memory)) {
        for slot in self.kept().memories.iter().filter(|slot| slot.session == *session) {
            visit(&slot.token, &slot.memory);
        }
    }

    pub(super) fn add_now(&self, session: &SessionId, token: &str, memories: Vec<Memory>) {
        let mut kept = self.kept();
        if !kept.tokens.insert((session.clone(), token.into())) {
            return;
        }
        for memory in memories {
            kept.index.add(&memory.text);
            kept.memories.push(Slot { session: session.clone(), token: token.into(), memory });
        }
    }
}

#[async_trait]
impl MemoryManager for InMemoryStore {
    async fn add(&self, session: &SessionId, token: &str, memories: Vec<Memory>) -> Result<(), SessionError> {
        self.add_now(session, token, memories);
        Ok(())
    }

    async fn search(&self, query: &MemoryQuery) -> Result<Vec<Memory>, SessionError> {
        let kept = self.kept();
        let allowed = |at: usize| {
            let slot = kept.memories.get(at);
            slot.is_some_and(|slot| query.session.as_ref().is_none_or(|session| slot.session == *session))
        };
        let found = kept.index.nearest(&query.text, query.limit, allowed);
        Ok(found.into_iter().filter_map(|at| kept.memories.get(at)).map(|slot| slot.memory.clone()).collect())
    }

    async fn all(&self, session: &SessionId) -> Result<Vec<Memory>, SessionError> {
        let mut memories = Vec::new();
        self.for_each(session, &mut |_, memory| memories.push(memory.clone()));
        Ok(memories)
    }

    async fn forget(&self, session: &SessionId) -> Result<usize, SessionError> {
        let mut kept = self.kept();
        let before = kept.memories.len();
        // The numbers of the texts change, so the index is built anew. This is rare.
        kept.memories.retain(|slot| slot.session != *session);
        kept.tokens.retain(|(of, _)| of != session);
        let mut index = SearchIndex::new();
        for slot in &kept.memories {
            index.add(&slot.memory.text);
        }
        kept.index = index;
        Ok(before.saturating_sub(kept.memories.len()))
    }
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore").field("memories", &self.kept().memories.len()).finish_non_exhaustive()
    }
}
