//! Measurements.
pub mod corpus;
