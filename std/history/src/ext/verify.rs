//! Whether a session is what was done in it.

use epitome_core::Seq;

use super::events::{conflict, copy};
use super::{Exported, sessions};
use crate::{HistoryStore, MemoryStore, SessionId, SessionInfo, StoreError, StoreErrorKind};

/// Number of messages that are compared at once.
const PAGE: u32 = 256;

pub(super) async fn verify<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<Exported, StoreError> {
    let again = MemoryStore::new();
    let done = copy("verify", store, session, &again, session).await.map_err(|error| match error.kind() {
        StoreErrorKind::Invalid | StoreErrorKind::Pruned => {
            corrupt("what was done in it cannot be done again").with_source(error)
        }
        _ => error,
    })?;
    let (stored, expected) = (store.load(session).await?, again.load(session).await?);
    if (stored.head, stored.revision) != (expected.head, expected.revision) {
        return Err(conflict("verify: the session was changed meanwhile; begin again"));
    }
    let differ = stored.live.iter().zip(&expected.live).find(|(one, other)| one != other);
    if let Some((live, _)) = differ {
        return Err(corrupt(&format!("what is visible at {} is not what was left there", live.key)));
    }
    if stored.live.len() != expected.live.len() {
        return Err(corrupt("more is visible, or less, than was left"));
    }
    if stored.unanswered != expected.unanswered {
        return Err(corrupt("other hidden calls wait for answers than have none"));
    }
    if info(store, session).await? != info(&again, session).await? {
        return Err(corrupt("the list says something else"));
    }
    compare_logs(store, &again, session).await?;
    Ok(done)
}

async fn compare_logs<S: HistoryStore + ?Sized>(
    store: &S,
    again: &MemoryStore,
    session: &SessionId,
) -> Result<(), StoreError> {
    let mut next = Some(Seq(0));
    while let Some(first) = next {
        let (stored, expected) = (
            store.log(session, first..Seq(u64::MAX), PAGE).await?,
            again.log(session, first..Seq(u64::MAX), PAGE).await?,
        );
        let mut both = stored.messages.iter().zip(&expected.messages);
        if let Some((logged, _)) = both.find(|(one, other)| one != other) {
            return Err(corrupt(&format!("message {} of the log is not as it was left", logged.seq)));
        }
        if stored.next != expected.next || stored.messages.len() != expected.messages.len() {
            return Err(corrupt(&format!("the log has another length behind {first}")));
        }
        next = stored.next;
    }
    Ok(())
}

/// The entry of a session in the list: the one after all that come before its name.
async fn info<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<Option<SessionInfo>, StoreError> {
    let mut after = None;
    loop {
        let page = sessions(store, after.as_ref(), PAGE).await?;
        if let Some(found) = page.iter().find(|info| info.id == *session) {
            return Ok(Some(found.clone()));
        }
        match page.last().filter(|last| last.id < *session) {
            Some(last) => after = Some(last.id.clone()),
            None => return Ok(None),
        }
    }
}

fn corrupt(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("verify: {what}"))
}
