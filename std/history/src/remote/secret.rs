//! A password or a key.

use core::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::StoreError;

/// The password of a server. A function is called for each new connection. Its time counts toward the time limit of the
/// operation that needs the connection.
pub type Password = Secret<StoreError>;

/// The future of a secret that a function returns.
pub type SecretFuture<E> = BoxFuture<'static, Result<SecretString, E>>;

/// A password or a key: a fixed text, or a function that is called each time the secret is needed, for a secret that
/// changes. Its `Debug` output does not contain the secret.
///
/// ```
/// use epitome_history::Password;
///
/// let fixed = Password::from("a-secret");
/// let looked_up = Password::from_fn(|| Box::pin(async { Ok("a-secret".into()) }));
/// assert!(!format!("{fixed:?} {looked_up:?}").contains("a-secret"));
/// ```
pub struct Secret<E>(Arc<dyn Fn() -> SecretFuture<E> + Send + Sync>);

impl<E: 'static> Secret<E> {
    /// A secret from this function, which is called each time the secret is needed.
    #[must_use]
    pub fn from_fn(ask: impl Fn() -> SecretFuture<E> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The current secret.
    ///
    /// # Errors
    /// The errors of the function.
    pub async fn now(&self) -> Result<SecretString, E> {
        (self.0)().await
    }
}

impl<E: 'static> From<SecretString> for Secret<E> {
    fn from(secret: SecretString) -> Self {
        Self::from_fn(move || {
            let secret = secret.clone();
            Box::pin(async move { Ok(secret) })
        })
    }
}

impl<E: 'static> From<String> for Secret<E> {
    fn from(secret: String) -> Self {
        SecretString::from(secret).into()
    }
}

impl<E: 'static> From<&str> for Secret<E> {
    fn from(secret: &str) -> Self {
        SecretString::from(secret).into()
    }
}

impl<E> Clone for Secret<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E> fmt::Debug for Secret<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}
