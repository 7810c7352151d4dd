//! Errors of compaction services.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::string::String;

use epitome_core::Usage;
use epitome_std::session::{SessionError, SessionErrorKind};

/// A failed compaction of a service. It contains no message text and no key.
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

/// The kind of a service error, which tells the caller the next step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceErrorKind {
    /// The key is wrong, or lacks the permission: correct it.
    Authentication,
    /// Too many requests: retry later.
    RateLimited {
        /// The pause that the service asks for, if it gives one.
        retry_after: Option<Duration>,
    },
    /// The service is overloaded: retry later.
    Overloaded,
    /// The service could not be reached, or the response broke off: retry later.
    Unavailable,
    /// There was no response within the time limit: retry later, or raise the limit.
    Timeout,
    /// The service does not accept so many tokens: compact earlier, or on the client.
    ContextTooLong,
    /// The service does not know the session or the response that it should have stored: send the whole history.
    Forgotten,
    /// The response differs from the service's documentation.
    Malformed,
    /// The endpoint has no such compaction: use another endpoint, or compact on the client.
    Unsupported,
    /// The service has refused the request, with this code.
    Invalid(String),
}

impl ServiceErrorKind {
    /// Whether a retry of the same request can succeed.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Overloaded | Self::Unavailable)
    }
}

impl ServiceError {
    /// An error of this kind. `context` names the service and the failure, without any message text.
    #[must_use]
    pub fn new(kind: ServiceErrorKind, context: impl Into<String>) -> Self {
        Self { kind, context: context.into(), usage: None, source: None }
    }

    /// Adds the usage that the service charged for in spite of the error.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage.map(Box::new);
        self
    }

    /// Adds the cause of the error. Its text must contain no conversation and no key.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind, which tells the caller the next step.
    #[must_use]
    pub const fn kind(&self) -> &ServiceErrorKind {
        &self.kind
    }

    /// The usage that the service charged for in spite of the error, if the service reports it.
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
