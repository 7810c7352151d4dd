//! The key of a service.

use core::fmt;
use std::sync::Arc;

use epitome_std::session::{SessionError, SessionErrorKind};
use futures::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

/// The future of a key that is looked up.
pub type KeyFuture = BoxFuture<'static, Result<SecretString, SessionError>>;

/// The key of a service: a text, or a function that is asked before each request, for a key that changes. It prints nothing of itself.
///
/// ```
/// use epitome_http::Key;
///
/// let fixed = Key::from("m0-key");
/// let looked_up = Key::from_fn(|| Box::pin(async { Ok("m0-key".into()) }));
/// assert!(!format!("{fixed:?} {looked_up:?}").contains("m0-key"));
/// ```
#[derive(Clone)]
pub struct Key(Arc<dyn Fn() -> KeyFuture + Send + Sync>);

impl Key {
    /// A key that this function gives, before each request.
    #[must_use]
    pub fn from_fn(ask: impl Fn() -> KeyFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The key for one request.
    ///
    /// # Errors
    /// Those of the function that is asked.
    pub async fn now(&self) -> Result<SecretString, SessionError> {
        (self.0)().await
    }
}

impl From<SecretString> for Key {
    fn from(key: SecretString) -> Self {
        Self::from_fn(move || {
            let key = key.clone();
            Box::pin(async move { Ok(key) })
        })
    }
}

impl From<String> for Key {
    fn from(key: String) -> Self {
        SecretString::from(key).into()
    }
}

impl From<&str> for Key {
    fn from(key: &str) -> Self {
        SecretString::from(key).into()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// The header of a request that carries a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KeyHeader {
    /// In the header `authorization`, behind this word: `Bearer`, `Token`.
    Authorization(&'static str, Key),
    /// In this header, alone.
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
        // What is wrong with it would tell it.
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
