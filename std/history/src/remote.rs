//! Common parts of the stores on servers: time limits, retries, the runtime, the password, and the printable address of
//! a server.

mod home;
mod retry;
mod secret;

use core::num::NonZeroUsize;
use core::time::Duration;

pub use self::home::Home;
pub use self::retry::{retry, unavailable};
pub use self::secret::{Password, Secret, SecretFuture};
pub use super::url::shown_url as shown;

/// Time limits and retries of a store on a server.
///
/// ```
/// use core::time::Duration;
/// use epitome_history::RemoteOptions;
///
/// let patient = RemoteOptions::default().with_timeout(Duration::from_secs(30)).with_retries(5);
/// assert_eq!(patient.retry_delay, Duration::from_millis(50));
/// ```
///
/// An operation is retried only after `Unavailable`. Retries are safe: an append is recognized by its token and a
/// commit by its record, and the other operations change nothing or are idempotent. The actual delay is random, between
/// a half of the configured delay and all of it, so that clients that failed together do not retry together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// The time limit of one attempt, with the wait for a connection. 5 seconds by default.
    pub timeout: Duration,
    /// The number of retries of an operation. 3 by default.
    pub retries: u32,
    /// The delay before the first retry; each further delay is twice as long. 50 milliseconds by default.
    pub retry_delay: Duration,
    /// The maximum number of connections. If all are in use, an operation waits for one. 8 by default.
    pub connections_max: NonZeroUsize,
}

impl RemoteOptions {
    /// Sets the time limit of an attempt.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the number of retries.
    #[must_use]
    pub const fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the delay before the first retry.
    #[must_use]
    pub const fn with_retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = delay;
        self
    }

    /// Sets the maximum number of connections.
    #[must_use]
    pub const fn with_connections_max(mut self, connections_max: NonZeroUsize) -> Self {
        self.connections_max = connections_max;
        self
    }
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            retries: 3,
            retry_delay: Duration::from_millis(50),
            connections_max: CONNECTIONS_MAX,
        }
    }
}

const CONNECTIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);
