//! The stored form of a compaction record, and its id.

use std::io;

use epitome_message::Str;

use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    FIRST_VERSION, StoredError, StoredMessage, StoredRange, VERSION, Versioned, from_json, reader, to_json,
    write_json,
};
use crate::{CompactionRecord, MessageEdit, PartStandIn, RecordId, Summary, TokenCount, UnansweredCall};

/// Encodes `record`.
///
/// # Errors
/// [`StoredError::TooDeep`] if tool results are nested in a summary more deeply than any reader makes them.
pub fn encode_record(record: &CompactionRecord) -> Result<String, StoredError> {
    to_json(&StoredRecord::of(record)?)
}

/// Decodes the record in `text`.
///
/// # Errors
/// [`StoredError`] describes the fault of the text. It never contains a piece of it.
pub fn decode_record(text: &str) -> Result<CompactionRecord, StoredError> {
    from_json::<StoredRecord>(text)?.into_record()
}

/// Computes the id of `record` from its changes: equal edits, made from the same revision and head, have equal ids.
///
/// The id is the first 16 bytes of a SHA-256 over the revision, the head and three sections: the hidden ranges, the
/// summaries' keys and stored forms, and the edited messages' numbers and stand-ins. Each section begins with its
/// number of entries, so that the sections cannot be confused. The strategy's name and the sizes are not included.
///
/// # Errors
/// [`StoredError::TooDeep`], as in [`encode_record`].
pub fn record_id(record: &CompactionRecord) -> Result<RecordId, StoredError> {
    let mut hash = Sha256::new();
    hash.update(b"epitome record 1");
    for number in [record.parent.0, record.head.0, record.hides.len() as u64] {
        hash.update(number.to_le_bytes());
    }
    for range in &record.hides {
        hash.update(range.first.0.to_le_bytes());
        hash.update(range.last.0.to_le_bytes());
    }
    hash.update((record.summaries.len() as u64).to_le_bytes());
    for summary in &record.summaries {
        // Written twice, the first time to count its bytes, and never held in memory: a summary of a model provider may
        // be as long as a conversation.
        let stored = StoredMessage::of(&summary.message, reader)?;
        let mut bytes = Each { count: 0, see: |_: &[u8]| {} };
        write_json(&stored, &mut bytes)?;
        hash.update(summary.key.0.to_le_bytes());
        hash.update(bytes.count.to_le_bytes());
        let each = Each { count: 0, see: |some: &[u8]| hash.update(some) };
        // Dropping the writer flushes its buffer.
        write_json(&stored, io::BufWriter::new(each))?;
    }
    hash_edits(&mut hash, &record.edits);
    let digest: [u8; 32] = hash.finalize().into();
    let id = digest.first_chunk::<16>().copied().unwrap_or_default();
    Ok(RecordId::from_bytes(id))
}

/// A writer that counts the bytes and passes them to `see`.
struct Each<F> {
    count: u64,
    see: F,
}

