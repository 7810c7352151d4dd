//! The address of a server, and the name and the password for it.

use core::fmt;

use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use epitome_history::remote::shown;
use epitome_history::rules::invalid;
use epitome_history::{Password, StoreError};
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::of_redis;

/// A Redis server: its address, and the name and the password for it, which may change.
///
/// ```
/// use epitome_redis::{Password, RedisServer};
///
/// # async fn token() -> Result<String, epitome_history::StoreError> { Ok("a-token".to_owned()) }
/// let here = RedisServer::from_url("redis://127.0.0.1/")?;
/// let cache = RedisServer::new("docs.redis.cache.windows.net")
///     .with_user("0f3c5a5e-object-id")
///     .with_password(Password::from_fn(|| Box::pin(async { Ok(token().await?.into()) })));
/// assert_eq!(format!("{cache:?}"), "RedisServer { place: \"rediss://docs.redis.cache.windows.net:6380\", .. }");
/// # Ok::<(), epitome_history::StoreError>(())
/// ```
#[derive(Clone)]
pub struct RedisServer {
    address: Address,
    user: Option<Box<str>>,
    password: Option<Password>,
}

#[derive(Clone)]
enum Address {
    /// As a url says it, options and a password of its own included.
    Url(Box<ConnectionInfo>, Box<str>),
    Host {
        host: Box<str>,
        port: u16,
        tls: bool,
    },
}

impl RedisServer {
    /// The server on this host, at port 6380 over TLS, where the services of clouds are.
    #[must_use]
    pub fn new(host: impl Into<Box<str>>) -> Self {
        Self::at(Address::Host { host: host.into(), port: PORT, tls: true })
    }

    /// The server of this url: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` over TLS.
    ///
    /// # Errors
    /// `Invalid` if it is no such url.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        if !url.starts_with("redis://") && !url.starts_with("rediss://") {
            return Err(invalid("open: the url of a Redis server begins with `redis://` or `rediss://`"));
        }
        // What is wrong with it is not said in the url's own words: a password stands in it.
        let info = url.into_connection_info().map_err(|error| of_redis("open", &error))?;
        Ok(Self::at(Address::Url(Box::new(info), shown(url).into())))
    }

    fn at(address: Address) -> Self {
        Self { address, user: None, password: None }
    }

    /// Sets the port of a host, 6380 unless it is set; a url has its own.
    #[must_use]
    pub fn with_port(mut self, number: u16) -> Self {
        if let Address::Host { port, .. } = &mut self.address {
            *port = number;
        }
        self
    }

    /// Sets whether a host is reached over TLS (`true`); a url says it itself.
    #[must_use]
    pub fn with_tls(mut self, on: bool) -> Self {
        if let Address::Host { tls, .. } = &mut self.address {
            *tls = on;
        }
        self
    }

    /// Sets the name of the user, in place of a url's.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Box<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the password, in place of a url's.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<Password>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The password that is looked up at each connection.
    pub(super) const fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// Where it is, as it may be shown.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Url(_, shown) => shown.to_string(),
            Address::Host { host, port, tls: true } => format!("rediss://{host}:{port}"),
            Address::Host { host, port, tls: false } => format!("redis://{host}:{port}"),
        }
    }

    /// The client for connections with this password. Answers come in the older form of the protocol unless a url asks for the newer.
    pub(super) fn client(&self, password: Option<&SecretString>) -> Result<Client, StoreError> {
        let info = self.info()?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password.expose_secret());
        }
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            use_ring();
        }
        Client::open(info.set_redis_settings(settings)).map_err(|error| of_redis("open", &error))
    }

    /// The same server, whose answers come in the older form of the protocol whatever a url says.
    pub(super) fn in_resp2(mut self) -> Self {
        if let Address::Url(info, _) = &mut self.address {
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
            **info = info.as_ref().clone().set_redis_settings(settings);
        }
        self
    }

    fn info(&self) -> Result<ConnectionInfo, StoreError> {
        let (host, port) = match &self.address {
            Address::Url(info, _) => return Ok(info.as_ref().clone()),
            Address::Host { host, .. } if host.is_empty() => return Err(invalid("open: the host is empty")),
            Address::Host { host, port, tls: true } => {
                let host = host.to_string();
                let address = ConnectionAddr::TcpTls { host, port: *port, insecure: false, tls_params: None };
                return address.into_connection_info().map_err(|error| of_redis("open", &error));
            }
            Address::Host { host, port, tls: false } => (host.to_string(), *port),
        };
        (host, port).into_connection_info().map_err(|error| of_redis("open", &error))
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("place", &self.place()).finish_non_exhaustive()
    }
}

/// The cryptography for TLS is one for the whole process; if the program has not chosen one, it is *ring*. Without that,
/// a program in which several were built in would panic when it connects.
fn use_ring() {
    use rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster, and has chosen then.
        let _ = ring::default_provider().install_default();
    }
}

/// The port of Azure's cache over TLS, and the default of Agent Framework.
const PORT: u16 = 6380;
