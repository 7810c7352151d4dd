//! What the measurements share: texts and histories to measure on.
#![expect(clippy::indexing_slicing, reason = "of tools, not of a library: a wrong index is a bug to hear of")]

pub mod catalogs;
pub mod compare;
pub mod corpus;
pub mod generated;
pub mod nasty;
