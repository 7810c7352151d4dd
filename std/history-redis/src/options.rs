//! Options of a store: its connections, and the names of its keys.

use core::time::Duration;

use epitome_history::RemoteOptions;

/// The connection settings of a [`RedisStore`](super::RedisStore), and the prefix of its keys.
///
/// ```
/// use core::time::Duration;
/// use epitome_redis::RedisOptions;
///
/// let options = RedisOptions::default().with_prefix("support").with_ttl(Duration::from_secs(30 * 24 * 3600));
/// assert_eq!(options.prefix, "support");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// Time limits, retries, and the number of connections.
    pub remote: RemoteOptions,
    /// The prefix of all its keys, without braces: `epitome` by default. Stores with different prefixes share nothing.
    pub prefix: String,
    /// The lifetime of a session after its last change, in whole milliseconds; `None` for no limit.
    pub ttl: Option<Duration>,
}

impl RedisOptions {
    /// Sets time limits, retries and the number of connections.
    #[must_use]
    pub const fn with_remote(mut self, remote: RemoteOptions) -> Self {
        self.remote = remote;
        self
    }

    /// Sets the prefix of the keys' names.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the lifetime of a session after its last change. Each change restarts it, with the lifetime of the store
    /// that makes the change.
    #[must_use]
    pub const fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// The lifetime in milliseconds in the form of the scripts: at least one, and `0` for no limit. The maximum is a
    /// hundred years.
    pub(super) fn ttl_text(&self) -> String {
        let millis = |ttl: Duration| ttl.as_millis().clamp(1, TTL_MILLIS_MAX);
        self.ttl.map_or(0, millis).to_string()
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self { remote: RemoteOptions::default(), prefix: "epitome".into(), ttl: None }
    }
}

/// A hundred years. Redis counts milliseconds since 1970 in 63 bits, and refuses a sum with more.
const TTL_MILLIS_MAX: u128 = 100 * 366 * 24 * 3600 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_at_least_a_millisecond_and_at_most_a_century() {
        let text = |ttl| RedisOptions::default().with_ttl(ttl).ttl_text();
        assert_eq!(RedisOptions::default().ttl_text(), "0");
        assert_eq!(text(Duration::ZERO), "1");
        assert_eq!(text(Duration::from_micros(1_999)), "1");
        assert_eq!(text(Duration::from_secs(60)), "60000");
        assert_eq!(text(Duration::MAX), "3162240000000");
    }
}
