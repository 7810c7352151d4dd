//! Sessions in use: runs and agents, as a program that links Epitome uses them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests: a panic is how they report"
)]

mod approvals;
mod bad_input;
mod branch;
mod cancel;
mod clearing;
mod compaction;
mod examples;
mod first;
mod generated;
mod handles;
mod hooks;
mod hosted;
mod incremental;
mod kept;
mod loops;
mod many;
mod memory_files;
mod options;
mod overflow;
mod promised;
mod proposal;
mod recall;
mod recall_before;
mod runs;
mod spill;
mod states;
mod steering;
mod strict;
pub(crate) mod support;
mod window;
mod written;
