//! The program as its users run it: arguments and files in; exit code, output and messages out.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in its helpers"
)]

mod bad_input;
mod budget;
mod containers;
mod each;
mod inspect;
mod interrupt;
mod options;
mod output;
mod report;
mod sessions;
mod support;
