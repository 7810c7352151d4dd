//! The key of a service.

use epitome_history::Secret;
use epitome_std::session::{SessionError, SessionErrorKind};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

/// The key of a service. A function is called before each request.
///
/// ```
/// use epitome_http::Key;
///
/// let fixed = Key::from("m0-key");
/// let looked_up = Key::from_fn(|| Box::pin(async { Ok("m0-key".into()) }));
/// assert!(!format!("{fixed:?} {looked_up:?}").contains("m0-key"));
/// ```
pub type Key = Secret<SessionError>;

/// The header of a request that carries a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KeyHeader {
    /// In the header `authorization`, after this word: `Bearer`, `Token`.
    Authorization(&'static str, Key),
    /// In this header, without another word.
    Named(&'static str, Key),
}

impl KeyHeader {
    pub(crate) async fn header(&self, service: &str) -> Result<(HeaderName, HeaderValue), SessionError> {
        let (name, text) = match self {
            Self::Authorization(scheme, key) => {
                ("authorization", format!("{scheme} {}", key.now().await?.expose_secret()))
            }
            Self::Named(name, key) => (*name, key.now().await?.expose_secret().to_owned()),
        };
        // The error has no source, because the source would contain the key.
        let wrong = || {
            SessionError::new(
                SessionErrorKind::Invalid,
                format!("{service}: the key cannot stand in a header"),
            )
        };
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(text).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}
