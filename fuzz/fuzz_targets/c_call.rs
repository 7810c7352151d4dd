//! Any command line and any transcript through the C function: nothing unwinds, the answer is as the header says, and is freed.
//!
//! The first line of an input is the command line, its words apart by tabs; the rest is the transcript.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| epitome_fuzz::call::call(bytes));
