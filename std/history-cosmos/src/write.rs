//! Writes the items of an operation, in one batch if they fit. Otherwise several batches come first, and only the last
//! batch makes their items count.

use epitome_history::StoreError;
use epitome_history::rules::invalid;
use serde_json::Value;
use uuid::Uuid;

use crate::ids::{piece_id, stage_id};
use crate::items::{Found, Kind, Staged, Text, item};
use crate::requests::{Change, Guard, Partition, Written};

/// The changes of an operation. All of them become visible together with the last batch.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Id that separates the items of this writer, written before the last batch, from those of other writers.
    stage: String,
    pieces: u32,
    /// The items that are written before the last batch and do not count until then.
    ahead: Vec<Value>,
    last: Vec<Change>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        let stage = Uuid::new_v4().simple().to_string();
        Self { stage, pieces: 0, ahead: Vec::new(), last: Vec::new() }
    }

    pub(crate) fn stage(&self) -> &str {
        &self.stage
    }

    /// Makes a field of `text`. A long text is split into pieces, which are written before the last batch.
    pub(crate) fn text(&mut self, partition: &Partition, text: String) -> Result<Text, StoreError> {
        if text.len() <= partition.text_bytes_max {
            return Ok(Text::Here(text));
        }
        let (first, mut rest) = (self.pieces, text.as_str());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(piece_length(rest));
            let fields = Staged { stage: self.stage.clone(), text: piece.to_owned() };
            let id = piece_id(&self.stage, self.pieces);
            self.ahead.push(item(&partition.key, &id, Kind::Piece, &fields)?);
            self.pieces = self.pieces.saturating_add(1);
            rest = more;
        }
        let pieces = self.pieces.saturating_sub(first);
        if pieces > PIECES_MAX {
            let (operation, bytes) = (partition.operation(), text.len());
            return Err(invalid(format!(
                "{operation}: a text of {bytes} bytes is too long; the store in Cosmos DB takes at least 15 MB, and of usual texts 100 MB"
            )));
        }
        Ok(Text::Apart { stage: self.stage.clone(), first, pieces })
    }

    /// Writes `item` before the last batch.
    pub(crate) fn ahead(&mut self, item: Value) {
        self.ahead.push(item);
    }

    /// Puts this guard first in the last batch. The result of the write is then the new etag of the guard.
    pub(crate) fn guard(&mut self, guard: &Guard) {
        self.last.insert(0, guard.change());
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.last.push(change);
    }

    /// Deletes the pieces of a text that a new text replaces.
    pub(crate) fn drop_text(&mut self, text: &Text) {
        self.last.extend(text.pieces().into_iter().map(|id| Change::Delete(id, None)));
    }

    /// Writes all changes, if every item has its expected etag.
    pub(crate) async fn write(mut self, partition: &Partition) -> Result<Written, StoreError> {
        if self.last.len() >= CHANGES_MAX {
            return Err(invalid(format!(
                "{}: {} items change at once, and Cosmos DB takes {CHANGES_MAX}; do it in smaller parts",
                partition.operation(),
                self.last.len()
            )));
        }
        if self.ahead.is_empty() {
            return partition.batch(&self.last).await;
        }
        let Some(mut mark) = self.mark(partition).await? else { return Ok(Written::Moved) };
        let ahead = batches(core::mem::take(&mut self.ahead).into_iter().map(Change::Upsert));
        if mark.write(partition, ahead).await? {
            self.last.push(Change::Delete(mark.id, Some(mark.etag)));
            let written = partition.batch(&self.last).await?;
            if written != Written::Moved {
                return Ok(written);
            }
        }
        discard(partition, &self.stage).await?;
        Ok(Written::Moved)
    }

    /// Creates the mark of the stage, which every batch requires to be unchanged. A process that discards the remains
    /// of a writer changes the mark first.
    async fn mark(&self, partition: &Partition) -> Result<Option<Guard>, StoreError> {
        let fields = Staged { stage: self.stage.clone(), text: String::new() };
        let id = stage_id(&self.stage);
        let item = item(&partition.key, &id, Kind::Stage, &fields)?;
        Ok(match partition.batch(&[Change::Create(item.clone())]).await? {
            Written::Done(etag) => Some(Guard { id, item, etag }),
            Written::Moved => None,
        })
    }
}

