//! The address of a server, and the name and the password for it.

use core::fmt;
use core::str::FromStr;

use epitome_history::remote::shown;
use epitome_history::rules::invalid;
use epitome_history::{Password, StoreError};
use tokio_postgres::Config;

/// A Postgres server: its address, and the name and the password for it, which may change.
///
/// ```
/// use epitome_postgres::{Password, PostgresServer};
///
/// # async fn token() -> Result<String, epitome_history::StoreError> { Ok("a-token".to_owned()) }
/// let here = PostgresServer::from_url("postgres://user:password@127.0.0.1/app")?;
/// let azure = PostgresServer::from_url("postgres://docs.postgres.database.azure.com/app?sslmode=require")?
///     .with_user("agents@example.com")
///     .with_password(Password::from_fn(|| Box::pin(async { Ok(token().await?.into()) })));
/// assert!(!format!("{here:?} {azure:?}").contains("password"));
/// # Ok::<(), epitome_history::StoreError>(())
/// ```
///
/// A token deserves `sslmode=require` in the url: with `prefer`, a server that offers no TLS gets it without encryption.
#[derive(Clone)]
pub struct PostgresServer {
    config: Config,
    place: Box<str>,
    password: Option<Password>,
}

impl PostgresServer {
    /// The server and the database of this url: `postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE`, with options after a `?`. `sslmode` is
    /// `disable`, `prefer` (the default) or `require`. Over TLS the server's certificate must be one for its name, and trusted.
    ///
    /// # Errors
    /// `Invalid` if it is no such url.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        // The reason may repeat a part of the url, and with it a password.
        let config = Config::from_str(url).map_err(|_| {
            invalid("open: the url cannot be read; `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")
        })?;
        Ok(Self { config, place: shown(url).into(), password: None })
    }

    /// Sets the name of the user, in place of a url's.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.config.user(user);
        self
    }

    /// Sets the password, in place of a url's.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<Password>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// All but the password that is looked up.
    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    /// The password that is looked up at each connection.
    pub(super) const fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// The address, as it may be shown.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer").field("place", &self.place).finish_non_exhaustive()
    }
}
