//! Writes requests: the `messages` array of Chat Completions, into a buffer or to a sink.

use core::cell::Cell;
use core::ffi::{c_char, c_void};
use core::fmt::{self, Write};

use epitome_core::write_openai_chat;

use crate::call::Call;
use crate::error::{Error, code};
use crate::history::History;

/// Takes the next bytes of a request; anything but zero ends the writing.
pub type Sink =
    Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const c_char, length: usize) -> i32>;

/// Writes the messages into a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_write_openai_chat(
    history: *const History,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (out, room) = (call.needed(length)?, call.bytes_out(to.cast(), capacity)?);
        let mut buffer = Buffer { room, length: 0 };
        write_openai_chat(call.history()?.messages(), &mut buffer).map_err(|_| Error::Buffer)?;
        let length = buffer.length;
        out.put(length);
        if length > capacity { Err(Error::Buffer) } else { Ok(()) }
    })())
}

/// Gives the messages to a sink, piece by piece.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_send_openai_chat(
    history: *const History,
    sink: Sink,
    context: *mut c_void,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let sink = sink.ok_or(Error::Null)?;
        let take = |piece: &str| {
            // SAFETY: the piece is readable during the call, and the header states the rules for a sink.
            unsafe { sink(context, piece.as_ptr().cast(), piece.len()) }
        };
        let _lent = Lent::begin(call.lent()?);
        write_openai_chat(call.history()?.messages(), &mut Pieces(take)).map_err(|_| Error::Sink)
    })())
}

/// A buffer that counts bytes beyond its end, so that one pass without memory measures the size.
struct Buffer<'b> {
    room: &'b mut [u8],
    length: usize,
}

impl Write for Buffer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = self.room.get_mut(self.length..).unwrap_or_default();
        free.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = *from);
        self.length = self.length.saturating_add(text.len());
        Ok(())
    }
}

struct Pieces<F>(F);

impl<F: Fn(&str) -> i32> Write for Pieces<F> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if (self.0)(text) == 0 { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Prevents changes of a history while a sink is called. A nested request from a sink leaves the history lent for the
/// outer request.
struct Lent<'c> {
    lent: &'c Cell<bool>,
    before: bool,
}

impl<'c> Lent<'c> {
    fn begin(lent: &'c Cell<bool>) -> Self {
        Self { lent, before: lent.replace(true) }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.lent.set(self.before);
    }
}
