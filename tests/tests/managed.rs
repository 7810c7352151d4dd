//! Compaction by model providers, over HTTP, against test servers that are as strict as the providers' documentation.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests: a panic is how they report"
)]

mod anthropic;
mod background;
mod commits;
mod keys;
mod late;
mod openai;
mod proxy;
mod recorded;
mod support;
mod switch;
mod talk;