/// Deletes the items of an unfinished stage. A writer that is still active starts again.
pub(crate) async fn discard(partition: &Partition, stage: &str) -> Result<(), StoreError> {
    let id = stage_id(stage);
    for _ in 0..ROUNDS_MAX {
        let found: Option<Found<Staged>> = partition.item(&id).await?;
        let Some(Found { etag, fields, .. }) = found else { return Ok(()) };
        let mut mark = Guard { item: item(&partition.key, &id, Kind::Stage, &fields)?, id: id.clone(), etag };
        // From here on, the writer of this stage cannot write.
        if !mark.write(partition, [Vec::new()]).await? {
            continue;
        }
        let query = format!(
            "SELECT VALUE c.id FROM c WHERE c.stage = '{stage}' AND c.epitome IN ('message', 'piece')"
        );
        let ids: Vec<String> = partition.query(&query, usize::MAX).await?;
        let deletions = batches(ids.into_iter().map(|id| Change::Delete(id, None)));
        if mark.write(partition, deletions).await?
            && partition.batch(&[Change::Delete(mark.id, Some(mark.etag))]).await? != Written::Moved
        {
            return Ok(());
        }
    }
    Err(partition.unavailable("what a writer has left is being deleted by others; try again"))
}

/// Deletes the items of all writers that did not reach their last batch.
pub(crate) async fn discard_all(partition: &Partition) -> Result<(), StoreError> {
    let stages: Vec<Found<Staged>> = partition.items("c.epitome = 'stage'").await?;
    for stage in stages {
        discard(partition, &stage.fields.stage).await?;
    }
    Ok(())
}

/// Length of the first piece of a text, in bytes: as long as an item allows, with the escapes of JSON.
fn piece_length(text: &str) -> usize {
    let mut bytes = 0_usize;
    for (at, char) in text.char_indices() {
        let escaped = match char {
            '"' | '\\' => 2,
            control if control.is_ascii_control() => 6,
            char => char.len_utf8(),
        };
        bytes = bytes.saturating_add(escaped);
        if bytes > PIECE_BYTES_MAX {
            return at;
        }
    }
    text.len()
}

/// Groups changes into batches within the limits of the service.
pub(crate) fn batches(changes: impl Iterator<Item = Change>) -> Vec<Vec<Change>> {
    let mut batches: Vec<Vec<Change>> = Vec::new();
    let mut bytes = usize::MAX;
    for change in changes {
        let more = change.bytes();
        bytes = bytes.saturating_add(more);
        match batches
            .last_mut()
            .filter(|batch| bytes <= BATCH_BYTES_MAX && batch.len().saturating_add(1) < CHANGES_MAX)
        {
            Some(batch) => batch.push(change),
            None => {
                bytes = more;
                batches.push(vec![change]);
            }
        }
    }
    batches
}

/// Maximum number of changes in a batch, including one guard.
pub(crate) const CHANGES_MAX: usize = 100;

/// Maximum size of a batch in bytes. The limit of the service is 2 MiB.
pub(crate) const BATCH_BYTES_MAX: usize = 1_900_000;

/// Maximum size of a text in one item, in bytes; a longer text is stored in pieces. An item has at most 2 MiB, and an
/// item that is read often should be small.
pub(crate) const TEXT_BYTES_MAX: usize = 128 * 1024;

/// Maximum size of a piece in the JSON of a request, in bytes.
const PIECE_BYTES_MAX: usize = 1_500_000;

/// Maximum number of pieces of a text: the batch that replaces the text must delete them all.
const PIECES_MAX: u32 = 80;

/// Maximum number of attempts to delete the items of a stage.
const ROUNDS_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

        #[test]
        fn batches_are_what_the_service_takes(sizes in proptest::collection::vec(prop_oneof![20 => 0_usize..9_000, 1 => 0_usize..900_000], 0..300)) {
            let changes: Vec<Change> = sizes.iter().map(|size| Change::Upsert(Value::String("a".repeat(*size)))).collect();
            let batches = batches(changes.iter().cloned());
            prop_assert!(batches.iter().all(|batch| batch.len() < CHANGES_MAX));
            let bytes = |batch: &Vec<Change>| batch.iter().map(Change::bytes).sum::<usize>();
            prop_assert!(batches.iter().all(|batch| bytes(batch) <= BATCH_BYTES_MAX));
            prop_assert_eq!(batches.concat().len(), sizes.len());
            // Each batch is full before the next one begins.
            for pair in batches.windows(2) {
                let next = pair[1].first().map_or(0, Change::bytes);
                prop_assert!(pair[0].len() + 1 == CHANGES_MAX || bytes(&pair[0]) + next > BATCH_BYTES_MAX);
            }
        }
    }
}
