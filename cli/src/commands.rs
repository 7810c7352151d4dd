//! The commands, one module each.

pub(crate) mod bench;
pub(crate) mod compact;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod eval;
pub(crate) mod handoff;
pub(crate) mod hook;
#[cfg(feature = "manual")]
pub(crate) mod manual;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "report")]
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod validate;
