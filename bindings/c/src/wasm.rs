//! Memory and random numbers for a host in JavaScript, such as the package in `bindings/wasm`.

use core::ptr;

use getrandom::Error;

use crate::{epitome_answer, epitome_answer_free, leak};

#[link(wasm_import_module = "epitome")]
unsafe extern "C" {
    /// Writes `len` random bytes at `to`.
    safe fn random(to: *mut u8, len: usize);
}

/// Random numbers of the host, for ids of sessions.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(to: *mut u8, len: usize) -> Result<(), Error> {
    random(to, len);
    Ok(())
}

/// `len` bytes of zero for the host to write, or null if there is no room. `epitome_memory_free` takes them back.
#[unsafe(no_mangle)]
extern "C" fn epitome_memory(len: usize) -> *mut u8 {
    let mut memory = Vec::new();
    match memory.try_reserve_exact(len.saturating_add(1)) {
        Ok(()) => {
            memory.resize(len, 0);
            leak(memory).0
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Frees memory of `epitome_memory`; `len` is the length that it was asked for.
///
/// # Safety
///
/// `memory` came from `epitome_memory(len)` and was not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn epitome_memory_free(memory: *mut u8, len: usize) {
    let mut answer = epitome_answer { output: memory, output_len: len, ..epitome_answer::EMPTY };
    // SAFETY: the fields are as `leak` made them, and the caller guarantees the rest.
    unsafe { epitome_answer_free(&raw mut answer) }
}
