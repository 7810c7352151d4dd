//! Input texts and histories that the measurements share.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "of tools, not of a library: what goes wrong is a bug to hear of"
)]

pub mod catalogs;
pub mod compare;
pub mod corpus;
pub mod generated;
pub mod managed;
pub mod nasty;
pub mod steps;