impl<F: FnMut(&[u8])> io::Write for Each<F> {
    fn write(&mut self, some: &[u8]) -> io::Result<usize> {
        self.count = self.count.saturating_add(some.len() as u64);
        (self.see)(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hash_edits(hash: &mut Sha256, edits: &[MessageEdit]) {
    hash.update((edits.len() as u64).to_le_bytes());
    for edit in edits {
        hash.update(edit.seq.0.to_le_bytes());
        hash.update((edit.stand_ins.len() as u64).to_le_bytes());
        for PartStandIn { ordinal, text } in &edit.stand_ins {
            hash.update(ordinal.to_le_bytes());
            // Distinguishes a removed part from a part that is replaced by an empty text.
            hash.update([u8::from(text.is_some())]);
            let text = text.as_deref().unwrap_or_default();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct StoredRecord {
    v: u64,
    parent: u64,
    head: u64,
    hides: Vec<StoredRange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<StoredSummary>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edits: Vec<StoredEdit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unanswered: Vec<StoredUnanswered>,
    strategy: Str,
    tokens_before: u64,
    tokens_after: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredSummary {
    key: u64,
    message: StoredMessage,
    tokens: u32,
    basis: Basis,
    counter: Str,
}

#[derive(Serialize, Deserialize)]
struct StoredEdit {
    seq: u64,
    stand_ins: Vec<StoredStandIn>,
    tokens: u32,
    basis: Basis,
    counter: Str,
}

/// `[ordinal, text]`, or `[ordinal, null]`.
#[derive(Serialize, Deserialize)]
struct StoredStandIn(u32, Option<Str>);

#[derive(Serialize, Deserialize)]
struct StoredUnanswered {
    id: Str,
    anchor: u64,
    turn: u32,
    ordinal: u32,
}

impl Versioned for StoredRecord {
    fn versions(&self) -> impl Iterator<Item = u64> {
        // A summary with a newer version makes the whole record one of a newer release.
        let summaries = self.summaries.iter().map(|summary| summary.message.v);
        core::iter::once(self.v).chain(summaries)
    }
}

impl StoredRecord {
    fn of(record: &CompactionRecord) -> Result<Self, StoredError> {
        Ok(Self {
            v: if record.edits.is_empty() { FIRST_VERSION } else { VERSION },
            parent: record.parent.0,
            head: record.head.0,
            hides: record.hides.iter().copied().map(StoredRange::of).collect(),
            summaries: record.summaries.iter().map(StoredSummary::of).collect::<Result<_, _>>()?,
            edits: record.edits.iter().map(StoredEdit::of).collect(),
            unanswered: record.unanswered.iter().map(StoredUnanswered::of).collect(),
            strategy: record.strategy.clone(),
            tokens_before: record.tokens_before,
            tokens_after: record.tokens_after,
        })
    }

    fn into_record(self) -> Result<CompactionRecord, StoredError> {
        Ok(CompactionRecord {
            parent: Revision(self.parent),
            head: Seq(self.head),
            hides: self.hides.into_iter().map(StoredRange::into_range).collect(),
            summaries: self
                .summaries
                .into_iter()
                .map(StoredSummary::into_summary)
                .collect::<Result<_, _>>()?,
            edits: self.edits.into_iter().map(StoredEdit::into_edit).collect(),
            unanswered: self.unanswered.into_iter().map(StoredUnanswered::into_unanswered).collect(),
            strategy: self.strategy,
            tokens_before: self.tokens_before,
            tokens_after: self.tokens_after,
        })
    }
}

impl StoredSummary {
    fn of(summary: &Summary) -> Result<Self, StoredError> {
        Ok(Self {
            key: summary.key.0,
            message: StoredMessage::of(&summary.message, reader)?,
            tokens: summary.count.tokens.0,
            basis: summary.count.basis,
            counter: summary.count.counter.clone(),
        })
    }

    fn into_summary(self) -> Result<Summary, StoredError> {
        let count = TokenCount::new(Tokens(self.tokens), self.basis, self.counter);
        Ok(Summary::new(Seq(self.key), self.message.into_message(reader)?, count))
    }
}

impl StoredEdit {
    fn of(edit: &MessageEdit) -> Self {
        Self {
            seq: edit.seq.0,
            stand_ins: to_stored(&edit.stand_ins),
            tokens: edit.count.tokens.0,
            basis: edit.count.basis,
            counter: edit.count.counter.clone(),
        }
    }

    fn into_edit(self) -> MessageEdit {
        let count = TokenCount::new(Tokens(self.tokens), self.basis, self.counter);
        MessageEdit::new(Seq(self.seq), from_stored(self.stand_ins), count)
    }
}

fn to_stored(stand_ins: &[PartStandIn]) -> Vec<StoredStandIn> {
    stand_ins.iter().map(|stand_in| StoredStandIn(stand_in.ordinal, stand_in.text.clone())).collect()
}

fn from_stored(stored: Vec<StoredStandIn>) -> Vec<PartStandIn> {
    stored.into_iter().map(|StoredStandIn(ordinal, text)| PartStandIn::new(ordinal, text)).collect()
}

/// Encodes the stand-ins of a message, for a store that keeps them separately: `[[ordinal,text],..]`.
pub fn encode_stand_ins(stand_ins: &[PartStandIn]) -> Result<String, StoredError> {
    to_json(&to_stored(stand_ins))
}

/// Decodes a text of [`encode_stand_ins`].
pub fn decode_stand_ins(text: &str) -> Result<Vec<PartStandIn>, StoredError> {
    serde_json::from_str(text).map(from_stored).map_err(|error| super::malformed(&error))
}

impl StoredUnanswered {
    fn of(call: &UnansweredCall) -> Self {
        Self { id: call.id.clone(), anchor: call.anchor.0, turn: call.turn.0, ordinal: call.ordinal }
    }

    fn into_unanswered(self) -> UnansweredCall {
        UnansweredCall::new(self.id, Seq(self.anchor), Turn(self.turn), self.ordinal)
    }
}
