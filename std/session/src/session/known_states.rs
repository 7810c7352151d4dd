//! The states of a session that the stores have.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::history::{KeptState, StateRevision};

/// The stored state of the session in each history that keeps it, by source id, as far as this session knows.
#[derive(Debug, Default)]
pub(crate) struct KnownStates(BTreeMap<Box<str>, Known>);

#[derive(Debug, Default)]
struct Known {
    revision: StateRevision,
    /// The SHA-256 of its text.
    digest: [u8; 32],
    /// SHA-256 of each text that was sent since and has had no answer.
    sent: Vec<[u8; 32]>,
}

impl KnownStates {
    /// The revision of the state that this session was loaded from, or has stored last.
    pub(crate) fn revision(&self, source_id: &str) -> StateRevision {
        self.0.get(source_id).map(|known| known.revision).unwrap_or_default()
    }

    /// Whether the text of that state is `text`.
    pub(crate) fn is(&self, source_id: &str, text: &str) -> bool {
        self.0.get(source_id).is_some_and(|known| known.digest == digest(text))
    }

    /// Records that `text` is about to be sent.
    pub(crate) fn send(&mut self, source_id: &str, text: &str) {
        let (known, digest) = (self.0.entry(source_id.into()).or_default(), digest(text));
        if !known.sent.contains(&digest) {
            known.sent.push(digest);
        }
    }

    /// Whether `kept` is a state that this session has sent, although no answer came.
    pub(crate) fn has_sent(&self, source_id: &str, kept: &KeptState) -> bool {
        let sent = |known: &Known| {
            kept.revision == known.revision.next() && known.sent.contains(&digest(&kept.text))
        };
        self.0.get(source_id).is_some_and(sent)
    }

    /// Records that one of the texts that were sent is stored, with this revision.
    pub(crate) fn found(&mut self, source_id: &str, revision: StateRevision) {
        if let Some(known) = self.0.get_mut(source_id) {
            known.revision = revision;
        }
    }

    /// Records that `text` is stored, with this revision.
    pub(crate) fn kept(&mut self, source_id: &str, revision: StateRevision, text: &str) {
        self.0.insert(source_id.into(), Known { revision, digest: digest(text), sent: Vec::new() });
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}
