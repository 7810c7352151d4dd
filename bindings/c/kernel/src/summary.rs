//! Summaries: one message in the place of several.

use core::ffi::c_char;

use epitome_core::attribution::SeqRange;
use epitome_core::{ClassEstimator, Seq};

use crate::call::{Call, Plain, Text};
use crate::error::{Error, code};
use crate::history::History;
use crate::plan::Compacted;

/// Messages by their sequence numbers, both ends included.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    first: u64,
    last: u64,
}

// SAFETY: numbers.
unsafe impl Plain for Span {}

impl Span {
    pub(crate) const fn range(self) -> SeqRange {
        SeqRange { first: Seq(self.first), last: Seq(self.last) }
    }
}

/// Returns the span of messages that a summary could replace, among those that the plan drops.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_span_to_summarize(history: *const History, span: *mut Span) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let to = call.needed(span)?;
        let range = call.history()?.span_to_summarize().ok_or(Error::NoMessages)?;
        to.put(Span { first: range.first.0, last: range.last.0 });
        Ok(())
    })())
}

/// Writes the identifiers of messages into a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_ledger(
    history: *const History,
    span: *const Span,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (out, room) = (call.needed(length)?, call.bytes_out(to.cast(), capacity)?);
        let range = call.value(span)?.range();
        let text = call.history()?.ledger(range, room).ok_or(Error::NoMessages)?;
        out.put(text.len());
        Ok(())
    })())
}

/// Puts a summary in the place of messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_summarize(
    history: *mut History,
    span: *const Span,
    text: Text,
    compacted: *mut Compacted,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let to = call.out(compacted)?;
        let (range, text) = (call.value(span)?.range(), call.text(text)?.unwrap_or_default());
        to.put(call.change()?.summarize(range, text, &ClassEstimator::new())?.into());
        Ok(())
    })())
}
