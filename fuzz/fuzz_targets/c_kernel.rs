//! Any program of calls to the C library of the kernel, with pointers, lengths and texts that it must refuse: a refused call
//! changes nothing, and the history equals a list of the messages.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| epitome_fuzz::kernel::run(bytes));
