//! Tests of sessions as JSON, and of the history in them.

mod bad_input;
mod dict;
mod excluded;
mod histories;
mod listed;
mod properties;
