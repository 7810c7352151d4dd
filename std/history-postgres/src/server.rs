//! The address of a server, with its user and password.

use core::fmt;
use core::str::FromStr;

use epitome_history::remote::shown;
use epitome_history::rules::invalid;
use epitome_history::{Password, StoreError};
use tokio_postgres::Config;

/// A Postgres server: its address, and the user and password for it. The password may change.
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
/// For a token, set `sslmode=require` in the url: with `prefer`, a server without TLS receives the token unencrypted.
#[derive(Clone)]
pub struct PostgresServer {
    config: Config,
    place: Box<str>,
    password: Option<Password>,
}

impl PostgresServer {
    /// Parses the url of a server and a database: `postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE`, with options
    /// after a `?`. `sslmode` is `disable`, `prefer` (the default) or `require`. With TLS, the server's certificate
    /// must be valid for its name and trusted.
    ///
    /// # Errors
    /// `Invalid` if the url has another form.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        // The error of the parser may contain a part of the url, and with it a password.
        let config = Config::from_str(url).map_err(|_| {
            invalid("open: the url cannot be read; `postgres://USER:PASSWORD@HOST:PORT/DATABASE`")
        })?;
        Ok(Self { config, place: shown(url).into(), password: None })
    }

    /// Sets the name of the user. It replaces that of the url.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<String>) -> Self {
        self.config.user(user);
        self
    }

    /// Sets the password. It replaces that of the url.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<Password>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The connection settings, without a password from a function.
    pub(super) const fn config(&self) -> &Config {
        &self.config
    }

    /// The password from a function, which is requested for each connection.
    pub(super) const fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// The printable address.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresServer").field("place", &self.place).finish_non_exhaustive()
    }
}
