//! Comparison of Epitome with others at the same work: one piece of code judges the input and output of each, then times it.
//!
//! `beside_others` compares with Python's packages; `benches/compare/rust`, a workspace of its own because its dependencies
//! are heavy, adds the crates. A rival is a [`Rival`](contender::Rival): its messages, its call, its own count.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "shared by two programs of this repository only"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot be made ends the run")]

pub mod clock;
pub mod contender;
pub mod judge;
pub mod loops;
pub mod ours;
pub mod python;
pub mod report;
pub mod run;
pub mod said;
pub mod sizes;
pub mod sweep;
mod targets;
