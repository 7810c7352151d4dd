//! The history in the memory of the caller.

use core::cell::Cell;
use core::ffi::c_void;

use crate::call::{Call, Plain};
use crate::error::{Error, code};
use crate::tables::{Bounded, Layout, MESSAGES, RESULTS};

/// A history with the state of its memory.
pub struct History {
    /// Marks memory that holds a history: a call without `init` returns an error.
    pub(crate) seal: u32,
    /// Whether a sink is being called.
    pub(crate) lent: Cell<bool>,
    pub(crate) bounded: Bounded,
}

/// Four letters, and not zero, so that memory which was never touched has none.
pub(crate) const SEAL: u32 = 0x6E4B_7045;

/// How many bytes of memory a history takes.
#[unsafe(no_mangle)]
pub extern "C" fn epitome_kernel_memory_bytes() -> usize {
    size_of::<History>()
}

/// The alignment of that memory, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn epitome_kernel_memory_align() -> usize {
    align_of::<History>()
}

/// Makes an empty history, if header and library agree on its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_init_layout(
    memory: *mut c_void,
    memory_bytes: usize,
    layout: *const Layout,
    history: *mut *mut History,
) -> Error {
    let place = memory.cast::<History>();
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(place) };
    code((|| {
        if place.is_null() {
            return Err(Error::Null);
        }
        let to = call.needed(history)?;
        if call.value(layout)? != Layout::BUILT {
            return Err(Error::Layout);
        }
        if !place.is_aligned() {
            return Err(Error::Misaligned);
        }
        if memory_bytes < size_of::<History>() {
            return Err(Error::Memory);
        }
        // Writes zeros in place: a history as a value would be on the stack first.
        // SAFETY: not null, aligned, large enough, and owned by the caller; an empty history is all zero bytes, which
        // core guarantees and a test below checks.
        unsafe {
            place.write_bytes(0, 1);
            (&raw mut (*place).seal).write(SEAL);
        }
        to.put(place);
        Ok(())
    })())
}

/// Forgets all messages, and a text that is being streamed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_clear(history: *mut History) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code(call.change_stream().map(|history| history.clear()))
}

/// Sizes and free room of a history.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Status {
    tokens: u64,
    next_seq: u64,
    messages: u32,
    free_messages: u32,
    free_bytes: u32,
    free_results: u32,
    is_streaming: u32,
}

// SAFETY: numbers.
unsafe impl Plain for Status {}

/// Tells sizes and free room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_read_status(history: *const History, status: *mut Status) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (history, to) = (call.history()?, call.needed(status)?);
        let free = |all: usize, used: usize| all.saturating_sub(used) as u32;
        to.put(Status {
            tokens: history.tokens(),
            next_seq: history.head().0,
            messages: history.len() as u32,
            free_messages: free(MESSAGES, history.len()),
            free_bytes: history.free_bytes() as u32,
            free_results: free(RESULTS, history.index().part_count()),
            is_streaming: u32::from(history.is_suspended()),
        });
        Ok(())
    })())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A static, because its padding is zero too.
    static EMPTY: Bounded = Bounded::new();

    #[test]
    fn an_empty_history_is_all_zero_bytes() {
        let start = (&raw const EMPTY).cast::<u8>();
        // SAFETY: reads the static byte by byte; volatile, so that the compiler assumes nothing about its padding.
        let is_zero = |at| unsafe { start.add(at).read_volatile() == 0 };
        assert!((0..size_of::<Bounded>()).all(is_zero));
    }
}
