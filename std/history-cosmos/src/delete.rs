//! Deletes a session: first its item is marked as deleted, then the other items are deleted, and the mark last.

use epitome_history::StoreError;
use serde::Deserialize;

use crate::ids::SESSION_ID;
use crate::items::{Found, Kind, Nothing, item};
use crate::requests::{Change, Guard, Partition, Written};
use crate::write::{batches, discard_all};

/// Deletes the session with all its items. Returns whether the session existed.
pub(crate) async fn delete(partition: &Partition) -> Result<bool, StoreError> {
    for _ in 0..ROUNDS_MAX {
        let found: Option<Found<Marked>> = partition.item(SESSION_ID).await?;
        let Some(found) = found else {
            discard_all(partition).await?;
            return Ok(false);
        };
        if found.fields.epitome == Kind::Deleted {
            finish(partition, found.etag).await?;
            continue;
        }
        let fields = item(&partition.key, SESSION_ID, Kind::Deleted, &Nothing {})?;
        let marked = partition.batch(&[Change::Replace(SESSION_ID.to_owned(), fields, found.etag)]).await?;
        if let Written::Done(etag) = marked {
            // A session that exists now was created after the deletion.
            finish(partition, etag).await?;
            return Ok(true);
        }
    }
    Err(partition.unavailable("the session changes all the time; try again"))
}

/// Deletes all items of a session that is marked as deleted. Each batch requires the mark, so that items of a later
/// session are not deleted.
pub(crate) async fn finish(partition: &Partition, etag: String) -> Result<(), StoreError> {
    let mark = item(&partition.key, SESSION_ID, Kind::Deleted, &Nothing {})?;
    let mut guard = Guard { id: SESSION_ID.to_owned(), item: mark, etag };
    for _ in 0..ROUNDS_MAX {
        discard_all(partition).await?;
        // Items of other programs in this partition stay.
        let query = format!(
            "SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.epitome) AND c.epitome != 'stage' AND c.id != '{SESSION_ID}'"
        );
        let ids: Vec<String> = partition.query(&query, usize::MAX).await?;
        let deletions = batches(ids.into_iter().map(|id| Change::Delete(id, None)));
        if guard.write(partition, deletions).await?
            && partition.batch(&[Change::Delete(guard.id.clone(), Some(guard.etag.clone()))]).await?
                != Written::Moved
        {
            return Ok(());
        }
        // Another process deletes the session too, or has finished the deletion.
        match partition.item::<Marked>(SESSION_ID).await? {
            Some(Found { etag, fields, .. }) if fields.epitome == Kind::Deleted => guard.etag = etag,
            _ => return Ok(()),
        }
    }
    Err(partition.unavailable("the session is being deleted by others; try again"))
}

#[derive(Debug, Deserialize)]
struct Marked {
    epitome: Kind,
}

/// Maximum number of attempts on a session that other processes change or delete too.
const ROUNDS_MAX: u32 = 64;
