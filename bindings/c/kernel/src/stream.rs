//! Messages whose text arrives piece by piece.

use epitome_core::ClassEstimator;

use crate::append::{self, Placed};
use crate::call::{Call, Text};
use crate::error::{Error, code};
use crate::history::History;

/// Begins a message whose text comes piece by piece.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_begin(history: *mut History, role: i32) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let role = append::role(role)?;
        // A tool result needs the id of its call, which a stream does not have.
        if role == epitome_core::message::Role::Tool {
            return Err(Error::Entry);
        }
        call.change()?.begin(role)?.suspend();
        Ok(())
    })())
}

/// Adds a piece of text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_extend(history: *mut History, piece: Text) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let piece = call.text(piece)?.unwrap_or_default();
        let mut stream = call.change_stream()?.resume().ok_or(Error::NotStreaming)?;
        let done = stream.extend(piece);
        // The earlier pieces stay, even if this piece did not fit.
        stream.suspend();
        Ok(done?)
    })())
}

/// Adds the message to the history.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_finish(history: *mut History, placed: *mut Placed) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let to = call.out(placed)?;
        let stream = call.change_stream()?.resume().ok_or(Error::NotStreaming)?;
        to.put(stream.finish(&ClassEstimator::new())?.into());
        Ok(())
    })())
}

/// Gives up the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_abandon(history: *mut History) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        // Resumed and then dropped without a suspension, which discards the text.
        call.change_stream()?.resume().map(|_| ()).ok_or(Error::NotStreaming)
    })())
}
