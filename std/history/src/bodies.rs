//! Texts of messages and records, for the stores that keep them in rows, apart from the numbers.

use epitome_core::Revision;
use epitome_core::Seq;
use epitome_message::Message;

use sha2::{Digest, Sha256};

use super::kernel::Op;
use super::rules::{corrupt, not_storable};
use super::{Append, CompactionRecord, StoreError};
use crate::stored;

/// The encoded texts of an operation, before they are written to rows. They are made before the operation gets its turn
/// at the store.
#[derive(Debug, Default)]
pub struct RowTexts {
    /// The texts of the appended messages.
    pub messages: Vec<String>,
    /// The sequence number of the first message. The messages are encrypted for this number.
    pub first: Seq,
    /// Digest of the messages alone, without their groups. It distinguishes two appends under one token.
    pub digest: [u8; 32],
    /// The text of the committed record, without its summaries.
    pub record: String,
    /// The texts of the record's summaries.
    pub summaries: Vec<String>,
}

impl RowTexts {
    pub fn of(op: &Op<'_>) -> Result<Self, StoreError> {
        let encode = |message: &Message| stored::encode(message).map_err(not_storable);
        match *op {
            Op::Append(Append { entries, .. }, _) => {
                let messages = entries.iter().map(|entry| encode(&entry.message));
                let messages = messages.collect::<Result<Vec<_>, _>>()?;
                let mut hash = Sha256::new();
                for text in &messages {
                    hash.update((text.len() as u64).to_le_bytes());
                    hash.update(text);
                }
                Ok(Self { messages, digest: hash.finalize().into(), ..Self::default() })
            }
            Op::Commit(record, _) => {
                let summaries = record.summaries.iter().map(|summary| encode(&summary.message));
                let summaries = summaries.collect::<Result<_, _>>()?;
                let mut bare = record.clone();
                bare.summaries.clear();
                let record = stored::encode_record(&bare).map_err(not_storable)?;
                Ok(Self { record, summaries, ..Self::default() })
            }
            Op::Uncompact(_) | Op::Prune(_) | Op::SaveState(_) => Ok(Self::default()),
        }
    }
}

/// Decodes the stored message `seq`.
pub fn message(seq: Seq, body: &str) -> Result<Message, StoreError> {
    let unread = |error| corrupt(format!("message {seq} cannot be read")).with_source(error);
    stored::decode(body).map_err(unread)
}

/// Decodes the stored record that made `revision`, without its summaries.
pub fn record(revision: Revision, body: &str) -> Result<CompactionRecord, StoreError> {
    let unread = |error| corrupt(format!("the record of {revision} cannot be read")).with_source(error);
    stored::decode_record(body).map_err(unread)
}
