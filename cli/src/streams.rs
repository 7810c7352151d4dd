//! Standard input, output and error: those of the process or, for a caller in the same process, texts in memory.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU8, Ordering};
use std::env;
use std::io::{self, IsTerminal as _, Write};

use crate::args::Color;
use crate::pager;

/// The streams of a call in memory.
#[derive(Debug, Default)]
struct Streams {
    input: Vec<u8>,
    out: Vec<u8>,
    err: Vec<u8>,
}

thread_local! {
    /// The streams of the call on this thread; `None` if they are those of the process.
    static STREAMS: RefCell<Option<Streams>> = const { RefCell::new(None) };
}

/// When the output of the process has colors.
static COLOR: AtomicU8 = AtomicU8::new(Color::Auto as u8);

/// Sets when the output of the process has colors.
pub(crate) fn set_color(color: Color) {
    COLOR.store(color as u8, Ordering::Relaxed);
}

/// Whether standard output has colors.
pub(crate) fn is_out_colored() -> bool {
    match COLOR.load(Ordering::Relaxed) {
        _ if is_in_memory() => false,
        color if color == Color::Always as u8 => true,
        color if color == Color::Never as u8 => false,
        _ => is_out_terminal() && !is_plain(),
    }
}

/// Whether the environment forbids colors.
pub(crate) fn is_plain() -> bool {
    is_dumb() || env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty())
}

/// Whether the terminal can only print text.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Runs `call` with `input` as its standard input. Returns its value, its standard output and its standard error.
pub(crate) fn in_memory<T>(input: Vec<u8>, call: impl FnOnce() -> T) -> (T, Vec<u8>, Vec<u8>) {
    let streams = Streams { input, ..Streams::default() };
    // After a panic too, the thread has its own streams again, or those of the outer call.
    let guard = Restore(STREAMS.replace(Some(streams)));
    let value = call();
    let Streams { out, err, .. } = STREAMS.take().unwrap_or_default();
    drop(guard);
    (value, out, err)
}

/// Restores the previous streams of a thread.
struct Restore(Option<Streams>);

impl Drop for Restore {
    fn drop(&mut self) {
        STREAMS.set(self.0.take());
    }
}

/// Whether the streams are in memory. Then there is no terminal, and no interrupt.
pub(crate) fn is_in_memory() -> bool {
    STREAMS.with_borrow(Option::is_some)
}

/// Whether standard input is a terminal.
pub(crate) fn is_in_terminal() -> bool {
    !is_in_memory() && io::stdin().is_terminal()
}

/// Whether standard output is a terminal.
pub(crate) fn is_out_terminal() -> bool {
    !is_in_memory() && io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn is_err_terminal() -> bool {
    !is_in_memory() && io::stderr().is_terminal()
}

/// Standard input. Bytes in memory can be read once, as a stream can.
pub(crate) fn input() -> Box<dyn io::Read> {
    let in_memory =
        STREAMS.with_borrow_mut(|streams| streams.as_mut().map(|own| core::mem::take(&mut own.input)));
    match in_memory {
        Some(bytes) => Box::new(io::Cursor::new(bytes)),
        None => Box::new(io::stdin().lock()),
    }
}

/// Standard output.
#[derive(Debug)]
pub(crate) struct Out;

/// Standard error.
#[derive(Debug)]
pub(crate) struct Err;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(bytes, |own| &mut own.out, || pager::write(bytes).unwrap_or_else(|| io::stdout().write(bytes)))
    }

    fn flush(&mut self) -> io::Result<()> {
        if is_in_memory() { Ok(()) } else { io::stdout().flush() }
    }
}

impl Write for Err {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write(bytes, |own| &mut own.err, || io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        if is_in_memory() { Ok(()) } else { io::stderr().flush() }
    }
}

fn write(
    bytes: &[u8],
    stream: impl FnOnce(&mut Streams) -> &mut Vec<u8>,
    process: impl FnOnce() -> io::Result<usize>,
) -> io::Result<usize> {
    let written = STREAMS.with_borrow_mut(|streams| {
        streams.as_mut().map(|own| stream(own).extend_from_slice(bytes)).map(|()| bytes.len())
    });
    written.map_or_else(process, Ok)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_call_has_its_own_streams_and_the_thread_its_own_again() {
        let call = || {
            let mut text = String::new();
            input().take(3).read_to_string(&mut text).unwrap();
            write!(Out, "said {text}").unwrap();
            let inner = in_memory(b"inner".to_vec(), || write!(Out, "inner").unwrap());
            write!(Err, "told").unwrap();
            (is_in_memory(), inner.1)
        };
        let ((was_in_memory, inner), out, err) = in_memory(b"input".to_vec(), call);
        assert_eq!(
            (was_in_memory, &*inner, &*out, &*err),
            (true, &b"inner"[..], &b"said inp"[..], &b"told"[..])
        );
        assert!(!is_in_memory());
        let panicked = std::panic::catch_unwind(|| in_memory(Vec::new(), || panic!("a call that fails")));
        assert!(panicked.is_err() && !is_in_memory());
    }
}
