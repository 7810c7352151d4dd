//! The address of a server, with its user and password.

use core::fmt;
use core::net::Ipv6Addr;

use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use epitome_history::remote::shown;
use epitome_history::rules::invalid;
use epitome_history::{Password, StoreError};
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::of_redis;

/// A Redis server: its address, and the user and password for it. The password may change.
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
    /// The address of a url, with its options and its password.
    Url(Box<ConnectionInfo>, Box<str>),
    Host {
        host: Box<str>,
        port: u16,
        tls: bool,
    },
}

impl RedisServer {
    /// The server on this host, at port 6380 over TLS, as cloud services use it.
    ///
    /// The host is a name or an IP address alone. Any other form, such as a URL or a port, is `Invalid` when a store is
    /// opened or a provider is made.
    #[must_use]
    pub fn new(host: impl Into<Box<str>>) -> Self {
        Self::at(Address::Host { host: host.into(), port: PORT, tls: true })
    }

    /// Parses the url of a server: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS.
    ///
    /// # Errors
    /// `Invalid` if the url has another form.
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        if !url.starts_with("redis://") && !url.starts_with("rediss://") {
            return Err(invalid("open: the url of a Redis server begins with `redis://` or `rediss://`"));
        }
        // The error contains nothing of the url, because a password may be in it.
        let info = url.into_connection_info().map_err(|error| of_redis("open", &error))?;
        Ok(Self::at(Address::Url(Box::new(info), shown(url).into())))
    }

    fn at(address: Address) -> Self {
        Self { address, user: None, password: None }
    }

    /// Sets the port of a host, 6380 by default. A url has its own port.
    #[must_use]
    pub fn with_port(mut self, number: u16) -> Self {
        if let Address::Host { port, .. } = &mut self.address {
            *port = number;
        }
        self
    }

    /// Sets whether a host is reached over TLS (default: `true`). For a url, its scheme decides.
    #[must_use]
    pub fn with_tls(mut self, on: bool) -> Self {
        if let Address::Host { tls, .. } = &mut self.address {
            *tls = on;
        }
        self
    }

    /// Sets the name of the user. It replaces that of a url. A user needs a password: without one, opening is
    /// `Invalid`.
    #[must_use]
    pub fn with_user(mut self, user: impl Into<Box<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the password. It replaces that of a url.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<Password>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// The password, which is requested for each connection.
    pub(super) const fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// The printable address.
    pub(super) fn place(&self) -> String {
        match &self.address {
            Address::Url(_, shown) => shown.to_string(),
            // The text may contain a password.
            Address::Host { host, port, tls } if !is_host(host) => {
                format!("{}://***:{port}", if *tls { "rediss" } else { "redis" })
            }
            Address::Host { host, port, tls: true } => format!("rediss://{host}:{port}"),
            Address::Host { host, port, tls: false } => format!("redis://{host}:{port}"),
        }
    }

    /// The client for connections with this password. It uses the older version of the protocol, unless a url requests
    /// the newer one.
    pub(super) fn client(&self, password: Option<&SecretString>) -> Result<Client, StoreError> {
        let info = self.info()?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password.expose_secret());
        }
        // Without a password, the client would connect as the default user.
        let has_password = self.password.is_some() || settings.password().is_some();
        if self.user.is_some() && !has_password {
            return Err(invalid("open: a user needs a password: with_password"));
        }
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            use_ring();
        }
        Client::open(info.set_redis_settings(settings)).map_err(|error| of_redis("open", &error))
    }

    /// The server with the older version of the protocol, even if the url requests the newer one.
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
            Address::Host { host, .. } if !is_host(host) => return Err(invalid(NO_HOST)),
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

/// Whether this can be the name or the address of a host, without a port, and not a URL.
fn is_host(host: &str) -> bool {
    let is_outside = |letter: char| {
        matches!(letter, '/' | '@' | '?' | '#') || letter.is_whitespace() || letter.is_control()
    };
    // An IPv6 address may name its interface: `fe80::1%eth0`.
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    let is_address = || address.parse::<Ipv6Addr>().is_ok();
    !host.is_empty() && !host.contains(is_outside) && (!host.contains(':') || is_address())
}

const NO_HOST: &str = "open: the host is not a name or an IP address (IPv6 without brackets); set the port by with_port, and give a URL \
                       to from_url";

/// Sets *ring* as the crypto provider for TLS, which is one for the whole process, if the program has not set another
/// one. Without this, a program with several built-in providers would panic when it connects.
fn use_ring() {
    use rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // Another thread may have set a provider meanwhile.
        let _ = ring::default_provider().install_default();
    }
}

/// The port of Azure's cache with TLS, which is also the default of Agent Framework.
const PORT: u16 = 6380;

#[cfg(test)]
mod tests {
    use epitome_history::StoreErrorKind::Invalid;

    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_alone_and_no_other_is_shown() {
        for host in
            ["localhost", "docs.redis.cache.windows.net", "10.0.0.1", "::1", "fe80::1%eth0", "a_b", "bücher"]
        {
            let server = RedisServer::new(host);
            assert!(server.client(None).is_ok() && server.place().contains(host), "{host}");
        }
        for host in [
            "",
            "rediss://u:SECRET@h:6380",
            "u:SECRET@h",
            "u@SECRET",
            "SECRET/0",
            "SECRET?x",
            "SECRET#x",
            "SECRET x",
            "SECRET\0",
            "SECRET\n",
            "SECRET:6379",
            "[::1]",
            ":",
            "%SECRET:",
        ] {
            for tls in [true, false] {
                let server = RedisServer::new(host).with_tls(tls).with_user("u").with_password("p");
                let error = server.client(None).unwrap_err();
                let is_told = host.is_empty() || error.to_string().contains("give a URL to from_url");
                assert!(error.kind() == Invalid && is_told, "{host:?}: {error}");
                let said = format!("{error} {error:?} {server:?} {}", server.place());
                assert!(!said.contains("SECRET") && said.contains("***"), "{said}");
            }
        }
    }

    #[test]
    fn a_user_needs_a_password() {
        let secret = SecretString::from("p");
        let by_url = |url: &str| RedisServer::from_url(url).unwrap().with_user("u");
        for server in [RedisServer::new("h").with_user("u"), by_url("redis://h"), by_url("redis://v@h")] {
            let error = server.client(None).unwrap_err();
            assert!(error.kind() == Invalid && error.to_string().contains("with_password"), "{error}");
            let server = server.with_password("p");
            let client = server.client(Some(&secret)).unwrap();
            assert!(server.client(None).is_ok());
            assert_eq!(client.get_connection_info().redis_settings().username(), Some("u"));
        }
        assert!(by_url("redis://v:p@h").client(None).is_ok());
        assert!(RedisServer::new("h").with_password("p").client(None).is_ok());
    }
}
