//! The surroundings of a scenario: a store, and unique names for its sessions.

use core::ops::Deref;
use std::sync::Arc;

use epitome_history::{HistoryStore, SessionId, SessionInfo, StoreError};
use uuid::Uuid;

use super::Subject;

/// A store with a session for one scenario. Methods of the store are called on it.
pub(super) struct Room<'a> {
    store: Arc<dyn HistoryStore>,
    subject: &'a dyn Subject,
    /// Place of the store, as the subject opens it.
    place: String,
    /// Prefix of the names of all sessions of the scenario; empty where the place is its own.
    prefix: String,
    /// Number of cases of the random scenario.
    pub(super) cases: u32,
}

impl<'a> Room<'a> {
    pub(super) async fn open(
        subject: &'a dyn Subject,
        scenario: &str,
        cases: u32,
    ) -> Result<Self, StoreError> {
        let place = format!("{scenario}-{}", Uuid::new_v4().simple());
        let store = subject.open(&place).await?;
        let prefix = if subject.is_apart() { String::new() } else { format!("{place}/") };
        Ok(Self { store, subject, place, prefix, cases })
    }

    /// Another handle on the same sessions.
    pub(super) async fn another(&self) -> Self {
        let store = self.subject.open(&self.place).await.unwrap();
        let (place, prefix) = (self.place.clone(), self.prefix.clone());
        Self { store, subject: self.subject, place, prefix, cases: self.cases }
    }

    /// The sessions in the store that is opened again, after this handle was closed.
    pub(super) async fn reopened(self) -> Self {
        let Self { store, subject, place, prefix, cases } = self;
        drop(store);
        let store = subject.open(&place).await.unwrap();
        Self { store, subject, place, prefix, cases }
    }

    pub(super) fn store(&self) -> &dyn HistoryStore {
        &*self.store
    }

    /// The session of the scenario.
    pub(super) fn session(&self) -> SessionId {
        self.named("s")
    }

    /// A session named `name`, but for what the names of all of them begin with.
    pub(super) fn named(&self, name: &str) -> SessionId {
        SessionId::new(format!("{}{name}", self.prefix))
    }

    /// The name that the scenario gave `session`.
    pub(super) fn name_of(&self, session: &SessionId) -> String {
        session.as_str().strip_prefix(&self.prefix).unwrap().to_owned()
    }

    /// Lists as the store does; where others use the store too, the sessions of this scenario only.
    pub(super) async fn list(
        &self,
        after: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        // The name that all of them begin with follows this one, and no other name lies between: it is used once.
        let before = self.prefix.strip_suffix('/').map(SessionId::new);
        let mut listed = self.store.list(after.or(before.as_ref()), limit).await?;
        let ours = listed.iter().take_while(|info| info.id.as_str().starts_with(&self.prefix)).count();
        listed.truncate(ours);
        Ok(listed)
    }

    /// Deletes what the scenario has left where others use the store too.
    pub(super) async fn clean(&self) -> Result<(), StoreError> {
        while !self.prefix.is_empty() {
            let left = self.list(None, 100).await?;
            if left.is_empty() {
                break;
            }
            for info in left {
                self.store.delete(&info.id).await?;
            }
        }
        Ok(())
    }
}

impl Deref for Room<'_> {
    type Target = dyn HistoryStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}
