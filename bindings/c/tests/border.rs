//! The functions of the C library, called as C calls them.

#![cfg(test)]

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::{ptr, slice};
use std::ffi::CString;
use std::thread;

use epitome_c::{EPITOME_BAD_ARGUMENT, epitome_answer, epitome_answer_free, epitome_call, epitome_version};

const REQUEST: &str =
    r#"{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]}"#;

/// The exit code, the output and the diagnostics.
fn call(arguments: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let texts: Vec<_> = arguments.iter().map(|text| CString::new(*text).unwrap()).collect();
    let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
    raw(pointers.as_ptr(), pointers.len(), input.as_ptr(), input.len())
}

fn raw(
    arguments: *const *const c_char,
    count: usize,
    input: *const u8,
    len: usize,
) -> (i32, Vec<u8>, String) {
    let mut answer = MaybeUninit::<epitome_answer>::uninit();
    // SAFETY: the tests give pointers to as much as they say, or those that are refused unread.
    let code = unsafe { epitome_call(arguments, count, input, len, answer.as_mut_ptr()) };
    // SAFETY: it is written by the call.
    let mut answer = unsafe { answer.assume_init() };
    let text = |start: *mut u8, len: usize| {
        // SAFETY: the library has written so many bytes, and a zero.
        let bytes = unsafe { slice::from_raw_parts(start, len + 1) };
        assert_eq!(bytes[len], 0);
        bytes[..len].to_vec()
    };
    let output = text(answer.output, answer.output_len);
    let diagnostics = String::from_utf8(text(answer.diagnostics, answer.diagnostics_len)).unwrap();
    for _ in 0..2 {
        // SAFETY: it is an answer; the second time, one that was freed.
        unsafe { epitome_answer_free(&raw mut answer) };
        assert!(
            answer.output.is_null()
                && answer.diagnostics.is_null()
                && answer.output_len + answer.diagnostics_len == 0
        );
    }
    (code, output, diagnostics)
}

#[test]
fn a_transcript_is_compacted_in_memory() {
    let (code, output, diagnostics) =
        call(&["compact", "-", "--keep", "100%", "-o", "-"], REQUEST.as_bytes());
    assert_eq!((code, core::str::from_utf8(&output).unwrap()), (0, REQUEST));
    assert!(diagnostics.contains("2 messages"), "{diagnostics}");
}

#[test]
fn the_input_may_be_empty_or_anything() {
    let (code, output, diagnostics) = raw(ptr::null(), 0, ptr::null(), 0);
    assert_eq!((code, output.len()), (2, 0));
    assert!(diagnostics.contains("Usage"), "{diagnostics}");
    let (code, _, diagnostics) = call(&["stats", "-"], b"\xff\0\xff");
    assert_eq!(code, 2, "{diagnostics}");
    assert!(diagnostics.starts_with("epitome: standard input: "), "{diagnostics}");
}

#[test]
fn wrong_pointers_are_refused() {
    let stats = [c"stats".as_ptr(), c"-".as_ptr()];
    let nothing: [*const c_char; 1] = [ptr::null()];
    let latin = [c"caf\xe9".as_ptr()];
    let huge = usize::MAX;
    for (arguments, count, input, len, why) in [
        (ptr::null(), 1, ptr::null(), 0, "arguments is null"),
        (stats.as_ptr(), huge, ptr::null(), 0, "too long"),
        (nothing.as_ptr(), 1, ptr::null(), 0, "argument 0 is null"),
        (latin.as_ptr(), 1, ptr::null(), 0, "argument 0 is not UTF-8"),
        (stats.as_ptr(), 2, ptr::null(), 5, "input is null"),
        (stats.as_ptr(), 2, REQUEST.as_ptr(), huge, "a length of"),
    ] {
        let (code, output, diagnostics) = raw(arguments, count, input, len);
        assert_eq!((code, output.len()), (EPITOME_BAD_ARGUMENT, 0), "{diagnostics}");
        assert!(diagnostics.contains(why), "{diagnostics}");
    }
    // SAFETY: nothing is read, and null is no answer.
    unsafe {
        assert_eq!(epitome_call(stats.as_ptr(), 2, ptr::null(), 0, ptr::null_mut()), EPITOME_BAD_ARGUMENT);
        epitome_answer_free(ptr::null_mut());
    }
}

#[test]
fn what_never_ends_is_refused() {
    for arguments in [&["mcp"][..], &["show", "-", "--follow"]] {
        let (code, _, diagnostics) = call(arguments, REQUEST.as_bytes());
        assert_eq!(code, 2, "{diagnostics}");
    }
}

#[test]
fn threads_have_answers_of_their_own() {
    let one = |n: usize| {
        move || {
            let input = REQUEST.replace("Hello", &"x".repeat(n));
            let (code, output, _) = call(&["compact", "-", "--keep", "100%", "-o", "-"], input.as_bytes());
            assert_eq!((code, output), (0, input.into_bytes()));
        }
    };
    let threads: Vec<_> = (0..4).map(|n| thread::spawn(one(n * 1000))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn the_version_is_that_of_the_crate() {
    // SAFETY: the text is never freed.
    let version = unsafe { CStr::from_ptr(epitome_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}
