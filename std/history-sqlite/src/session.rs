//! A session, with the encryption of its texts.

use std::borrow::Cow;

use epitome_core::{Revision, Seq};

use epitome_history::bodies::RowTexts;
use epitome_history::encryption::{Place, Seal, Vault};
use epitome_history::kernel::{Insert, Op};
use epitome_history::rules::{corrupt, not_storable};
use epitome_history::stored;
use epitome_history::{Entry, RecordId, SessionId, StoreError};
use uuid::Uuid;

/// The id of a session, and the form of its texts.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) name: SessionId,
    pub(super) seal: Seal,
}

impl Session {
    /// Makes a session of the file with this file id.
    pub(super) fn new(name: SessionId, vault: &Vault, file: Uuid) -> Self {
        let seal = vault.seal(file, name.as_str().as_bytes());
        Self { name, seal }
    }

    /// The stored form of the texts of `op`, for the places that they will probably get. At another head or revision
    /// these forms are not used.
    pub(super) fn close_texts(&self, op: &Op<'_>, mut texts: RowTexts) -> Result<RowTexts, StoreError> {
        match *op {
            Op::Append(append, _) => {
                texts.digest = self.seal.digest(texts.digest);
                texts.first = append.head;
                for (offset, text) in (0..).zip(&mut texts.messages) {
                    let place = Place::message(append.head.0.saturating_add(offset));
                    *text = self.close(place, core::mem::take(text))?;
                }
            }
            Op::Commit(record, _) => {
                let revision = record.parent.next().0;
                for (summary, text) in record.summaries.iter().zip(&mut texts.summaries) {
                    *text = self.close(Place::summary(revision, summary.key.0), core::mem::take(text))?;
                }
                texts.record = self.close(Place::record(revision), texts.record)?;
            }
            Op::Uncompact(_) | Op::Prune(_) | Op::SaveState(_) => {}
        }
        Ok(texts)
    }

    /// The stored texts of the messages at their actual numbers.
    pub(super) fn texts_at<'t>(
        &self,
        insert: &Insert<'_>,
        texts: &'t RowTexts,
    ) -> Result<Cow<'t, [String]>, StoreError> {
        if self.seal.is_plain() || texts.first == insert.appended.first {
            return Ok(Cow::Borrowed(&texts.messages));
        }
        // Other writers have appended: texts that were encrypted for other numbers are useless.
        let text = |(seq, entry, _): (Seq, &Entry, _)| {
            let text = stored::encode(&entry.message).map_err(not_storable)?;
            self.close(Place::message(seq.0), text)
        };
        insert.placed().map(text).collect()
    }

    /// The stored form of `text` at `place`.
    pub(super) fn close(&self, place: Place, text: String) -> Result<String, StoreError> {
        self.seal.close(place, text)
    }

    /// The text that is `stored` at `place`.
    ///
    /// # Errors
    /// `Corrupt` if it differs from the text that was written there.
    pub(super) fn open(&self, place: Place, stored: String) -> Result<String, StoreError> {
        let lost =
            || corrupt(format!("{place} is not what was written there; restore the file from a backup"));
        self.seal.open(place, stored).ok_or_else(lost)
    }

    /// Decrypts a stored message.
    pub(super) fn message(&self, seq: Seq, stored: String) -> Result<String, StoreError> {
        self.open(Place::message(seq.0), stored)
    }

    /// Decrypts the stored stand-ins of a message.
    pub(super) fn stand_ins(&self, seq: Seq, stored: String) -> Result<String, StoreError> {
        self.open(Place::stand_ins(seq.0), stored)
    }

    /// Decrypts a stored record, without its summaries.
    pub(super) fn record(&self, revision: Revision, stored: String) -> Result<String, StoreError> {
        self.open(Place::record(revision.0), stored)
    }

    /// The stored form of a record's id. An encrypted file encrypts it, because the id would confirm a guess of the
    /// record's content.
    pub(super) fn close_id(&self, revision: Revision, id: RecordId) -> Result<Vec<u8>, StoreError> {
        if self.seal.is_plain() {
            return Ok(id.as_bytes().to_vec());
        }
        Ok(self.close(Place::record_id(revision.0), id.to_string())?.into_bytes())
    }

    /// Decrypts a stored id of a record.
    pub(super) fn open_id(&self, revision: Revision, stored: Vec<u8>) -> Result<RecordId, StoreError> {
        let id = if self.seal.is_plain() {
            stored.try_into().map(RecordId::from_bytes).ok()
        } else {
            let text = String::from_utf8(stored).ok();
            text.and_then(|text| RecordId::parse(&self.seal.open(Place::record_id(revision.0), text)?))
        };
        id.ok_or_else(|| corrupt(format!("the id of the record of {revision} cannot be read")))
    }
}
