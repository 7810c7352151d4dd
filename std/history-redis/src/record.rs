//! Records and prunes as members of sorted sets.

use core::fmt;

use epitome_core::{Revision, Seq};

use epitome_history::rules::corrupt;
use epitome_history::{CompactionRecord, Pruned, RecordId, StoreError, bodies};

/// A committed record: `REVISION UNDONE ID KEYS RECORD`. `UNDONE` is the revision of its uncompact, or 0. `KEYS` are
/// the keys of its summaries, with commas, or `-`. `RECORD` is its stored form without the summaries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRecord {
    pub(super) revision: Revision,
    pub(super) undone_by: Option<Revision>,
    pub(super) id: RecordId,
    pub(super) keys: Vec<Seq>,
    pub(super) body: String,
}

impl StoredRecord {
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        parse(text).ok_or_else(|| corrupt("the record of a compaction cannot be read"))
    }

    /// The record without its summaries.
    pub(super) fn record(&self) -> Result<CompactionRecord, StoreError> {
        bodies::record(self.revision, &self.body)
    }
}

fn parse(text: &str) -> Option<StoredRecord> {
    let mut words = text.splitn(5, ' ');
    let mut number = || words.next()?.parse().ok().map(Revision);
    let (revision, undone_by) = (number()?, number()?);
    let id = uuid::Uuid::try_parse(words.next()?).ok()?;
    let keys = words.next()?;
    let keys = keys.split(',').filter(|_| keys != "-").map(|key| key.parse().ok().map(Seq));
    Some(StoredRecord {
        revision,
        undone_by: Some(undone_by).filter(|revision| *revision != Revision(0)),
        id: RecordId::from_bytes(id.into_bytes()),
        keys: keys.collect::<Option<_>>()?,
        body: words.next()?.to_owned(),
    })
}

impl fmt::Display for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { "-".to_owned() } else { keys.join(",") };
        let undone_by = self.undone_by.unwrap_or_default();
        write!(f, "{} {undone_by} {} {keys} {}", self.revision, self.id, self.body)
    }
}

/// A prune: `REVISION THROUGH MESSAGES SUMMARIES`.
pub(super) fn pruned_text(pruned: &Pruned) -> String {
    let Pruned { revision, through, messages, summaries, .. } = pruned;
    format!("{revision} {through} {messages} {summaries}")
}

/// Reads a text of [`pruned_text`].
pub(super) fn read_pruned(text: &str) -> Result<Pruned, StoreError> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    let Some(&[revision, through, messages, summaries]) = numbers.as_deref() else {
        return Err(corrupt("a prune cannot be read"));
    };
    let mut pruned = Pruned::new(Revision(revision), Revision(through));
    (pruned.messages, pruned.summaries) = (messages, summaries);
    Ok(pruned)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            (revision, undone, id) in any::<(u64, u64, [u8; 16])>(),
            keys in vec(any::<u64>(), 0..3),
            body in "[ {}a-]{0,9}",
        ) {
            let undone_by = Some(Revision(undone % 3)).filter(|revision| *revision != Revision(0));
            let (id, keys) = (RecordId::from_bytes(id), keys.into_iter().map(Seq).collect());
            let record = StoredRecord { revision: Revision(revision), undone_by, id, keys, body };
            prop_assert_eq!(StoredRecord::parse(&record.to_string()).unwrap(), record);
            let mut pruned = Pruned::new(Revision(revision), Revision(undone));
            (pruned.messages, pruned.summaries) = (undone, revision);
            prop_assert_eq!(read_pruned(&pruned_text(&pruned)).unwrap(), pruned);
        }
    }

    #[test]
    fn nothing_else_is_read() {
        for text in ["", "1", "1 0 00000000000000000000000000000000", "1 0 zz - {}", "x 0 - {}"] {
            assert!(StoredRecord::parse(text).is_err(), "{text}");
        }
        for text in ["", "1 2 3", "1 2 3 4 5", "1 2 3 -4"] {
            assert!(read_pruned(text).is_err(), "{text}");
        }
    }
}
