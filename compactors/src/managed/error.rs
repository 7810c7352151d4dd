//! Why a service has compacted nothing.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::string::String;

use epitome_core::Usage;
use epitome_std::session::{SessionError, SessionErrorKind};

/// Why a service has compacted nothing. It holds no message text and no key.
///
/// ```
/// use epitome_compactors::managed::{ServiceError, ServiceErrorKind};
///
/// let error = ServiceError::new(ServiceErrorKind::Overloaded, "openai: HTTP 503");
/// assert!(error.kind().is_transient());
/// assert_eq!(error.to_string(), "openai: HTTP 503");
/// ```
#[derive(Debug)]
pub struct ServiceError {
    kind: ServiceErrorKind,
    context: String,
    usage: Option<Box<Usage>>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The next step for the caller of a service that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceErrorKind {
    /// The key is wrong, or may not do this: correct it.
    Authentication,
    /// Too many requests: repeat later.
    RateLimited {
        /// Time that the service asks to wait, if it says one.
        retry_after: Option<Duration>,
    },
    /// The service has too much to do: repeat later.
    Overloaded,
    /// The service could not be reached, or the answer broke off: repeat later.
    Unavailable,
    /// There was no answer in time: repeat later, or give it more time.
    Timeout,
    /// The service does not take so many tokens: compact earlier, or on the client.
    ContextTooLong,
    /// The service does not know the session, or the response, that it should have kept: send the whole history.
    Forgotten,
    /// The answer is not what the service's documents say.
    Malformed,
    /// The endpoint has no such compaction: take another, or compact on the client.
    Unsupported,
    /// The service has refused the request as it is, with this code.
    Invalid(String),
}

impl ServiceErrorKind {
    /// Whether the same request can succeed a moment later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Overloaded | Self::Unavailable)
    }
}

impl ServiceError {
    /// An error of this kind; `context` says who failed and how, without any message text.
    #[must_use]
    pub fn new(kind: ServiceErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), usage: None, source: None }
    }

    /// Adds the usage that was paid for in spite of the error.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage.map(Box::new);
        self
    }

    /// Adds the cause of the error. Its text must hold no conversation and no key.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The next step for the caller.
    #[must_use]
    pub const fn kind(&self) -> &ServiceErrorKind {
        &self.kind
    }

    /// The usage that was paid for in spite of the error, if the service says so.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for ServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<ServiceError> for SessionError {
    fn from(error: ServiceError) -> Self {
        use ServiceErrorKind as Kind;
        let kind = match error.kind {
            Kind::Authentication | Kind::ContextTooLong | Kind::Unsupported | Kind::Invalid(_) => {
                SessionErrorKind::Invalid
            }
            Kind::Forgotten => SessionErrorKind::NotFound,
            _ => SessionErrorKind::Unavailable,
        };
        Self::new(kind, "managed compaction").with_source(error)
    }
}
