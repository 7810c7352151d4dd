//! The environment of a scenario: a store, and unique ids for its sessions.

use core::ops::Deref;
use std::sync::Arc;

use epitome_history::{HistoryStore, SessionId, SessionInfo, StoreError};
use uuid::Uuid;

use super::Subject;

/// A store with sessions for one scenario. It dereferences to the store.
pub(super) struct Room<'a> {
    store: Arc<dyn HistoryStore>,
    subject: &'a dyn Subject,
    /// Name of the place at which the subject opens the store.
    place: String,
    /// Prefix of the ids of all sessions of the scenario; empty if the scenario has a place of its own.
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

    /// Opens another handle on the same sessions.
    pub(super) async fn another(&self) -> Self {
        let store = self.subject.open(&self.place).await.unwrap();
        let (place, prefix) = (self.place.clone(), self.prefix.clone());
        Self { store, subject: self.subject, place, prefix, cases: self.cases }
    }

    /// Closes this handle, and opens the store again.
    pub(super) async fn reopened(self) -> Self {
        let Self { store, subject, place, prefix, cases } = self;
        drop(store);
        let store = subject.open(&place).await.unwrap();
        Self { store, subject, place, prefix, cases }
    }

    pub(super) fn store(&self) -> &dyn HistoryStore {
        &*self.store
    }

    /// The main session of the scenario.
    pub(super) fn session(&self) -> SessionId {
        self.named("s")
    }

    /// The session with this name, after the prefix of the scenario.
    pub(super) fn named(&self, name: &str) -> SessionId {
        SessionId::new(format!("{}{name}", self.prefix))
    }

    /// The name of `session` without the prefix of the scenario.
    pub(super) fn name_of(&self, session: &SessionId) -> String {
        session.as_str().strip_prefix(&self.prefix).unwrap().to_owned()
    }

    /// Lists sessions. In a shared store, lists only the sessions of this scenario.
    pub(super) async fn list(
        &self,
        after: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        // The ids of the scenario directly follow this id, because the prefix is used only once.
        let before = self.prefix.strip_suffix('/').map(SessionId::new);
        let mut listed = self.store.list(after.or(before.as_ref()), limit).await?;
        let ours = listed.iter().take_while(|info| info.id.as_str().starts_with(&self.prefix)).count();
        listed.truncate(ours);
        Ok(listed)
    }

    /// Deletes the remaining sessions of the scenario from a shared store.
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
