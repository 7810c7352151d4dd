//! Shared code of the tests of Epitome: nasty conversations, and a naive twin of the code under test.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "test support: a panic is how it reports"
)]

pub mod applied;
pub mod around;
pub mod bounded;
pub mod cases;
pub mod generate;
pub mod invariants;
pub mod live;
pub mod message;
pub mod naive;
pub mod notation;
pub mod scenario;
pub mod script;
pub mod strategy;
pub mod summarize;
