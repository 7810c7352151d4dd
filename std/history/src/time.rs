//! The times of appends.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment, in milliseconds since the beginning of 1970 (UTC).
///
/// ```
/// use epitome_history::Timestamp;
///
/// assert!(Timestamp(1_000) < Timestamp::now());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number with a unit")]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time of the system's clock; 1970 if that is set to an earlier time.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock; whoever decides is given a time"
    )]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The time of an append after one at `last`: the later of the two, in case the clock was set back.
    pub(super) fn after(given: Option<Self>, last: Option<Self>) -> Option<Self> {
        given.max(last)
    }
}
