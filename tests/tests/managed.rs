//! Compaction by providers, over HTTP against services that are as strict as their documents.
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
