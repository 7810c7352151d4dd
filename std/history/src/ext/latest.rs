//! The compaction that an undoing would undo.

use crate::{Committed, HistoryStore, SessionId, StoreError};

/// Number of records that are read at once.
const PAGE: u32 = 256;

pub(super) async fn latest<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<Option<Committed>, StoreError> {
    let (mut after, mut latest) = (None, None);
    loop {
        let page = store.records(session, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(latest) };
        after = Some(last.revision);
        latest = page.into_iter().rfind(|committed| committed.undone_by.is_none()).or(latest);
    }
}
