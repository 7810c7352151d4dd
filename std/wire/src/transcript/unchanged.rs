//! Finds unchanged and lost conversations and records of a transcript.

use core::ops::Range;
use std::collections::HashSet;

use super::{AsRead, Conversation, Record, SourceRecordId, Transcript, TranscriptEntry};

impl Transcript {
    /// Whether nothing was changed: neither the list of messages nor their content.
    pub(super) fn is_as_read(&self) -> bool {
        self.conversations.iter().all(|one| self.is_untouched(one))
    }

    /// The records that the active conversation has lost, if it would show every record that stays in the file.
    pub(super) fn dropped(&self) -> HashSet<SourceRecordId> {
        let mut dropped = HashSet::new();
        for conversation in self.conversations.iter().filter(|one| one.active && !self.is_untouched(one)) {
            if let AsRead::Shared(stage) = &conversation.as_read
                && stage.of.is_by_place()
            {
                let now: HashSet<_> =
                    conversation.entries.iter().filter_map(TranscriptEntry::record).collect();
                dropped.extend(stage.as_read().map(|(id, _)| id).filter(|id| !now.contains(id)));
            }
        }
        dropped
    }

    /// Whether a conversation is unchanged.
    pub(super) fn is_untouched(&self, conversation: &Conversation) -> bool {
        let is_untouched = |entry: &TranscriptEntry| {
            let record = entry.record.and_then(|id| self.records.get(id.0 as usize));
            record.is_some_and(|record| self.holds(record, entry))
        };
        conversation.entries.is_shared()
            || (conversation.is_in_order() && conversation.entries.iter().all(is_untouched))
    }

    /// Whether an entry still has the content that was read from this record.
    fn holds(&self, record: &Record, entry: &TranscriptEntry) -> bool {
        let text = self.slice(record.text.clone()).as_bytes().as_ptr_range();
        let wire = entry.message.wire().filter(|wire| !wire.touched);
        wire.is_some_and(|wire| text.contains(&wire.text.as_ptr()))
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        self.source.get(range).unwrap_or_default()
    }

    /// Number of messages that were read from a record.
    pub(super) fn pieces(&self, id: SourceRecordId) -> usize {
        self.records.get(id.0 as usize).map_or(0, |record| record.pieces as usize)
    }

    /// Whether `group` has all messages of the record, unchanged. For a record of which the conversation had only some
    /// messages, `partial` is their number.
    pub(super) fn is_intact(
        &self,
        id: SourceRecordId,
        group: &[TranscriptEntry],
        partial: Option<usize>,
    ) -> bool {
        let Some(record) = self.records.get(id.0 as usize) else { return false };
        let whole = partial.unwrap_or(record.pieces as usize) == group.len();
        whole
            && group.iter().zip(0..).all(|(entry, piece)| {
                (partial.is_some() || entry.piece == piece) && self.holds(record, entry)
            })
    }
}
