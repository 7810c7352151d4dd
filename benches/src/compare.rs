//! Comparison of Epitome with other libraries at the same work: the same code checks the input and output of each
//! library, then measures its time.
//!
//! `beside_others` compares with Python packages; `benches/compare/rust`, a separate workspace because its dependencies
//! are heavy, adds the crates. The trait [`Rival`](contender::Rival) describes another library: its messages, its call,
//! its own count.
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
