//! What an operation writes: one batch if it fits, and else what nobody sees yet before it.

use epitome_history::StoreError;
use epitome_history::rules::invalid;
use serde_json::Value;
use uuid::Uuid;

use crate::items::{Kind, Staged, Text, item, piece_id, stage_id};
use crate::requests::{Change, Partition, Written};

/// The changes of an operation. All of them are visible at once: with the last batch.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Tells what is written before the last batch from what others write.
    stage: String,
    pieces: u32,
    /// The items that belong to nothing before the last batch.
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

    /// `text` as a part of an item: in pieces if it is long.
    pub(crate) fn text(&mut self, partition: &Partition, text: String) -> Result<Text, StoreError> {
        if text.len() <= TEXT_BYTES_MAX {
            return Ok(Text::Here(text));
        }
        if text.len() > PIECE_BYTES_MAX.saturating_mul(PIECES_MAX) {
            return Err(invalid(format!(
                "{}: a text has {} bytes, and the store in Cosmos DB takes 72,000,000; shorten it",
                partition.operation(),
                text.len()
            )));
        }
        let (first, mut rest) = (self.pieces, text.as_str());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            let fields = Staged { stage: self.stage.clone(), text: piece.to_owned() };
            let id = piece_id(&self.stage, self.pieces);
            self.ahead.push(item(&partition.key, &id, Kind::Piece, &fields)?);
            self.pieces = self.pieces.saturating_add(1);
            rest = more;
        }
        let pieces = self.pieces.saturating_sub(first);
        Ok(Text::Apart { stage: self.stage.clone(), first, pieces })
    }

    /// Writes `item` before the last batch.
    pub(crate) fn ahead(&mut self, item: Value) {
        self.ahead.push(item);
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.last.push(change);
    }

    /// Deletes the pieces of a text that another one replaces.
    pub(crate) fn drop_text(&mut self, text: &Text) {
        self.last.extend(text.pieces().into_iter().map(|id| Change::Delete(id, None)));
    }

    /// Writes it all, if every item is as it was expected to be.
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
        // Whoever deletes the session, or what is left of a writer that has ended, deletes the mark first. The last batch needs it.
        let mark = Staged { stage: self.stage.clone(), text: String::new() };
        let mark_id = stage_id(&self.stage);
        let mark = item(&partition.key, &mark_id, Kind::Stage, &mark)?;
        let written = partition.batch(&[Change::Create(mark)]).await?;
        debug_assert_eq!(written, Written::Done, "nobody else has this stage");
        for batch in batches(core::mem::take(&mut self.ahead).into_iter().map(Change::Upsert)) {
            let _ = partition.batch(&batch).await?;
        }
        self.last.push(Change::Delete(mark_id, None));
        let written = partition.batch(&self.last).await?;
        if written == Written::Moved {
            discard(partition, &self.stage).await?;
        }
        Ok(written)
    }
}

/// Deletes what was written under a stage that was not finished. If it was, nothing is done.
pub(crate) async fn discard(partition: &Partition, stage: &str) -> Result<(), StoreError> {
    if partition.batch(&[Change::Delete(stage_id(stage), None)]).await? == Written::Moved {
        return Ok(());
    }
    let query =
        format!("SELECT VALUE c.id FROM c WHERE c.stage = '{stage}' AND c.epitome IN ('message', 'piece')");
    let ids: Vec<String> = partition.query(&query, usize::MAX).await?;
    delete(partition, ids).await
}

/// Deletes these items, also if others do so too.
pub(crate) async fn delete(partition: &Partition, ids: Vec<String>) -> Result<(), StoreError> {
    let deletions: Vec<Change> = ids.into_iter().map(|id| Change::Delete(id, None)).collect();
    for batch in deletions.chunks(CHANGES_MAX) {
        // One that is gone already makes the batch fail as a whole.
        if partition.batch(batch).await? == Written::Moved {
            partition.each(batch.iter().cloned()).await?;
        }
    }
    Ok(())
}

/// Changes in batches that the service takes.
pub(crate) fn batches(changes: impl Iterator<Item = Change>) -> Vec<Vec<Change>> {
    let mut batches: Vec<Vec<Change>> = Vec::new();
    let mut bytes = usize::MAX;
    for change in changes {
        let more = change.bytes();
        bytes = bytes.saturating_add(more);
        match batches.last_mut().filter(|batch| bytes <= BATCH_BYTES_MAX && batch.len() < CHANGES_MAX) {
            Some(batch) => batch.push(change),
            None => {
                bytes = more;
                batches.push(vec![change]);
            }
        }
    }
    batches
}

/// A batch has at most so many changes.
pub(crate) const CHANGES_MAX: usize = 100;

/// A batch has at most 2 MiB.
pub(crate) const BATCH_BYTES_MAX: usize = 1_900_000;

/// A longer text is in pieces: an item has at most 2 MiB, and one that is read often should be small.
pub(crate) const TEXT_BYTES_MAX: usize = 128 * 1024;

/// The pieces of a text are deleted by the batch that replaces it.
const PIECES_MAX: usize = 90;

/// Quotes and backslashes take two bytes each in the request.
const PIECE_BYTES_MAX: usize = 800_000;

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
            prop_assert!(batches.iter().all(|batch| batch.len() <= CHANGES_MAX));
            let bytes = |batch: &Vec<Change>| batch.iter().map(Change::bytes).sum::<usize>();
            prop_assert!(batches.iter().all(|batch| bytes(batch) <= BATCH_BYTES_MAX));
            prop_assert_eq!(batches.concat().len(), sizes.len());
            // None is begun too early.
            for pair in batches.windows(2) {
                let next = pair[1].first().map_or(0, Change::bytes);
                prop_assert!(pair[0].len() == CHANGES_MAX || bytes(&pair[0]) + next > BATCH_BYTES_MAX);
            }
        }
    }
}
