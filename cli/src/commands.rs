//! The commands, one room each.

pub(crate) mod compact;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod validate;
