//! Progress without a terminal and a clock.

use core::fmt::{self, Display};

/// Progress that is not shown.
pub(crate) struct Progress;

impl Progress {
    pub(crate) const fn new(_what: &'static str, _total: u64) -> Self {
        Self
    }

    pub(crate) const fn of_messages(_what: &'static str, _total: u64) -> Self {
        Self
    }

    pub(crate) const fn advance(&mut self, _more: u64) {}

    pub(crate) const fn reach(&mut self, _done: u64) {}
}

/// A size in bytes.
#[derive(Debug)]
pub(crate) struct BinaryBytes(pub(crate) u64);

pub(crate) use BinaryBytes as DecimalBytes;

impl Display for BinaryBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.0)
    }
}
