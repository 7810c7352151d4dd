//! Deleting a session: its item says so first, then everything goes.

use epitome_history::StoreError;
use serde::Deserialize;

use crate::items::{Found, Kind, Nothing, SESSION_ID, Staged, item};
use crate::requests::{Change, Partition, Written};
use crate::write;

/// Deletes the session with all that it has. Returns whether it was there.
pub(crate) async fn delete(partition: &Partition) -> Result<bool, StoreError> {
    let mut existed = false;
    for _ in 0..ROUNDS_MAX {
        let found: Option<Found<Marked>> = partition.item(SESSION_ID).await?;
        let Some(found) = found else {
            discard_stages(partition).await?;
            return Ok(existed);
        };
        if found.fields.epitome == Kind::Deleted {
            finish(partition, found.etag).await?;
            continue;
        }
        let fields = item(&partition.key, SESSION_ID, Kind::Deleted, &Nothing {})?;
        let marked = partition.batch(&[Change::Replace(SESSION_ID.to_owned(), fields, found.etag)]).await?;
        existed |= marked == Written::Done;
    }
    Err(partition.unavailable("the session changes all the time; try again"))
}

/// Deletes all items of a session whose own item has this etag and says that it is deleted.
pub(crate) async fn finish(partition: &Partition, etag: String) -> Result<(), StoreError> {
    discard_stages(partition).await?;
    // What another program has in this partition stays.
    let query = format!("SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.epitome) AND c.id != '{SESSION_ID}'");
    let ids: Vec<String> = partition.query(&query, usize::MAX).await?;
    write::delete(partition, ids).await?;
    let _ = partition.batch(&[Change::Delete(SESSION_ID.to_owned(), Some(etag))]).await?;
    Ok(())
}

/// Deletes what writers have left that did not come to their last batch. One that is still there begins anew.
async fn discard_stages(partition: &Partition) -> Result<(), StoreError> {
    let stages: Vec<Found<Staged>> = partition.items("c.epitome = 'stage'").await?;
    for stage in stages {
        write::discard(partition, &stage.fields.stage).await?;
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
struct Marked {
    epitome: Kind,
}

/// How often a session is looked at that others change or make anew.
const ROUNDS_MAX: u32 = 16;
