//! Deletes a session: first its item is marked as deleted, then the other items go, and the mark last.

use epitome_history::StoreError;
use serde::Deserialize;

use crate::ids::SESSION_ID;
use crate::items::{Found, Kind, Nothing, item};
use crate::requests::{Change, Guard, Partition, Written};
use crate::write::{batches, discard_all};

/// Deletes the session with all that it has. Returns whether it was there.
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
            // A session that is there now was made after this one.
            finish(partition, etag).await?;
            return Ok(true);
        }
    }
    Err(partition.unavailable("the session changes all the time; try again"))
}

/// Deletes all items of a session that is marked as deleted. Each batch needs the mark: of a session that comes after it nothing is deleted.
pub(crate) async fn finish(partition: &Partition, etag: String) -> Result<(), StoreError> {
    let mark = item(&partition.key, SESSION_ID, Kind::Deleted, &Nothing {})?;
    let mut guard = Guard { id: SESSION_ID.to_owned(), item: mark, etag };
    for _ in 0..ROUNDS_MAX {
        discard_all(partition).await?;
        // What another program has in this partition stays.
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
        // Somebody else deletes it too, or has come to the end.
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

/// Maximum number of looks at a session that others change or delete too.
const ROUNDS_MAX: u32 = 64;
