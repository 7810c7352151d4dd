//! Epitome's history of fixed capacity for programs in C: no heap, no operating system, no panic.
//!
//! `include/epitome_kernel.h` is the documentation of every function. A test compares its declarations with this code.
//!
//! Each function checks its pointers, lengths, texts and numbers ([`call::Call`]), does one thing with a
//! [`BoundedHistory`](epitome_core::BoundedHistory), and returns an [`Error`](error::Error). Nothing unwinds into C:
//! `panic = "abort"`, and a check of the linked program shows that no panic is in it.
#![no_std]

// On a host, the standard library provides the panic handler; no other part of it is used.
#[cfg(not(target_os = "none"))]
extern crate std;

mod append;
mod budget;
mod call;
mod chat;
mod error;
mod history;
mod plan;
mod read;
mod snapshot;
mod stages;
mod stream;
mod summary;
mod tables;

/// Never reached, because nothing here panics. A `no_std` program does not compile without a panic handler.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
