//! Conversion of faults of a file into errors of the store.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{StoreError, StoreErrorKind};

/// The operation and the file that an error names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) operation: &'static str,
    pub(super) path: &'a Path,
}

impl Here<'_> {
    /// The error for an I/O error.
    pub(super) fn failed(self, error: io::Error) -> StoreError {
        let advice = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "may not be read or written; make it readable and writable for its owner"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "has no room; make room and try again"
            }
            _ => "cannot be read or written; try again",
        };
        let context = format!("{}: {} {advice}", self.operation, self.path.display());
        StoreError::new(StoreErrorKind::Unavailable, context).with_source(error)
    }

    /// The error for a file that is damaged at byte `at`.
    pub(super) fn corrupt(self, at: u64, what: &str) -> StoreError {
        let or_cut = match at {
            0 => "",
            _ => ", or cut it there, which leaves the session as it was before",
        };
        let context = format!(
            "{}: {} is damaged at byte {at}: {what}; restore it from a backup{or_cut}",
            self.operation,
            self.path.display()
        );
        StoreError::new(StoreErrorKind::Corrupt, context)
    }
}
