//! The report of interrupted writes, whose incomplete ends were cut off.

use std::sync::{Arc, Mutex, PoisonError};

use crate::SessionId;

/// Maximum number of cuts in the list: far more than crashes between two calls for the list.
const CUTS_MAX: usize = 1_000;

/// The incomplete end of an interrupted write, which was cut off a session's file. The write was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutTail {
    /// The session.
    pub session: SessionId,
    /// The new end of the file.
    pub at: u64,
    /// Number of bytes that were cut off.
    pub bytes: u64,
}

/// The cuts that a store has made.
#[derive(Debug, Clone, Default)]
pub(super) struct Cuts(Arc<Mutex<Vec<CutTail>>>);

impl Cuts {
    pub(super) fn push(&self, cut: CutTail) {
        let CutTail { session, at, bytes } = &cut;
        let session = session.as_str();
        tracing::warn!(session, at, bytes, "cut the rest of an interrupted write off a session's file");
        let mut cuts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cuts.len() >= CUTS_MAX {
            cuts.remove(0);
        }
        cuts.push(cut);
    }

    pub(super) fn list(&self) -> Vec<CutTail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
