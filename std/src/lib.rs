//! Owned messages, wire formats, token counters and history stores.
pub mod tokens;
