//! The texts of messages and records, as the stores that keep them apart from the numbers write and read them.

use epitome_core::Revision;
use sha2::{Digest, Sha256};

use super::rules::{corrupt, not_storable};
use super::{CompactionRecord, Entry, RecordId, StoreError};
use crate::wire::stored;

/// The texts of messages that are appended, and what tells appends under one token apart: the messages, which alone are
/// the caller's.
#[derive(Debug)]
pub(super) struct Bodies {
    pub(super) texts: Vec<String>,
    pub(super) digest: [u8; 32],
}

impl Bodies {
    pub(super) fn of(entries: &[Entry]) -> Result<Self, StoreError> {
        let texts = entries
            .iter()
            .map(|entry| stored::encode(&entry.message).map_err(not_storable))
            .collect::<Result<Vec<_>, _>>()?;
        let mut hash = Sha256::new();
        for text in &texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        Ok(Self { texts, digest: hash.finalize().into() })
    }
}

/// A record on its way into its row, with its summaries on the way into theirs.
#[derive(Debug)]
pub(super) struct RecordBodies {
    pub(super) id: RecordId,
    /// The record without its summaries.
    pub(super) text: String,
    pub(super) summaries: Vec<String>,
}

impl RecordBodies {
    pub(super) fn of(record: &CompactionRecord) -> Result<Self, StoreError> {
        let id = stored::record_id(record).map_err(not_storable)?;
        let summaries = record
            .summaries
            .iter()
            .map(|summary| stored::encode(&summary.message).map_err(not_storable))
            .collect::<Result<Vec<_>, _>>()?;
        let mut bare = record.clone();
        bare.summaries.clear();
        let text = stored::encode_record(&bare).map_err(not_storable)?;
        Ok(Self { id, text, summaries })
    }
}

/// The stored record that made `revision`, without its summaries.
pub(super) fn record(revision: Revision, body: &str) -> Result<CompactionRecord, StoreError> {
    let unread = |error| corrupt(format!("the record of {revision} cannot be read")).with_source(error);
    stored::decode_record(body).map_err(unread)
}
