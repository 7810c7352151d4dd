//! The password of a server.

use core::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::StoreError;

/// The future of a password that is looked up.
pub type PasswordFuture = BoxFuture<'static, Result<SecretString, StoreError>>;

/// The password of a server: a text, or a function that is asked at each new connection, for a password or a token that changes. It prints
/// nothing of itself.
///
/// ```
/// use epitome_history::Password;
///
/// let fixed = Password::from("a-secret");
/// let looked_up = Password::from_fn(|| Box::pin(async { Ok("a-secret".into()) }));
/// assert!(!format!("{fixed:?} {looked_up:?}").contains("a-secret"));
/// ```
#[derive(Clone)]
pub struct Password(Arc<dyn Fn() -> PasswordFuture + Send + Sync>);

impl Password {
    /// A password that this function gives, at each new connection. Its time is within that of the operation which needs the connection.
    #[must_use]
    pub fn from_fn(ask: impl Fn() -> PasswordFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    /// The password for one connection.
    ///
    /// # Errors
    /// Those of the function that is asked.
    pub async fn now(&self) -> Result<SecretString, StoreError> {
        (self.0)().await
    }
}

impl From<SecretString> for Password {
    fn from(password: SecretString) -> Self {
        Self::from_fn(move || {
            let password = password.clone();
            Box::pin(async move { Ok(password) })
        })
    }
}

impl From<String> for Password {
    fn from(password: String) -> Self {
        SecretString::from(password).into()
    }
}

impl From<&str> for Password {
    fn from(password: &str) -> Self {
        SecretString::from(password).into()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Password").finish_non_exhaustive()
    }
}
