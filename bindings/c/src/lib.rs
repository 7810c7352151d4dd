//! The commands of Epitome as a C library: transcripts are read from memory, and results are written to memory.
//!
//! [`epitome_call`] takes the arguments of the program `epitome` and the text of a transcript, and returns the texts
//! that the program would print. The packages for Python and for WebAssembly load this library. The header
//! `include/epitome.h` is generated from this documentation.

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod wasm;

use core::ffi::{CStr, c_char};
use core::panic::AssertUnwindSafe;
use core::ptr;
use core::slice;
use std::panic::catch_unwind;

/// A null pointer where the documentation does not allow one, a size of more than `SIZE_MAX / 2`, or an argument that is not UTF-8.
/// The command was not run.
pub const EPITOME_BAD_ARGUMENT: i32 = -1;

/// A fault of the library. Every file has its old or its new content as a whole, and other calls are not affected.
pub const EPITOME_FAULT: i32 = -2;

/// The results of a call. The library owns the texts; `epitome_answer_free` frees them.
#[repr(C)]
#[derive(Debug)]
pub struct epitome_answer {
    /// The standard output of the command: `output_len` bytes, and a zero byte that is not counted. Never null after a call.
    pub output: *mut u8,
    /// The number of bytes of `output`.
    pub output_len: usize,
    /// The standard error of the command, a text in UTF-8: warnings, and the reason of a failure. It ends with a zero byte, as `output`
    /// does.
    pub diagnostics: *mut u8,
    /// The number of bytes of `diagnostics`.
    pub diagnostics_len: usize,
}

impl epitome_answer {
    const EMPTY: Self =
        Self { output: ptr::null_mut(), output_len: 0, diagnostics: ptr::null_mut(), diagnostics_len: 0 };

    fn new(output: Vec<u8>, diagnostics: Vec<u8>) -> Self {
        let (output, output_len) = leak(output);
        let (diagnostics, diagnostics_len) = leak(diagnostics);
        Self { output, output_len, diagnostics, diagnostics_len }
    }
}

/// Runs a command of the program `epitome`, with a text in memory as its standard input.
///
/// `arguments` are `argument_count` texts in UTF-8, each ended by a zero byte, without the name of the program, for example
/// `compact`, `-`, `--keep`, `30%`, `-o`, `-`. The transcript `-` is `input`, of `input_len` bytes; it may be null if `input_len` is 0.
/// `-o -` writes to `answer->output`. `--help` lists the commands. `mcp`, `show --follow` and `session inspect` are refused. The
/// build has no `report`, `completions`, `man` and `--summarizer`. Other files, such as those of `--models` and `--key-file`, and the
/// environment variables of the program are those of the process.
///
/// Returns the exit code of the program: 0 done, 1 violations or nothing found, 2 wrong input or arguments, 3 the protected messages
/// do not fit the window, 4 a file or a store failed, 5 the result reads back as something else, 6 `--require-goal` and the goal was
/// missed; or one of the negative codes above.
/// The call writes every field of `answer` and does not read them before. Free each answer with `epitome_answer_free`.
///
/// Any number of threads may call at the same time; each needs 1 MiB of stack. A call cannot be cancelled. It reads no pointer after
/// it has returned.
///
/// # Safety
///
/// Each pointer points to memory of the size that the call is given, and no thread writes to that memory during the call. `answer`
/// points to an `epitome_answer`, whose fields need not be initialized.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_call(
    arguments: *const *const c_char,
    argument_count: usize,
    input: *const u8,
    input_len: usize,
    answer: *mut epitome_answer,
) -> i32 {
    if answer.is_null() {
        return EPITOME_BAD_ARGUMENT;
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    unsafe { answer.write(epitome_answer::EMPTY) };
    // SAFETY: the caller guarantees this for `arguments` and `input`.
    let read = unsafe { texts(arguments, argument_count) }
        // SAFETY: the same.
        .and_then(|arguments| unsafe { bytes(input, input_len, "input") }.map(|input| (arguments, input)));
    let (code, output, diagnostics) = match read {
        Ok((arguments, input)) => {
            let call = || epitome_cli::call(arguments, input);
            match catch_unwind(AssertUnwindSafe(call)) {
                Ok(done) => (i32::from(done.exit_code), done.output, done.diagnostics),
                Err(_) => (EPITOME_FAULT, Vec::new(), b"epitome: a fault of the library\n".to_vec()),
            }
        }
        Err(why) => (EPITOME_BAD_ARGUMENT, Vec::new(), format!("epitome_call: {why}\n").into_bytes()),
    };
    // SAFETY: as for the first write to `answer`.
    unsafe { answer.write(epitome_answer::new(output, diagnostics)) };
    code
}

/// Frees the texts of an answer, and sets its fields to null and 0. A null pointer, and an answer that was freed, are no error.
///
/// # Safety
///
/// `answer` is null, or points to an answer of `epitome_call` whose fields are unchanged. No other thread reads or frees the answer at
/// the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_answer_free(answer: *mut epitome_answer) {
    if answer.is_null() {
        return;
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    let epitome_answer { output, output_len, diagnostics, diagnostics_len } =
        unsafe { answer.replace(epitome_answer::EMPTY) };
    for (text, len) in [(output, output_len), (diagnostics, diagnostics_len)] {
        if !text.is_null() {
            // SAFETY: `leak` made the pointer from a boxed slice of `len + 1` bytes.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(text, len + 1)) });
        }
    }
}

/// The version of the library, like `0.1.0`: a text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn epitome_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Releases the ownership of `bytes`, with a zero byte at the end. The returned length does not count the zero byte.
fn leak(mut bytes: Vec<u8>) -> (*mut u8, usize) {
    let len = bytes.len();
    bytes.push(0);
    (Box::into_raw(bytes.into_boxed_slice()).cast(), len)
}

/// # Safety
///
/// `start` is null or points to `count` pointers, each of which is null or points to a text that ends with a zero byte.
unsafe fn texts(start: *const *const c_char, count: usize) -> Result<Vec<String>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let is_room =
        count.checked_mul(size_of::<*const c_char>()).is_some_and(|bytes| isize::try_from(bytes).is_ok());
    if start.is_null() || !is_room {
        return Err(format!("arguments is null or too long for {count} arguments"));
    }
    // SAFETY: the caller guarantees this; the pointer is not null, and the size is allowed for a slice.
    let pointers = unsafe { slice::from_raw_parts(start, count) };
    let texts = pointers.iter().enumerate().map(|(at, pointer)| {
        if pointer.is_null() {
            return Err(format!("argument {at} is null"));
        }
        // SAFETY: the caller guarantees this, and the pointer is not null.
        let text = unsafe { CStr::from_ptr(*pointer) }.to_str();
        text.map(str::to_owned).map_err(|_| format!("argument {at} is not UTF-8"))
    });
    texts.collect()
}

/// # Safety
///
/// `start` is null or points to `len` bytes.
unsafe fn bytes(start: *const u8, len: usize, what: &str) -> Result<Vec<u8>, String> {
    match (start.is_null(), isize::try_from(len)) {
        (_, Ok(0)) => Ok(Vec::new()),
        // SAFETY: the caller guarantees this; the pointer is not null, and the size is allowed for a slice.
        (false, Ok(_)) => Ok(unsafe { slice::from_raw_parts(start, len) }.to_vec()),
        (true, _) => Err(format!("{what} is null, and its length {len}")),
        (false, Err(_)) => Err(format!("{what} has a length of {len}")),
    }
}
