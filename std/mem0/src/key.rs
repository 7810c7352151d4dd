//! The key of the service.

use core::fmt;
use std::sync::Arc;

use epitome_std::session::SessionError;
use futures::future::BoxFuture;
use secrecy::SecretString;

/// A key that is looked up.
pub type KeyFuture = BoxFuture<'static, Result<SecretString, SessionError>>;

/// The key of the service: a text, or a function that is asked before each request, for a key that changes. It prints nothing of itself.
///
/// ```
/// use epitome_mem0::Key;
///
/// let fixed = Key::from("m0-key");
/// let looked_up = Key::asked(|| Box::pin(async { Ok("m0-key".into()) }));
/// assert!(!format!("{fixed:?} {looked_up:?}").contains("m0-key"));
/// ```
#[derive(Clone)]
pub struct Key(Arc<dyn Fn() -> KeyFuture + Send + Sync>);

impl Key {
    /// The key that `ask` says.
    #[must_use]
    pub fn asked(ask: impl Fn() -> KeyFuture + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) async fn now(&self) -> Result<SecretString, SessionError> {
        (self.0)().await
    }
}

impl From<SecretString> for Key {
    fn from(key: SecretString) -> Self {
        Self::asked(move || {
            let key = key.clone();
            Box::pin(async move { Ok(key) })
        })
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
