//! Snapshots: a history as bytes, for flash.

use crate::call::Call;
use crate::error::{Error, code};
use crate::history::History;
use crate::tables::Bounded;

/// How long a snapshot can be, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn epitome_kernel_snapshot_bytes_max() -> usize {
    Bounded::snapshot_bytes_max()
}

/// Writes a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_snapshot(
    history: *const History,
    to: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (length, bytes) = (call.needed(length)?, call.bytes_out(to, capacity)?);
        length.put(call.history()?.snapshot(bytes).map_err(|_| Error::Buffer)?);
        Ok(())
    })())
}

/// Puts a snapshot in the place of the history.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_restore(
    history: *mut History,
    from: *const u8,
    length: usize,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let bytes = call.bytes(from, length)?;
        Ok(call.change()?.restore(bytes)?)
    })())
}
